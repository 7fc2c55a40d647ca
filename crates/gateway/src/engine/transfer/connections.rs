//! Table of connections, their turns and their ends.

use crate::Limits;
use crate::dns::AddressNames;
use crate::engine::defect::{self, Defect};
use crate::engine::host::{Close, Host, Socket, Source};
use crate::engine::limits::rates::Quotas;
use crate::engine::limits::slots::{SlotPool, SlotTable};
use crate::engine::peers::closing_streams::ClosingStreams;
use crate::engine::peers::peer::{Peer, StreamKey};
use crate::engine::peers::relay_set::RelaySet;
use crate::engine::platform::Platform;
use crate::engine::resolver::Resolver;
use crate::engine::transfer::close_cause::{CloseCause, ConnectionLog};
use crate::engine::transfer::connection::{Connection, Stage, Transfer};
use crate::engine::transfer::connection_info::ConnectionInfo;
use crate::engine::transfer::deadlines::Deadlines;
use crate::engine::transfer::pipe::BUDGET;
use crate::engine::transfer::splice::Splice;
use crate::report::Counters;
use relay::ResetReason;
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use units::{Instant, Span};

/// Room for one read from a socket.
const SCRATCH: usize = BUDGET;

/// Connections of a gateway, and the resources that they share.
#[derive(Debug)]
pub(crate) struct Core<S> {
    pub(crate) relays: RelaySet,
    pub(crate) host: Box<dyn Host>,
    pub(crate) limits: Limits,
    pub(crate) counters: Counters,
    pub(crate) connections: Slab<Connection<S>>,
    pub(crate) deadlines: Deadlines,
    /// Slots of connections, and of proxy handshakes.
    pub(crate) slots: SlotPool,
    pub(crate) handshakes: SlotTable<()>,
    /// Connections whose slots were reclaimed and that are to be reset.
    pub(crate) reclaimed: Vec<(usize, u64)>,
    /// Streams whose connections have ended.
    pub(crate) closing: ClosingStreams,
    /// Rates of new connections of each terminal or client.
    pub(crate) quotas: Quotas,
    pub(crate) resolver: Resolver,
    /// Names of addresses, at a terminal with a DNS forwarder.
    pub(crate) names: AddressNames,
    /// Time of the last call.
    pub(crate) now: Instant,
    /// Whether a connection has closed since accepting was paused.
    pub(crate) room_again: bool,
    /// Whether a hub refuses new streams because it drains.
    pub(crate) draining: bool,
    /// Settings of the log of connections.
    pub(crate) connection_log: ConnectionLog,
    streams: BTreeMap<StreamKey, usize>,
    turns: VecDeque<usize>,
    /// Room for one read from a socket.
    pub(crate) scratch: Vec<u8>,
    last_id: u64,
}

impl<S: Stage> Core<S> {
    pub(crate) fn new(
        mut relays: RelaySet,
        platform: Platform,
        limits: Limits,
        now: Instant,
    ) -> Self {
        relays.set_ipv6_prefix(limits.ipv6_prefix);
        Self {
            slots: SlotPool::new(&limits, platform.descriptors, 1),
            handshakes: SlotTable::default(),
            reclaimed: Vec::new(),
            closing: ClosingStreams::default(),
            relays,
            host: platform.host,
            limits,
            counters: Counters::default(),
            connections: Slab::new(),
            deadlines: Deadlines::default(),
            quotas: Quotas::default(),
            resolver: Resolver::new(platform.lookups),
            names: AddressNames::default(),
            now,
            room_again: false,
            draining: false,
            connection_log: ConnectionLog::default(),
            streams: BTreeMap::new(),
            turns: VecDeque::new(),
            scratch: vec![0; SCRATCH],
            last_id: 0,
        }
    }

    /// Inserts a connection.
    pub(crate) fn add(
        &mut self,
        socket: Option<Socket>,
        key: Option<StreamKey>,
        stage: S,
    ) -> usize {
        self.last_id += 1;
        let index = self.connections.insert(Connection {
            id: self.last_id,
            info: ConnectionInfo::default(),
            close_cause: CloseCause::of(key),
            socket,
            key,
            quota_owner: None,
            stage,
            stream_ended: false,
            ending_stream: false,
            pending_input: Vec::new(),
            due: None,
            unacked_since: None,
            is_queued: false,
        });
        if let Some(key) = key {
            self.streams.insert(key, index);
        }
        index
    }

    /// Watches the connection's socket.
    pub(crate) fn register(&mut self, index: usize) -> io::Result<()> {
        match &self.connections[index].socket {
            Some(socket) => self.host.watch(socket.id(), Source::Connection(index)),
            None => Ok(()),
        }
    }

    /// Returns the connection of a stream.
    pub(crate) fn connection_of(&self, key: StreamKey) -> Option<usize> {
        self.streams.get(&key).copied()
    }

    /// Returns all connections to `peer`.
    pub(crate) fn connections_to(&self, peer: Peer) -> Vec<usize> {
        let streams = self.streams.iter().filter(|(key, _)| key.peer == peer);
        streams.map(|(_, &index)| index).collect()
    }

    /// Gives the streams of the peer `from` the name `to`.
    pub(crate) fn rename_peer(&mut self, from: Peer, to: Peer) {
        for index in self.connections_to(from) {
            if let Some(key) = &mut self.connections[index].key {
                self.streams.remove(key);
                key.peer = to;
                self.streams.insert(*key, index);
            }
        }
        self.closing.rename_peer(from, to);
    }

    /// Assigns a stream to the connection.
    pub(crate) fn attach(&mut self, index: usize, key: StreamKey) {
        self.connections[index].key = Some(key);
        self.connections[index].close_cause.stream = Some(key.stream);
        self.streams.insert(key, index);
    }

    /// Removes the stream, which is gone, from the connection.
    pub(crate) fn detach(&mut self, index: usize) {
        if let Some(key) = self.connections[index].key.take() {
            self.streams.remove(&key);
        }
    }

    /// Sets the deadline of the connection's stage.
    pub(crate) fn set_due(&mut self, index: usize, due: Option<Instant>) {
        self.deadlines.set(index, &mut self.connections[index].due, due);
    }

    /// Queues the connection for a turn.
    pub(crate) fn queue(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !connection.is_queued {
            connection.is_queued = true;
            self.turns.push_back(index);
        }
    }

    /// Returns the number of connections that are queued for a turn.
    pub(crate) fn waiting(&self) -> usize {
        self.turns.len()
    }

    /// Removes the next connection from the queue.
    pub(crate) fn next_turn(&mut self) -> Option<usize> {
        while let Some(index) = self.turns.pop_front() {
            // It may have closed meanwhile, and another connection may have its index.
            if let Some(connection) = self.connections.get_mut(index)
                && connection.is_queued
            {
                connection.is_queued = false;
                return Some(index);
            }
        }
        None
    }

    /// Handles the end of the peer's send side.
    pub(crate) fn stream_ended(&mut self, key: StreamKey) {
        let Some(index) = self.connection_of(key) else { return };
        let connection = &mut self.connections[index];
        connection.stream_ended = true;
        if let Some(Transfer::Spliced(splice)) = connection.stage.transfer_mut() {
            splice.stream_has_ended();
            self.queue(index);
        }
    }

    /// Begins to copy between socket and stream.
    pub(crate) fn splice(&mut self, index: usize, pending_input: Vec<u8>, pending_reply: Vec<u8>) {
        let mut splice = Splice::new(pending_input, pending_reply);
        if self.connections[index].stream_ended {
            splice.stream_has_ended();
        }
        self.connections[index].stage = Transfer::Spliced(splice).into();
        self.set_due(index, None);
        self.queue(index);
    }

    /// Resets the stream, if there is one, and the socket.
    pub(crate) fn abort(&mut self, index: usize, reason: ResetReason) {
        if let Some(key) = self.connections[index].key {
            self.relays.reset(key, reason);
        }
        self.reset_socket(index);
    }

    /// Removes the connection and resets its socket.
    pub(crate) fn reset_socket(&mut self, index: usize) {
        if let Some(socket) = self.remove(index) {
            socket.close(Close::Reset);
        }
    }

    /// Removes the connection and closes its socket in good order.
    pub(crate) fn finish(&mut self, index: usize) {
        if let Some(socket) = self.remove(index) {
            socket.close(Close::Graceful);
        }
    }

    /// Removes the connection. Its socket is reset when it is dropped.
    pub(crate) fn remove(&mut self, index: usize) -> Option<Socket> {
        self.set_due(index, None);
        self.cancel_query(index);
        if !defect::has(Defect::LeakedSlot) {
            self.vacate(index, self.connections[index].key);
        }
        self.detach(index);
        self.room_again = true;
        let connection = self.connections.remove(index);
        self.log_end(&connection);
        connection.socket
    }

    /// Cancels the connection's query.
    pub(crate) fn cancel_query(&mut self, index: usize) {
        if let Some(query) = self.connections[index].stage.query()
            && !defect::has(Defect::LeakedLookup)
        {
            self.resolver.cancel(query);
        }
    }

    /// Ends connections of which a peer has not acknowledged anything for `limits.tcp_user_timeout`, and
    /// those that have moved no byte for `limits.idle`.
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.end_idle(now);
        let longest = self.limits.tcp_user_timeout;
        let all = self.connections.iter_mut();
        let gone = all.filter_map(|(index, one)| one.has_vanished(now, longest).then_some(index));
        for index in gone.collect::<Vec<usize>>() {
            tracing::info!(
                connection = self.connections[index].id,
                "connection reset: peer unresponsive"
            );
            self.counters.vanished += 1;
            self.set_close_cause(index, "peer unresponsive");
            self.abort(index, ResetReason::TimedOut);
        }
    }

    /// Returns the interval between sweeps.
    pub(crate) fn sweep_interval(&self) -> Span {
        let shortest = self
            .limits
            .idle
            .map_or(self.limits.tcp_user_timeout, |it| it.min(self.limits.tcp_user_timeout));
        (shortest / 8).clamp(Span::from_millis(250), Span::from_secs(5))
    }
}
