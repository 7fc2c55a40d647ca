//! The DNS forwarder of a terminal: its sockets, its clients by TCP, and the streams of its
//! look-ups.
//!
//! ```text
//!   client ── UDP, TCP ──▶ Forwarder ── one stream for each look-up ──▶ hub ── TCP ──▶ name server
//! ```
//!
//! A look-up's stream carries one query and one response, each behind its length in two octets
//! (RFC 7766), so the hub connects it like any other stream.

use crate::DnsSection;
use crate::dns::{Action, CacheLimits, Client, Forwarder, ReplyTo};
use crate::engine::accept::listener::{Kind, Listener};
use crate::engine::accept::stage::{TerminalCore, TerminalStage};
use crate::engine::host::{DatagramSocket, Delivered, Host, Source};
use crate::engine::limits::client_network::client_network;
use crate::engine::transfer::connection_info::ConnectionInfo;
use crate::engine::transfer::final_reply::flush;
use crate::engine::transfer::unresponsive;
use crate::observe::DnsStatus;
use relay::health::HealthState;
use relay::{Destination, ResetReason, Target};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use units::{Instant, Span};

/// Maximum number of receive calls of a socket in one round, and of queries of a TCP client.
const RECEIVE_BUDGET: usize = 8;
const QUERY_BUDGET: usize = 64;
/// Maximum octets of responses that a TCP client has not read yet.
const MAX_OUTPUT: usize = 128 * 1024;
/// Time without a query after which a TCP client is disconnected.
pub(crate) const DNS_IDLE: Span = Span::from_secs(10);
/// Time for the end of a stream after its response.
const END_TIME: Span = Span::from_secs(5);
/// The port of DNS.
const PORT: u16 = 53;

/// A DNS forwarder at work.
#[derive(Debug)]
pub(crate) struct DnsService {
    sockets: Vec<DnsSocket>,
    forwarder: Forwarder,
    /// Connections of look-ups by their numbers.
    streams: BTreeMap<u64, usize>,
}

#[derive(Debug)]
struct DnsSocket {
    udp: Box<dyn DatagramSocket>,
    readable: bool,
}

/// A client by TCP.
#[derive(Debug, Default)]
pub(crate) struct DnsClient {
    input: Vec<u8>,
    output: Vec<u8>,
    /// Queries without a response.
    pending: usize,
    /// The client sends no more.
    ended: bool,
}

/// The stream of a look-up.
#[derive(Debug)]
pub(crate) struct NameLookup {
    lookup: u64,
    input: Vec<u8>,
    /// The response is complete, or is not needed any more.
    done: bool,
}

impl DnsService {
    /// A forwarder as `section` has it.
    ///
    /// # Errors
    /// Those of opening a socket.
    pub(crate) fn open(
        host: &mut dyn Host,
        section: &DnsSection,
        listeners: &[Listener],
    ) -> io::Result<Self> {
        let mut sockets = Vec::new();
        for (number, &address) in section.listen.iter().enumerate() {
            // The port is that of the listener for TCP, also if the kernel has chosen it.
            let listener =
                listeners.iter().find(|one| one.kind == Kind::Dns && one.wanted == address);
            let address = listener.map_or(address, |listener| listener.address);
            let udp = host.bind(address, None).map_err(|error| {
                io::Error::new(error.kind(), format!("dns.listen {address}: {error}"))
            })?;
            host.watch(udp.id(), Source::NameQueries(number))?;
            sockets.push(DnsSocket { udp, readable: true });
        }
        let DnsSection { memory, stale, prefetch, .. } = *section;
        let limits = CacheLimits { bytes: memory as usize, stale, prefetch };
        Ok(Self { sockets, forwarder: Forwarder::new(limits), streams: BTreeMap::new() })
    }

    /// Returns the counters.
    pub(crate) fn status(&self) -> DnsStatus {
        self.forwarder.status()
    }

    /// Closes its sockets.
    pub(crate) fn close(&mut self, host: &mut dyn Host) {
        // Another process may have the same sockets, so that closing alone does not end the watch.
        self.sockets.iter().for_each(|socket| host.unwatch(socket.udp.id()));
        self.sockets.clear();
    }

    /// The kernel's descriptors of its UDP sockets.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().filter_map(|socket| socket.udp.descriptor())
    }

    /// Notes that datagrams have arrived at a socket.
    pub(crate) fn is_ready(&mut self, number: usize) {
        if let Some(socket) = self.sockets.get_mut(number) {
            socket.readable = true;
        }
    }

    /// Returns when to begin a round although no source is ready.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.forwarder.poll_timeout()
    }

    /// Handles what is due and what has arrived; true when there may be more.
    pub(crate) fn turn(&mut self, core: &mut TerminalCore, now: Instant) -> bool {
        self.forwarder.set_up(core.relays.answers() != HealthState::Down);
        self.forwarder.handle_timeout(now);
        for number in 0..self.sockets.len() {
            self.receive(core, now, number);
        }
        self.act(core, now);
        self.sockets.iter().any(|socket| socket.readable)
    }

    fn receive(&mut self, core: &mut TerminalCore, now: Instant, number: usize) {
        for _ in 0..RECEIVE_BUDGET {
            let Self { sockets, forwarder, .. } = self;
            let socket = &mut sockets[number];
            if !socket.readable {
                return;
            }
            let (names, ipv6_prefix) = (&mut core.names, core.limits.ipv6_prefix);
            let mut take = |address: SocketAddr, message: &mut [u8], _| {
                let network = client_network(address.ip(), ipv6_prefix);
                let client = Client { address, network, reply_to: ReplyTo::Datagram(number) };
                forwarder.handle_query(now, client, message, names);
                Delivered::Unvalidated
            };
            match socket.udp.receive(&mut take) {
                Ok(more) => socket.readable = more,
                Err(error) => {
                    tracing::warn!(%error, "receiving DNS queries failed");
                    socket.readable = false;
                }
            }
        }
    }

    /// Does what the forwarder wants to be done.
    fn act(&mut self, core: &mut TerminalCore, now: Instant) {
        while let Some(action) = self.forwarder.poll_action() {
            match action {
                Action::Ask { lookup, message, client } => {
                    if !self.ask(core, now, (lookup, client), &message) {
                        self.forwarder.handle_failure(now, lookup);
                    }
                }
                Action::Abandon { lookup } => {
                    if let Some(index) = self.streams.remove(&lookup) {
                        core.abort(index, ResetReason::Aborted);
                    }
                }
                Action::Reply { client, message } => self.reply(core, client, &message),
            }
        }
    }

    /// Opens the stream of a look-up; false if none can be opened.
    fn ask(
        &mut self,
        core: &mut TerminalCore,
        now: Instant,
        (lookup, client): (u64, Option<SocketAddr>),
        message: &[u8],
    ) -> bool {
        let destination = Destination::Name(relay::NAME_SERVERS.into(), PORT);
        let target = Target { destination, source: client };
        let Ok(key) = core.relays.open(now, target, 0) else { return false };
        let mut framed = Vec::with_capacity(2 + message.len());
        frame(&mut framed, message);
        if core.relays.write(now, key, &framed) < framed.len() {
            core.relays.reset(key, ResetReason::Local);
            return false;
        }
        let stage = NameLookup { lookup, input: Vec::new(), done: false };
        let index = core.add(None, Some(key), TerminalStage::NameLookup(stage));
        core.connections[index].info = ConnectionInfo::new(now, client, None);
        self.streams.insert(lookup, index);
        true
    }

    fn reply(&mut self, core: &mut TerminalCore, client: Client, message: &[u8]) {
        match client.reply_to {
            ReplyTo::Datagram(number) => {
                // A response that is lost is requested again.
                if let Some(socket) = self.sockets.get_mut(number) {
                    socket.udp.send(client.address, message, message.len());
                }
            }
            ReplyTo::Connection(index, id) => {
                if let Some(connection) = core.connections.get_mut(index)
                    && connection.id == id
                    && let TerminalStage::Dns(client) = &mut connection.stage
                {
                    client.pending = client.pending.saturating_sub(1);
                    frame(&mut client.output, message);
                    core.queue(index);
                }
            }
        }
    }

    /// Gives a client by TCP its turn.
    pub(crate) fn run_client(&mut self, core: &mut TerminalCore, now: Instant, index: usize) {
        let queries = match read_queries(core, index) {
            Ok(queries) => queries,
            Err(error) => {
                tracing::debug!(%error, "DNS client disconnected");
                core.reset_socket(index);
                return;
            }
        };
        let connection = &core.connections[index];
        let Some(address) = connection.info.client else { return };
        let reply_to = ReplyTo::Connection(index, connection.id);
        let network = client_network(address.ip(), core.limits.ipv6_prefix);
        if !queries.is_empty() {
            core.set_due(index, Some(now + DNS_IDLE));
        }
        for message in &queries {
            let client = Client { address, network, reply_to };
            self.forwarder.handle_query(now, client, message, &mut core.names);
        }
        self.act(core, now);
        let TerminalStage::Dns(client) = &core.connections[index].stage else { return };
        if queries.len() == QUERY_BUDGET {
            core.queue(index);
        } else if client.ended && client.pending == 0 && client.output.is_empty() {
            core.finish(index);
        }
    }

    /// Gives a look-up its turn.
    pub(crate) fn run_lookup(&mut self, core: &mut TerminalCore, now: Instant, index: usize) {
        let connection = &mut core.connections[index];
        let (TerminalStage::NameLookup(one), Some(key)) = (&mut connection.stage, connection.key)
        else {
            return;
        };
        loop {
            let bytes = core.relays.peek(key);
            let count = bytes.len();
            if count == 0 {
                break;
            }
            // More than one message is too much.
            let room = (2 + usize::from(u16::MAX)).saturating_sub(one.input.len());
            one.input.extend_from_slice(&bytes[..count.min(room)]);
            core.relays.consume(now, key, count);
        }
        let (lookup, is_over) = (one.lookup, connection.stream_ended || connection.ending_stream);
        if one.done {
            if is_over {
                core.finish(index);
            }
            return;
        }
        if let Some(message) = take_frame(&mut one.input) {
            one.done = true;
            core.relays.end(key);
            self.streams.remove(&lookup);
            self.forwarder.handle_response(now, lookup, &message, &mut core.names);
            core.set_due(index, Some(now + END_TIME));
            if is_over {
                core.finish(index);
            }
        } else if is_over {
            self.forwarder.handle_failure(now, lookup);
        }
        self.act(core, now);
    }

    /// Handles the loss of a look-up's stream.
    pub(crate) fn lookup_gone(&mut self, core: &mut TerminalCore, now: Instant, index: usize) {
        let TerminalStage::NameLookup(one) = &core.connections[index].stage else { return };
        let lookup = one.lookup;
        self.streams.remove(&lookup);
        core.reset_socket(index);
        self.forwarder.handle_failure(now, lookup);
        self.act(core, now);
    }
}

/// Reads complete queries of a client by TCP, and writes what it has not received yet.
fn read_queries(core: &mut TerminalCore, index: usize) -> io::Result<Vec<Vec<u8>>> {
    let connection = &mut core.connections[index];
    let (TerminalStage::Dns(client), Some(socket)) = (&mut connection.stage, &connection.socket)
    else {
        return Ok(Vec::new());
    };
    flush(&**socket, &mut client.output)?;
    let mut queries = Vec::new();
    loop {
        while queries.len() < QUERY_BUDGET && client.output.len() < MAX_OUTPUT {
            let Some(message) = take_frame(&mut client.input) else { break };
            queries.push(message);
        }
        let is_full = queries.len() == QUERY_BUDGET || client.output.len() >= MAX_OUTPUT;
        if is_full || client.ended {
            break;
        }
        match socket.read(&mut core.scratch) {
            Ok(0) => client.ended = true,
            Ok(count) => client.input.extend_from_slice(&core.scratch[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if unresponsive::is_later(&error) => break,
            Err(error) => return Err(error),
        }
    }
    client.pending += queries.len();
    Ok(queries)
}

/// Appends a message behind its length.
fn frame(buffer: &mut Vec<u8>, message: &[u8]) {
    // Messages are made from others of at most 65,535 octets; an OPT record may exceed that.
    let Ok(length) = u16::try_from(message.len()) else { return };
    buffer.extend(length.to_be_bytes());
    buffer.extend(message);
}

/// Removes the first message, if it is complete.
fn take_frame(buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    let length = usize::from(u16::from_be_bytes(*buffer.first_chunk()?));
    let message = buffer.get(2..2 + length)?.to_vec();
    buffer.drain(..2 + length);
    Some(message)
}
