//! What both roles share: the table of connections, their turns, and their ends.

use crate::Limits;
use crate::engine::defect::{self, Defect};
use crate::engine::host::{Close, Host, Platform, Socket, Source};
use crate::engine::limits::rates::Quotas;
use crate::engine::limits::slots::{Closing, SlotPool, SlotTable};
use crate::engine::peers::relay_set::{Carrier, Peer, StreamKey};
use crate::engine::resolver::Resolver;
use crate::engine::transfer::close_cause::{EndLog, Ending};
use crate::engine::transfer::connection::{Breaking, Carried, Connection, Phase};
use crate::engine::transfer::connection_info::About;
use crate::engine::transfer::deadlines::Deadlines;
use crate::engine::transfer::splice::{Splice, Turn};
use crate::engine::transfer::unresponsive;
use crate::report::Counters;
use relay::ResetReason;
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use units::{Instant, Span};

/// Room for one read from a socket.
const SCRATCH: usize = 32 * 1024;
/// How often to look whether the last bytes from a broken socket have arrived.
const BREAKING_LOOKS: Span = Span::from_millis(50);
/// How long to wait for some of them while the link carries anything; a server that does not read
/// keeps them back for ever.
const BREAKING_PATIENCE: Span = Span::from_secs(3);

/// The connections, and what they need of the engine.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) carrier: Carrier,
    pub(crate) host: Box<dyn Host>,
    pub(crate) limits: Limits,
    pub(crate) counters: Counters,
    pub(crate) connections: Slab<Connection>,
    pub(crate) deadlines: Deadlines,
    /// The slots of connections, and of clients that tell a proxy what they want.
    pub(crate) slots: SlotPool,
    pub(crate) asking: SlotTable<()>,
    /// Connections that have lost their slots and are to be reset.
    pub(crate) reclaimed: Vec<(usize, u64)>,
    /// Streams whose connections are over.
    pub(crate) closing: Closing,
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
    scratch: Vec<u8>,
    last_id: u64,
}

impl Core {
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
            closing: Closing::default(),
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
        phase: Phase,
    ) -> usize {
        self.last_id += 1;
        let index = self.connections.insert(Connection {
            id: self.last_id,
            about: About::default(),
            ending: Ending::of(key),
            socket,
            key,
            holder: None,
            phase,
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
        if let Phase::Spliced(splice) = &mut connection.phase {
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
        self.connections[index].phase = Phase::Spliced(splice);
        self.set_due(index, None);
        self.queue(index);
    }

    /// A turn of a splice, and its end when it has come.
    pub(crate) fn turn_splice(&mut self, now: Instant, index: usize) {
        if self.connections[index].ending_stream {
            self.begin_emptying(now, index);
            return;
        }
        let connection = &mut self.connections[index];
        let (Phase::Spliced(splice), Some(socket), Some(key)) =
            (&mut connection.phase, &connection.socket, connection.key)
        else {
            return;
        };
        let before = (self.counters.bytes_from_sockets, self.counters.bytes_to_sockets);
        let mut stream = Carried {
            carrier: &mut self.carrier,
            key,
            now,
            taken_in: &mut self.counters.bytes_from_sockets,
            handed_out: &mut self.counters.bytes_to_sockets,
        };
        let turned = splice.turn(&**socket, &mut stream, &mut self.scratch);
        connection.about.from_socket += self.counters.bytes_from_sockets - before.0;
        connection.about.to_socket += self.counters.bytes_to_sockets - before.1;
        if before != (self.counters.bytes_from_sockets, self.counters.bytes_to_sockets) {
            self.slots.table.touch(now, index);
        }
        match turned {
            Turn::Wait => {}
            Turn::More => self.queue(index),
            Turn::Done => {
                self.counters.completed += 1;
                self.because(index, "both ends had finished");
                self.finish(index);
            }
            Turn::Broken(error) => self.broken(now, index, &error),
        }
    }

    /// The socket broke: the other side hears of a reset, behind the bytes that came before it.
    /// A server that answers and closes without having read the whole request resets, too, and
    /// its answer must not be lost.
    pub(crate) fn broken(&mut self, now: Instant, index: usize, error: &io::Error) {
        if defect::has(Defect::ResetAsEnd) {
            self.connections[index].key.inspect(|&key| self.carrier.end(key));
            self.finish(index);
            return;
        }
        let connection = &mut self.connections[index];
        tracing::debug!(connection = connection.id, %error, "socket broke");
        self.counters.reset_by_sockets += 1;
        self.because(index, error.to_string());
        let held = self.connections[index].key.map_or(0, |key| self.carrier.held(key));
        let connection = &mut self.connections[index];
        let (written, arrived, moved, patience) = (held, None, now, now);
        let last = Breaking { kept: Vec::new(), drained: true, written, arrived, moved, patience };
        if let Phase::Spliced(splice) =
            std::mem::replace(&mut connection.phase, Phase::Breaking(last))
        {
            let (kept, drained) = splice.into_kept();
            let last = Breaking { kept, drained, written, arrived, moved, patience };
            connection.phase = Phase::Breaking(last);
            self.turn_breaking(now, index);
        } else {
            self.give_up(index, ResetReason::Aborted);
        }
    }

    /// Moves what a broken socket gave; resets once the other side has all of it, or when none
    /// of it arrives any more.
    pub(crate) fn turn_breaking(&mut self, now: Instant, index: usize) {
        let connection = &mut self.connections[index];
        let (Phase::Breaking(last), Some(socket), Some(key)) =
            (&mut connection.phase, &connection.socket, connection.key)
        else {
            self.give_up(index, ResetReason::Aborted);
            return;
        };
        loop {
            let taken = self.carrier.write(now, key, &last.kept);
            self.counters.bytes_from_sockets += taken as u64;
            last.written += taken as u64;
            last.kept.drain(..taken);
            if last.drained || !last.kept.is_empty() {
                break;
            }
            match socket.read(&mut self.scratch) {
                Ok(count @ 1..) => last.kept.extend_from_slice(&self.scratch[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => last.drained = true,
            }
        }
        let held = self.carrier.held(key);
        let left = held.saturating_add(last.kept.len() as u64);
        // What is left may become more meanwhile: the socket still gives bytes.
        let arrived = Some(last.written.saturating_sub(held));
        let impatient = defect::has(Defect::ImpatientReset) && last.arrived.is_some();
        if arrived > last.arrived && !impatient {
            (last.arrived, last.moved, last.patience) = (arrived, now, now + BREAKING_PATIENCE);
        } else if !self.carrier.is_answered(key) && now.since(last.moved) < self.limits.outage {
            // While the link is out nothing can make way.
            last.patience = now + BREAKING_PATIENCE;
        }
        if left == 0 || now >= last.patience {
            self.give_up(index, ResetReason::Aborted);
        } else {
            self.set_due(index, Some(now + BREAKING_LOOKS));
        }
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
        if !defect::has(Defect::LeakedSlot) {
            self.vacate(index, self.connections[index].key);
        }
        self.detach(index);
        self.room_again = true;
        let connection = self.connections.remove(index);
        self.log_end(&connection);
        connection.socket
    }

    /// Nobody waits for the connection's query any more.
    pub(crate) fn cancel_query(&mut self, index: usize) {
        if let Some(query) = self.connections[index].phase.query()
            && !defect::has(Defect::LeakedLookup)
        {
            self.resolver.cancel(query);
        }
    }

    /// Ends connections whose other end has left TCP without an answer for too long, and those
    /// that have moved no byte for as long as is allowed.
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.end_idle(now);
        let longest = self.limits.vanished;
        let gone: Vec<usize> = self
            .connections
            .iter_mut()
            .filter_map(|(index, Connection { socket, owing, phase, .. })| {
                let server = match phase {
                    Phase::Spliced(_) => false,
                    Phase::Direct(bypass) => bypass.server_has_vanished(now, longest),
                    Phase::Asking(_)
                    | Phase::Greeting { .. }
                    | Phase::Knocking(_)
                    | Phase::Confirming(_)
                    | Phase::Farewell { .. }
                    | Phase::Connecting(_)
                    | Phase::Emptying(_)
                    | Phase::Breaking(_) => return None,
                };
                let unanswered = socket.as_ref()?.unanswered_for();
                let client = unresponsive::has_vanished(now, unanswered, owing, longest);
                (client || server).then_some(index)
            })
            .collect();
        for index in gone {
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

    /// Room for one read from a socket.
    pub(crate) fn take_scratch(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.scratch)
    }

    /// Gives it back.
    pub(crate) fn put_scratch(&mut self, scratch: Vec<u8>) {
        self.scratch = scratch;
    }
}
