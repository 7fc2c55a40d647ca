//! Two-segment splitting: one gateway at the sending earth station, TCP on both sides of it, and
//! nothing at the remote end (ITU-R S.1711, two-segment splitting).
//!
//! ```text
//!   remote client ══ satellite ══ gateway ── network ── server
//!       its own TCP, with our windows,       the server's TCP, with a
//!       congestion control and pacing        round trip of milliseconds
//! ```
//!
//! A loop of its own, simpler than that of a pair of gateways: sockets on both sides, and a
//! [`Bucket`] from which all connections together send over the satellite.

mod bucket;
mod clients;
mod observed;
pub(in crate::engine) mod pair;
pub(in crate::engine) mod pipe;
mod satellite;
mod sweep;

pub(crate) use satellite::{Refusal, available_congestion_controls};

use super::hub::reason_of;
use super::listener::Listener;
use super::quota::Quotas;
use super::slots::SlotPool;
use super::socket;
use super::timer::{Alarm, Deadlines};
use crate::config::SingleSection;
use crate::host::HostAddresses;
use crate::memory::Memory;
use crate::observe::{self, Observer};
use crate::report::{Counters, SingleReport};
use crate::service::{Service, handed};
use crate::stop::{Asked, Stop};
use crate::{Limits, SourceMode};
use bucket::Bucket;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use pair::{BREAKING_LOOKS, Pair, Phase, Side, Tally, Turn};
use rt::Clock;
use satellite::{InitialWindow, Tuning, refused};
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;
use sweep::SWEEP;
use units::Instant;

const STOP: Token = Token(0);
const ALARM: Token = Token(1);
/// The first listener; the others follow.
const LISTENERS: usize = 8;
/// The first connection's client; its server follows, then the next one's client.
const SOCKETS: usize = 64;

/// Room for one read from a socket.
const SCRATCH: usize = 64 * 1024;

/// What the loop asks of what is around it.
pub(crate) trait Owner {
    /// New connections are to go their ordinary way from now on.
    fn let_pass(&mut self);
    /// The configuration is to be read again: the limits that are in force then, and whether ends
    /// are logged; `None`: all stays.
    fn reload(&mut self) -> Option<(Limits, bool)>;
}

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
    poll: Poll,
    clock: Clock,
    alarm: Alarm,
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
    memory: Memory,
    sweep_at: Instant,
    /// How often it was swept.
    sweeps: usize,
    counters: Counters,
    report: SingleReport,
    /// Of the last connection.
    last_number: u64,
    /// Who looks on.
    observer: Option<Observer>,
    notes: Vec<String>,
    /// Each connection is logged at its end.
    log_ends: bool,
    service: Service,
    /// The addresses that the configuration names, and when to look for them.
    host: HostAddresses,
    /// Taken away when it is dropped.
    _initial_window: Option<InitialWindow>,
}

impl Single {
    pub(crate) fn new(
        section: &SingleSection,
        limits: &Limits,
        log_ends: bool,
        mut listeners: Vec<Facing>,
    ) -> Result<Self, Refusal> {
        let (poll, alarm, clock) = (Poll::new()?, Alarm::new()?, Clock::new());
        alarm.register(poll.registry(), ALARM)?;
        let tuning = Tuning::new(section);
        let mut notes = Vec::new();
        for (number, facing) in listeners.iter_mut().enumerate() {
            facing.listener.register(poll.registry(), Token(LISTENERS + number))?;
            if facing.clients {
                let socket = facing.listener.socket();
                tuning.apply(socket).map_err(|error| refused(section, error))?;
                notes = tuning.notes(socket);
            }
        }
        let now = clock.now();
        let bucket = section.rate.map(|rate| {
            let depth = rate.bytes_in(section.burst);
            Bucket::new(now, rate, depth, section.mtu, section.overhead)
        });
        let report = SingleReport {
            congestion: section.congestion.clone().unwrap_or_else(|| "(the system's)".into()),
            ..SingleReport::default()
        };
        Ok(Self {
            poll,
            clock,
            alarm,
            listeners,
            source: section.source,
            limits: limits.clone(),
            tuning,
            bucket,
            pairs: Slab::new(),
            // Each has two sockets.
            slots: SlotPool::new(limits, 2),
            group: "".into(),
            quotas: Quotas::default(),
            deadlines: Deadlines::default(),
            turns: VecDeque::new(),
            thirsty: VecDeque::new(),
            scratch: vec![0; SCRATCH],
            accept_again: None,
            end_at: None,
            memory: Memory::new(now),
            sweep_at: now + SWEEP,
            sweeps: 0,
            counters: Counters::default(),
            report,
            last_number: 0,
            observer: None,
            notes,
            log_ends,
            service: Service::new(),
            host: HostAddresses::default(),
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

    /// Works until it is asked to end. Asked to drain, it has its owner let connections pass, takes
    /// no new clients, and ends when the last connection has, or `limits.drain` is over.
    pub(crate) fn run(&mut self, stop: &Stop, owner: &mut impl Owner) -> io::Result<()> {
        let descriptors = stop.descriptors().map(|descriptor| descriptor.as_raw_fd());
        for descriptor in &descriptors {
            self.poll.registry().register(&mut SourceFd(descriptor), STOP, Interest::READABLE)?;
        }
        let mut events = Events::with_capacity(1024);
        self.service.ready();
        // What an earlier life has left with the service manager, and nobody wants any more.
        for name in handed::close_rest() {
            self.service.forget(&name);
        }
        loop {
            self.service.beat(self.pairs.len(), &self.waiting());
            match stop.asked() {
                Asked::Nothing => {}
                Asked::Drain if self.end_at.is_none() => {
                    self.service.stopping(self.limits.drain);
                    // Who is in the queues, or half-way over the satellite, still comes in.
                    owner.let_pass();
                    self.end_at = Some(self.clock.now() + self.limits.drain);
                }
                Asked::Drain => {}
                Asked::Stop => break,
            }
            if stop.take_reload()
                && let Some((limits, log_ends)) = owner.reload()
            {
                (self.limits, self.log_ends) = (limits, log_ends);
                self.slots.set(&self.limits);
                // There may be room again.
                self.accept_again = None;
            }
            let over = self.end_at.is_some_and(|end| self.clock.now() >= end);
            if over || (self.end_at.is_some() && self.pairs.is_empty()) {
                break;
            }
            let busy = self.round();
            self.wait(busy, &mut events)?;
            for event in &events {
                self.ready(event);
            }
        }
        for descriptor in &descriptors {
            self.poll.registry().deregister(&mut SourceFd(descriptor))?;
        }
        self.close_observer();
        if !self.pairs.is_empty() {
            tracing::warn!(connections = self.pairs.len(), "ends, and resets what still runs");
        }
        for pair in self.pairs.drain() {
            pair.reset();
        }
        Ok(())
    }

    /// Everything that can be done now, within its budget; true when there is more.
    fn round(&mut self) -> bool {
        self.counters.rounds += 1;
        let now = self.clock.now();
        while let Some(index) = self.deadlines.due(now) {
            self.expired(now, index);
        }
        if self.sweep_at <= now {
            self.sweep(now);
        }
        self.memory.review(now, self.counters.bytes_from_sockets);
        self.host.review(now);
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
        let more_asked = self.observe(now);
        more_clients || more_asked || !self.turns.is_empty()
    }

    fn wait(&mut self, busy: bool, events: &mut Events) -> io::Result<()> {
        let mut limit = Some(Duration::ZERO);
        if !busy {
            let due = self.next_due();
            if due > self.clock.now() {
                self.alarm.set(Some(due));
                limit = None;
            }
        }
        match self.poll.poll(events, limit) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                events.clear();
                Ok(())
            }
            other => other,
        }
    }

    fn next_due(&self) -> Instant {
        let memory = self.memory.next();
        let mut due = if self.pairs.is_empty() { memory } else { self.sweep_at.min(memory) };
        let tokens = self.bucket.as_ref().filter(|_| !self.thirsty.is_empty());
        for other in [
            self.deadlines.next(),
            self.accept_again,
            self.end_at,
            Some(self.service.next()),
            Some(self.host.due()),
            self.observer.as_ref().and_then(Observer::poll_timeout),
            tokens.map(|bucket| bucket.when(bucket.segment())),
        ] {
            due = due.min(other.unwrap_or(Instant::FAR_FUTURE));
        }
        due
    }

    fn ready(&mut self, event: &mio::event::Event) {
        match event.token() {
            STOP => {}
            ALARM => self.alarm.expired(),
            Token(number) if number < SOCKETS => {
                if let Some(facing) = self.listeners.get_mut(number - LISTENERS) {
                    facing.listener.is_ready();
                }
            }
            Token(observe::FIRST_TOKEN..) => {
                if let Some(observer) = &mut self.observer {
                    observer.ready(event);
                }
            }
            Token(number) => {
                let index = (number - SOCKETS) / 2;
                let side = if number % 2 == 0 { Side::Client } else { Side::Server };
                // It may have closed earlier; news for it is harmless to another in its place.
                let Some(pair) = self.pairs.get_mut(index) else { return };
                let readable = event.is_readable() || event.is_read_closed() || event.is_error();
                let writable = event.is_writable() || event.is_write_closed() || event.is_error();
                pair.ready(side, readable, writable);
                self.queue(index);
            }
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
        let both = Interest::READABLE | Interest::WRITABLE;
        let (registry, pair) = (self.poll.registry(), &mut self.pairs[index]);
        registry.register(&mut pair.client, Token(SOCKETS + 2 * index), both)?;
        registry.register(&mut pair.server, Token(SOCKETS + 2 * index + 1), both)
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
        if let Some(error) = socket::taken_error(&pair.server) {
            tracing::debug!(server = %pair.addresses.1, %error, "not connected");
            self.counters.refused(reason_of(&error));
            pair.cause = "the server could not be reached";
            self.remove(index).reset();
            return;
        }
        // Without an error, either it is connected or the news was of another kind.
        if pair.server.peer_addr().is_err() {
            return;
        }
        if let Err(error) = socket::prepare(&pair.server, &self.limits) {
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
