//! A QUIC-like transport (RFC 9002): one connection per stream, in UDP.

use super::{StreamEvent, Transport};
use crate::network::{Address, NodeId, Outbox, Packet, Protocol};
use crate::{Streams, TimerTree};
use simtcp::quic::{Connection, QuicConfig};
use std::collections::{BTreeMap, VecDeque};
use units::{Instant, Span};

/// Identifies a stream, which is a connection, of a [`Quic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuicId {
    number: u64,
    slot: u32,
}

/// How long a finished connection still responds to its peer.
const LINGER: Span = Span::from_secs(30);
/// The first ephemeral port, and their number.
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = (u16::MAX - FIRST_PORT) as u64;

/// The QUIC-like connections of one host.
#[derive(Debug)]
pub struct Quic {
    node: NodeId,
    config: QuicConfig,
    /// The address to which streams are opened.
    server: Option<Address>,
    /// The port on which connections are accepted.
    port: Option<u16>,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// By the peer's address and the local address.
    by_peer: BTreeMap<(Address, Address), u32>,
    timers: TimerTree,
    /// Slots with an event.
    awake: Vec<u32>,
    events: VecDeque<StreamEvent<QuicId>>,
    opened: u64,
    unmatched: u64,
}

#[derive(Debug)]
struct Slot {
    connection: Connection,
    id: QuicId,
    remote: Address,
    local: Address,
    /// It accepted fewer octets than offered.
    blocked: bool,
    awake: bool,
    reported: bool,
    ended: bool,
    gone: bool,
    /// Until when it responds, once it is finished.
    lingers: Option<Instant>,
}

impl Quic {
    /// A client: streams are opened to `server`.
    pub fn client(node: NodeId, config: &QuicConfig, server: Address) -> Self {
        Self::new(node, config, Some(server), None)
    }

    /// A server: connections are accepted on `port`.
    pub fn server(node: NodeId, config: &QuicConfig, port: u16) -> Self {
        Self::new(node, config, None, Some(port))
    }

    fn new(node: NodeId, config: &QuicConfig, server: Option<Address>, port: Option<u16>) -> Self {
        Self {
            node,
            config: config.clone(),
            server,
            port,
            slots: Vec::new(),
            free: Vec::new(),
            by_peer: BTreeMap::new(),
            timers: TimerTree::new(),
            awake: Vec::new(),
            events: VecDeque::new(),
            opened: 0,
            unmatched: 0,
        }
    }

    /// Datagrams without a connection, and damaged ones.
    pub fn unmatched(&self) -> u64 {
        self.unmatched
    }

    /// All connections.
    pub fn connections(&self) -> impl Iterator<Item = (QuicId, &Connection)> {
        self.slots.iter().flatten().map(|slot| (slot.id, &slot.connection))
    }

    fn insert(
        &mut self,
        connection: Connection,
        local: Address,
        remote: Address,
        reported: bool,
    ) -> QuicId {
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        if slot as usize == self.slots.len() {
            self.slots.push(None);
            self.timers.grow(self.slots.len());
        }
        self.opened += 1;
        let id = QuicId { number: self.opened, slot };
        self.slots[slot as usize] = Some(Slot {
            connection,
            id,
            remote,
            local,
            blocked: false,
            awake: false,
            reported,
            ended: false,
            gone: false,
            lingers: None,
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

    fn slot(&self, stream: QuicId) -> Option<&Slot> {
        self.slots.get(stream.slot as usize)?.as_ref().filter(|slot| slot.id == stream)
    }

    fn slot_mut(&mut self, stream: QuicId) -> Option<&mut Slot> {
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
    fn note(&mut self, place: u32, now: Instant) {
        let Some(slot) = &mut self.slots[place as usize] else { return };
        if slot.gone {
            return;
        }
        let connection = &slot.connection;
        if connection.is_established() && !slot.reported {
            slot.reported = true;
            self.events.push_back(StreamEvent::Opened(slot.id));
        }
        if !connection.peek().is_empty() {
            self.events.push_back(StreamEvent::Readable(slot.id));
        }
        if slot.blocked && connection.room() > 0 {
            slot.blocked = false;
            self.events.push_back(StreamEvent::Writable(slot.id));
        }
        if connection.is_finished() && !slot.ended {
            slot.ended = true;
            self.events.push_back(StreamEvent::Ended(slot.id));
        }
        if connection.is_broken() {
            self.events.push_back(StreamEvent::Broken(slot.id));
        }
        if connection.is_broken() || connection.is_done() {
            slot.gone = true;
            slot.lingers = Some(now + LINGER);
            self.events.push_back(StreamEvent::Gone(slot.id));
        }
    }

    /// The slot of a datagram; a new one for an Initial to a server.
    fn slot_for(&mut self, now: Instant, packet: &Packet) -> Option<u32> {
        if let Some(&place) = self.by_peer.get(&(packet.from, packet.to)) {
            return Some(place);
        }
        if !self.accepts(packet) || !Connection::opens(packet.bytes()) {
            return None;
        }
        let connection = Connection::listen(&self.config, now);
        Some(self.insert(connection, packet.to, packet.from, false).slot)
    }

    fn accepts(&self, packet: &Packet) -> bool {
        self.port.is_some_and(|port| packet.to == Address::new(self.node, port))
    }
}

impl Streams for Quic {
    type Id = QuicId;

    /// # Panics
    /// If this is not a client, or all its ports are in use.
    fn open(&mut self, now: Instant) -> QuicId {
        let server = self.server.expect("a client's transport has a server");
        let local = (0..PORTS)
            .map(|step| FIRST_PORT + ((self.opened + step) % PORTS) as u16)
            .map(|port| Address::new(self.node, port))
            .find(|&local| !self.by_peer.contains_key(&(server, local)))
            .expect("a port should be free");
        let stream = self.insert(Connection::connect(&self.config, now), local, server, true);
        self.wake(stream.slot);
        stream
    }

    fn write(&mut self, _: Instant, stream: QuicId, bytes: &[u8]) -> usize {
        let Some(slot) = self.slot_mut(stream) else { return 0 };
        let taken = slot.connection.write(bytes);
        slot.blocked = taken < bytes.len();
        if taken > 0 {
            self.wake(stream.slot);
        }
        taken
    }

    fn end(&mut self, _: Instant, stream: QuicId) {
        if let Some(slot) = self.slot_mut(stream) {
            slot.connection.end();
            self.wake(stream.slot);
        }
    }

    fn peek(&self, stream: QuicId) -> &[u8] {
        self.slot(stream).map_or(&[], |slot| slot.connection.peek())
    }

    fn consume(&mut self, now: Instant, stream: QuicId, count: usize) {
        let Some(slot) = self.slot_mut(stream) else { return };
        slot.connection.consume(count);
        let finished = slot.connection.is_finished() && !slot.ended;
        self.wake(stream.slot);
        if finished {
            self.note(stream.slot, now);
        }
    }
}

impl Transport for Quic {
    fn wants(&self, packet: &Packet) -> bool {
        let known = self.by_peer.contains_key(&(packet.from, packet.to));
        packet.protocol == Protocol::Udp && (known || self.accepts(packet))
    }

    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let Some(place) = self.slot_for(now, packet) else {
            self.unmatched += 1;
            return;
        };
        let Some(slot) = &mut self.slots[place as usize] else { return };
        let handled = slot.connection.handle_datagram(now, packet.bytes());
        self.unmatched += u64::from(handled.is_err());
        self.note(place, now);
        self.wake(place);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        while let Some(place) = self.awake.pop() {
            let Some(slot) = &mut self.slots[place as usize] else { continue };
            slot.awake = false;
            let room = self.config.max_datagram;
            let mut buffer = out.buffer(room);
            while let Some(len) = slot.connection.poll_transmit(now, &mut buffer) {
                let next = out.buffer(room);
                let mut sent = core::mem::replace(&mut buffer, next);
                sent.truncate(len);
                out.send(Packet::udp(slot.local, slot.remote, sent));
            }
            out.give_back(buffer);
            let due = slot.connection.poll_timeout().into_iter().chain(slot.lingers).min();
            self.timers.set(place as usize, due);
            self.note(place, now);
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
            if slot.lingers.is_some_and(|at| at <= now) {
                self.remove(place);
                continue;
            }
            slot.connection.handle_timeout(now);
            self.note(place, now);
            self.wake(place);
        }
    }

    fn poll_event(&mut self) -> Option<StreamEvent<QuicId>> {
        self.events.pop_front()
    }
}
