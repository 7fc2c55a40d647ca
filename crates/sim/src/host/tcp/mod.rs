//! TCP as a transport: one connection with real octets per stream.
//!
//! For all applications; for many bulk flows [`crate::tcp`] is cheaper.

mod interceptor;
mod stream;

use super::{StreamEvent, Transport};
use crate::network::{Address, NodeId, Outbox, Packet, TooBig};
use crate::{Streams, TimerTree};
use interceptor::HeldFin;
use simtcp::{CloseReason, Endpoint, Event, HostCache, Ports, TcpConfig};
use std::collections::{BTreeMap, VecDeque};
use stream::Stream;
use units::Instant;

/// Identifies a stream, which is a connection, of a [`Tcp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpId {
    number: u64,
    slot: u32,
}

/// The first ephemeral port, and their number.
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = (u16::MAX - FIRST_PORT) as u64;

/// The TCP connections of one host.
#[derive(Debug)]
pub struct Tcp {
    node: NodeId,
    config: TcpConfig,
    /// The address to which streams are opened.
    server: Option<Address>,
    accepts: Accepts,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// By the peer's address and the local address.
    by_peer: BTreeMap<(Address, Address), u32>,
    timers: TimerTree,
    /// Slots with an event.
    awake: Vec<u32>,
    /// Cached data of peers, for openings that need it.
    cache: HostCache,
    events: VecDeque<StreamEvent<TcpId>>,
    opened: u64,
    unmatched: u64,
}

/// Which connections are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepts {
    /// None.
    Nowhere,
    /// Those to this port of this node.
    On(u16),
    /// All on the path, with the address of their destination.
    Intercept,
}

#[derive(Debug)]
struct Slot {
    stream: Stream,
    id: TcpId,
    remote: Address,
    /// The local address; of another host when this transport intercepts.
    local: Address,
    /// Whether the peer opened it.
    passive: bool,
    awake: bool,
    reported: bool,
    ended: bool,
    gone: bool,
    end: HeldFin,
}

impl Tcp {
    /// A client: streams are opened to `server`.
    pub fn client(node: NodeId, config: &TcpConfig, server: Address) -> Self {
        Self::new(node, config, Some(server), Accepts::Nowhere)
    }

    /// A server: connections are accepted on `port`.
    pub fn server(node: NodeId, config: &TcpConfig, port: u16) -> Self {
        Self::new(node, config, None, Accepts::On(port))
    }

    /// A gateway, which [intercepts](super::Interceptor) connections to other hosts.
    pub fn gateway(node: NodeId, config: &TcpConfig) -> Self {
        Self::new(node, config, None, Accepts::Intercept)
    }

    fn new(node: NodeId, config: &TcpConfig, server: Option<Address>, accepts: Accepts) -> Self {
        Self {
            node,
            config: config.clone(),
            server,
            accepts,
            slots: Vec::new(),
            free: Vec::new(),
            by_peer: BTreeMap::new(),
            timers: TimerTree::new(),
            awake: Vec::new(),
            cache: HostCache::new(node.index() as u64),
            events: VecDeque::new(),
            opened: 0,
            unmatched: 0,
        }
    }

    /// Segments without a connection.
    pub fn unmatched(&self) -> u64 {
        self.unmatched
    }

    /// The connection of a stream, as long as it is known.
    pub fn connection(&self, stream: TcpId) -> Option<&Endpoint> {
        self.slot(stream).map(|slot| &slot.stream.endpoint)
    }

    /// All connections.
    pub fn connections(&self) -> impl Iterator<Item = (TcpId, &Endpoint)> {
        self.slots.iter().flatten().map(|slot| (slot.id, &slot.stream.endpoint))
    }

    /// Aborts a connection: an RST is sent.
    pub fn abort(&mut self, stream: TcpId) {
        if let Some(slot) = self.slot_mut(stream) {
            slot.stream.endpoint.abort();
            self.wake(stream.slot);
        }
    }

    /// The pattern of a connection from `local`.
    fn content(local: Address) -> u64 {
        (local.node.index() as u64) << 16 | u64::from(local.port)
    }

    /// Opens a connection from `local` to `remote`.
    fn connect(&mut self, local: Address, remote: Address) -> TcpId {
        let ports = Ports { from: local.port, to: remote.port };
        let content = Self::content(local);
        let endpoint = self.cache.connect(cache_key(remote), &self.config, ports, content);
        let stream = self.insert(endpoint, local, remote, false);
        self.wake(stream.slot);
        stream
    }

    fn insert(
        &mut self,
        endpoint: Endpoint,
        local: Address,
        remote: Address,
        passive: bool,
    ) -> TcpId {
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        if slot as usize == self.slots.len() {
            self.slots.push(None);
            self.timers.grow(self.slots.len());
        }
        self.opened += 1;
        let id = TcpId { number: self.opened, slot };
        self.slots[slot as usize] = Some(Slot {
            stream: Stream::new(endpoint),
            id,
            remote,
            local,
            passive,
            awake: false,
            reported: false,
            ended: false,
            gone: false,
            end: HeldFin::default(),
        });
        self.by_peer.insert((remote, local), slot);
        id
    }

    fn remove(&mut self, place: u32) {
        if let Some(slot) = self.slots[place as usize].take() {
            self.by_peer.remove(&(slot.remote, slot.local));
            self.timers.set(place as usize, None);
            self.free.push(place);
        }
    }

    fn slot(&self, stream: TcpId) -> Option<&Slot> {
        self.slots.get(stream.slot as usize)?.as_ref().filter(|slot| slot.id == stream)
    }

    fn slot_mut(&mut self, stream: TcpId) -> Option<&mut Slot> {
        self.slots.get_mut(stream.slot as usize)?.as_mut().filter(|slot| slot.id == stream)
    }

    /// Marks `place` as having an event, so that its output is polled.
    fn wake(&mut self, place: u32) {
        if let Some(slot) = &mut self.slots[place as usize]
            && !slot.awake
        {
            slot.awake = true;
            self.awake.push(place);
        }
    }

    /// Reports the events of `place`.
    fn note(&mut self, place: u32) {
        let Some(slot) = &mut self.slots[place as usize] else { return };
        while let Some(event) = slot.stream.endpoint.poll_event() {
            match event {
                Event::Established if slot.passive && !slot.reported => {
                    slot.reported = true;
                    self.events.push_back(StreamEvent::Opened(slot.id));
                }
                Event::Closed(reason) => {
                    slot.gone = true;
                    if matches!(reason, CloseReason::Reset | CloseReason::TimedOut) {
                        self.events.push_back(StreamEvent::Broken(slot.id));
                    }
                }
                // Readability and the end are checked below.
                _ => {}
            }
        }
        slot.stream.release();
        if !slot.stream.peek().is_empty() {
            self.events.push_back(StreamEvent::Readable(slot.id));
        }
        if slot.stream.unblocks() {
            self.events.push_back(StreamEvent::Writable(slot.id));
        }
        if slot.has_ended() && !slot.ended {
            slot.ended = true;
            self.events.push_back(StreamEvent::Ended(slot.id));
        }
        if slot.gone {
            self.events.push_back(StreamEvent::Gone(slot.id));
        }
    }

    /// The slot of a segment; a new one for a new peer of a server.
    fn slot_for(&mut self, packet: &Packet) -> Option<u32> {
        if let Some(&place) = self.by_peer.get(&(packet.from, packet.to)) {
            return Some(place);
        }
        let syn = packet.segment().is_some_and(|segment| segment.flags.syn);
        if !syn || !self.accepts_packet(packet) {
            return None;
        }
        let local = packet.to;
        let (peer, content) = (cache_key(packet.from), Self::content(local));
        let endpoint = self.cache.listen(peer, &self.config, local.port, content);
        Some(self.insert(endpoint, local, packet.from, true).slot)
    }

    /// Handles the message that a segment of this transport exceeded the MTU of a link.
    fn reduce_mtu(&mut self, now: Instant, notice: &TooBig) {
        let Some(&place) = self.by_peer.get(&(notice.to, notice.from)) else { return };
        if let Some(slot) = &mut self.slots[place as usize] {
            notice.tell(now, &mut slot.stream.endpoint);
            self.cache.learn(cache_key(notice.to), &mut slot.stream.endpoint);
            self.wake(place);
        }
    }

    fn accepts_packet(&self, packet: &Packet) -> bool {
        match self.accepts {
            Accepts::Nowhere => false,
            Accepts::On(port) => packet.to == Address::new(self.node, port),
            Accepts::Intercept => true,
        }
    }

    /// Handles a segment for `place`.
    fn segment(&mut self, now: Instant, place: u32, packet: &Packet) {
        let (Some(slot), Some(segment)) = (&mut self.slots[place as usize], packet.segment())
        else {
            return;
        };
        let segment = match self.accepts {
            Accepts::Nowhere | Accepts::On(_) => *segment,
            // A FIN is held if this transport intercepts the connection.
            Accepts::Intercept => slot.end.hold(*segment),
        };
        slot.stream.handle(now, &segment, packet.bytes());
        self.cache.learn(cache_key(packet.from), &mut slot.stream.endpoint);
        self.note(place);
        self.wake(place);
    }
}

/// The name of a peer in a host's cache: its host.
fn cache_key(remote: Address) -> u64 {
    remote.node.index() as u64
}

impl Slot {
    /// Whether the peer has ended and everything was consumed.
    fn has_ended(&self) -> bool {
        let held = self.end.at().is_some_and(|end| self.stream.consumed() == end);
        held || self.stream.endpoint.is_finished()
    }
}

impl Streams for Tcp {
    type Id = TcpId;

    /// # Panics
    /// If this is not a client, or all its ports are in use.
    fn open(&mut self, _: Instant) -> TcpId {
        let server = self.server.expect("a client's transport has a server");
        let local = (0..PORTS)
            .map(|step| FIRST_PORT + ((self.opened + step) % PORTS) as u16)
            .map(|port| Address::new(self.node, port))
            .find(|&local| !self.by_peer.contains_key(&(server, local)))
            .expect("a port should be free");
        self.connect(local, server)
    }

    fn write(&mut self, _: Instant, stream: TcpId, bytes: &[u8]) -> usize {
        let Some(slot) = self.slot_mut(stream) else { return 0 };
        let taken = slot.stream.write(bytes);
        if taken > 0 {
            self.wake(stream.slot);
        }
        taken
    }

    fn end(&mut self, _: Instant, stream: TcpId) {
        if let Some(slot) = self.slot_mut(stream) {
            slot.stream.endpoint.close();
            self.wake(stream.slot);
        }
    }

    fn peek(&self, stream: TcpId) -> &[u8] {
        self.slot(stream).map_or(&[], |slot| slot.stream.peek())
    }

    fn consume(&mut self, _: Instant, stream: TcpId, count: usize) {
        let Some(slot) = self.slot_mut(stream) else { return };
        slot.stream.consume(count);
        let finished = slot.has_ended() && !slot.ended;
        self.wake(stream.slot);
        if finished {
            self.note(stream.slot);
        }
    }
}

impl Transport for Tcp {
    fn wants(&self, packet: &Packet) -> bool {
        if let Some(notice) = packet.too_big() {
            return self.by_peer.contains_key(&(notice.to, notice.from));
        }
        if packet.segment().is_none() {
            return false;
        }
        let known = self.by_peer.contains_key(&(packet.from, packet.to));
        known || self.accepts != Accepts::Intercept && self.accepts_packet(packet)
    }

    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        if let Some(notice) = packet.too_big() {
            self.reduce_mtu(now, &notice);
            return;
        }
        match self.slot_for(packet) {
            Some(place) => self.segment(now, place, packet),
            None => self.unmatched += 1,
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        while let Some(place) = self.awake.pop() {
            let Some(slot) = &mut self.slots[place as usize] else { continue };
            slot.awake = false;
            while let Some(segment) = slot.stream.endpoint.poll_transmit(now) {
                let mut bytes = out.buffer(segment.payload.len as usize);
                slot.stream.fill(&segment, &mut bytes);
                out.send_stream_as(slot.local.node, slot.remote.node, segment, bytes);
            }
            let due = slot.stream.endpoint.poll_timeout();
            self.timers.set(place as usize, due);
            self.note(place);
            if self.slots[place as usize].as_ref().is_some_and(|slot| slot.gone) {
                self.remove(place);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let now = (!self.awake.is_empty()).then_some(Instant::ZERO);
        now.or_else(|| self.timers.next_at())
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(place) = self.timers.first_due(now) {
            self.timers.set(place, None);
            let place = place as u32;
            let Some(slot) = &mut self.slots[place as usize] else { continue };
            slot.stream.endpoint.handle_timeout(now);
            // The cache also stores that a peer did not respond.
            self.cache.learn(cache_key(slot.remote), &mut slot.stream.endpoint);
            self.note(place);
            self.wake(place);
        }
    }

    fn poll_event(&mut self) -> Option<StreamEvent<TcpId>> {
        self.events.pop_front()
    }
}

#[cfg(test)]
mod tests;
