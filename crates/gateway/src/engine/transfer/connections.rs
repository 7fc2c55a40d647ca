//! What both roles share: the table of connections, their turns, and their ends.

use crate::Limits;
use crate::engine::host::{Close, Host, Socket, Source};
use crate::engine::limits::rates::Quotas;
use crate::engine::limits::slots::{SlotPool, SlotTable};
use crate::engine::peers::closing_streams::ClosingStreams;
use crate::engine::peers::relay_set::{Carrier, Peer, StreamKey};
use crate::engine::platform::Platform;
use crate::engine::resolver::Resolver;
use crate::engine::transfer::close_cause::{EndLog, Ending};
use crate::engine::transfer::connection::{Connection, Stage, Transfer};
use crate::engine::transfer::connection_info::About;
use crate::engine::transfer::deadlines::Deadlines;
use crate::engine::transfer::splice::Splice;
use crate::report::Counters;
use relay::ResetReason;
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use units::{Instant, Span};

/// Room for one read from a socket.
const SCRATCH: usize = 32 * 1024;

/// The connections, and what they need of the engine.
#[derive(Debug)]
pub(crate) struct Core<S> {
    pub(crate) carrier: Carrier,
    pub(crate) host: Box<dyn Host>,
    pub(crate) limits: Limits,
    pub(crate) counters: Counters,
    pub(crate) connections: Slab<Connection<S>>,
    pub(crate) deadlines: Deadlines,
    /// The slots of connections, and of clients that tell a proxy what they want.
    pub(crate) slots: SlotPool,
    pub(crate) asking: SlotTable<()>,
    /// Connections that have lost their slots and are to be reset.
    pub(crate) reclaimed: Vec<(usize, u64)>,
    /// Streams whose connections are over.
    pub(crate) closing: ClosingStreams,
    /// New connections a second of each terminal or client.
    pub(crate) quotas: Quotas,
    pub(crate) resolver: Resolver,
    /// When the engine was last called.
    pub(crate) now: Instant,
    /// A connection has closed since accepting was paused.
    pub(crate) room_again: bool,
    /// A hub that takes no new streams any more.
    pub(crate) draining: bool,
    /// Whether and how ends are logged.
    pub(crate) end_log: EndLog,
    streams: BTreeMap<StreamKey, usize>,
    turns: VecDeque<usize>,
    /// Room for one read from a socket.
    pub(crate) scratch: Vec<u8>,
    last_id: u64,
}

impl<S: Stage> Core<S> {
    pub(crate) fn new(
        mut carrier: Carrier,
        platform: Platform,
        limits: Limits,
        now: Instant,
    ) -> Self {
        carrier.set_ipv6_prefix(limits.ipv6_prefix);
        Self {
            slots: SlotPool::new(&limits, platform.descriptors, 1),
            asking: SlotTable::default(),
            reclaimed: Vec::new(),
            closing: ClosingStreams::default(),
            carrier,
            host: platform.host,
            limits,
            counters: Counters::default(),
            connections: Slab::new(),
            deadlines: Deadlines::default(),
            quotas: Quotas::default(),
            resolver: Resolver::new(platform.lookups),
            now,
            room_again: false,
            draining: false,
            end_log: EndLog::default(),
            streams: BTreeMap::new(),
            turns: VecDeque::new(),
            scratch: vec![0; SCRATCH],
            last_id: 0,
        }
    }

    /// Puts a connection into the table.
    pub(crate) fn add(
        &mut self,
        socket: Option<Socket>,
        key: Option<StreamKey>,
        stage: S,
    ) -> usize {
        self.last_id += 1;
        let index = self.connections.insert(Connection {
            id: self.last_id,
            about: About::default(),
            ending: Ending::of(key),
            socket,
            key,
            holder: None,
            stage,
            stream_ended: false,
            ending_stream: false,
            kept: Vec::new(),
            due: None,
            owing: None,
            in_turn: false,
        });
        if let Some(key) = key {
            self.streams.insert(key, index);
        }
        index
    }

    /// Makes the loop wake for the connection's socket.
    pub(crate) fn register(&mut self, index: usize) -> io::Result<()> {
        match &self.connections[index].socket {
            Some(socket) => self.host.watch(socket.id(), Source::Connection(index)),
            None => Ok(()),
        }
    }

    /// The connection of a stream.
    pub(crate) fn connection_of(&self, key: StreamKey) -> Option<usize> {
        self.streams.get(&key).copied()
    }

    /// All connections to `peer`.
    pub(crate) fn connections_to(&self, peer: Peer) -> Vec<usize> {
        let streams = self.streams.iter().filter(|(key, _)| key.peer == peer);
        streams.map(|(_, &index)| index).collect()
    }

    /// Gives the connection its stream.
    pub(crate) fn attach(&mut self, index: usize, key: StreamKey) {
        self.connections[index].key = Some(key);
        self.connections[index].ending.stream = Some(key.stream);
        self.streams.insert(key, index);
    }

    /// The stream is gone: what is left of the connection has none.
    pub(crate) fn detach(&mut self, index: usize) {
        if let Some(key) = self.connections[index].key.take() {
            self.streams.remove(&key);
        }
    }

    /// Sets when something must have happened.
    pub(crate) fn set_due(&mut self, index: usize, due: Option<Instant>) {
        self.deadlines.set(index, &mut self.connections[index].due, due);
    }

    /// Puts the connection in the queue for a turn.
    pub(crate) fn queue(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !connection.in_turn {
            connection.in_turn = true;
            self.turns.push_back(index);
        }
    }

    /// How many wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        self.turns.len()
    }

    /// The next in the queue.
    pub(crate) fn next_turn(&mut self) -> Option<usize> {
        while let Some(index) = self.turns.pop_front() {
            // It may have closed in the meantime, and another may have its place.
            if let Some(connection) = self.connections.get_mut(index)
                && connection.in_turn
            {
                connection.in_turn = false;
                return Some(index);
            }
        }
        None
    }

    /// The other side's half has an end.
    pub(crate) fn stream_ended(&mut self, key: StreamKey) {
        let Some(index) = self.connection_of(key) else { return };
        let connection = &mut self.connections[index];
        connection.stream_ended = true;
        if let Some(Transfer::Spliced(splice)) = connection.stage.transfer_mut() {
            splice.stream_has_ended();
            self.queue(index);
        }
    }

    /// Socket and stream are one from here on.
    pub(crate) fn splice(&mut self, index: usize, kept: Vec<u8>, preface: Vec<u8>) {
        let mut splice = Splice::new(kept, preface);
        if self.connections[index].stream_ended {
            splice.stream_has_ended();
        }
        self.connections[index].stage = Transfer::Spliced(splice).into();
        self.set_due(index, None);
        self.queue(index);
    }

    /// Resets the stream, if there is one, and the socket.
    pub(crate) fn give_up(&mut self, index: usize, reason: ResetReason) {
        if let Some(key) = self.connections[index].key {
            self.carrier.reset(key, reason);
        }
        self.reset_socket(index);
    }

    /// The stream is gone, and the socket goes the same way.
    pub(crate) fn reset_socket(&mut self, index: usize) {
        if let Some(socket) = self.remove(index) {
            socket.close(Close::Reset);
        }
    }

    /// All has been said, at both ends: the socket closes in good order.
    pub(crate) fn finish(&mut self, index: usize) {
        if let Some(socket) = self.remove(index) {
            socket.close(Close::Graceful);
        }
    }

    /// Takes the connection out of the table; its socket resets if it is dropped.
    pub(crate) fn remove(&mut self, index: usize) -> Option<Socket> {
        self.set_due(index, None);
        self.cancel_query(index);
        self.vacate(index, self.connections[index].key);
        self.detach(index);
        self.room_again = true;
        let connection = self.connections.remove(index);
        self.log_end(&connection);
        connection.socket
    }

    /// Nobody waits for the connection's query any more.
    pub(crate) fn cancel_query(&mut self, index: usize) {
        if let Some(query) = self.connections[index].stage.query() {
            self.resolver.cancel(query);
        }
    }

    /// Ends connections of which a peer has not acknowledged anything for `limits.vanished`, and
    /// those that have moved no byte for `limits.idle`.
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.end_idle(now);
        let longest = self.limits.vanished;
        let all = self.connections.iter_mut();
        let gone = all.filter_map(|(index, one)| one.has_vanished(now, longest).then_some(index));
        for index in gone.collect::<Vec<usize>>() {
            tracing::info!(connection = self.connections[index].id, "the other end has vanished");
            self.counters.vanished += 1;
            self.because(index, "the other end of its socket has vanished");
            self.give_up(index, ResetReason::TimedOut);
        }
    }

    /// How often to sweep.
    pub(crate) fn sweep_interval(&self) -> Span {
        let shortest =
            self.limits.idle.map_or(self.limits.vanished, |it| it.min(self.limits.vanished));
        (shortest / 8).clamp(Span::from_millis(250), Span::from_secs(5))
    }
}
