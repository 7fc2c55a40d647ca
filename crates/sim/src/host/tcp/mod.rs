//! TCP as a transport: a connection for each stream, with real bytes.
//!
//! For whatever applications do; many bulk flows cost less with [`crate::tcp`].

mod stream;

use super::{StreamEvent, Transport};
use crate::network::{Address, NodeId, Outbox, Packet};
use crate::{Calendar, Streams};
use simtcp::{Endpoint, Event, Ports, TcpConfig};
use std::collections::{BTreeMap, VecDeque};
use stream::Stream;
use units::Instant;

/// Names a stream, which is a connection, of a [`Tcp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpId {
    number: u64,
    slot: u32,
}

/// The first of the ports that connections leave from, and how many there are.
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = (u16::MAX - FIRST_PORT) as u64;

/// TCP connections of one host.
#[derive(Debug)]
pub struct Tcp {
    node: NodeId,
    config: TcpConfig,
    /// Where streams are opened to.
    server: Option<Address>,
    /// Where streams of others are taken.
    listens: Option<u16>,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    by_peer: BTreeMap<(Address, u16), u32>,
    timers: Calendar,
    /// Slots to which something happened.
    awake: Vec<u32>,
    events: VecDeque<StreamEvent<TcpId>>,
    opened: u64,
    strangers: u64,
}

#[derive(Debug)]
struct Slot {
    stream: Stream,
    id: TcpId,
    remote: Address,
    local: u16,
    awake: bool,
    told: bool,
    ended: bool,
    gone: bool,
}

impl Tcp {
    /// A client's: streams are opened to `server`.
    pub fn client(node: NodeId, config: &TcpConfig, server: Address) -> Self {
        Self::new(node, config, Some(server), None)
    }

    /// A server's: streams of others are taken on `port`.
    pub fn server(node: NodeId, config: &TcpConfig, port: u16) -> Self {
        Self::new(node, config, None, Some(port))
    }

    fn new(
        node: NodeId,
        config: &TcpConfig,
        server: Option<Address>,
        listens: Option<u16>,
    ) -> Self {
        Self {
            node,
            config: config.clone(),
            server,
            listens,
            slots: Vec::new(),
            free: Vec::new(),
            by_peer: BTreeMap::new(),
            timers: Calendar::new(),
            awake: Vec::new(),
            events: VecDeque::new(),
            opened: 0,
            strangers: 0,
        }
    }

    /// Segments that no connection was for.
    pub fn strangers(&self) -> u64 {
        self.strangers
    }

    /// The connection that a stream is, as long as it is known.
    pub fn connection(&self, stream: TcpId) -> Option<&Endpoint> {
        self.slot(stream).map(|slot| &slot.stream.endpoint)
    }

    /// All connections.
    pub fn connections(&self) -> impl Iterator<Item = (TcpId, &Endpoint)> {
        self.slots.iter().flatten().map(|slot| (slot.id, &slot.stream.endpoint))
    }

    /// Whose bytes a connection from `node`'s `port` carries.
    fn content(node: NodeId, port: u16) -> u64 {
        (node.index() as u64) << 16 | u64::from(port)
    }

    fn insert(&mut self, endpoint: Endpoint, local: u16, remote: Address) -> TcpId {
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
            awake: false,
            told: false,
            ended: false,
            gone: false,
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

    /// Something happened to `place`: it will be asked what it sends.
    fn wake(&mut self, place: u32) {
        if let Some(slot) = &mut self.slots[place as usize]
            && !slot.awake
        {
            slot.awake = true;
            self.awake.push(place);
        }
    }

    /// Tells of what has become of `place`.
    fn note(&mut self, place: u32) {
        let Some(slot) = &mut self.slots[place as usize] else { return };
        while let Some(event) = slot.stream.endpoint.poll_event() {
            match event {
                Event::Established if self.listens == Some(slot.local) && !slot.told => {
                    slot.told = true;
                    self.events.push_back(StreamEvent::Opened(slot.id));
                }
                Event::Closed(_) => slot.gone = true,
                // What is readable, and where it ends, is looked at below.
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
        if slot.stream.endpoint.is_finished() && !slot.ended {
            slot.ended = true;
            self.events.push_back(StreamEvent::Ended(slot.id));
        }
        if slot.gone {
            self.events.push_back(StreamEvent::Gone(slot.id));
        }
    }

    /// The slot that a segment is for; a new one for a new peer of a server.
    fn place_of(&mut self, packet: &Packet) -> Option<u32> {
        if let Some(&place) = self.by_peer.get(&(packet.from, packet.to.port)) {
            return Some(place);
        }
        let port = self.listens.filter(|&port| port == packet.to.port)?;
        if !packet.segment().is_some_and(|segment| segment.flags.syn) {
            return None;
        }
        let endpoint = Endpoint::listen(&self.config, port, Self::content(self.node, port));
        Some(self.insert(endpoint, port, packet.from).slot)
    }
}

impl Streams for Tcp {
    type Id = TcpId;

    /// # Panics
    /// When this is not a client, or all its ports are taken.
    fn open(&mut self, _: Instant) -> TcpId {
        let server = self.server.expect("a client's transport knows its server");
        let port = (0..PORTS)
            .map(|step| FIRST_PORT + ((self.opened + step) % PORTS) as u16)
            .find(|&port| !self.by_peer.contains_key(&(server, port)))
            .expect("a port should be free");
        let ports = Ports { from: port, to: server.port };
        let endpoint = Endpoint::connect(&self.config, ports, Self::content(self.node, port));
        let stream = self.insert(endpoint, port, server);
        self.wake(stream.slot);
        stream
    }

    fn write(&mut self, _: Instant, stream: TcpId, bytes: &[u8]) -> usize {
        let Some(slot) = self.slot_mut(stream) else { return 0 };
        let taken = slot.stream.write(bytes);
        self.wake(stream.slot);
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
        let finished = slot.stream.endpoint.is_finished() && !slot.ended;
        self.wake(stream.slot);
        if finished {
            self.note(stream.slot);
        }
    }
}

impl Transport for Tcp {
    fn wants(&self, packet: &Packet) -> bool {
        let known = self.by_peer.contains_key(&(packet.from, packet.to.port));
        let ours = packet.to.node == self.node && packet.segment().is_some();
        ours && (known || self.listens == Some(packet.to.port))
    }

    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let (Some(place), Some(segment)) = (self.place_of(packet), packet.segment()) else {
            self.strangers += 1;
            return;
        };
        if let Some(slot) = &mut self.slots[place as usize] {
            slot.stream.handle(now, segment, packet.bytes());
        }
        self.note(place);
        self.wake(place);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        while let Some(place) = self.awake.pop() {
            let Some(slot) = &mut self.slots[place as usize] else { continue };
            slot.awake = false;
            while let Some(segment) = slot.stream.endpoint.poll_transmit(now) {
                let mut bytes = out.buffer(segment.payload.len as usize);
                slot.stream.fill(&segment, &mut bytes);
                out.send_stream(slot.remote.node, segment, bytes);
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
