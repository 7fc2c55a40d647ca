//! Relays with many terminals over one socket.

mod buffers;
mod due;
mod ending;
mod families;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod grants;
mod joined;
mod shaping;

pub use shaping::{Plans, Standing};

use crate::path_cache::PathCache;
use crate::plan::{Shaper, Turn};
use crate::relay::payload_of;
use crate::session::association_config;
use crate::tap::{Direction, Tap};
use crate::{
    DisconnectReason, Event, Families, PathMetrics, PeerId, ReceiveError, Relay, RelayConfig,
    Totals, Transmit, TransmitBatch,
};
use association::{Entropy, HubReceived, Keys, PublicKey, Sealed, SendOrder};
use buffers::Buffers;
use due::Due;
use grants::Grants;
use joined::Joined;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use units::{BitRate, Instant, Span};

/// Maximum time from a terminal's first payload to a session.
const CONNECT_TIME: Span = Span::from_secs(60);

/// A relay with one terminal.
#[derive(Debug)]
struct Peer {
    relay: Relay,
    /// The relay is removed at this time if there is no session.
    session_by: Instant,
    /// The source address of the last datagram.
    address: Option<SocketAddr>,
    /// The terminal's name, if the association has ended and the relay continues on other paths.
    name: Option<String>,
    /// The associations that are further paths of the relay.
    joined: Vec<PeerId>,
}

/// The hub's end: a [`Relay`] for each terminal.
#[derive(Debug)]
pub struct Hub {
    config: RelayConfig,
    association: association::Hub,
    peers: BTreeMap<PeerId, Peer>,
    /// Associations that are further paths of these relays.
    joined: BTreeMap<PeerId, Joined>,
    /// Events of closed sessions, which precede those of others.
    final_events: VecDeque<(PeerId, Event)>,
    /// Terminals from which forwarded packets may be queued.
    carried: BTreeSet<PeerId>,
    /// Timers of the peers, and peers with pending work.
    due: Due,
    /// The terminal that reported an event last; polling continues with the next one.
    polled: Option<PeerId>,
    plans: Plans,
    /// Shares the link among terminals, where its rate is known.
    shaper: Option<Shaper<PeerId>>,
    /// Sending rates on the return link and their allocation.
    grants: Grants,
    /// The address families that are announced to terminals.
    families: Families,
    /// Path metrics of earlier sessions, for the next session with the same terminal.
    path_cache: PathCache,
    /// Buffer sizes of terminals that differ from the default.
    buffers: Vec<Buffers>,
    /// Index into `buffers`, by the names of the paths.
    buffered: BTreeMap<String, usize>,
    /// Bytes of `config.total_memory` in each direction that no terminal had when it was divided
    /// last, without what new ones have got since.
    free_memory: [u64; 2],
    /// Totals of removed relays.
    past: Totals,
    /// Receives copies of payloads.
    tap: Option<Box<Tap>>,
    /// Addresses to which nothing is sent now, and the interval after which the terminals are due
    /// again.
    full: (BTreeSet<SocketAddr>, Span),
}

impl Hub {
    /// Creates a hub without terminals.
    pub fn new(config: &RelayConfig, entropy: impl Entropy + 'static) -> Self {
        let config = &buffers::within_total(config);
        Self {
            config: config.clone(),
            association: association::Hub::new(association_config(config), entropy),
            peers: BTreeMap::new(),
            joined: BTreeMap::new(),
            final_events: VecDeque::new(),
            carried: BTreeSet::new(),
            due: Due::default(),
            polled: None,
            shaper: shaping::shaper(config.send_rate, &Plans::default()),
            plans: Plans::default(),
            grants: Grants::default(),
            families: Families::default(),
            path_cache: PathCache::default(),
            buffers: Vec::new(),
            buffered: BTreeMap::new(),
            free_memory: [config.total_memory.unwrap_or(0); 2],
            past: Totals::default(),
            tap: None,
            full: (BTreeSet::new(), Span::ZERO),
        }
    }

    /// Returns the relay with a terminal.
    pub fn peer(&mut self, id: PeerId) -> Option<&mut Relay> {
        // The caller may change it.
        if self.peers.contains_key(&id) {
            self.touch(id);
        }
        self.peers.get_mut(&id).map(|peer| &mut peer.relay)
    }

    /// Returns all relays, read-only.
    pub fn relays(&self) -> impl Iterator<Item = (PeerId, &Relay)> {
        self.peers.iter().map(|(&id, peer)| (id, &peer.relay))
    }

    /// Returns the terminals with a relay.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }

    /// Returns the state variables of a terminal's session at `now`, if there is one.
    pub fn snapshot(&self, peer: PeerId, now: Instant) -> Option<xstp::session::Snapshot> {
        self.peers.get(&peer)?.relay.snapshot(now)
    }

    /// Returns the terminal's name: the configured one, or without keys the one it announced.
    pub fn name(&self, peer: PeerId) -> Option<&str> {
        let left = || self.peers.get(&peer)?.name.as_deref();
        self.association.name(peer).or_else(left)
    }

    /// Returns the source address of the terminal's last datagram.
    pub fn address(&self, peer: PeerId) -> Option<SocketAddr> {
        let joined = || {
            let mut others = self.peers.get(&peer)?.joined.iter();
            others.find_map(|&id| self.association.address(id))
        };
        self.association.address(peer).or_else(joined)
    }

    /// Stores `metrics`, which an earlier process measured on the path to the terminal `name`. Its
    /// next session starts with them.
    pub fn cache_path_metrics(&mut self, name: &str, metrics: PathMetrics) {
        self.path_cache.put(name.to_owned(), metrics, None);
    }

    /// Returns the path metrics that sessions have measured since this hub was created, by the
    /// terminal's name, with their time.
    pub fn path_metrics(
        &mut self,
        now: Instant,
    ) -> impl Iterator<Item = (&str, PathMetrics, Instant)> {
        for id in self.paths() {
            self.keep(now, id);
        }
        self.path_cache.measured()
    }

    /// Stores the path metrics of a terminal's session.
    fn keep(&mut self, now: Instant, id: PeerId) {
        if let Some((relay, number)) = self.relay_of(id)
            && let Some(metrics) = relay.path_metrics_on(number)
            && let Some(name) = self.association.name(id)
        {
            self.path_cache.put(name.to_owned(), metrics, Some(now));
        }
    }

    /// Limits the sending rate to all terminals together to `send` from now on; see
    /// [`Relay::set_rates`].
    pub fn set_rates(&mut self, send: Option<BitRate>, receive: Option<BitRate>) {
        (self.config.send_rate, self.config.receive_rate) = (send, receive);
        self.association.set_receive_rate(receive.map_or(0, BitRate::as_bps));
        if receive.is_none() {
            self.end_grants();
        }
        self.reshape();
    }

    /// Returns the counters of the associations.
    pub fn association_counters(&self) -> &association::Counters {
        self.association.counters()
    }

    /// Returns the totals of all relays, including removed ones.
    pub fn totals(&self) -> Totals {
        let mut totals = self.past;
        for peer in self.peers.values() {
            totals.add(&peer.relay.totals());
        }
        totals
    }

    /// Returns this hub's public key, if it has keys.
    pub fn public_key(&self) -> Option<PublicKey> {
        self.association.public_key()
    }

    /// Replaces the list of terminals, with the same private key: see
    /// [`association::Hub::set_keys`]. Sessions of terminals that are no longer listed end
    /// immediately.
    ///
    /// # Panics
    /// Panics if the hub has no keys, or if the private key differs.
    pub fn set_keys(&mut self, keys: Arc<Keys>) {
        for id in self.association.set_keys(keys) {
            if let Some((of, peer)) = self.end_path(id) {
                self.past.add(&peer.relay.totals());
                let reason = DisconnectReason::Closed;
                self.final_events.push_back((of, Event::Disconnected { reason }));
            }
        }
    }

    /// Returns the next key that a terminal has registered.
    pub fn poll_registration(&mut self) -> Option<association::Registration> {
        self.association.poll_registration()
    }

    /// Copies the payloads of associations to `tap` from now on; `None` stops this.
    pub fn set_tap(&mut self, tap: Option<Tap>) {
        self.tap = tap.map(Box::new);
    }

    /// Returns the tap, if there is one.
    pub fn tap(&mut self) -> Option<&mut Tap> {
        self.tap.as_deref_mut()
    }

    /// Handles a datagram from `from`. Returns the terminal whose association decrypted it; `None`
    /// for messages that are not authenticated.
    ///
    /// # Errors
    /// Returns an error if it is truncated, a replay, or from an unknown terminal.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &mut [u8],
    ) -> Result<Option<PeerId>, ReceiveError> {
        let octets = datagram.len() + self.config.ip_overhead + self.config.link_overhead;
        let received = self
            .association
            .handle_datagram(now, from, datagram)
            .map_err(ReceiveError::Association)?;
        let HubReceived::Payload { peer: id, kind, payload, order, replaced, joins, .. } = received
        else {
            return Ok(None);
        };
        for old in replaced {
            // The new association has the same name.
            let metrics = self.relay_of(old).and_then(|(relay, path)| relay.path_metrics_on(path));
            if let Some((metrics, name)) = metrics.zip(self.association.name(id)) {
                self.path_cache.put(name.to_owned(), metrics, Some(now));
            }
            self.replace_path(old);
        }
        if self.seat(id).is_none() {
            let Some(limits) = self.association.limits(id) else { return Ok(Some(id)) };
            if let Some(sibling) = joins {
                if !self.join_path(now, id, (sibling, limits)) {
                    // The terminal makes another association.
                    self.association.remove(id);
                    return Ok(None);
                }
                return self.handle_payload(now, id, (kind, order), payload, octets);
            }
            let cached = self.association.name(id).and_then(|name| self.path_cache.get(name));
            let welcomed_at = self.association.welcomed_at(id);
            let handshake_rtt = welcomed_at.map(|welcomed| now.since(welcomed));
            let mut relay = Relay::peer(&self.config_for(id), limits, cached, handshake_rtt, now);
            relay.announce_families(self.families);
            if self.association.is_draining() {
                // The association existed before the drain.
                relay.drain();
            }
            let address = self.association.address(id);
            let session_by = now + CONNECT_TIME;
            self.peers
                .insert(id, Peer { relay, session_by, address, name: None, joined: Vec::new() });
            self.join(id);
            self.begin_share(id);
        }
        self.handle_payload(now, id, (kind, order), payload, octets)
    }

    /// Handles the payload of an association, in a datagram of so many octets.
    fn handle_payload(
        &mut self,
        now: Instant,
        id: PeerId,
        (kind, order): (Sealed, SendOrder),
        payload: &[u8],
        octets: usize,
    ) -> Result<Option<PeerId>, ReceiveError> {
        let seat = self.seat(id);
        if let Some(tap) = self.tap.as_mut().filter(|_| kind == Sealed::Data) {
            let name = self.association.name(id).unwrap_or_default();
            let path = seat.map_or(0, |(_, number)| number);
            tap.take(now, ((Some(id), path), name), Direction::In, payload);
        }
        let address = self.association.address(id);
        let Some((of, number)) = seat else { return Ok(Some(id)) };
        self.touch(of);
        let Some(peer) = self.peers.get_mut(&of) else { return Ok(Some(id)) };
        let before = match self.joined.get_mut(&id) {
            Some(joined) => &mut joined.address,
            None => &mut peer.address,
        };
        if *before != address {
            *before = address;
            peer.relay.on_path_change(number);
        }
        let connected_since = peer.relay.connected_since_on(number);
        let result = peer.relay.handle_payload(now, number, (kind, order), payload);
        if peer.relay.has_datagram() {
            self.carried.insert(of);
        }
        // The next session of the same terminal may have started.
        self.part_if_lost(now, id);
        if self.config.receive_rate.is_some()
            && let Some((relay, number)) = self.relay_of(id)
        {
            let need = relay.take_need(number);
            let since = relay.connected_since_on(number);
            self.grants.on_received(now, id, octets as u64, need);
            if since.is_some() && since != connected_since {
                self.grants.review_now(now);
            }
        }
        result.map(|()| Some(id))
    }

    /// Fills `batch` with datagrams for one terminal (or one response to an unvalidated source);
    /// returns their destination. If the link's rate is known, data is scheduled by [plans](Plans),
    /// and packets without data precede it unless the terminal is far above its share. Otherwise
    /// the terminal that has waited longest is served first.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        batch: &mut TransmitBatch<'_>,
    ) -> Option<(SocketAddr, Transmit)> {
        if let Some(to) = self.association.poll_transmit(batch) {
            self.charge(now, (None, None), batch);
            return batch.transmit().map(|transmit| (to, transmit));
        }
        // A changed relay may have something to send now, whatever its timer.
        for id in self.due.take_touched() {
            self.due.note(id, Some(now));
        }
        // A terminal without data moves to the end, so each due terminal is polled once.
        for _ in 0..=self.peers.len() + self.joined.len() {
            let Some(id) = self.due.waiting(now) else { break };
            if self.defer_full(now, id) {
                continue;
            }
            if !self.is_ahead(now, id) {
                let sent = self.transmit_to(now, id, batch, None);
                if sent.is_some() {
                    // Until it has no more data.
                    self.due.note(id, Some(now));
                    return sent;
                }
            }
            self.note(now, id);
        }
        self.transmit_turn(now, batch)
    }

    /// Fills `batch` with the datagrams of one terminal: all that its session permits, or those of
    /// its `turn`.
    fn transmit_to(
        &mut self,
        now: Instant,
        id: PeerId,
        batch: &mut TransmitBatch<'_>,
        turn: Option<Turn<PeerId>>,
    ) -> Option<(SocketAddr, Transmit)> {
        let most = match &self.shaper {
            Some(shaper) if turn.is_some() => shaper.turn_octets(),
            Some(_) | None => usize::MAX,
        };
        let (of, number) = self.seat(id)?;
        let peer = self.peers.get_mut(&of)?;
        let mut to = None;
        let (association, tap) = (&mut self.association, &mut self.tap);
        peer.relay.transmit(now, number, batch, most, |kind, datagram| {
            if let Some(tap) = tap.as_mut().filter(|_| kind == Sealed::Data) {
                let name = association.name(id).unwrap_or_default();
                tap.take(now, ((Some(id), number), name), Direction::Out, payload_of(datagram));
            }
            to = association.seal(now, id, kind, datagram);
            to.is_some()
        });
        self.touch(of);
        self.charge(now, (Some(id), turn), batch);
        self.part_if_lost(now, id);
        to.zip(batch.transmit())
    }

    /// Returns the next IP packet that a terminal has forwarded, with the terminal.
    pub fn take_datagram(&mut self) -> Option<(PeerId, Vec<u8>)> {
        while let Some(&id) = self.carried.first() {
            if let Some(packet) = self.peers.get_mut(&id).and_then(|p| p.relay.take_datagram()) {
                return Some((id, packet));
            }
            self.carried.remove(&id);
        }
        None
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) have something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let touched = self.due.touched().filter_map(|id| {
            let seat = self.seat(id).and_then(|(of, number)| Some((self.peers.get(&of)?, number)));
            let data = seat.and_then(|(peer, number)| peer.relay.data_due(number));
            // Data waits for room on the link.
            let room = self.shaper.as_ref().map_or(Instant::ZERO, Shaper::room_at);
            self.attention(id).into_iter().chain(data.map(|data| data.max(room))).min()
        });
        let others = [
            self.due.first(),
            self.association.poll_timeout(),
            self.shaper.as_ref().and_then(Shaper::poll_timeout),
            self.grants.poll_timeout(),
        ];
        others.into_iter().flatten().chain(touched).min()
    }

    /// Processes the timers that have expired by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.association.handle_timeout(now);
        self.review_grants(now);
        for id in self.due.all(now) {
            let Some((of, _)) = self.seat(id) else { continue };
            let Some(peer) = self.peers.get_mut(&of) else { continue };
            peer.relay.handle_timeout(now);
            self.touch(of);
            // Sessions whose loss is reported to the layer above come first.
            self.part_if_lost(now, id);
            if self.session_by(id).is_some_and(|at| now >= at) {
                // It has no session, so the layer above has no state for it.
                if let Some((_, peer)) = self.end_path(id) {
                    self.past.add(&peer.relay.totals());
                }
                self.association.remove(id);
            }
        }
    }

    /// Returns the next event and its terminal. Terminals are polled in turn.
    pub fn poll_event(&mut self) -> Option<(PeerId, Event)> {
        if let Some(event) = self.final_events.pop_front() {
            return Some(event);
        }
        while let Some(id) = self.due.next_with_events(self.polled) {
            if let Some(event) = self.peers.get_mut(&id).and_then(|peer| peer.relay.poll_event()) {
                self.polled = Some(id);
                return Some((id, event));
            }
            self.due.clear_events(id);
        }
        None
    }
}
