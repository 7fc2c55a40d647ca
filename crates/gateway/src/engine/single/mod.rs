//! Two-segment splitting: one gateway at the sending earth station, TCP on both sides of it, and
//! nothing at the remote end (ITU-R S.1711, two-segment splitting).
//!
//! ```text
//!   remote client ══ satellite ══ gateway ── network ── server
//!       its own TCP, with our windows,       the server's TCP, with a
//!       congestion control and pacing        round trip of milliseconds
//! ```
//!
//! An engine of its own, simpler than that of a pair of gateways: sockets on both sides, and a
//! [`Bucket`] from which all connections together send over the satellite.

mod bucket;
mod clients;
mod observed;
pub(crate) mod pair;
mod satellite;
mod sweep;

pub(crate) use satellite::{Refusal, available_congestion_controls};

use crate::config::SingleSection;
use crate::engine::accept::listener::Listener;
use crate::engine::host::{Host, Platform, Readiness, Source};
use crate::engine::hub::reason_of;
use crate::engine::limits::rates::Quotas;
use crate::engine::limits::slots::SlotPool;
use crate::engine::transfer::deadlines::Deadlines;
use crate::engine::{Machine, Sight};
use crate::host::HostAddresses;
use crate::report::{Counters, SingleReport};
use crate::{Limits, SourceMode};
use bucket::Bucket;
use pair::{BREAKING_LOOKS, Pair, Phase, Side, Tally, Turn};
use satellite::{InitialWindow, Tuning, refused};
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use sweep::SWEEP;
use units::{Instant, Span};

/// Room for one read from a socket.
const SCRATCH: usize = 64 * 1024;

/// A listener, and on which side of its connections the satellite is.
#[derive(Debug)]
pub(crate) struct Facing {
    pub(crate) listener: Listener,
    /// Its clients come over the satellite; otherwise their servers are beyond it.
    pub(crate) clients: bool,
}

/// A gateway between two TCPs, at work.
#[derive(Debug)]
pub(crate) struct Single {
    kernel: Box<dyn Host>,
    listeners: Vec<Facing>,
    source: SourceMode,
    limits: Limits,
    tuning: Tuning,
    bucket: Option<Bucket>,
    pairs: Slab<Pair>,
    slots: SlotPool,
    /// All clients are of one group.
    group: Arc<str>,
    /// New connections a second of each client.
    quotas: Quotas,
    deadlines: Deadlines,
    turns: VecDeque<usize>,
    /// Whose bytes wait for tokens, in the order of their turns.
    thirsty: VecDeque<usize>,
    scratch: Vec<u8>,
    accept_again: Option<Instant>,
    /// While it drains: when that is over.
    end_at: Option<Instant>,
    sweep_at: Instant,
    /// How often it was swept.
    sweeps: usize,
    counters: Counters,
    report: SingleReport,
    /// Of the last connection.
    last_number: u64,
    notes: Vec<String>,
    /// Each connection is logged at its end.
    log_ends: bool,
    /// When the engine was last called.
    now: Instant,
    /// The addresses that the configuration names, and when to look for them.
    addresses: HostAddresses,
    /// Taken away when it is dropped.
    _initial_window: Option<InitialWindow>,
}

impl Single {
    pub(crate) fn new(
        (platform, now): (Platform, Instant),
        section: &SingleSection,
        limits: &Limits,
        listeners: Vec<Facing>,
    ) -> Result<Self, Refusal> {
        let mut kernel = platform.host;
        let tuning = Tuning::new(section);
        let mut notes = Vec::new();
        for (number, facing) in listeners.iter().enumerate() {
            facing.listener.watch(&mut *kernel, number)?;
            if let Some(socket) = facing.listener.descriptor().filter(|_| facing.clients) {
                tuning.apply(&socket).map_err(|error| refused(section, error))?;
                notes = tuning.notes(&socket);
            }
        }
        let bucket = section.rate.map(|rate| {
            let depth = rate.bytes_in(section.burst);
            Bucket::new(now, rate, depth, section.mtu, section.overhead)
        });
        let report = SingleReport {
            congestion: section.congestion.clone().unwrap_or_else(|| "(the system's)".into()),
            ..SingleReport::default()
        };
        Ok(Self {
            kernel,
            listeners,
            source: section.source,
            limits: limits.clone(),
            tuning,
            bucket,
            pairs: Slab::new(),
            // Each has two sockets.
            slots: SlotPool::new(limits, platform.descriptors, 2),
            group: "".into(),
            quotas: Quotas::default(),
            deadlines: Deadlines::default(),
            turns: VecDeque::new(),
            thirsty: VecDeque::new(),
            scratch: vec![0; SCRATCH],
            accept_again: None,
            end_at: None,
            sweep_at: now + SWEEP,
            sweeps: 0,
            counters: Counters::default(),
            report,
            last_number: 0,
            notes,
            log_ends: false,
            now,
            addresses: HostAddresses::default(),
            _initial_window: InitialWindow::install(section)?,
        })
    }

    /// What the administrator should know.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What became of connections.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What went over the satellite.
    pub(crate) fn report(&self) -> &SingleReport {
        &self.report
    }

    /// Takes other limits; whether ends are logged.
    pub(crate) fn set_limits(&mut self, limits: Limits, log_ends: bool) {
        (self.limits, self.log_ends) = (limits, log_ends);
        self.slots.set(&self.limits);
        // There may be room again.
        self.accept_again = None;
    }

    /// Ends when all connections have, or after `limit`.
    pub(crate) fn drain(&mut self, now: Instant, limit: Span) {
        self.end_at = Some(now + limit);
    }

    /// Whether it is to end when all connections have.
    pub(crate) fn is_draining(&self) -> bool {
        self.end_at.is_some()
    }

    /// Whether it was to end when all connections have, and they have, or the time is over.
    pub(crate) fn has_drained(&self, now: Instant) -> bool {
        self.end_at.is_some_and(|end| now >= end || self.pairs.is_empty())
    }

    /// Connections that run.
    pub(crate) fn connections(&self) -> usize {
        self.pairs.len()
    }

    /// Counts what is held for connections, to see that all of it is given back.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn held(&self) -> super::Held {
        super::Held {
            connections: self.pairs.len(),
            slots: self.slots.table.len(),
            deadlines: self.deadlines.len(),
            ..Default::default()
        }
    }

    /// Resets what still runs.
    pub(crate) fn end(&mut self) {
        if !self.pairs.is_empty() {
            tracing::warn!(connections = self.pairs.len(), "ends, and resets what still runs");
        }
        for pair in self.pairs.drain() {
            pair.reset();
        }
    }

    fn queue(&mut self, index: usize) {
        let pair = &mut self.pairs[index];
        if !pair.in_turn {
            pair.in_turn = true;
            self.turns.push_back(index);
        }
    }

    fn register(&mut self, index: usize) -> io::Result<()> {
        let (pair, [client, server]) = (&self.pairs[index], sources(index));
        self.kernel.watch(pair.client.id(), client)?;
        self.kernel.watch(pair.server.id(), server)
    }

    fn set_due(&mut self, index: usize, due: Option<Instant>) {
        self.deadlines.set(index, &mut self.pairs[index].due, due);
    }

    /// A connection's turn.
    fn turn(&mut self, now: Instant, index: usize) {
        // It may have closed in the meantime, and another may have its place.
        let Some(pair) = self.pairs.get_mut(index).filter(|pair| pair.in_turn) else { return };
        pair.in_turn = false;
        match pair.phase {
            Phase::Connecting => self.connecting(now, index),
            Phase::Open => self.open(now, index),
            Phase::Breaking { .. } => self.breaking(now, index),
        }
    }

    /// The socket that is being connected has news.
    fn connecting(&mut self, now: Instant, index: usize) {
        let pair = &mut self.pairs[index];
        if let Some(error) = pair.server.take_error() {
            tracing::debug!(server = %pair.addresses.1, %error, "not connected");
            self.counters.refused(reason_of(&error));
            pair.cause = "the server could not be reached";
            self.remove(index).reset();
            return;
        }
        // Without an error, either it is connected or the news was of another kind.
        if !pair.server.is_connected() {
            return;
        }
        if let Err(error) = pair.server.prepare(&self.limits) {
            self.broken(now, index, Side::Server, &error);
            return;
        }
        self.counters.connected += 1;
        pair.phase = Phase::Open;
        self.set_due(index, None);
        self.open(now, index);
    }

    fn open(&mut self, now: Instant, index: usize) {
        let mut tally = Tally::default();
        let pair = &mut self.pairs[index];
        let turn = pair.turn(now, self.bucket.as_mut(), &mut self.scratch, &mut tally);
        self.count(now, index, tally);
        match turn {
            Turn::Wait => {}
            Turn::More => self.queue(index),
            Turn::Thirsty { more } => {
                if more {
                    self.queue(index);
                }
                if !std::mem::replace(&mut self.pairs[index].thirsty, true) {
                    self.thirsty.push_back(index);
                }
            }
            Turn::Done => {
                self.counters.completed += 1;
                self.pairs[index].cause = "both ends have ended";
                self.remove(index).close();
            }
            Turn::Broken(side, error) => self.broken(now, index, side, &error),
        }
    }

    fn count(&mut self, now: Instant, index: usize, tally: Tally) {
        let moved = &mut self.pairs[index].moved;
        moved.read += tally.read;
        moved.written += tally.written;
        self.counters.bytes_from_sockets += tally.read;
        self.counters.bytes_to_sockets += tally.written;
        self.report.bytes_to_satellite += tally.to_satellite;
        if tally.read + tally.written > 0 {
            self.slots.table.touch(now, index);
        }
    }

    fn broken(&mut self, now: Instant, index: usize, side: Side, error: &io::Error) {
        let pair = &mut self.pairs[index];
        tracing::debug!(client = %pair.addresses.0, ?side, %error, "a socket broke");
        self.counters.reset_by_sockets += 1;
        pair.cause = match side {
            Side::Client => "reset by the client",
            Side::Server => "reset by the server",
        };
        pair.broke(now, side);
        self.breaking(now, index);
    }

    fn breaking(&mut self, now: Instant, index: usize) {
        let mut tally = Tally::default();
        let over = self.pairs[index].turn_breaking(now, &mut self.scratch, &mut tally);
        self.count(now, index, tally);
        if over {
            self.remove(index).reset();
        } else {
            self.set_due(index, Some(now + BREAKING_LOOKS));
        }
    }

    /// The deadline of a connection has come.
    fn expired(&mut self, now: Instant, index: usize) {
        self.set_due(index, None);
        match self.pairs[index].phase {
            Phase::Connecting => {
                self.counters.refused(crate::proxy::RefuseReason::TimedOut);
                self.pairs[index].cause = "the server did not answer";
                self.remove(index).reset();
            }
            Phase::Open => {}
            Phase::Breaking { .. } => self.breaking(now, index),
        }
    }
}

impl Machine for Single {
    fn round(&mut self, now: Instant) -> bool {
        self.now = now;
        self.counters.rounds += 1;
        while let Some(index) = self.deadlines.due(now) {
            self.expired(now, index);
        }
        if self.sweep_at <= now {
            self.sweep(now);
        }
        self.addresses.review(now, |address| self.kernel.has_address(address));
        let more_clients = self.accept(now);
        for _ in 0..self.turns.len() {
            let Some(index) = self.turns.pop_front() else { break };
            self.turn(now, index);
        }
        for _ in 0..self.thirsty.len() {
            let Some(&index) = self.thirsty.front() else { break };
            if self.bucket.as_ref().is_some_and(|bucket| bucket.when(bucket.segment()) > now) {
                break;
            }
            self.thirsty.pop_front();
            if let Some(pair) = self.pairs.get_mut(index) {
                pair.thirsty = false;
                pair.in_turn = true;
            }
            self.turn(now, index);
        }
        more_clients || !self.turns.is_empty()
    }

    fn poll_timeout(&self, _: Instant) -> Instant {
        let mut due = if self.pairs.is_empty() { Instant::FAR_FUTURE } else { self.sweep_at };
        let tokens = self.bucket.as_ref().filter(|_| !self.thirsty.is_empty());
        for other in [
            self.deadlines.next(),
            self.accept_again,
            self.end_at,
            Some(self.addresses.due()),
            tokens.map(|bucket| bucket.when(bucket.segment())),
        ] {
            due = due.min(other.unwrap_or(Instant::FAR_FUTURE));
        }
        due
    }

    fn handle_readiness(&mut self, now: Instant, source: Source, ready: Readiness) {
        self.now = now;
        match source {
            Source::Listener(number) => {
                if let Some(facing) = self.listeners.get_mut(number) {
                    facing.listener.is_ready();
                }
            }
            Source::Connection(number) => {
                let (index, side) = place(number);
                // It may have closed earlier; news for it is harmless to another in its place.
                let Some(pair) = self.pairs.get_mut(index) else { return };
                let Readiness { readable, writable, error } = ready;
                pair.ready(side, readable || error, writable || error);
                self.queue(index);
            }
            Source::Datagrams(_) | Source::Names | Source::Knocks | Source::Packets => {}
        }
    }

    fn sight(&mut self, now: Instant, epoch_unix_ns: u64) -> Sight<'_> {
        Sight::of_single(now, epoch_unix_ns, self)
    }

    fn moved(&self) -> u64 {
        self.counters.bytes_from_sockets
    }
}

/// The source of a connection's two sockets: the client's and the server's.
fn sources(index: usize) -> [Source; 2] {
    [Source::Connection(2 * index), Source::Connection(2 * index + 1)]
}

/// The connection of a source, and which of its sockets it is.
fn place(number: usize) -> (usize, Side) {
    (number / 2, if number.is_multiple_of(2) { Side::Client } else { Side::Server })
}
