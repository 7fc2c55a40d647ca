//! Set of relays: one for each path at a terminal, one for each terminal at a hub, with the same
//! methods.

mod accounts;
mod counted;
mod families;
mod home;
mod hub_names;
mod mtu;
pub(crate) mod reports;
mod seen;

use crate::HubSection;
use crate::config::{for_relay, terminal_of};
use crate::engine::host::Delivered;
use crate::engine::limits::client_network::owner;
use crate::engine::limits::slots::SHARE_OF_FREE;
use crate::engine::peers::handshake_log::HandshakeLog;
use crate::engine::peers::outgoing::Outgoing;
use crate::engine::peers::paths::{PathPlan, Paths};
use crate::engine::peers::peer::{Peer, StreamKey};
use crate::state::State;
use crate::tls;
use association::{Entropy, OpenError};
use relay::health::{HealthCriteria, HealthState};
use relay::{
    Event, Hub, Keys, Priority, PublicKey, ReceiveError, RefuseReason, Registration, Relay,
    RelayConfig, ResetReason, StreamError, Target, TransmitBatch,
};
use std::net::SocketAddr;
use std::sync::Arc;
use units::{BitRate, Instant, Span};

/// The relays of a gateway. A stream that is gone takes no bytes and has none, without an error.
#[derive(Debug)]
pub(crate) struct RelaySet {
    side: Side,
    /// Rejected datagrams: malformed, replayed, or from an unknown source.
    bad_datagrams: u64,
    handshake_log: HandshakeLog,
    /// Length of the prefix by which IPv6 clients are counted, in bits.
    ipv6_prefix: u32,
}

#[derive(Debug)]
enum Side {
    Terminal(Box<Paths>),
    Hub(Box<Hub>),
}

impl RelaySet {
    /// Relays of a terminal for the paths `plans`, with the health criteria `demands`.
    pub(crate) fn terminal<E: Entropy + 'static>(
        plans: Vec<PathPlan>,
        demands: HealthCriteria,
        now: Instant,
        entropy: impl FnMut() -> E + Send + 'static,
    ) -> Self {
        Self {
            side: Side::Terminal(Box::new(Paths::new(plans, demands, now, entropy))),
            bad_datagrams: 0,
            handshake_log: HandshakeLog::default(),
            ipv6_prefix: crate::Limits::default().ipv6_prefix,
        }
    }

    /// Relays of a hub, which begin with the cached path metrics of `state`. `memory` has the
    /// octets of buffer of terminals with other than the default, by the names of their paths.
    pub(crate) fn hub(
        config: &RelayConfig,
        state: &State,
        memory: &[(Vec<&str>, u64)],
        entropy: impl Entropy + 'static,
    ) -> Self {
        let mut hub = Box::new(Hub::new(config, entropy));
        for (name, metrics) in state.all() {
            hub.cache_path_metrics(name, metrics);
        }
        for (names, bytes) in memory {
            hub.set_memory(names, *bytes);
        }
        Self {
            side: Side::Hub(hub),
            bad_datagrams: 0,
            handshake_log: HandshakeLog::default(),
            ipv6_prefix: crate::Limits::default().ipv6_prefix,
        }
    }

    /// Returns a hub's own public key, where it has keys.
    pub(crate) fn own_key(&self) -> Option<PublicKey> {
        match &self.side {
            Side::Hub(hub) => hub.public_key(),
            Side::Terminal(_) => None,
        }
    }

    /// Replaces a hub's list of terminals. Its own key stays.
    pub(crate) fn set_keys(&mut self, keys: Arc<Keys>) {
        if let Side::Hub(hub) = &mut self.side {
            hub.set_keys(keys);
        }
    }

    /// Returns the next key that a terminal has registered at a hub.
    pub(crate) fn poll_registration(&mut self) -> Option<Registration> {
        match &mut self.side {
            Side::Hub(hub) => hub.poll_registration(),
            Side::Terminal(_) => None,
        }
    }

    /// Opens a stream at a terminal. Data that is written before the next
    /// [`RelaySet::poll_transmit`] is carried by the segment that opens it. A client with `held`
    /// streams has no more than its share of the hub's limit.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        target: Target,
        held: usize,
    ) -> Result<StreamKey, RefuseReason> {
        let Side::Terminal(paths) = &mut self.side else { return Err(RefuseReason::Policy) };
        let number = paths.choose();
        let (relay, owner) = (&mut paths.present[number], owner(target.source, self.ipv6_prefix));
        if held > SHARE_OF_FREE.saturating_mul(relay.free_streams()) {
            return Err(RefuseReason::Limit);
        }
        match relay.open(now, target, Priority::Normal) {
            Ok(stream) => {
                relay.set_owner(stream, owner);
                Ok(StreamKey { peer: Peer::Path(number), stream })
            }
            Err(error @ relay::OpenError::Limit { .. }) => {
                tracing::info!(%error, "stream not opened");
                Err(RefuseReason::Limit)
            }
            Err(error) => {
                tracing::info!(%error, "stream not opened");
                Err(RefuseReason::Other)
            }
        }
    }

    /// Informs the peer that the server is connected.
    pub(crate) fn accept(&mut self, key: StreamKey) {
        self.with_relay(key, |relay| relay.accept(key.stream));
    }

    /// Informs the peer of a refusal. The stream is gone.
    pub(crate) fn refuse(&mut self, key: StreamKey, reason: RefuseReason) {
        self.with_relay(key, |relay| relay.refuse(key.stream, reason));
    }

    /// Writes bytes; fewer than given when the stream is full, after which [`Event::Writable`]
    /// follows.
    pub(crate) fn write(&mut self, now: Instant, key: StreamKey, bytes: &[u8]) -> usize {
        self.relay(key.peer).map_or(0, |relay| relay.write(now, key.stream, bytes).unwrap_or(0))
    }

    /// Returns the octets that were written and are not known to have been received by the peer.
    pub(crate) fn held(&mut self, key: StreamKey) -> u64 {
        self.relay(key.peer).map_or(0, |relay| relay.held(key.stream))
    }

    /// Whether octets of the stream wait for the link and not for the peer: the peer does not
    /// respond, as in an outage, or it permits them to be sent.
    pub(crate) fn waits_for_link(&mut self, key: StreamKey) -> bool {
        let waits = |relay: &mut Relay| !relay.is_answered() || relay.waits_for_link(key.stream);
        self.relay(key.peer).is_none_or(waits)
    }

    /// Ends the written direction.
    pub(crate) fn end(&mut self, key: StreamKey) {
        self.with_relay(key, |relay| relay.end(key.stream));
    }

    /// Resets the stream, which is gone.
    pub(crate) fn reset(&mut self, key: StreamKey, reason: ResetReason) {
        self.with_relay(key, |relay| relay.reset(key.stream, reason));
    }

    /// Returns the next bytes in order; empty when there are none.
    pub(crate) fn peek(&mut self, key: StreamKey) -> &[u8] {
        match self.relay(key.peer) {
            Some(relay) => relay.peek(key.stream),
            None => &[],
        }
    }

    /// As [`RelaySet::peek`], in as many pieces as `pieces` has room for.
    pub(crate) fn peek_pieces<'a>(&'a mut self, key: StreamKey, pieces: &mut [&'a [u8]]) {
        if let Some(relay) = self.relay(key.peer) {
            relay.peek_pieces(key.stream, pieces);
        }
    }

    /// Returns the number of bytes that the stream would take, or 0 where they are not worth a
    /// system call; then [`Event::Writable`] follows.
    pub(crate) fn ample_room(&mut self, key: StreamKey) -> usize {
        self.relay(key.peer).map_or(0, |relay| relay.ample_room(key.stream))
    }

    /// Removes the first `count` bytes, which gives the peer as much credit.
    pub(crate) fn consume(&mut self, now: Instant, key: StreamKey, count: usize) {
        self.with_relay(key, |relay| relay.consume(now, key.stream, count));
    }

    /// Handles a datagram from the network, which need not be well-formed. It was received by the
    /// link socket `number`, which at a terminal is that of the path. Unless it `is_last`, one of
    /// an unknown association may be for another process of this gateway.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        number: usize,
        from: SocketAddr,
        (datagram, is_last): (&mut [u8], bool),
    ) -> Delivered {
        let taken = match &mut self.side {
            Side::Terminal(paths) => {
                match paths.handle_datagram(now, number, from, (datagram, is_last)) {
                    Some(taken) => taken.map(|()| Delivered::Peer),
                    None => {
                        self.bad_datagrams += 1;
                        return Delivered::Unvalidated;
                    }
                }
            }
            Side::Hub(hub) => {
                hub.set_shared(!is_last);
                let peer = hub.handle_datagram(now, from, datagram);
                peer.map(|peer| peer.map_or(Delivered::Unvalidated, |_| Delivered::Peer))
            }
        };
        taken.unwrap_or_else(|error| {
            match error {
                ReceiveError::Association(OpenError::Elsewhere) => return Delivered::OtherProcess,
                ReceiveError::Association(OpenError::OtherPart { part }) => {
                    return Delivered::OtherShard(part);
                }
                _ => {}
            }
            self.bad_datagrams += 1;
            self.handshake_log.log_rejected(now, from, &error);
            match &self.side {
                // The process that replaces this hub accepts associations.
                Side::Hub(hub)
                    if hub.is_draining() && error == ReceiveError::Association(OpenError::Full) =>
                {
                    Delivered::OtherProcess
                }
                Side::Hub(_) | Side::Terminal(_) => Delivered::Unvalidated,
            }
        })
    }

    /// Writes at most `most` due datagrams of the link socket `number` into `buffer`.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        number: usize,
        buffer: &mut [u8],
        most: usize,
    ) -> Option<Outgoing> {
        let mut batch = TransmitBatch::new(buffer, most);
        let (destination, transmit) = match &mut self.side {
            Side::Terminal(paths) => return paths.poll_transmit(now, number, &mut batch),
            Side::Hub(hub) => {
                hub.set_full(tls::without_room(), tls::RETRY);
                hub.poll_transmit(now, &mut batch)?
            }
        };
        Some(Outgoing { destination, len: transmit.len, segment_size: transmit.segment_size })
    }

    /// Sets the rate plans of a hub's terminals.
    pub(crate) fn set_plans(&mut self, section: &HubSection) {
        if let Side::Hub(hub) = &mut self.side {
            hub.set_plans(for_relay(&section.plans, &section.terminals));
        }
    }

    /// Returns the next packet that a peer has forwarded unsplit.
    pub(crate) fn take_datagram(&mut self) -> Option<(Peer, Vec<u8>)> {
        match &mut self.side {
            Side::Terminal(paths) => {
                let mut all = paths.present.iter_mut().enumerate();
                let taken = all
                    .find_map(|(number, relay)| Some((Peer::Path(number), relay.take_datagram()?)));
                let first = paths.first();
                taken.or_else(|| {
                    let packet = paths.relays_mut().find_map(Relay::take_datagram)?;
                    Some((Peer::Path(first), packet))
                })
            }
            Side::Hub(hub) => {
                hub.take_datagram().map(|(peer, packet)| (Peer::Terminal(peer), packet))
            }
        }
    }

    /// Returns when to call [`RelaySet::handle_timeout`], or when more can be sent.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match &self.side {
            Side::Terminal(paths) => paths.poll_timeout(),
            Side::Hub(hub) => hub.poll_timeout(),
        }
    }

    /// Handles the timeout of [`RelaySet::poll_timeout`].
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match &mut self.side {
            Side::Terminal(paths) => {
                paths.relays_mut().for_each(|relay| relay.handle_timeout(now));
            }
            Side::Hub(hub) => hub.handle_timeout(now),
        }
    }

    /// Returns the next event and its peer.
    pub(crate) fn poll_event(&mut self) -> Option<(Peer, Event)> {
        match &mut self.side {
            Side::Terminal(paths) => paths.poll_event(),
            Side::Hub(hub) => hub.poll_event().map(|(peer, event)| (Peer::Terminal(peer), event)),
        }
    }

    /// Ends all sessions in order, with the peers that support that.
    pub(crate) fn drain(&mut self) {
        match &mut self.side {
            Side::Terminal(paths) => paths.relays_mut().for_each(Relay::drain),
            Side::Hub(hub) => hub.drain(),
        }
    }

    /// Leaves new streams to the process that replaces this one, at a hub; repeated until
    /// [`RelaySet::has_drained`].
    pub(crate) fn hand_over(&mut self) {
        if let Side::Hub(hub) = &mut self.side {
            hub.hand_over();
        }
    }

    /// Whether the process that replaces this one can be connected while this one still has
    /// streams. A hub always can.
    pub(crate) fn can_overlap(&self) -> bool {
        match &self.side {
            Side::Terminal(paths) => paths
                .present
                .iter()
                .all(|relay| relay.can_overlap() || relay.statistics().streams == 0),
            Side::Hub(_) => true,
        }
    }

    /// Begins another association with the next hub that ends its session because another process
    /// continues. Returns the hub, and by which name the existing streams have it from now on.
    pub(crate) fn poll_succession(&mut self, now: Instant) -> Option<(Peer, Peer)> {
        let Side::Terminal(paths) = &mut self.side else { return None };
        let (number, former) = paths.poll_succession(now)?;
        Some((Peer::Path(number), Peer::Former(former)))
    }

    /// Whether the sessions have ended in order. Peers that do not respond, or do not support an
    /// orderly end, are disregarded.
    pub(crate) fn has_drained(&self) -> bool {
        let is_over = |relay: &Relay| relay.has_drained() || !relay.is_answered();
        match &self.side {
            Side::Terminal(paths) => paths.relays().all(is_over),
            Side::Hub(hub) => hub.relays().all(|(_, relay)| is_over(relay)),
        }
    }

    /// Resets all sessions. The segments that inform the peers are due at once, and all streams are
    /// gone.
    pub(crate) fn close(&mut self, now: Instant) {
        match &mut self.side {
            Side::Terminal(paths) => paths.relays_mut().for_each(|relay| relay.close(now)),
            Side::Hub(hub) => hub.close(now),
        }
    }

    /// Sets the maximum rates of sending and receiving, as far as the peers have announced theirs.
    /// Named paths keep their own rates.
    pub(crate) fn set_rates(&mut self, send: Option<BitRate>, receive: Option<BitRate>) {
        match &mut self.side {
            Side::Terminal(paths) => {
                paths.set_rates("", send, receive);
            }
            Side::Hub(hub) => hub.set_rates(send, receive),
        }
    }

    /// Updates the health of a terminal's paths.
    pub(crate) fn review(&mut self, now: Instant) {
        if let Side::Terminal(paths) = &mut self.side {
            paths.review(now);
        }
    }

    /// Sets the health criteria of a terminal's paths, and the time without a message from the hub
    /// after which a path is probed.
    pub(crate) fn set_health(&mut self, demands: HealthCriteria, keep_alive: Span) {
        if let Side::Terminal(paths) = &mut self.side {
            paths.set_health(demands, keep_alive);
        }
    }

    /// Divides the buffer of terminals with several paths among these; that of this terminal is
    /// `own`, if configured.
    pub(crate) fn share_memory(&mut self, own: Option<u64>) {
        match (&mut self.side, own) {
            (Side::Terminal(paths), Some(bytes)) if paths.present.len() > 1 => {
                let mut relays: Vec<&mut Relay> = paths.present.iter_mut().collect();
                relay::share_memory(&mut relays, bytes);
            }
            (Side::Terminal(_), _) => {}
            (Side::Hub(hub), _) => hub.share_memory(),
        }
    }

    /// Sets the rates of a terminal's path, as far as its hub permits.
    pub(crate) fn set_path_rates(
        &mut self,
        name: &str,
        send: Option<BitRate>,
        receive: Option<BitRate>,
    ) {
        if let Side::Terminal(paths) = &mut self.side {
            paths.set_rates(name, send, receive);
        }
    }

    /// Notes whether the socket of a terminal's path is bound.
    pub(crate) fn set_bound(&mut self, number: usize, bound: bool) {
        if let Side::Terminal(paths) = &mut self.side
            && let Some(path) = paths.all.get_mut(number)
        {
            path.bound = bound;
        }
    }

    /// Notes whether a terminal's path uses TLS.
    pub(crate) fn set_uses_tls(&mut self, number: usize, uses_tls: bool) {
        if let Side::Terminal(paths) = &mut self.side
            && let Some(path) = paths.all.get_mut(number)
        {
            path.uses_tls = uses_tls;
            paths.on_carrier_change(number);
        }
    }

    /// Returns the best health of a terminal's paths apart from delay and loss.
    pub(crate) fn answers(&self) -> HealthState {
        match &self.side {
            Side::Terminal(paths) => paths.answers(),
            Side::Hub(_) => HealthState::Up,
        }
    }

    /// Returns a terminal's relay for packets that belong to no connection.
    pub(crate) fn first_path(&self) -> Peer {
        match &self.side {
            Side::Terminal(paths) => Peer::Path(paths.first()),
            Side::Hub(_) => Peer::Path(0),
        }
    }

    fn relay(&mut self, peer: Peer) -> Option<&mut Relay> {
        match (&mut self.side, peer) {
            (Side::Terminal(paths), Peer::Path(number)) => paths.present.get_mut(number),
            (Side::Terminal(paths), Peer::Former(id)) => {
                paths.former(id).map(|former| &mut *former.relay)
            }
            (Side::Hub(hub), Peer::Terminal(peer)) => hub.peer(peer),
            (Side::Terminal(_), Peer::Terminal(_))
            | (Side::Hub(_), Peer::Path(_) | Peer::Former(_)) => None,
        }
    }

    /// Returns the class in which data of a stream would be sent now.
    pub(crate) fn class_of(&mut self, now: Instant, key: StreamKey) -> Option<relay::Class> {
        self.relay(key.peer)?.class_of(now, key.stream)
    }

    /// Calls a method whose only error is that the stream is gone, which an event reports.
    fn with_relay(
        &mut self,
        key: StreamKey,
        call: impl FnOnce(&mut Relay) -> Result<(), StreamError>,
    ) {
        if let Some(relay) = self.relay(key.peer)
            && let Err(error) = call(relay)
        {
            tracing::trace!(%error, "stream is gone already");
        }
    }
}
