//! The network in memory: hosts of gateways, sockets of gateways, clients and servers, satellite
//! links, and the event queue.

pub(super) mod datagrams;
pub(super) mod faults;
pub(super) mod handshake;
pub(super) mod link;
pub(super) mod name_service;
pub(super) mod progress;
pub(super) mod tcp;

use crate::engine::resolver::{Found, Update};
use crate::engine::{Kind, Readiness, SocketId, Source};
use crate::intercept::Syn;
use crate::simulation::draw::site::NAME_SERVER;
use datagrams::Datagrams;
use faults::Faults;
use link::Link;
use name_service::NameService;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tcp::{Conn, Owner};
use units::{Instant, RngStream, Span};

/// First numbers of listeners, UDP sockets and queues of held SYNs; those of TCP sockets are below.
pub(super) const LISTENERS: i32 = 1 << 24;
pub(super) const DATAGRAMS: i32 = 1 << 25;
pub(super) const HELD_SYNS: i32 = 1 << 26;

/// Number for connections without a task.
pub(super) const NO_TASK: usize = usize::MAX;

/// Response of a server's host to a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    /// It accepts.
    Accept,
    /// It sends a RST.
    Refuse,
    /// A filter discards the SYN.
    Discard,
    /// A router sends an ICMP message: no route.
    Unreachable,
}

/// Response of a name server for a name.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) after: Span,
}

#[derive(Debug)]
pub(super) struct Listener {
    pub(super) node: usize,
    pub(super) kind: Kind,
    pub(super) address: SocketAddr,
    pub(super) source: Option<Source>,
    pub(super) backlog: VecDeque<usize>,
    pub(super) open: bool,
}

/// Handling of intercepted clients' SYNs in a node's packet filter.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketFilter {
    /// They are forwarded to their servers and bypass the gateway.
    pub(super) bypass: bool,
    /// They are held until their servers have accepted.
    pub(super) confirm: bool,
    /// SYNs to these servers are held regardless of `confirm`.
    pub(super) deferred: Vec<SocketAddr>,
    /// Whether the gateway can hold SYNs.
    pub(super) can_hold: bool,
}

/// A gateway's host.
#[derive(Debug, Default)]
pub(super) struct Node {
    ready: VecDeque<SocketId>,
    pub(super) names_ready: bool,
    pub(super) updates: VecDeque<Update>,
    /// Lookups in progress.
    pub(super) lookups: BTreeSet<u64>,
    /// Number of open descriptors, and its maximum.
    pub(super) open: usize,
    pub(super) limit: usize,
    pub(super) filter: PacketFilter,
    /// SYNs that the gateway has not received yet.
    pub(super) syns: VecDeque<Syn>,
    syn_source: Option<Source>,
}

impl Node {
    /// Creates a host without a gateway, with this limit on descriptors.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }
}

#[derive(Debug)]
enum Event {
    Conn(usize),
    Accept(usize),
    Syn(usize, u32),
    Datagram(usize, SocketAddr, Vec<u8>),
    Writable(usize),
    Lookup(usize, u64, Update),
    NameServer(usize),
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
    /// Tasks whose sockets have become ready.
    pub(super) woken: BTreeSet<usize>,
    pub(super) servers: BTreeMap<SocketAddr, (Answer, usize)>,
    /// Established connections to the servers of tasks that were not accepted yet.
    arrivals: BTreeMap<usize, VecDeque<usize>>,
    pub(super) names: BTreeMap<String, Record>,
    /// DNS of clients.
    pub(super) name_service: NameService,
    /// Satellite links by the addresses of sender and receiver.
    pub(super) links: BTreeMap<(SocketAddr, SocketAddr), Link>,
    pub(super) faults: Faults,
    pub(super) path_mtu: usize,
    /// Capacity of each TCP socket's send and receive buffers, octets.
    pub(super) room: usize,
    events: BTreeMap<(Instant, u64), Event>,
    last: u64,
    /// A hash of all events.
    pub(super) trace: u64,
}

/// The network, shared by its sockets. There is one thread, so the lock is never contended.
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
            arrivals: BTreeMap::new(),
            names: BTreeMap::new(),
            name_service: NameService::default(),
            links: BTreeMap::new(),
            faults: Faults::default(),
            path_mtu: 1500,
            room: 64 * 1024,
            events: BTreeMap::new(),
            last: 0,
            trace: 0,
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.last += 1;
        self.events.insert((at.max(self.now), self.last), event);
    }

    /// Returns when the next event is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn note(&mut self, word: u64) {
        self.trace = (self.trace ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(17);
    }

    /// Processes all events that are due at `now`.
    pub(super) fn advance(&mut self, now: Instant) {
        self.now = now;
        while let Some(((at, _), _)) = self.events.first_key_value()
            && *at <= now
        {
            let Some((_, event)) = self.events.pop_first() else { return };
            match event {
                Event::Conn(conn) => self.touch(conn),
                Event::Accept(conn) => self.on_arrival(conn),
                Event::Syn(conn, again) => self.on_syn(conn, again),
                Event::Datagram(to, from, bytes) => self.on_datagram(to, from, bytes),
                Event::Writable(socket) => self.on_writable(socket),
                Event::Lookup(node, lookup, update) => self.on_lookup(node, lookup, update),
                Event::NameServer(conn) => self.on_name_server(conn),
            }
        }
    }

    fn on_lookup(&mut self, node: usize, lookup: u64, update: Update) {
        let node = &mut self.nodes[node];
        if !node.lookups.contains(&lookup) {
            return;
        }
        if matches!(&update, Update::Lookup { found: Found::Complete(..), .. }) {
            node.lookups.remove(&lookup);
        }
        node.updates.push_back(update);
        node.names_ready = true;
    }

    /// Delivers `update` to the node's gateway after that time.
    pub(super) fn answer_lookup(&mut self, node: usize, after: Span, lookup: u64, update: Update) {
        self.schedule(self.now + after, Event::Lookup(node, lookup, update));
    }

    pub(super) fn report(&mut self, node: usize, id: SocketId) {
        let ready = &mut self.nodes[node].ready;
        if !ready.contains(&id) {
            ready.push_back(id);
        }
    }

    /// Advances a connection to the present, and notifies its ends.
    pub(super) fn touch(&mut self, conn: usize) {
        let edges = self.conns[conn].advance(self.now);
        for (end, _) in edges.into_iter().enumerate().filter(|(_, edge)| *edge) {
            self.notify(conn, end);
        }
        if let Some(due) = self.conns[conn].due(self.now) {
            self.schedule(due, Event::Conn(conn));
        }
    }

    fn notify(&mut self, conn: usize, end: usize) {
        match self.conns[conn].ends[end].owner {
            Owner::Node(node) => self.report(node, id_of(conn, end)),
            Owner::Task(NO_TASK) if self.conns[conn].ends[end].address == NAME_SERVER => {
                self.schedule(self.now, Event::NameServer(conn));
            }
            Owner::Task(task) => drop(self.woken.insert(task)),
        }
    }

    /// Returns the next source of a node that is ready, with edge-triggered semantics.
    pub(super) fn next_ready(&mut self, node: usize) -> Option<(Source, Readiness)> {
        let readable = Readiness { readable: true, ..Readiness::default() };
        if std::mem::take(&mut self.nodes[node].names_ready) {
            return Some((Source::Names, readable));
        }
        while let Some(id) = self.nodes[node].ready.pop_front() {
            let found = match id.0 {
                HELD_SYNS.. => self.nodes[node].syn_source.map(|source| (source, readable)),
                DATAGRAMS.. => {
                    let socket = &self.sockets[(id.0 - DATAGRAMS) as usize];
                    socket.source.filter(|_| socket.open).map(|it| (it, socket.readiness()))
                }
                LISTENERS.. => {
                    let listener = &self.listeners[(id.0 - LISTENERS) as usize];
                    listener.source.filter(|_| listener.open).map(|it| (it, readable))
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
            HELD_SYNS.. => self.nodes[node].syn_source = Some(source),
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

    /// Allocates a descriptor of a node.
    pub(super) fn take_descriptor(&mut self, node: usize) -> io::Result<()> {
        let node = &mut self.nodes[node];
        if node.open >= node.limit {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        node.open += 1;
        Ok(())
    }

    pub(super) fn read(
        &mut self,
        id: SocketId,
        out: &mut [u8],
        consume: bool,
    ) -> io::Result<usize> {
        let (conn, end) = conn_of(id);
        let part = self.faults.part_of(&mut self.rng, out.len());
        let read = self.conns[conn].read(end, &mut out[..part], consume);
        self.touch(conn);
        read
    }

    pub(super) fn write(&mut self, id: SocketId, bytes: &[u8]) -> io::Result<usize> {
        let (conn, end) = conn_of(id);
        let part = self.faults.part_of(&mut self.rng, bytes.len());
        let written = self.conns[conn].write(self.now, end, &bytes[..part]);
        self.touch(conn);
        written
    }

    pub(super) fn shutdown_write(&mut self, id: SocketId) -> io::Result<()> {
        let (conn, end) = conn_of(id);
        let ended = self.conns[conn].shutdown_write(self.now, end);
        self.touch(conn);
        ended
    }

    /// Closes a socket; returns whether a RST was sent.
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
}
