//! XSTP as a transport: a connection for each stream.

mod stand_in;

use super::{StreamEvent, Transport};
use crate::invariants::SessionGuard;
use crate::network::{Address, NodeId, Outbox, Packet};
use crate::{Streams, TimerTree};
use stand_in::HeldEnd;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use units::{BitRate, Instant, Span};
use xstp::Connection;
use xstp::session::{Event, SessionConfig, State};
use xstp::wire::{Endpoints, PROTOCOL_NUMBER, Profile};

/// Names a stream, which is a connection, of an [`Xstp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct XstpStream {
    number: u64,
    slot: u32,
}

/// How long a connection that is over still answers its peer.
const LINGER: Span = Span::from_secs(30);
/// The first of the ports that connections leave from, and how many there are.
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = (u16::MAX - FIRST_PORT) as u64;

/// XSTP connections of one host.
#[derive(Debug)]
pub struct Xstp {
    node: NodeId,
    config: SessionConfig,
    /// Where streams are opened to.
    server: Option<Address>,
    listens: Listens,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// By the peer's address and this end's.
    by_peer: BTreeMap<(Address, Address), u32>,
    timers: TimerTree,
    /// Slots to which something happened.
    awake: Vec<u32>,
    events: VecDeque<StreamEvent<XstpStream>>,
    opened: u64,
    bad: u64,
}

/// Whose streams are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listens {
    /// Nobody's.
    Nowhere,
    /// Those to this port of this node.
    On(u16),
    /// All that come by, in the name of whom they are meant for.
    ToAll,
}

#[derive(Debug)]
struct Slot {
    connection: Connection,
    id: XstpStream,
    remote: Address,
    /// Its own address, which is another's where this transport stands in for it.
    local: Address,
    /// The peer opened it.
    passive: bool,
    /// It took fewer bytes than it was given.
    blocked: bool,
    awake: bool,
    ended: bool,
    gone: bool,
    /// Until when it answers, when it is over.
    lingers: Option<Instant>,
    end: HeldEnd,
    guard: SessionGuard,
}

impl Xstp {
    /// A client's: streams are opened to `server`.
    pub fn client(node: NodeId, config: &SessionConfig, server: Address) -> Self {
        Self::new(node, config, Some(server), Listens::Nowhere)
    }

    /// A server's: streams of others are taken on `port`.
    pub fn server(node: NodeId, config: &SessionConfig, port: u16) -> Self {
        Self::new(node, config, None, Listens::On(port))
    }

    /// A gateway's, which [stands in](super::StandIn) for whoever its peers mean.
    ///
    /// # Panics
    /// When segments are sealed: what opens a stream cannot be told from other datagrams then.
    pub fn gateway(node: NodeId, config: &SessionConfig) -> Self {
        assert!(matches!(config.profile, Profile::Published(_)), "a published profile");
        Self::new(node, config, None, Listens::ToAll)
    }

    fn new(
        node: NodeId,
        config: &SessionConfig,
        server: Option<Address>,
        listens: Listens,
    ) -> Self {
        Self {
            node,
            config: config.clone(),
            server,
            listens,
            slots: Vec::new(),
            free: Vec::new(),
            by_peer: BTreeMap::new(),
            timers: TimerTree::new(),
            awake: Vec::new(),
            events: VecDeque::new(),
            opened: 0,
            bad: 0,
        }
    }

    /// Segments that were not accepted.
    pub fn bad(&self) -> u64 {
        self.bad
    }

    /// The connection that a stream is, as long as it is known.
    pub fn connection(&self, stream: XstpStream) -> Option<&Connection> {
        self.slot(stream).map(|slot| &slot.connection)
    }

    /// All connections.
    pub fn connections(&self) -> impl Iterator<Item = (XstpStream, &Connection)> {
        self.slots.iter().flatten().map(|slot| (slot.id, &slot.connection))
    }

    /// The rate that no connection exceeds from now on, those to come included.
    pub fn set_max_rate(&mut self, rate: BitRate) {
        self.config.max_rate = Some(rate);
        for slot in self.slots.iter_mut().flatten() {
            slot.connection.set_max_rate(Some(rate));
            slot.guard.follow(slot.connection.session().config());
        }
        (0..self.slots.len() as u32).for_each(|place| self.wake(place));
    }

    /// Breaks a connection off: RST goes out.
    pub fn abort(&mut self, now: Instant, stream: XstpStream) {
        if let Some(slot) = self.slot_mut(stream) {
            slot.connection.abort(now);
            self.wake(stream.slot);
        }
    }

    /// As a connection between `local` and `remote` needs it.
    fn config_for(&self, local: Address, remote: Address) -> SessionConfig {
        let socket = |at: Address| SocketAddr::new(IpAddr::V4(at.node.ip()), at.port);
        let ends = Endpoints { local: socket(local), remote: socket(remote) };
        let profile = match self.config.profile {
            Profile::Published(_) => Profile::Published(ends),
            Profile::Sealed => Profile::Sealed,
        };
        SessionConfig { profile, ..self.config.clone() }
    }

    /// A connection that is opened from `local` to `remote`.
    fn connect(&mut self, now: Instant, local: Address, remote: Address) -> XstpStream {
        let config = self.config_for(local, remote);
        // Incarnations grow with time, as those of gateways do.
        let incarnation = (now.as_nanos() / 1_000_000) as u32 + 1;
        let connection = Connection::connect(&config, now, incarnation);
        let stream = self.insert(connection, local, remote, false);
        self.wake(stream.slot);
        stream
    }

    fn insert(
        &mut self,
        connection: Connection,
        local: Address,
        remote: Address,
        passive: bool,
    ) -> XstpStream {
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        if slot as usize == self.slots.len() {
            self.slots.push(None);
            self.timers.grow(self.slots.len());
        }
        self.opened += 1;
        let id = XstpStream { number: self.opened, slot };
        self.slots[slot as usize] = Some(Slot {
            connection,
            id,
            remote,
            local,
            passive,
            blocked: false,
            awake: false,
            ended: false,
            gone: false,
            lingers: None,
            end: HeldEnd::default(),
            guard: SessionGuard::new(&self.config),
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

    fn slot(&self, stream: XstpStream) -> Option<&Slot> {
        self.slots.get(stream.slot as usize)?.as_ref().filter(|slot| slot.id == stream)
    }

    fn slot_mut(&mut self, stream: XstpStream) -> Option<&mut Slot> {
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
    fn note(&mut self, place: u32, now: Instant) {
        let Some(slot) = &mut self.slots[place as usize] else { return };
        let (mut closed, mut broken) = (false, false);
        while let Some(event) = slot.connection.poll_event() {
            closed |= event == Event::Closed;
            broken |= matches!(
                event,
                Event::Reset | Event::Refused | Event::Superseded | Event::NoResponse
            );
        }
        // A connection that this end broke off is over without an event.
        closed |= broken || slot.connection.session().state() == State::Closed;
        if slot.connection.is_readable() {
            self.events.push_back(StreamEvent::Readable(slot.id));
        }
        if slot.blocked && slot.connection.room() > 0 {
            slot.blocked = false;
            self.events.push_back(StreamEvent::Writable(slot.id));
        }
        if slot.has_ended() && !slot.ended {
            slot.ended = true;
            self.events.push_back(StreamEvent::Ended(slot.id));
        }
        if closed && !slot.gone {
            slot.gone = true;
            if broken {
                self.events.push_back(StreamEvent::Broken(slot.id));
            }
            slot.lingers = Some(now + LINGER);
            self.events.push_back(StreamEvent::Gone(slot.id));
        }
    }

    /// The slot that a packet is for; a new one for a new peer of a server.
    fn place_of(&mut self, packet: &Packet) -> Option<u32> {
        if let Some(&place) = self.by_peer.get(&(packet.from, packet.to)) {
            return Some(place);
        }
        if !self.listens_for(packet) {
            return None;
        }
        let connection = Connection::listen(&self.config_for(packet.to, packet.from));
        Some(self.insert(connection, packet.to, packet.from, true).slot)
    }

    fn listens_for(&self, packet: &Packet) -> bool {
        match self.listens {
            Listens::Nowhere => false,
            Listens::On(port) => packet.to == Address::new(self.node, port),
            Listens::ToAll => stand_in::begins(packet),
        }
    }
}

impl Slot {
    /// Whether the peer has ended and all of it was consumed.
    fn has_ended(&self) -> bool {
        // END is sent when everything before it has been acknowledged.
        let held = self.end.is_held() && !self.connection.is_readable();
        held || self.connection.is_finished()
    }
}

impl Streams for Xstp {
    type Id = XstpStream;

    /// # Panics
    /// When this is not a client, or all its ports are taken.
    fn open(&mut self, now: Instant) -> XstpStream {
        let server = self.server.expect("a client's transport knows its server");
        let local = (0..PORTS)
            .map(|step| FIRST_PORT + ((self.opened + step) % PORTS) as u16)
            .map(|port| Address::new(self.node, port))
            .find(|&local| !self.by_peer.contains_key(&(server, local)))
            .expect("a port should be free");
        self.connect(now, local, server)
    }

    fn write(&mut self, _: Instant, stream: XstpStream, bytes: &[u8]) -> usize {
        let Some(slot) = self.slot_mut(stream) else { return 0 };
        // One that is over takes nothing; its event follows.
        let taken = slot.connection.write(bytes).unwrap_or(0);
        slot.blocked = taken < bytes.len();
        if taken > 0 {
            self.wake(stream.slot);
        }
        taken
    }

    fn end(&mut self, now: Instant, stream: XstpStream) {
        if let Some(slot) = self.slot_mut(stream) {
            slot.connection.end(now);
            self.wake(stream.slot);
        }
    }

    fn peek(&self, stream: XstpStream) -> &[u8] {
        self.slot(stream).map_or(&[], |slot| slot.connection.peek())
    }

    fn consume(&mut self, now: Instant, stream: XstpStream, count: usize) {
        let Some(slot) = self.slot_mut(stream) else { return };
        slot.connection.consume(count);
        if slot.has_ended() {
            self.note(stream.slot, now);
        }
    }
}

impl Transport for Xstp {
    fn wants(&self, packet: &Packet) -> bool {
        let known = self.by_peer.contains_key(&(packet.from, packet.to));
        match self.listens {
            Listens::ToAll => known && stand_in::is_xstp(packet),
            Listens::Nowhere | Listens::On(_) => known || self.listens_for(packet),
        }
    }

    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let Some(place) = self.place_of(packet) else {
            self.bad += 1;
            return;
        };
        let stands_in = self.listens == Listens::ToAll;
        let Some(slot) = &mut self.slots[place as usize] else { return };
        if stands_in && !slot.gone && slot.end.hold(packet.bytes()) {
            self.note(place, now);
            return;
        }
        let was_listening = slot.connection.session().state() == State::Listening;
        let handled = slot.connection.handle_segment(now, packet.bytes());
        self.bad += u64::from(handled.is_err());
        slot.guard.on_held(&slot.connection);
        if was_listening && slot.connection.session().state() != State::Listening {
            self.events.push_back(StreamEvent::Opened(slot.id));
        }
        self.note(place, now);
        self.wake(place);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        while let Some(place) = self.awake.pop() {
            let Some(slot) = &mut self.slots[place as usize] else { continue };
            slot.awake = false;
            let from = slot.local;
            let room = self.config.max_segment;
            let mut buffer = out.buffer(room);
            while let Some(len) = slot.connection.poll_transmit(now, &mut buffer) {
                let next = out.buffer(room);
                let mut sent = core::mem::replace(&mut buffer, next);
                sent.truncate(len);
                let packet = match self.config.profile {
                    Profile::Published(_) => Packet::ip(from, slot.remote, PROTOCOL_NUMBER, sent),
                    Profile::Sealed => Packet::udp(from, slot.remote, sent),
                };
                out.send(packet.with_header(self.config.packet_overhead));
                slot.guard.on_sent(now, len, slot.connection.session());
            }
            out.give_back(buffer);
            if slot.connection.session().state() == State::Listening {
                // It was none of ours: what there was to say is said.
                self.remove(place);
                continue;
            }
            let due = slot.connection.poll_timeout();
            let due = due.into_iter().chain(slot.lingers).min();
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

    fn poll_event(&mut self) -> Option<StreamEvent<XstpStream>> {
        self.events.pop_front()
    }
}
