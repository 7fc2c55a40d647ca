//! The event loop of a running emulator.
//!
//! The link's time is the *horizon*: the time up to which all arrived packets have been read. The
//! link advances only up to there; a packet that arrives while the emulator is busy is offered with
//! its own timestamp, in command.

use super::carried::Carried;
use super::commands::CommandReceiver;
use super::control::Command;
use super::observe::Observer;
use super::ports::{Attached, SendFailures};
use super::summary::{self, Accounts, End, Start, Summary};
use super::wait::Waiter;
use super::{EmulatorConfig, EmulatorError, LogEvent, Side};
use crate::pcap::{self, Capture};
use crate::{Clock, sched};
use satlink::{Admission, Direction, Frame, Jitter, Link, LinkConfig, Outage};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Instant, Span};

/// Packets sent per system call.
const BATCH: usize = 32;
/// Packets read and not yet offered per side, above which the side is not read.
const PENDING: usize = 4096;
/// Interval at which the stop flag is checked.
const LONGEST_WAIT: Span = Span::from_millis(100);
/// Maximum time for which arrivals stay unread while the link is busy. They are timestamped
/// already; reading several at a time is cheaper.
const UNREAD: Span = Span::from_micros(200);
/// Minimum delay of the link for which arrivals may stay unread.
const SHORT_WAY: Span = Span::from_millis(1);
/// Maximum number of outages by command at a time.
const OUTAGES: usize = 64;
/// Maximum delay between a packet's timestamp and its reading.
const STALE: Span = Span::from_secs(60);
/// Maximum duration of reading per iteration: a packet is timestamped before it is read, but
/// possibly after the iteration started.
const AHEAD: Span = Span::from_millis(100);

/// A running emulator.
pub(super) struct Engine {
    config: EmulatorConfig,
    attached: Attached,
    captures: [Option<Capture>; 2],
    commands: CommandReceiver<Command>,
    link: Link<Carried>,
    clock: Clock,
    /// Nanoseconds since 1970 at the clock's zero, for timestamps; the first reading is reported.
    epoch_unix_ns: u64,
    first_epoch_unix_ns: u64,
    sides: [SideState; 2],
    /// The horizon.
    horizon: Instant,
    /// Commands received and not yet executed, with their times.
    given: VecDeque<(Instant, Command)>,
    ordered_outages: Vec<Outage>,
    lazy: bool,
    stopped: bool,
    observer: Observer,
    cpu_before: Span,
    late_stamps: u64,
    waiter: Waiter,
    descriptors: Vec<std::os::fd::RawFd>,
}

/// State of one side, and of the direction that starts there.
#[derive(Default)]
struct SideState {
    /// Packets read and not yet offered, by arrival.
    pending: VecDeque<(Instant, Carried)>,
    received: u64,
    out_of_memory: u64,
    /// Packets due at this side, with their times of delivery by the link.
    leaving: Vec<Carried>,
    leaving_at: Vec<Instant>,
    sent: u64,
    failures: SendFailures,
}

/// An input of the link.
#[derive(Clone, Copy)]
enum Event {
    Command,
    Arrival(Side),
}

impl Engine {
    pub(super) fn new(
        config: EmulatorConfig,
        attached: Attached,
        captures: [Option<Capture>; 2],
        commands: CommandReceiver<Command>,
        observer: Observer,
        clock: Clock,
    ) -> Result<Self, EmulatorError> {
        let link = Link::new(&config.link, config.seed, config.run).map_err(EmulatorError::Link)?;
        let epoch_unix_ns = clock.epoch_unix_ns();
        Ok(Self {
            lazy: shortest_way(&config.link) >= SHORT_WAY,
            observer,
            cpu_before: Span::ZERO,
            config,
            attached,
            captures,
            commands,
            link,
            clock,
            epoch_unix_ns,
            first_epoch_unix_ns: epoch_unix_ns,
            sides: Default::default(),
            horizon: Instant::ZERO,
            given: VecDeque::new(),
            ordered_outages: Vec::new(),
            stopped: false,
            late_stamps: 0,
            waiter: Waiter::new(),
            descriptors: Vec::new(),
        })
    }

    /// Describes what is about to start.
    pub(super) fn greeting(&self) -> String {
        let mut text = format!(
            "forward: {} -> {}; return: back again",
            self.attached.name(Side::A),
            self.attached.name(Side::B)
        );
        for note in self.attached.notes() {
            text.push_str("\nnote: ");
            text.push_str(&note);
        }
        text
    }

    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<Summary, EmulatorError> {
        let scheduling = sched::ask(&self.config.scheduling);
        self.cpu_before = Clock::thread_time();
        let outcome = self.rounds(stop);
        sched::give_back(&scheduling);
        outcome?;
        self.finish(scheduling)
    }

    fn rounds(&mut self, stop: &AtomicBool) -> Result<(), EmulatorError> {
        let end = self.config.duration.map_or(Instant::FAR_FUTURE, |span| Instant::ZERO + span);
        loop {
            let busy = self.take_in()?;
            let busy = self.hand_out() || busy;
            let now = self.clock.now();
            if self.observer.tick(now, &self.link) {
                self.captures.iter_mut().flatten().for_each(Capture::hand_over);
            }
            if self.stopped || now >= end || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.wait(busy, end)?;
        }
    }

    /// Reads arrived packets, and offers those that arrived up to the new horizon. Returns whether
    /// there were any.
    fn take_in(&mut self) -> Result<bool, EmulatorError> {
        let now = self.clock.now();
        self.watch_the_world();
        let mut horizon = now;
        let mut came = false;
        for side in Side::BOTH {
            let before = self.sides[side.index()].received;
            if let Some(known) = self.read(side, now)? {
                horizon = horizon.min(known);
            }
            came |= self.sides[side.index()].received > before;
        }
        // Fetched after the packets: commands given before the arrival of one of them are included.
        self.given.extend(self.commands.fetch());
        self.horizon = self.horizon.max(horizon);
        while let Some(event) = self.next_event() {
            self.happen(event);
        }
        Ok(came)
    }

    /// Reads the packets queued at `side`. Returns the arrival of the last one if there may be
    /// more.
    fn read(&mut self, side: Side, now: Instant) -> Result<Option<Instant>, EmulatorError> {
        let Self { attached, sides, epoch_unix_ns, horizon, late_stamps, .. } = self;
        let state = &mut sides[side.index()];
        if state.pending.len() >= PENDING {
            return Ok(state.pending.back().map(|&(at, _)| at));
        }
        let arrival = |unix_ns: Option<u64>| {
            let at = unix_ns
                .map_or(now, |stamp| Instant::from_nanos(stamp.saturating_sub(*epoch_unix_ns)));
            // A clock step invalidates single timestamps.
            if at + STALE < now || at > now + AHEAD { now } else { at }
        };
        let more = attached.receive(side, &mut |unix_ns, packet| {
            let at = arrival(unix_ns);
            *late_stamps += u64::from(at < *horizon);
            let at = at.max(*horizon);
            state.received += 1;
            // Almost always the last position; only the sockets of a relay are out of command.
            let place = state.pending.partition_point(|&(other, _)| other <= at);
            state.pending.insert(place, (at, packet));
        })?;
        Ok(more.map(|unix_ns| arrival(Some(unix_ns))))
    }

    /// The next input that arrived by the horizon; commands before packets.
    fn next_event(&self) -> Option<Event> {
        let command = self.given.front().map(|&(at, _)| (at, Event::Command));
        let first = |side: Side| {
            let (at, _) = self.sides[side.index()].pending.front()?;
            Some((*at, Event::Arrival(side)))
        };
        let [a, b] = Side::BOTH.map(first);
        let (at, event) = [command, a, b].into_iter().flatten().min_by_key(|&(at, _)| at)?;
        (at <= self.horizon).then_some(event)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Command => {
                if let Some((at, command)) = self.given.pop_front() {
                    self.apply(at, command);
                }
            }
            Event::Arrival(side) => {
                if let Some((at, packet)) = self.sides[side.index()].pending.pop_front() {
                    self.offer(side, at, packet);
                }
            }
        }
    }

    fn offer(&mut self, side: Side, at: Instant, packet: Carried) {
        if let Some(capture) = &mut self.captures[side.index()] {
            let unix_ns = self.epoch_unix_ns + at.as_nanos();
            self.attached.record(capture, unix_ns, side, pcap::Direction::Inbound, &packet);
        }
        let direction = direction_from(side);
        // The overhead per packet is neglected.
        let held = self.link.counters(direction).held.bytes;
        if held + packet.len() as u64 > self.config.memory {
            self.sides[side.index()].out_of_memory += 1;
            return;
        }
        let bytes = packet.len();
        self.observer.log(at, direction, bytes, LogEvent::Offered);
        match self.link.offer(at, direction, packet) {
            Admission::Queued => {}
            Admission::Dropped(cause, _) => {
                self.observer.log(at, direction, bytes, LogEvent::Dropped(cause));
            }
        }
    }

    /// Sends the due packets. Returns whether there were any.
    fn hand_out(&mut self) -> bool {
        let mut any = false;
        while let Some(delivery) = self.link.poll_delivery(self.horizon) {
            any = true;
            let side = side_behind(delivery.direction);
            let waited = delivery.sent_at.since(delivery.offered_at);
            let bytes = delivery.frame.len();
            self.observer.delivered(delivery.at, delivery.direction, bytes, waited);
            let state = &mut self.sides[side.index()];
            state.leaving.push(delivery.frame);
            state.leaving_at.push(delivery.at);
            if state.leaving.len() == BATCH {
                self.flush(side);
            }
        }
        for side in Side::BOTH {
            self.flush(side);
        }
        any
    }

    fn flush(&mut self, side: Side) {
        let state = &mut self.sides[side.index()];
        if state.leaving.is_empty() {
            return;
        }
        let failed_before = state.failures.packets;
        self.attached.send(side, &state.leaving, &mut state.failures);
        let now = self.clock.now();
        state.sent += state.leaving.len() as u64 - (state.failures.packets - failed_before);
        for &at in &state.leaving_at {
            self.observer.left(now.since(at));
        }
        if let Some(capture) = &mut self.captures[side.index()] {
            let unix_ns = self.epoch_unix_ns + now.as_nanos();
            for packet in &state.leaving {
                self.attached.record(capture, unix_ns, side, pcap::Direction::Outbound, packet);
            }
        }
        state.leaving.clear();
        state.leaving_at.clear();
    }

    /// Executes a command at `at`.
    fn apply(&mut self, at: Instant, command: Command) {
        match command {
            Command::Stop => {
                self.stopped = true;
                return;
            }
            Command::Reconfigure(link) => self.config.link = *link,
            Command::Outage(length) => {
                let begin = at.since(Instant::ZERO);
                self.ordered_outages.retain(|outage| outage.at + outage.length > begin);
                if self.ordered_outages.len() < OUTAGES {
                    let outage = Outage { at: begin, length, every: None, direction: None };
                    self.ordered_outages.push(outage);
                }
            }
        }
        let mut link = self.config.link.clone();
        link.outages.extend(&self.ordered_outages);
        // Handles accept valid links only, and an outage keeps a link valid.
        let changed = self.link.reconfigure(at, &link);
        debug_assert!(changed.is_ok(), "{changed:?}");
        self.lazy = shortest_way(&link) >= SHORT_WAY;
    }

    /// Detects steps of the wall clock, which the kernel uses for timestamps.
    fn watch_the_world(&mut self) {
        let epoch = self.clock.epoch_unix_ns();
        // Readings differ by some nanoseconds; the first is kept for consistent timestamps.
        if epoch.abs_diff(self.epoch_unix_ns) > 1_000_000 {
            self.epoch_unix_ns = epoch;
        }
    }

    fn wait(&mut self, busy: bool, end: Instant) -> Result<(), EmulatorError> {
        let pending = self.sides.iter().any(|side| !side.pending.is_empty());
        if pending || !self.given.is_empty() {
            return Ok(());
        }
        self.descriptors.clear();
        self.attached.descriptors(&mut self.descriptors);
        self.waiter.set(self.commands.descriptor(), &self.descriptors);
        let now = self.clock.now();
        let due = self.link.poll_timeout().unwrap_or(Instant::FAR_FUTURE).min(end);
        let longest = due.since(now).min(LONGEST_WAIT);
        let unread = self.lazy && busy;
        let longest = if unread { longest.min(UNREAD) } else { longest };
        if longest.is_zero() {
            return Ok(());
        }
        if self.waiter.wait(longest, !unread).map_err(EmulatorError::Wait)? {
            self.commands.reset();
        }
        Ok(())
    }

    fn finish(mut self, scheduling: sched::Scheduling) -> Result<Summary, EmulatorError> {
        let now = self.clock.now();
        let observed = self.observer.finish(now, &self.link);
        let mut capture_omitted = 0;
        let paths = [self.config.pcap_a.clone(), self.config.pcap_b.clone()];
        for (capture, path) in self.captures.iter_mut().zip(paths) {
            if let (Some(capture), Some(path)) = (capture.take(), path) {
                capture_omitted +=
                    capture.finish().map_err(|source| EmulatorError::Capture { path, source })?;
            }
        }
        let seconds = now.since(Instant::ZERO).as_secs_f64();
        let mut end = End {
            seconds,
            forward: self.accounts(Side::A, seconds),
            r#return: self.accounts(Side::B, seconds),
            lateness: observed.lateness,
            cpu_seconds: (Clock::thread_time() - self.cpu_before).as_secs_f64(),
            late_stamps: self.late_stamps,
            capture_omitted,
            kept_up: true,
            reasons: Vec::new(),
        };
        end.reasons = end.shortcomings(self.config.lateness_limit);
        end.kept_up = end.reasons.is_empty();
        Ok(Summary {
            start: self.start(scheduling),
            intervals: observed.intervals,
            end,
            log: observed.log,
            log_omitted: observed.log_omitted,
        })
    }

    fn start(&self, scheduling: sched::Scheduling) -> Start {
        let link = if self.config.link_words.is_empty() {
            format!("{:?}", self.config.link)
        } else {
            self.config.link_words.clone()
        };
        Start {
            epoch_unix_ns: self.first_epoch_unix_ns,
            seed: self.config.seed,
            run: self.config.run,
            a: self.attached.name(Side::A),
            b: self.attached.name(Side::B),
            link,
            scheduling,
            notes: self.attached.notes(),
        }
    }

    /// The counters of the direction that starts at `side`.
    fn accounts(&mut self, side: Side, seconds: f64) -> Accounts {
        let direction = direction_from(side);
        let kernel_dropped = self.attached.kernel_drops(side);
        let far = &self.sides[side_behind(direction).index()];
        let near = &self.sides[side.index()];
        let counters = self.link.counters(direction);
        Accounts {
            bits_per_second: counters.delivered.bytes as f64 * 8.0 / seconds.max(1e-9),
            kernel_dropped,
            received: near.received,
            out_of_memory: near.out_of_memory,
            offered: counters.offered,
            duplicated: counters.duplicated,
            delivered: counters.delivered,
            dropped: summary::drops(counters),
            held: counters.held,
            marked: counters.marked,
            fullest_queue: counters.fullest,
            sent: far.sent,
            send_failed: far.failures.packets,
            last_send_error: far.failures.last_error.clone(),
        }
    }
}

fn direction_from(side: Side) -> Direction {
    match side {
        Side::A => Direction::Forward,
        Side::B => Direction::Return,
    }
}

fn side_behind(direction: Direction) -> Side {
    match direction {
        Direction::Forward => Side::B,
        Direction::Return => Side::A,
    }
}

/// A lower bound of a packet's delay through `link`.
fn shortest_way(link: &LinkConfig) -> Span {
    let of = |direction: Direction| {
        let config = link.direction(direction);
        match config.jitter {
            Jitter::None if config.reorder.is_none() => config.delay,
            Jitter::Uniform(width) if config.reorder.is_none() => config.delay - width,
            Jitter::None | Jitter::Uniform(_) | Jitter::Normal(_) => Span::ZERO,
        }
    };
    of(Direction::Forward).min(of(Direction::Return))
}
