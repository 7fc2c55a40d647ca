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
//! [`TokenBucket`] from which all connections together send over the satellite.

mod clients;
mod observed;
mod pair;
mod satellite;
mod sweep;

pub(crate) use satellite::Refusal;

use crate::config::SingleSection;
use crate::engine::accept::listener::Listener;
use crate::engine::connect::server_connect::reason_of;
use crate::engine::host::{Host, Readiness, Source};
use crate::engine::lifecycle::view::EngineView;
use crate::engine::limits::rates::Quotas;
use crate::engine::limits::slots::SlotPool;
use crate::engine::machine::Machine;
use crate::engine::platform::Platform;
use crate::engine::transfer::deadlines::Deadlines;
use crate::engine::transfer::last_bytes::Progress;
use crate::engine::transfer::socket_pair::{Side, Tally, Turn};
use crate::engine::transfer::token_bucket::TokenBucket;
use crate::host::HostAddresses;
use crate::report::{Counters, SingleReport};
use crate::{Limits, SourceMode};
use pair::Pair;
use satellite::{InitialWindow, Tuning, refused};
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use sweep::SWEEP;
use units::{Instant, Span};

/// Room for one read from a socket.
const SCRATCH: usize = 64 * 1024;

/// A listener, and the side of its connections that leads over the satellite.
#[derive(Debug)]
pub(crate) struct Facing {
    pub(crate) listener: Listener,
    /// Set if its clients are beyond the satellite; otherwise its servers are.
    pub(crate) clients: bool,
}

/// A single gateway.
#[derive(Debug)]
pub(crate) struct Single {
    kernel: Box<dyn Host>,
    listeners: Vec<Facing>,
    source: SourceMode,
    limits: Limits,
    tuning: Tuning,
    bucket: Option<TokenBucket>,
    pairs: Slab<Pair>,
    slots: SlotPool,
    /// Group of all clients.
    group: Arc<str>,
    /// Rates of new connections of each client.
    quotas: Quotas,
    deadlines: Deadlines,
    turns: VecDeque<usize>,
    /// Connections that wait for tokens, in the order of their turns.
    awaits_tokens: VecDeque<usize>,
    scratch: Vec<u8>,
    accept_again: Option<Instant>,
    /// Time limit of the drain, if it drains.
    end_at: Option<Instant>,
    sweep_at: Instant,
    /// Number of sweeps.
    sweeps: usize,
    counters: Counters,
    report: SingleReport,
    /// Number of the last connection.
    last_number: u64,
    notes: Vec<String>,
    /// Whether the end of each connection is logged.
    log_ends: bool,
    /// Time of the last call.
    now: Instant,
    /// The addresses that the configuration names, and when to look for them.
    addresses: HostAddresses,
    /// Routes that are removed when this is dropped.
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
            TokenBucket::new(now, rate, depth, section.mtu, section.overhead)
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
            awaits_tokens: VecDeque::new(),
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

    /// Returns notes for the operator.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the counters of connections.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the counters of the satellite link.
    pub(crate) fn report(&self) -> &SingleReport {
        &self.report
    }

    /// Applies other limits, and whether ends are logged.
    pub(crate) fn set_limits(&mut self, limits: Limits, log_ends: bool) {
        (self.limits, self.log_ends) = (limits, log_ends);
        self.slots.set(&self.limits);
        self.end_accept_pause();
    }

    /// Ends when all connections have ended, or after `limit`.
    pub(crate) fn drain(&mut self, now: Instant, limit: Span) {
        self.end_at = Some(now + limit);
    }

    /// Whether it drains.
    pub(crate) fn is_draining(&self) -> bool {
        self.end_at.is_some()
    }

    /// Whether a drain is over because all connections have ended or the time limit has passed.
    pub(crate) fn has_drained(&self, now: Instant) -> bool {
        self.end_at.is_some_and(|end| now >= end || self.pairs.is_empty())
    }

    /// Returns the number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the resources that are held for connections, to verify that all are released.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn held(&self) -> super::Held {
        super::Held {
            connections: self.pairs.len(),
            slots: self.slots.table.len(),
            deadlines: self.deadlines.len(),
            ..Default::default()
        }
    }

    /// Resets all connections.
    pub(crate) fn end(&mut self) {
        if !self.pairs.is_empty() {
            tracing::warn!(
                connections = self.pairs.len(),
                "stopping: remaining connections are reset"
            );
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

    /// Gives a connection its turn.
    fn turn(&mut self, now: Instant, index: usize) {
        // It may have closed meanwhile, and another connection may have its index.
        let Some(pair) = self.pairs.get_mut(index).filter(|pair| pair.in_turn) else { return };
        pair.in_turn = false;
        if pair.is_closing() {
            self.run_last_bytes(now, index);
        } else if pair.is_connecting {
            self.connecting(now, index);
        } else {
            self.open(now, index);
        }
    }

    /// Handles an event of the socket that is being connected.
    fn connecting(&mut self, now: Instant, index: usize) {
        let pair = &mut self.pairs[index];
        if let Some(error) = pair.server.take_error() {
            tracing::debug!(server = %pair.addresses.1, %error, "not connected");
            self.counters.refused(reason_of(&error));
            pair.cause = "connecting to the server failed";
            self.remove(index).reset();
            return;
        }
        // Without an error it is connected, or the event was of another kind.
        if !pair.server.is_connected() {
            return;
        }
        self.counters.connected += 1;
        pair.is_connecting = false;
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
            Turn::NeedsTokens { more } => {
                if more {
                    self.queue(index);
                }
                if !std::mem::replace(&mut self.pairs[index].awaits_tokens, true) {
                    self.awaits_tokens.push_back(index);
                }
            }
            Turn::Done => {
                self.counters.completed += 1;
                self.pairs[index].cause = "closed by both ends";
                self.remove(index).close();
            }
            Turn::Broken(side, error) => self.on_socket_error(now, index, side, &error),
        }
    }

    fn count(&mut self, now: Instant, index: usize, tally: Tally) {
        let pair = &mut self.pairs[index];
        pair.moved.read += tally.read;
        pair.moved.written += tally.written;
        self.report.bytes_to_satellite += pair.to_satellite(tally);
        self.counters.bytes_from_sockets += tally.read;
        self.counters.bytes_to_sockets += tally.written;
        if tally.read + tally.written > 0 {
            self.slots.table.touch(now, index);
        }
    }

    fn on_socket_error(&mut self, now: Instant, index: usize, side: Side, error: &io::Error) {
        let pair = &mut self.pairs[index];
        tracing::debug!(client = %pair.addresses.0, ?side, %error, "socket failed");
        self.counters.reset_by_sockets += 1;
        pair.cause = match side {
            Side::Client => "reset by the client",
            Side::Server => "reset by the server",
        };
        pair.fail(now, side);
        self.run_last_bytes(now, index);
    }

    fn run_last_bytes(&mut self, now: Instant, index: usize) {
        let mut tally = Tally::default();
        let progress = self.pairs[index].run_last_bytes(now, &mut self.scratch, &mut tally);
        self.count(now, index, tally);
        match progress {
            Progress::More => self.queue(index),
            Progress::Pending(at) => self.set_due(index, Some(at)),
            Progress::Delivered | Progress::Expired | Progress::Failed => {
                self.remove(index).reset();
            }
        }
    }

    /// Handles the deadline of a connection.
    fn expired(&mut self, now: Instant, index: usize) {
        self.set_due(index, None);
        if self.pairs[index].is_closing() {
            self.run_last_bytes(now, index);
        } else if self.pairs[index].is_connecting {
            self.counters.refused(crate::proxy::RefuseReason::TimedOut);
            self.pairs[index].cause = "connecting to the server timed out";
            self.remove(index).reset();
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
        for _ in 0..self.awaits_tokens.len() {
            let Some(&index) = self.awaits_tokens.front() else { break };
            if self.bucket.as_ref().is_some_and(|bucket| bucket.when(bucket.segment()) > now) {
                break;
            }
            self.awaits_tokens.pop_front();
            if let Some(pair) = self.pairs.get_mut(index) {
                pair.awaits_tokens = false;
                pair.in_turn = true;
            }
            self.turn(now, index);
        }
        more_clients || !self.turns.is_empty()
    }

    fn poll_timeout(&self, _: Instant) -> Instant {
        let mut due = if self.pairs.is_empty() { Instant::FAR_FUTURE } else { self.sweep_at };
        let tokens = self.bucket.as_ref().filter(|_| !self.awaits_tokens.is_empty());
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
                // It may have closed earlier; its event is harmless to the connection that has its
                // index now.
                let Some(pair) = self.pairs.get_mut(index) else { return };
                let Readiness { readable, writable, error } = ready;
                pair.ready(side, readable || error, writable || error);
                self.queue(index);
            }
            Source::Datagrams(_)
            | Source::NameQueries(_)
            | Source::Names
            | Source::HeldSyns
            | Source::Packets => {}
        }
    }

    fn view(&mut self, now: Instant, epoch_unix_ns: u64) -> EngineView<'_> {
        EngineView::new(now, epoch_unix_ns, (None, self.waiting()), self)
    }

    fn moved(&self) -> u64 {
        self.counters.bytes_from_sockets + self.counters.bytes_to_sockets
    }
}

/// Returns the sources of a connection's two sockets.
fn sources(index: usize) -> [Source; 2] {
    [Source::Connection(2 * index), Source::Connection(2 * index + 1)]
}

/// Returns the connection of a source, and the side of its socket.
fn place(number: usize) -> (usize, Side) {
    (number / 2, if number.is_multiple_of(2) { Side::Client } else { Side::Server })
}
