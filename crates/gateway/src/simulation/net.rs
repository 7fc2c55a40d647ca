//! The network in memory: sockets, listeners, the link and what happens when.

use super::link::Link;
use super::tcp::{Conn, Owner};
use crate::engine::resolver::Update;
use crate::engine::{Readiness, SocketId, Source};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Instant, RngStream, Span};

/// Numbers of listeners and of datagram sockets begin here; those of connections are below.
pub(super) const LISTENERS: i32 = 1 << 24;
pub(super) const DATAGRAMS: i32 = 1 << 25;
/// How long a host goes on sending a SYN.
const SYN_TIMEOUT: Span = Span::from_secs(127);

/// The task of nobody.
const NOBODY: usize = usize::MAX;

/// What a server does with a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It accepts.
    Accept,
    /// It sends a RST.
    Refuse,
    /// A filter discards the SYN.
    Discard,
    /// A router says that there is no way.
    Unreachable,
}

/// What a name server says of a name.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) after: Span,
}

#[derive(Debug)]
pub(super) struct Listener {
    pub(super) node: usize,
    pub(super) address: SocketAddr,
    pub(super) source: Option<Source>,
    pub(super) backlog: VecDeque<usize>,
}

#[derive(Debug)]
pub(super) struct Datagrams {
    pub(super) node: usize,
    pub(super) address: SocketAddr,
    pub(super) source: Option<Source>,
    pub(super) arrived: VecDeque<(SocketAddr, Vec<u8>)>,
    pub(super) open: bool,
    /// The sender has met a full buffer.
    pub(super) starved: bool,
}

/// A gateway's host.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) ready: VecDeque<SocketId>,
    pub(super) names_ready: bool,
    pub(super) updates: VecDeque<Update>,
    /// Lookups that run.
    pub(super) lookups: BTreeSet<u64>,
    /// Descriptors that are open, and how many may be.
    pub(super) open: usize,
    pub(super) limit: usize,
}

#[derive(Debug)]
enum Event {
    Conn(usize),
    Accept(usize),
    Datagram(usize, SocketAddr, Vec<u8>),
    Writable(usize),
    Lookup(usize, u64, Update),
}

/// The network.
#[derive(Debug)]
pub(super) struct Net {
    pub(super) now: Instant,
    pub(super) rng: RngStream,
    pub(super) conns: Vec<Conn>,
    pub(super) listeners: Vec<Listener>,
    pub(super) sockets: Vec<Datagrams>,
    pub(super) nodes: Vec<Node>,
    /// Tasks whose sockets have news.
    pub(super) woken: BTreeSet<usize>,
    pub(super) servers: BTreeMap<SocketAddr, (Answer, usize)>,
    pub(super) names: BTreeMap<String, Record>,
    /// The link by the address that sends.
    pub(super) links: BTreeMap<SocketAddr, Link>,
    /// Reads and writes take less than they could, and calls are interrupted, so many times in a
    /// thousand.
    pub(super) fickle: u64,
    pub(super) path_mtu: usize,
    /// Octets of each socket's buffers.
    pub(super) room: usize,
    events: BTreeMap<(Instant, u64), Event>,
    last: u64,
    /// What happened, in one number.
    pub(super) trace: u64,
}

/// The network as its sockets hold it. All run in one thread; the lock is never waited for.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<Net>>);

impl Shared {
    pub(super) fn new(net: Net) -> Self {
        Self(Arc::new(Mutex::new(net)))
    }

    pub(super) fn net(&self) -> MutexGuard<'_, Net> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn id_of(conn: usize, end: usize) -> SocketId {
    SocketId((2 * conn + end) as i32)
}

pub(super) fn conn_of(id: SocketId) -> (usize, usize) {
    let number = id.0 as usize;
    (number / 2, number % 2)
}

impl Net {
    pub(super) fn new(rng: RngStream) -> Self {
        Self {
            now: Instant::ZERO + Span::from_secs(1),
            rng,
            conns: Vec::new(),
            listeners: Vec::new(),
            sockets: Vec::new(),
            nodes: Vec::new(),
            woken: BTreeSet::new(),
            servers: BTreeMap::new(),
            names: BTreeMap::new(),
            links: BTreeMap::new(),
            fickle: 0,
            path_mtu: 1500,
            room: 64 * 1024,
            events: BTreeMap::new(),
            last: 0,
            trace: 0,
        }
    }

    fn plan(&mut self, at: Instant, event: Event) {
        self.last += 1;
        self.events.insert((at.max(self.now), self.last), event);
    }

    /// When something happens next.
    pub(super) fn due(&self) -> Option<Instant> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn note(&mut self, word: u64) {
        self.trace = (self.trace ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(17);
    }

    /// Lets all happen that is due at `now`.
    pub(super) fn advance(&mut self, now: Instant) {
        self.now = now;
        while let Some(((at, _), _)) = self.events.first_key_value()
            && *at <= now
        {
            let Some((_, event)) = self.events.pop_first() else { return };
            match event {
                Event::Conn(conn) => self.touch(conn),
                Event::Accept(conn) => self.arrived(conn),
                Event::Datagram(to, from, bytes) => {
                    self.note(bytes.len() as u64 ^ now.as_nanos());
                    if self.sockets[to].open {
                        self.sockets[to].arrived.push_back((from, bytes));
                        let node = self.sockets[to].node;
                        self.report(node, SocketId(DATAGRAMS + to as i32));
                    }
                }
                Event::Writable(socket) => {
                    self.sockets[socket].starved = false;
                    let node = self.sockets[socket].node;
                    self.report(node, SocketId(DATAGRAMS + socket as i32));
                }
                Event::Lookup(node, lookup, update) => {
                    if self.nodes[node].lookups.contains(&lookup) {
                        let complete = matches!(
                            &update,
                            Update::Lookup {
                                found: crate::engine::resolver::Found::Complete(..),
                                ..
                            }
                        );
                        if complete {
                            self.nodes[node].lookups.remove(&lookup);
                        }
                        self.nodes[node].updates.push_back(update);
                        self.nodes[node].names_ready = true;
                    }
                }
            }
        }
    }

    fn report(&mut self, node: usize, id: SocketId) {
        let ready = &mut self.nodes[node].ready;
        if !ready.contains(&id) {
            ready.push_back(id);
        }
    }

    /// Moves a connection on, and tells its ends.
    pub(super) fn touch(&mut self, conn: usize) {
        let edges = self.conns[conn].advance(self.now);
        for (end, _) in edges.into_iter().enumerate().filter(|(_, edge)| *edge) {
            self.tell(conn, end);
        }
        if let Some(due) = self.conns[conn].due(self.now) {
            self.plan(due, Event::Conn(conn));
        }
    }

    fn tell(&mut self, conn: usize, end: usize) {
        match self.conns[conn].ends[end].owner {
            Owner::Node(node) => self.report(node, id_of(conn, end)),
            Owner::Task(task) => drop(self.woken.insert(task)),
        }
    }

    /// The next thing of a node that is ready.
    pub(super) fn next_ready(&mut self, node: usize) -> Option<(Source, Readiness)> {
        if std::mem::take(&mut self.nodes[node].names_ready) {
            return Some((Source::Names, Readiness { readable: true, ..Readiness::default() }));
        }
        while let Some(id) = self.nodes[node].ready.pop_front() {
            let found = match id.0 {
                DATAGRAMS.. => {
                    let socket = &self.sockets[(id.0 - DATAGRAMS) as usize];
                    let readable = !socket.arrived.is_empty();
                    let ready = Readiness { readable, writable: !socket.starved, error: false };
                    socket.source.filter(|_| socket.open).map(|source| (source, ready))
                }
                LISTENERS.. => {
                    let source = self.listeners[(id.0 - LISTENERS) as usize].source;
                    source.map(|it| (it, Readiness { readable: true, ..Readiness::default() }))
                }
                _ => {
                    let (conn, end) = conn_of(id);
                    let its = &self.conns[conn];
                    let source = its.ends[end].source.filter(|_| its.is_open(end));
                    source.map(|source| (source, its.readiness(end)))
                }
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    pub(super) fn watch(&mut self, node: usize, id: SocketId, source: Source) {
        match id.0 {
            DATAGRAMS.. => self.sockets[(id.0 - DATAGRAMS) as usize].source = Some(source),
            LISTENERS.. => self.listeners[(id.0 - LISTENERS) as usize].source = Some(source),
            _ => {
                let (conn, end) = conn_of(id);
                self.conns[conn].ends[end].source = Some(source);
                let Readiness { readable, writable, error } = self.conns[conn].readiness(end);
                if !(readable || writable || error) {
                    return;
                }
            }
        }
        self.report(node, id);
    }

    /// Takes a descriptor of a node.
    pub(super) fn take_descriptor(&mut self, node: usize) -> io::Result<()> {
        let node = &mut self.nodes[node];
        if node.open >= node.limit {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        node.open += 1;
        Ok(())
    }

    /// Whether this call is one of those that go less far than they could.
    pub(super) fn is_fickle(&mut self) -> bool {
        self.fickle > 0 && self.rng.below(1000) < self.fickle
    }

    fn delay(&mut self) -> Span {
        Span::from_micros(100 + self.rng.below(2_000))
    }

    /// A task's client connects to a gateway's listener; `to` is what its socket shows as its own
    /// address there.
    pub(super) fn dial(
        &mut self,
        task: usize,
        (from, to): (SocketAddr, SocketAddr),
        listener: usize,
    ) -> SocketId {
        let node = self.listeners[listener].node;
        let (delay, conn) = (self.delay(), self.conns.len());
        let owners = [Owner::Task(task), Owner::Node(node)];
        let outcome = (delay * 2, None);
        self.conns.push(Conn::new(self.now, (owners, [from, to]), delay, self.room, outcome));
        self.plan(self.now + delay, Event::Accept(conn));
        self.touch(conn);
        self.listeners[listener].backlog.push_back(conn);
        id_of(conn, 0)
    }

    /// A gateway connects to a server.
    ///
    /// # Errors
    /// When there is no descriptor, or no route.
    pub(super) fn connect(&mut self, node: usize, server: SocketAddr) -> io::Result<SocketId> {
        let found = self.servers.get(&server).copied();
        let (answer, task) = found.unwrap_or((Answer::Refuse, NOBODY));
        if answer == Answer::Unreachable {
            return Err(io::Error::from_raw_os_error(libc::ENETUNREACH));
        }
        self.take_descriptor(node)?;
        let (delay, conn) = (self.delay(), self.conns.len());
        let outcome = match answer {
            Answer::Accept => (delay * 2, None),
            Answer::Refuse | Answer::Unreachable => (delay * 2, Some(libc::ECONNREFUSED)),
            Answer::Discard => (SYN_TIMEOUT, Some(libc::ETIMEDOUT)),
        };
        // A server that does not accept never sees the connection.
        let task = if answer == Answer::Accept { task } else { NOBODY };
        let owners = [Owner::Node(node), Owner::Task(task)];
        let own = SocketAddr::from(([10, 9, 0, 1], 40_000));
        self.conns.push(Conn::new(self.now, (owners, [own, server]), delay, self.room, outcome));
        if answer == Answer::Accept {
            self.plan(self.now + delay, Event::Accept(conn));
        }
        self.touch(conn);
        Ok(id_of(conn, 0))
    }

    /// A SYN has arrived.
    fn arrived(&mut self, conn: usize) {
        if let Owner::Node(node) = self.conns[conn].ends[1].owner {
            let at = self.listeners.iter().position(|all| all.backlog.contains(&conn));
            if let Some(listener) = at {
                self.report(node, SocketId(LISTENERS + listener as i32));
            }
        } else {
            self.tell(conn, 1);
        }
        self.touch(conn);
    }

    /// The connection that has come to a task's server, if one has.
    pub(super) fn accepted(&self, task: usize) -> Option<SocketId> {
        let mut all = self.conns.iter().enumerate();
        let its =
            |conn: &Conn| conn.ends[1].owner == Owner::Task(task) && conn.has_arrived(self.now);
        all.find(|(_, conn)| its(conn)).map(|(conn, _)| id_of(conn, 1))
    }

    pub(super) fn read(
        &mut self,
        id: SocketId,
        out: &mut [u8],
        consume: bool,
    ) -> io::Result<usize> {
        let (conn, end) = conn_of(id);
        let most = match self.is_fickle() {
            true => 1 + self.rng.below(out.len().max(1) as u64) as usize,
            false => out.len(),
        };
        let most = most.min(out.len());
        let read = self.conns[conn].read(end, &mut out[..most], consume);
        self.touch(conn);
        read
    }

    pub(super) fn write(&mut self, id: SocketId, bytes: &[u8]) -> io::Result<usize> {
        let (conn, end) = conn_of(id);
        let most = match self.is_fickle() && !bytes.is_empty() {
            true => 1 + self.rng.below(bytes.len() as u64) as usize,
            false => bytes.len(),
        };
        let written = self.conns[conn].write(self.now, end, &bytes[..most]);
        self.touch(conn);
        written
    }

    pub(super) fn shutdown_write(&mut self, id: SocketId) -> io::Result<()> {
        let (conn, end) = conn_of(id);
        let ended = self.conns[conn].shutdown_write(self.now, end);
        self.touch(conn);
        ended
    }

    /// Closes a socket; returns whether that was with a RST.
    pub(super) fn close(&mut self, id: SocketId, reset: bool) -> bool {
        let (conn, end) = conn_of(id);
        self.note(id.0 as u64 ^ self.now.as_nanos() ^ u64::from(reset));
        if let Owner::Node(node) = self.conns[conn].ends[end].owner
            && self.conns[conn].is_open(end)
        {
            self.nodes[node].open -= 1;
        }
        let reset = self.conns[conn].close(self.now, end, reset);
        self.touch(conn);
        reset
    }

    /// Sends a datagram by the link of `socket`.
    pub(super) fn send(&mut self, socket: usize, to: SocketAddr, bytes: &[u8]) {
        let from = self.sockets[socket].address;
        let Some(link) = self.links.get_mut(&from) else { return };
        let mut bytes = bytes.to_vec();
        let arrivals = link.carry(self.now, &mut self.rng, &mut bytes);
        let receivers = self.sockets.iter().position(|other| other.open && other.address == to);
        let Some(receiver) = receivers else { return };
        for at in arrivals {
            self.plan(at, Event::Datagram(receiver, from, bytes.clone()));
        }
    }

    /// The sender of `socket` is told in a moment that there is room again.
    pub(super) fn starve(&mut self, socket: usize) {
        self.sockets[socket].starved = true;
        self.plan(self.now + Span::from_millis(2), Event::Writable(socket));
    }

    pub(super) fn found(&mut self, node: usize, after: Span, lookup: u64, update: Update) {
        self.plan(self.now + after, Event::Lookup(node, lookup, update));
    }
}
