//! Relays with many terminals over one socket.

mod buffers;
mod due;
mod families;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod grants;
mod shaping;

pub use shaping::{Plans, Standing};

use crate::path_cache::PathCache;
use crate::plan::{Shaper, Turn};
use crate::relay::payload_of;
use crate::session::association_config;
use crate::tap::{Tap, Way};
use crate::{
    DisconnectReason, Event, Families, PathMetrics, PeerId, ReceiveError, Relay, RelayConfig,
    Totals, Transmit, TransmitBatch,
};
use association::{Entropy, HubReceived, Keys, PublicKey, Sealed};
use buffers::Buffers;
use due::Due;
use grants::Grants;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use units::{BitRate, Instant, Span};

/// How long a terminal may take from its first payload to a session.
const CONNECT_TIME: Span = Span::from_secs(60);

/// A relay with one terminal.
#[derive(Debug)]
struct Peer {
    relay: Relay,
    /// When it is forgotten if there is no session by then.
    session_by: Instant,
    /// Where it was when it was last heard from.
    address: Option<SocketAddr>,
}

/// The hub's end: a [`Relay`] for each terminal.
#[derive(Debug)]
pub struct Hub {
    config: RelayConfig,
    association: association::Hub,
    peers: BTreeMap<PeerId, Peer>,
    /// Events of sessions that are over, which precede those of others.
    final_events: VecDeque<(PeerId, Event)>,
    /// Terminals that may have carried packets here.
    carried: BTreeSet<PeerId>,
    /// Who wants attention.
    due: Due,
    /// The terminal that reported an event last; the next one is polled first.
    polled: Option<PeerId>,
    plans: Plans,
    /// Shares the link among terminals, where its rate is known.
    shaper: Option<Shaper<PeerId>>,
    /// Who sends what on the return link.
    grants: Grants,
    /// The address families that are announced to terminals.
    families: Families,
    /// What sessions found out, for the next ones with the same terminals.
    path_cache: PathCache,
    /// Buffers of terminals for which they are not the usual.
    buffers: Vec<Buffers>,
    /// Which of them, by the names of the paths.
    buffered: BTreeMap<String, usize>,
    /// What relays that are gone have done.
    past: Totals,
    /// Where copies of payloads go.
    tap: Option<Box<Tap>>,
}

impl Hub {
    /// A hub that knows no terminal yet.
    pub fn new(config: &RelayConfig, entropy: impl Entropy + 'static) -> Self {
        let config = &buffers::within_total(config);
        Self {
            config: config.clone(),
            association: association::Hub::new(association_config(config), entropy),
            peers: BTreeMap::new(),
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
            past: Totals::default(),
            tap: None,
        }
    }

    /// The relay with a terminal.
    pub fn peer(&mut self, id: PeerId) -> Option<&mut Relay> {
        let peer = self.peers.get_mut(&id)?;
        // Whatever is done to it now.
        self.due.touch(id);
        Some(&mut peer.relay)
    }

    /// All relays, to look at.
    pub fn relays(&self) -> impl Iterator<Item = (PeerId, &Relay)> {
        self.peers.iter().map(|(&id, peer)| (id, &peer.relay))
    }

    /// The terminals that there is a relay with.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }

    /// The variables of a terminal's session at `now`, while there is one.
    pub fn snapshot(&self, peer: PeerId, now: Instant) -> Option<xstp::session::Snapshot> {
        self.peers.get(&peer)?.relay.snapshot(now)
    }

    /// What the terminal is called: by the list of keys, or by itself where there is none.
    pub fn name(&self, peer: PeerId) -> Option<&str> {
        self.association.name(peer)
    }

    /// Where the terminal was last heard from.
    pub fn address(&self, peer: PeerId) -> Option<SocketAddr> {
        self.association.address(peer)
    }

    /// Stores `metrics`, which an earlier process measured on the path to the terminal called
    /// `name`: the next session with it begins with them.
    pub fn cache_path_metrics(&mut self, name: &str, metrics: PathMetrics) {
        self.path_cache.put(name.to_owned(), metrics, None);
    }

    /// Path metrics that sessions have measured since this hub was made, by the terminal's name,
    /// and when they did.
    pub fn path_metrics(
        &mut self,
        now: Instant,
    ) -> impl Iterator<Item = (&str, PathMetrics, Instant)> {
        let ids: Vec<PeerId> = self.peers.keys().copied().collect();
        for id in ids {
            self.keep(now, id);
        }
        self.path_cache.measured()
    }

    /// Stores what the session with a terminal has measured.
    fn keep(&mut self, now: Instant, id: PeerId) {
        if let Some(metrics) = self.peers.get(&id).and_then(|peer| peer.relay.path_metrics())
            && let Some(name) = self.association.name(id)
        {
            self.path_cache.put(name.to_owned(), metrics, Some(now));
        }
    }

    /// From here on this side sends at `send` at most to all terminals together; see
    /// [`Relay::set_rates`].
    pub fn set_rates(&mut self, send: Option<BitRate>, receive: Option<BitRate>) {
        (self.config.send_rate, self.config.receive_rate) = (send, receive);
        self.association.set_receive_rate(receive.map_or(0, BitRate::as_bps));
        if receive.is_none() {
            self.end_grants();
        }
        self.reshape();
    }

    /// What the associations have counted.
    pub fn association_counters(&self) -> &association::Counters {
        self.association.counters()
    }

    /// What relays have done in all, those included that are gone.
    pub fn totals(&self) -> Totals {
        let mut totals = self.past;
        for peer in self.peers.values() {
            totals.add(&peer.relay.totals());
        }
        totals
    }

    /// This hub's public key, where it has keys.
    pub fn public_key(&self) -> Option<PublicKey> {
        self.association.public_key()
    }

    /// Takes another list of terminals, under the same private key: see
    /// [`association::Hub::set_keys`]. Terminals that are not on it any more are lost at once.
    ///
    /// # Panics
    /// When the hub has no keys, or the private one is another.
    pub fn set_keys(&mut self, keys: Arc<Keys>) {
        for id in self.association.set_keys(keys) {
            if let Some(peer) = self.take_out(id) {
                self.past.add(&peer.relay.totals());
                let reason = DisconnectReason::Closed;
                self.final_events.push_back((id, Event::Disconnected { reason }));
            }
        }
    }

    /// Copies from now on what associations open and seal into `tap`; `None`: no more.
    pub fn set_tap(&mut self, tap: Option<Tap>) {
        self.tap = tap.map(Box::new);
    }

    /// The tap, while there is one.
    pub fn tap(&mut self) -> Option<&mut Tap> {
        self.tap.as_deref_mut()
    }

    /// Ends all sessions in order, and makes no association any more; see [`Relay::drain`].
    pub fn drain(&mut self) {
        self.association.drain();
        for (&id, peer) in &mut self.peers {
            peer.relay.drain();
            self.due.touch(id);
        }
    }

    /// Resets all sessions, so that the terminals know at once that this side stops: poll for
    /// what is to be sent a last time.
    pub fn close(&mut self, now: Instant) {
        for (&id, peer) in &mut self.peers {
            peer.relay.close(now);
            self.due.touch(id);
        }
    }

    /// Takes a datagram that came from `from`; returns the terminal whose association it opened
    /// under: `None` for all that anybody can send.
    ///
    /// # Errors
    /// When it is not whole, not new, or from no terminal that is known.
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
        let HubReceived::Payload { peer: id, kind, payload, order, replaced, .. } = received else {
            return Ok(None);
        };
        if let Some(old) = replaced
            && let Some(peer) = self.take_out(old)
        {
            // The new association has the old one's name.
            if let Some((metrics, name)) = peer.relay.path_metrics().zip(self.association.name(id))
            {
                self.path_cache.put(name.to_owned(), metrics, Some(now));
            }
            self.past.add(&peer.relay.totals());
            let reason = DisconnectReason::PeerRestarted;
            self.final_events.push_back((old, Event::Disconnected { reason }));
        }
        if !self.peers.contains_key(&id) {
            let Some(limits) = self.association.limits(id) else { return Ok(Some(id)) };
            let cached = self.association.name(id).and_then(|name| self.path_cache.get(name));
            let welcomed_at = self.association.welcomed_at(id);
            let handshake_rtt = welcomed_at.map(|welcomed| now.since(welcomed));
            let mut relay = Relay::peer(&self.config_for(id), limits, cached, handshake_rtt, now);
            relay.announce_families(self.families);
            if self.association.is_draining() {
                // It was welcomed before.
                relay.drain();
            }
            let address = self.association.address(id);
            self.peers.insert(id, Peer { relay, session_by: now + CONNECT_TIME, address });
            self.join(id);
            self.share_memory();
        }
        self.due.touch(id);
        if let Some(tap) = self.tap.as_mut().filter(|_| kind == Sealed::Data) {
            let name = self.association.name(id).unwrap_or_default();
            tap.take(now, (Some(id), name), Way::In, payload);
        }
        let address = self.association.address(id);
        let Some(peer) = self.peers.get_mut(&id) else { return Ok(Some(id)) };
        if peer.address != address {
            peer.address = address;
            peer.relay.moved();
        }
        let connected_since = peer.relay.connected_since();
        let result = peer.relay.handle_payload(now, (kind, order), payload);
        if peer.relay.has_datagram() {
            self.carried.insert(id);
        }
        // The next session of the same terminal may have begun.
        self.part_if_lost(now, id);
        if self.config.receive_rate.is_some()
            && let Some(peer) = self.peers.get_mut(&id)
        {
            self.grants.came(now, id, octets as u64, peer.relay.take_need());
            let since = peer.relay.connected_since();
            if since.is_some() && since != connected_since {
                self.grants.look_at_once(now);
            }
        }
        result.map(|()| Some(id))
    }

    /// Looks after a relay whose session is over. Where the association is kept the terminal may
    /// begin another session in it; otherwise the relay is forgotten, and the terminal makes a new
    /// association.
    fn part_if_lost(&mut self, now: Instant, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if let Some(reason) = peer.relay.take_disconnected() {
            if let Some(time) = peer.relay.association_time(reason) {
                peer.session_by = now + time;
                self.keep(now, id);
                self.grants.forget(id);
                self.share_memory();
                self.final_events.push_back((id, Event::Disconnected { reason }));
                return;
            }
            self.past.add(&peer.relay.totals());
            self.keep(now, id);
            self.take_out(id);
            self.association.remove(id);
            self.final_events.push_back((id, Event::Disconnected { reason }));
        }
    }

    /// Forgets a relay, and all that was noted about it.
    fn take_out(&mut self, id: PeerId) -> Option<Peer> {
        self.due.forget(id);
        self.grants.forget(id);
        if let Some(shaper) = &mut self.shaper {
            shaper.leave(id);
        }
        self.peers.remove(&id)
    }

    /// Fills `batch` with datagrams for one terminal (or one answer to a newcomer); returns
    /// where they go. Where the link's rate is known, data goes in turns by [plans](Plans), and
    /// what goes without data before it, unless its terminal is far ahead of its share; else those
    /// that have waited longest go first.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        batch: &mut TransmitBatch<'_>,
    ) -> Option<(SocketAddr, Transmit)> {
        if let Some(to) = self.association.poll_transmit(batch) {
            self.charge(now, (None, None), batch);
            return batch.transmit().map(|transmit| (to, transmit));
        }
        // Whoever was touched may have something to say at once, whatever it waited for before.
        for id in self.due.take_touched() {
            self.due.note(id, Some(now));
        }
        // Who has nothing goes to the end, so all that are due are asked once.
        for _ in 0..=self.peers.len() {
            let Some(id) = self.due.waiting(now) else { break };
            if !self.is_ahead(now, id) {
                let sent = self.transmit_to(now, id, batch, None);
                if sent.is_some() {
                    // Until it has nothing more.
                    self.due.note(id, Some(now));
                    return sent;
                }
            }
            self.note(now, id);
        }
        self.transmit_turn(now, batch)
    }

    /// Fills `batch` with what a terminal is to be sent: all that its session lets go, or what it
    /// may send in its `turn`.
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
        let peer = self.peers.get_mut(&id)?;
        let mut to = None;
        let (association, tap) = (&mut self.association, &mut self.tap);
        peer.relay.transmit(now, batch, most, |kind, datagram| {
            if let Some(tap) = tap.as_mut().filter(|_| kind == Sealed::Data) {
                let name = association.name(id).unwrap_or_default();
                tap.take(now, (Some(id), name), Way::Out, payload_of(datagram));
            }
            to = association.seal(now, id, kind, datagram);
            to.is_some()
        });
        self.due.touch(id);
        self.charge(now, (Some(id), turn), batch);
        self.part_if_lost(now, id);
        to.zip(batch.transmit())
    }

    /// The next IP packet that a terminal has carried here as it was, and which.
    pub fn take_datagram(&mut self) -> Option<(PeerId, Vec<u8>)> {
        while let Some(&id) = self.carried.first() {
            if let Some(packet) = self.peers.get_mut(&id).and_then(|p| p.relay.take_datagram()) {
                return Some((id, packet));
            }
            self.carried.remove(&id);
        }
        None
    }

    /// When [`handle_timeout`](Self::handle_timeout) and [`poll_transmit`](Self::poll_transmit)
    /// have something to do again.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let touched = self.due.touched().filter_map(|id| {
            let data = self.peers.get(&id).and_then(|peer| peer.relay.data_due());
            // Nobody is called for what the line has no room for.
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

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.association.handle_timeout(now);
        self.review_grants(now);
        for id in self.due.all(now) {
            let Some(peer) = self.peers.get_mut(&id) else { continue };
            peer.relay.handle_timeout(now);
            self.due.touch(id);
            // First those whose loss is news to whoever drives this.
            self.part_if_lost(now, id);
            let Some(peer) = self.peers.get(&id) else { continue };
            if !peer.relay.is_connected() && now >= peer.session_by {
                // There is no session with it: the layer above does not know it.
                self.past.add(&peer.relay.totals());
                self.take_out(id);
                self.association.remove(id);
            }
        }
    }

    /// The next thing that happened, and with which terminal. Terminals take turns.
    pub fn poll_event(&mut self) -> Option<(PeerId, Event)> {
        if let Some(event) = self.final_events.pop_front() {
            return Some(event);
        }
        while let Some(id) = self.due.teller(self.polled) {
            if let Some(event) = self.peers.get_mut(&id).and_then(|peer| peer.relay.poll_event()) {
                self.polled = Some(id);
                return Some((id, event));
            }
            self.due.told_all(id);
        }
        None
    }
}
