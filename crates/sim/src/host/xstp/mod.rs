//! XSTP as a transport: one connection per stream.

mod interceptor;

use super::{StreamEvent, Transport};
use crate::invariants::SessionGuard;
use crate::network::{Address, NodeId, Outbox, Packet};
use crate::{Streams, TimerTree};
use interceptor::HeldFin;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use units::{BitRate, Instant, Span};
use xstp::Connection;
use xstp::session::{Event, SessionConfig, State};
use xstp::wire::{Endpoints, PROTOCOL_NUMBER, Profile};

/// Identifies a stream, which is a connection, of an [`Xstp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct XstpStream {
    number: u64,
    slot: u32,
}

/// How long a closed connection still responds to its peer.
const LINGER: Span = Span::from_secs(30);
/// The first ephemeral port, and their number.
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = (u16::MAX - FIRST_PORT) as u64;

/// The XSTP connections of one host.
#[derive(Debug)]
pub struct Xstp {
    node: NodeId,
    config: SessionConfig,
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
    events: VecDeque<StreamEvent<XstpStream>>,
    opened: u64,
    bad: u64,
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
    connection: Connection,
    id: XstpStream,
    remote: Address,
    /// The local address; of another host when this transport intercepts.
    local: Address,
    /// Whether the peer opened it.
    passive: bool,
    /// It accepted fewer octets than offered.
    blocked: bool,
    awake: bool,
    ended: bool,
    gone: bool,
    /// Until when it responds, once it is closed.
    lingers: Option<Instant>,
    end: HeldFin,
    guard: SessionGuard,
}

impl Xstp {
    /// A client: streams are opened to `server`.
    pub fn client(node: NodeId, config: &SessionConfig, server: Address) -> Self {
        Self::new(node, config, Some(server), Accepts::Nowhere)
    }

    /// A server: connections are accepted on `port`.
    pub fn server(node: NodeId, config: &SessionConfig, port: u16) -> Self {
        Self::new(node, config, None, Accepts::On(port))
    }

    /// A gateway, which [intercepts](super::Interceptor) connections to other hosts.
    ///
    /// # Panics
    /// If the profile is sealed: then the opening of a stream cannot be recognized.
    pub fn gateway(node: NodeId, config: &SessionConfig) -> Self {
        assert!(matches!(config.profile, Profile::Published(_)), "a published profile");
        Self::new(node, config, None, Accepts::Intercept)
    }

    fn new(
        node: NodeId,
        config: &SessionConfig,
        server: Option<Address>,
        accepts: Accepts,
    ) -> Self {
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
            events: VecDeque::new(),
            opened: 0,
            bad: 0,
        }
    }

    /// Segments rejected.
    pub fn bad(&self) -> u64 {
        self.bad
    }

    /// The connection of a stream, as long as it is known.
    pub fn connection(&self, stream: XstpStream) -> Option<&Connection> {
        self.slot(stream).map(|slot| &slot.connection)
    }

    /// All connections.
    pub fn connections(&self) -> impl Iterator<Item = (XstpStream, &Connection)> {
        self.slots.iter().flatten().map(|slot| (slot.id, &slot.connection))
    }

    /// Sets the maximum rate of each connection, future ones included.
    pub fn set_max_rate(&mut self, rate: BitRate) {
        self.config.max_rate = Some(rate);
        for slot in self.slots.iter_mut().flatten() {
            slot.connection.set_max_rate(Some(rate));
            slot.guard.follow(slot.connection.session().config());
        }
        (0..self.slots.len() as u32).for_each(|place| self.wake(place));
    }

    /// Aborts a connection: an RST is sent.
    pub fn abort(&mut self, now: Instant, stream: XstpStream) {
        if let Some(slot) = self.slot_mut(stream) {
            slot.connection.abort(now);
            self.wake(stream.slot);
        }
    }

    /// The configuration of a connection between `local` and `remote`.
    fn config_for(&self, local: Address, remote: Address) -> SessionConfig {
        let socket = |at: Address| SocketAddr::new(IpAddr::V4(at.node.ip()), at.port);
        let ends = Endpoints { local: socket(local), remote: socket(remote) };
        let profile = match self.config.profile {
            Profile::Published(_) => Profile::Published(ends),
            Profile::Sealed => Profile::Sealed,
        };
        SessionConfig { profile, ..self.config.clone() }
    }

    /// Opens a connection from `local` to `remote`.
    fn connect(&mut self, now: Instant, local: Address, remote: Address) -> XstpStream {
        let config = self.config_for(local, remote);
        // Incarnations increase with time, as those of gateways.
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
            end: HeldFin::default(),
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
        let (mut closed, mut broken) = (false, false);
        while let Some(event) = slot.connection.poll_event() {
            closed |= event == Event::Closed;
            broken |= matches!(
                event,
                Event::Reset | Event::Refused | Event::Superseded | Event::NoResponse
            );
        }
        // A connection aborted by this end closes without an event.
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

    /// The slot of a packet; a new one for a new peer of a server.
    fn slot_for(&mut self, packet: &Packet) -> Option<u32> {
        if let Some(&place) = self.by_peer.get(&(packet.from, packet.to)) {
            return Some(place);
        }
        if !self.accepts_packet(packet) {
            return None;
        }
        let connection = Connection::listen(&self.config_for(packet.to, packet.from));
        Some(self.insert(connection, packet.to, packet.from, true).slot)
    }

    fn accepts_packet(&self, packet: &Packet) -> bool {
        match self.accepts {
            Accepts::Nowhere => false,
            Accepts::On(port) => packet.to == Address::new(self.node, port),
            Accepts::Intercept => interceptor::begins(packet),
        }
    }
}

impl Slot {
    /// Whether the peer has ended and everything was consumed.
    fn has_ended(&self) -> bool {
        // END is sent when everything before it has been acknowledged.
        let held = self.end.is_held() && !self.connection.is_readable();
        held || self.connection.is_finished()
    }
}

impl Streams for Xstp {
    type Id = XstpStream;

    /// # Panics
    ///
    /// If this is not a client, or all its ports are in use.
    fn open(&mut self, now: Instant) -> XstpStream {
        let server = self.server.expect("a client's transport has a server");
        let local = (0..PORTS)
            .map(|step| FIRST_PORT + ((self.opened + step) % PORTS) as u16)
            .map(|port| Address::new(self.node, port))
            .find(|&local| !self.by_peer.contains_key(&(server, local)))
            .expect("a port should be free");
        self.connect(now, local, server)
    }

    fn write(&mut self, _: Instant, stream: XstpStream, bytes: &[u8]) -> usize {
        let Some(slot) = self.slot_mut(stream) else { return 0 };
        // A closed connection accepts nothing; its event follows.
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
        match self.accepts {
            Accepts::Intercept => known && interceptor::is_xstp(packet),
            Accepts::Nowhere | Accepts::On(_) => known || self.accepts_packet(packet),
        }
    }

    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let Some(place) = self.slot_for(packet) else {
            self.bad += 1;
            return;
        };
        let stands_in = self.accepts == Accepts::Intercept;
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
                // The packet was not for this node, and the response has been sent.
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
