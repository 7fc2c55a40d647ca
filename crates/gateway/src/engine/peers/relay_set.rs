//! The relays as the engine sees them: one for each path at a terminal, one for each terminal at
//! a hub, the same verbs.

mod accounts;
mod counted;
mod families;
mod home;
mod mtu;
mod naming;
mod seen;

use naming::plain;
pub(crate) use naming::target;
pub(crate) use naming::{hub_name, is_same};

use crate::HubSection;
use crate::config::{for_relay, terminal_of};
use crate::engine::limits::client_network::owner;
use crate::engine::limits::slots::SHARE_OF_FREE;
use crate::engine::peers::handshake_log::Strangers;
use crate::engine::peers::paths::{PathPlan, Paths};
use crate::state::State;
use association::Entropy;
use relay::health::{Demands, Verdict};
use relay::{
    Event, Hub, Keys, PeerId, Priority, PublicKey, RefuseReason, Relay, RelayConfig, ResetReason,
    StreamError, StreamId, Target, TransmitBatch,
};
use std::net::SocketAddr;
use std::sync::Arc;
use units::{BitRate, Instant, Span};

/// Which peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    /// A terminal's hub, by the path with this number.
    Path(usize),
    /// One of a hub's terminals.
    Terminal(PeerId),
}

/// A stream, and the peer that it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    pub(crate) peer: Peer,
    pub(crate) stream: StreamId,
}

/// Datagrams that were put into the engine's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// Where they go.
    pub(crate) destination: SocketAddr,
    /// Bytes in the buffer.
    pub(crate) len: usize,
    /// Bytes of each but the last.
    pub(crate) segment_size: usize,
}

/// What carries streams. A stream that is gone takes no bytes, has none, and is not missed.
#[derive(Debug)]
pub(crate) struct Carrier {
    side: Side,
    /// Datagrams that were not taken: broken, replayed, or from nobody known.
    bad_datagrams: u64,
    strangers: Strangers,
    /// Length of the prefix by which IPv6 clients are counted, in bits.
    ipv6_prefix: u32,
}

#[derive(Debug)]
enum Side {
    Terminal(Box<Paths>),
    Hub(Box<Hub>),
}

impl Carrier {
    /// A terminal's: a relay for each of `plans`, of which `demands` are made.
    pub(crate) fn terminal<E: Entropy + 'static>(
        plans: Vec<PathPlan>,
        demands: Demands,
        now: Instant,
        entropy: impl FnMut() -> E,
    ) -> Self {
        Self {
            side: Side::Terminal(Box::new(Paths::new(plans, demands, now, entropy))),
            bad_datagrams: 0,
            strangers: Strangers::default(),
            ipv6_prefix: crate::Limits::default().ipv6_prefix,
        }
    }

    /// A hub's: a relay with each terminal, which begins with what is remembered of it. `memory`
    /// has the bytes of buffer of terminals for which they are not the usual, by the names of their paths.
    pub(crate) fn hub(
        config: &RelayConfig,
        state: &State,
        memory: &[(Vec<&str>, u64)],
        entropy: impl Entropy + 'static,
    ) -> Self {
        let mut hub = Box::new(Hub::new(config, entropy));
        for (name, learnt) in state.all() {
            hub.remember(name, learnt);
        }
        for (names, bytes) in memory {
            hub.set_memory(names, *bytes);
        }
        Self {
            side: Side::Hub(hub),
            bad_datagrams: 0,
            strangers: Strangers::default(),
            ipv6_prefix: crate::Limits::default().ipv6_prefix,
        }
    }

    /// A hub's own public key, where it has keys.
    pub(crate) fn own_key(&self) -> Option<PublicKey> {
        match &self.side {
            Side::Hub(hub) => hub.public_key(),
            Side::Terminal(_) => None,
        }
    }

    /// Takes another list of terminals at a hub, under the same key of its own.
    pub(crate) fn set_keys(&mut self, keys: Arc<Keys>) {
        if let Side::Hub(hub) = &mut self.side {
            hub.set_keys(keys);
        }
    }

    /// Opens a stream; what is written before the next [`Carrier::poll_transmit`] rides with the
    /// opening. Only at a terminal. A client that has `held` streams already gets no more than its
    /// share of those that the hub allows.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        target: Target,
        held: usize,
    ) -> Result<StreamKey, RefuseReason> {
        let Side::Terminal(paths) = &mut self.side else { return Err(RefuseReason::Policy) };
        let number = paths.choose();
        let (relay, owner) = (&mut paths.all[number].relay, owner(target.source, self.ipv6_prefix));
        if held > SHARE_OF_FREE.saturating_mul(relay.free_streams()) {
            return Err(RefuseReason::Limit);
        }
        match relay.open(now, target, Priority::Normal) {
            Ok(stream) => {
                relay.set_owner(stream, owner);
                Ok(StreamKey { peer: Peer::Path(number), stream })
            }
            Err(error @ relay::OpenError::Limit { .. }) => {
                tracing::info!(%error, "no stream");
                Err(RefuseReason::Limit)
            }
            Err(error) => {
                tracing::info!(%error, "no stream");
                Err(RefuseReason::Other)
            }
        }
    }

    /// Tells the other side that the server has answered.
    pub(crate) fn accept(&mut self, key: StreamKey) {
        self.tell(key, |relay| relay.accept(key.stream));
    }

    /// Tells the other side why there is no connection; the stream is gone.
    pub(crate) fn refuse(&mut self, key: StreamKey, reason: RefuseReason) {
        self.tell(key, |relay| relay.refuse(key.stream, reason));
    }

    /// Takes bytes; fewer than given when full, and then [`Event::Writable`] follows.
    pub(crate) fn write(&mut self, now: Instant, key: StreamKey, bytes: &[u8]) -> usize {
        self.relay(key.peer).map_or(0, |relay| relay.write(now, key.stream, bytes).unwrap_or(0))
    }

    /// Bytes that were written and that the other side is not known to have.
    pub(crate) fn held(&mut self, key: StreamKey) -> u64 {
        self.relay(key.peer).map_or(0, |relay| relay.held(key.stream))
    }

    /// Whether the other side answers by now: while it does not, nothing makes way.
    pub(crate) fn is_answered(&mut self, key: StreamKey) -> bool {
        self.relay(key.peer).is_some_and(|relay| relay.is_answered())
    }

    /// Nothing more will be written.
    pub(crate) fn end(&mut self, key: StreamKey) {
        self.tell(key, |relay| relay.end(key.stream));
    }

    /// Gives up both halves; the stream is gone.
    pub(crate) fn reset(&mut self, key: StreamKey, reason: ResetReason) {
        self.tell(key, |relay| relay.reset(key.stream, reason));
    }

    /// The next bytes in order; empty when none have come.
    pub(crate) fn peek(&mut self, key: StreamKey) -> &[u8] {
        match self.relay(key.peer) {
            Some(relay) => relay.peek(key.stream),
            None => &[],
        }
    }

    /// Forgets the first `count` bytes; the other side may send as many more.
    pub(crate) fn consume(&mut self, now: Instant, key: StreamKey, count: usize) {
        self.tell(key, |relay| relay.consume(now, key.stream, count));
    }

    /// Takes a datagram from the network, which may be anything at all; true when it came from a
    /// peer. It came by the outlet of this `number`, at a terminal that of the path.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        number: usize,
        from: SocketAddr,
        datagram: &mut [u8],
    ) -> bool {
        let taken = match &mut self.side {
            Side::Terminal(paths) => match paths.handle_datagram(now, number, from, datagram) {
                Some(taken) => taken.map(|()| true),
                None => {
                    self.bad_datagrams += 1;
                    return false;
                }
            },
            Side::Hub(hub) => hub.handle_datagram(now, from, datagram).map(|peer| peer.is_some()),
        };
        taken.unwrap_or_else(|error| {
            self.bad_datagrams += 1;
            self.strangers.not_taken(now, from, &error);
            false
        })
    }

    /// Puts what is due by the outlet of this `number` into `buffer`, at most `most` datagrams.
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
            Side::Hub(hub) => hub.poll_transmit(now, &mut batch)?,
        };
        Some(Outgoing { destination, len: transmit.len, segment_size: transmit.segment_size })
    }

    /// A hub's terminals have these plans from here on.
    pub(crate) fn set_plans(&mut self, section: &HubSection) {
        if let Side::Hub(hub) = &mut self.side {
            hub.set_plans(for_relay(&section.plans, &section.terminals));
        }
    }

    /// The next packet that a peer has carried here as it was.
    pub(crate) fn take_datagram(&mut self) -> Option<(Peer, Vec<u8>)> {
        match &mut self.side {
            Side::Terminal(paths) => {
                let mut all = paths.all.iter_mut().enumerate();
                all.find_map(|(number, path)| {
                    Some((Peer::Path(number), path.relay.take_datagram()?))
                })
            }
            Side::Hub(hub) => {
                hub.take_datagram().map(|(peer, packet)| (Peer::Terminal(peer), packet))
            }
        }
    }

    /// When [`Carrier::handle_timeout`] wants to be called, or more can be sent.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match &self.side {
            Side::Terminal(paths) => paths.poll_timeout(),
            Side::Hub(hub) => hub.poll_timeout(),
        }
    }

    /// The time of [`Carrier::poll_timeout`] has come.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match &mut self.side {
            Side::Terminal(paths) => {
                paths.all.iter_mut().for_each(|path| path.relay.handle_timeout(now));
            }
            Side::Hub(hub) => hub.handle_timeout(now),
        }
    }

    /// What happened since the last call, and with which peer.
    pub(crate) fn poll_event(&mut self) -> Option<(Peer, Event)> {
        match &mut self.side {
            Side::Terminal(paths) => {
                paths.poll_event().map(|(number, event)| (Peer::Path(number), event))
            }
            Side::Hub(hub) => hub.poll_event().map(|(peer, event)| (Peer::Terminal(peer), event)),
        }
    }

    /// What a terminal is called, with keys by its key; empty where there is none.
    pub(crate) fn name(&self, peer: Peer) -> &str {
        match (&self.side, peer) {
            (Side::Hub(hub), Peer::Terminal(peer)) => hub.name(peer).unwrap_or_default(),
            (Side::Hub(_), Peer::Path(_)) | (Side::Terminal(_), _) => "",
        }
    }

    /// A peer as people know it: its name and number, and where it is, while it is there.
    pub(crate) fn describe(&self, peer: Peer) -> String {
        match (&self.side, peer) {
            (Side::Hub(hub), Peer::Terminal(peer)) => match (hub.name(peer), hub.address(peer)) {
                // Without keys a name is what somebody says it is.
                (Some(name), Some(address)) => {
                    format!("{} ({peer}) at {}", name.escape_debug(), plain(address))
                }
                (_, _) => peer.to_string(),
            },
            (Side::Terminal(paths), Peer::Path(number)) => match paths.all.get(number) {
                Some(path) => path.remembered_as(),
                None => "nobody".into(),
            },
            (Side::Hub(_), Peer::Path(_)) | (Side::Terminal(_), Peer::Terminal(_)) => {
                "nobody".into()
            }
        }
    }

    /// Tells all peers that this side stops; what is to be sent for it is sent next. All streams
    /// are gone.
    pub(crate) fn close(&mut self, now: Instant) {
        match &mut self.side {
            Side::Terminal(paths) => paths.all.iter_mut().for_each(|path| path.relay.close(now)),
            Side::Hub(hub) => hub.close(now),
        }
    }

    /// From here on this side sends at `send` at most and takes `receive`, as far as its peers
    /// have announced. Paths with names have rates of their own, which stay.
    pub(crate) fn set_rates(&mut self, send: Option<BitRate>, receive: Option<BitRate>) {
        match &mut self.side {
            Side::Terminal(paths) => {
                let unnamed = paths.all.iter_mut().filter(|path| path.label.is_empty());
                unnamed.for_each(|path| path.relay.set_rates(send, receive));
            }
            Side::Hub(hub) => hub.set_rates(send, receive),
        }
    }

    /// Looks how a terminal's paths are, for the connections to come.
    pub(crate) fn review(&mut self, now: Instant) {
        if let Side::Terminal(paths) = &mut self.side {
            paths.review(now);
        }
    }

    /// Of a terminal's paths `demands` are made from here on, and each is tried after
    /// `keep_alive` without word from its hub.
    pub(crate) fn set_health(&mut self, demands: Demands, keep_alive: Span) {
        if let Side::Terminal(paths) = &mut self.side {
            paths.set_health(demands, keep_alive);
        }
    }

    /// Divides the memory of terminals with several paths among these anew; of a terminal's own it
    /// is `own`, where that is told.
    pub(crate) fn share_memory(&mut self, own: Option<u64>) {
        match (&mut self.side, own) {
            (Side::Terminal(paths), Some(bytes)) if paths.all.len() > 1 => {
                let mut relays: Vec<&mut Relay> =
                    paths.all.iter_mut().map(|path| &mut *path.relay).collect();
                relay::share_memory(&mut relays, bytes);
            }
            (Side::Terminal(_), _) => {}
            (Side::Hub(hub), _) => hub.share_memory(),
        }
    }

    /// The rates of a terminal's path are others from here on, as far as its hub takes them.
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

    /// A terminal's path has a socket from now on, or none.
    pub(crate) fn set_bound(&mut self, number: usize, bound: bool) {
        if let Side::Terminal(paths) = &mut self.side
            && let Some(path) = paths.all.get_mut(number)
        {
            path.bound = bound;
        }
    }

    /// How the one of a terminal's paths answers that does so best.
    pub(crate) fn answers(&self) -> Verdict {
        match &self.side {
            Side::Terminal(paths) => paths.answers(),
            Side::Hub(_) => Verdict::Well,
        }
    }

    /// The path of a terminal that packets take that belong to no connection.
    pub(crate) fn first_path(&self) -> Peer {
        match &self.side {
            Side::Terminal(paths) => Peer::Path(paths.first()),
            Side::Hub(_) => Peer::Path(0),
        }
    }

    fn relay(&mut self, peer: Peer) -> Option<&mut Relay> {
        match (&mut self.side, peer) {
            (Side::Terminal(paths), Peer::Path(number)) => {
                paths.all.get_mut(number).map(|path| &mut *path.relay)
            }
            (Side::Hub(hub), Peer::Terminal(peer)) => hub.peer(peer),
            (Side::Terminal(_), Peer::Terminal(_)) | (Side::Hub(_), Peer::Path(_)) => None,
        }
    }

    /// A call whose only error is that the stream is gone, of which an event tells.
    fn tell(&mut self, key: StreamKey, call: impl FnOnce(&mut Relay) -> Result<(), StreamError>) {
        if let Some(relay) = self.relay(key.peer)
            && let Err(error) = call(relay)
        {
            tracing::trace!(%error, "too late");
        }
    }
}
