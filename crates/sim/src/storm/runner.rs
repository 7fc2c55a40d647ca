//! Runs two endpoints with their clocks, the channels between them and the scheduled faults.

use super::channel::{Channel, Conditions, Datagram};
use super::clock::{Clock, ClockStep};
use super::fault::{Fault, FaultCounts};
use super::gateways::FinalCounters;
use super::report::{Record, Violation};
use crate::{EventQueue, TraceHash};
use std::collections::VecDeque;
use units::{BitRate, Instant, RngStream, Span};
use xstp::session::Coverage;

/// Steps without progress of time after which the run counts as a busy loop.
const MAX_ROUNDS: u32 = 20_000;

/// Datagrams in one direction after which a storm counts as endless.
const MAX_DATAGRAMS: u64 = 200_000;

/// A command to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Restarts, with or without memory of the last incarnation.
    Restart { amnesia: bool },
    /// Aborts its session or a stream.
    Abort,
    /// Sets the largest segment of the path, in octets.
    Segment(usize),
    /// Starts or stops reading.
    Reading(bool),
    /// The faults have ended.
    FaultsEnd,
}

/// One end of the path: a protocol with its application. All times are of the endpoint's own clock.
pub(crate) trait End {
    /// Handles a datagram that arrived at `now`.
    fn receive(&mut self, now: Instant, datagram: &mut Datagram);
    /// Sends all that may be sent at `now`. `send` takes each datagram and whether it carries data.
    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8], bool));
    /// Returns when to call [`End::timeout`].
    fn due(&self) -> Option<Instant>;
    /// Handles the timers that have expired.
    fn timeout(&mut self, now: Instant);
    /// Executes `command`.
    fn apply(&mut self, now: Instant, command: Command, fault_counts: &mut FaultCounts);
    /// The incarnation of the current sender.
    fn incarnation(&self) -> u64;
    /// Number of sessions so far.
    fn sessions(&self) -> u64;
    /// The rate that the sender must keep, and the time for which it may catch up at a higher rate.
    fn promised_rate(&self) -> Option<(BitRate, Span)>;
    /// Returns the first violation found so far, and adds the faults that occurred inside.
    fn check(&mut self, fault_counts: &mut FaultCounts) -> Result<(), Violation>;
    /// The earliest time of the next incarnation: after every timestamp used so far, if that
    /// matters.
    fn earliest_restart(&self) -> Instant {
        Instant::ZERO
    }
    /// Returns whether all work is done.
    fn is_finished(&self) -> bool;
    /// The records of all its sessions; the current one is last.
    fn records(&self) -> Vec<Record>;
    /// The session states and events that occurred.
    fn coverage(&self) -> Coverage;
    /// Describes its state.
    fn describe(&self) -> String;
    /// Final counters, for endpoints whose counters must match those of the peer.
    fn final_counters(&self) -> Option<FinalCounters> {
        None
    }
}

/// A scheduled fault or command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// The selected directions lose every datagram.
    Blackout { channels: [bool; 2], length: Span },
    /// Sets the delay of one direction.
    Delay { channel: usize, delay: Span },
    /// Sets the rate of one direction.
    Rate { channel: usize, rate: BitRate },
    /// Steps the clock of an endpoint.
    ClockStep { end: usize, by: ClockStep },
    /// An endpoint does not run for `length`.
    Stall { end: usize, length: Span },
    /// Sends a command to an endpoint.
    Command { end: usize, command: Command },
}

/// The parts of a [`Runner`].
pub(crate) struct RunnerParts {
    pub(crate) ends: [Box<dyn End>; 2],
    pub(crate) clocks: [Clock; 2],
    pub(crate) channels: [Channel; 2],
    /// The conditions of the fault-free phase, except for the delay.
    pub(crate) fault_free: [Conditions; 2],
    /// Mean delay of timers.
    pub(crate) timer_delay: Span,
    pub(crate) rng: RngStream,
}

/// Both endpoints, the channels between them, and virtual time.
pub(crate) struct Runner {
    parts: RunnerParts,
    scheduled: EventQueue<Action>,
    /// The timer of each endpoint when `wake` was computed, on its own clock, and the time of
    /// `wake`.
    due: [Option<Instant>; 2],
    wake: [Option<Instant>; 2],
    stalled: [Instant; 2],
    waiting: [VecDeque<Datagram>; 2],
    buckets: [Bucket; 2],
    sessions: [u64; 2],
    fault_counts: FaultCounts,
    trace: TraceHash,
    now: Instant,
    rounds: u32,
}

/// Octets that an endpoint has sent in excess of its rate.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    level: u64,
    at: Instant,
    highest: u64,
}

impl Runner {
    pub(crate) fn new(parts: RunnerParts) -> Self {
        Self {
            parts,
            scheduled: EventQueue::new(),
            due: [None; 2],
            wake: [Some(Instant::ZERO); 2],
            stalled: [Instant::ZERO; 2],
            waiting: Default::default(),
            buckets: Default::default(),
            sessions: [1; 2],
            fault_counts: FaultCounts::default(),
            trace: TraceHash::new(),
            now: Instant::ZERO,
            rounds: 0,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn trace(&self) -> u64 {
        self.trace.value()
    }

    pub(crate) fn ends(&self) -> &[Box<dyn End>; 2] {
        &self.parts.ends
    }

    pub(crate) fn fault_counts(&mut self) -> &mut FaultCounts {
        &mut self.fault_counts
    }

    pub(crate) fn channels(&mut self) -> &mut [Channel; 2] {
        &mut self.parts.channels
    }

    pub(crate) fn schedule(&mut self, at: Instant, action: Action) {
        self.scheduled.push(at, action);
    }

    /// Ends all faults and notifies the endpoints.
    pub(crate) fn fault_free(&mut self) {
        for (channel, fault_free) in self.parts.channels.iter_mut().zip(self.parts.fault_free) {
            let delay = channel.conditions().delay.min(Span::from_millis(300));
            *channel.conditions() = Conditions { delay, ..fault_free };
            channel.end_blackout();
        }
        self.parts.timer_delay = Span::ZERO;
        for end in 0..2 {
            self.command(end, Command::FaultsEnd);
            self.stalled[end] = self.now;
        }
    }

    /// Runs until `end`, or with `until_finished` until both endpoints are finished. Returns
    /// whether they are.
    pub(crate) fn run(&mut self, end: Instant, until_finished: bool) -> Result<bool, Violation> {
        loop {
            if until_finished && self.parts.ends.iter().all(|end| end.is_finished()) {
                return Ok(true);
            }
            match self.next_at() {
                Some(at) if at <= end => self.step(at)?,
                Some(_) | None => {
                    self.now = self.now.max(end);
                    return Ok(false);
                }
            }
        }
    }

    fn next_at(&self) -> Option<Instant> {
        let channels = self.parts.channels.iter().filter_map(Channel::next_at);
        channels.chain(self.wake.into_iter().flatten()).chain(self.scheduled.next_at()).min()
    }

    fn step(&mut self, at: Instant) -> Result<(), Violation> {
        if at > self.now {
            self.now = at;
            self.rounds = 0;
        } else {
            self.rounds += 1;
            if self.rounds > MAX_ROUNDS {
                let ends = [0, 1].map(|end| self.parts.ends[end].describe());
                return Err(Violation::new(format!("no progress of time: {ends:?}")));
            }
        }
        while let Some((_, action)) = self.scheduled.pop_due(self.now) {
            self.perform(action);
        }
        for end in 0..2 {
            self.run_end(end)?;
        }
        for channel in &self.parts.channels {
            if channel.counts().offered > MAX_DATAGRAMS {
                let ends = [0, 1].map(|end| self.parts.ends[end].describe());
                return Err(Violation::new(format!(
                    "more than {MAX_DATAGRAMS} datagrams: {ends:?}"
                )));
            }
            if !channel.balances() {
                return Err(Violation::new(format!(
                    "datagrams are unaccounted for: {:?}",
                    channel.counts()
                )));
            }
        }
        Ok(())
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Blackout { channels, length } => {
                let fault =
                    if channels == [true; 2] { Fault::Blackout } else { Fault::OneWayBlackout };
                self.fault_counts.count(fault);
                let until = self.now + length;
                for channel in (0..2).filter(|&channel| channels[channel]) {
                    self.parts.channels[channel].begin_blackout(until);
                }
            }
            Action::Delay { channel, delay } => {
                self.fault_counts.count(Fault::DelayStep);
                self.parts.channels[channel].conditions().delay = delay;
            }
            Action::Rate { channel, rate } => {
                self.fault_counts.count(Fault::RateChange);
                self.parts.channels[channel].conditions().rate = Some(rate);
            }
            Action::ClockStep { end, by } => {
                self.fault_counts.count(match by {
                    ClockStep::Forward(_) => Fault::ClockForward,
                    ClockStep::Back(_) => Fault::ClockBack,
                });
                self.parts.clocks[end].step_clock(self.now, by);
                self.due[end] = None;
                self.wake[end] = Some(self.now);
            }
            Action::Stall { end, length } => {
                self.fault_counts.count(Fault::Stall);
                self.stalled[end] = self.stalled[end].max(self.now + length);
            }
            Action::Command { end, command } => self.command(end, command),
        }
    }

    fn command(&mut self, end: usize, command: Command) {
        if let Command::Restart { amnesia } = command {
            let earliest_restart = self.parts.ends[end].earliest_restart();
            self.parts.clocks[end].resynchronize(self.now, earliest_restart);
            self.due[end] = None;
            // After a restart without memory no datagram of the old instance may remain in the
            // network.
            if amnesia {
                self.parts.channels.iter_mut().for_each(Channel::discard_all);
                self.waiting.iter_mut().for_each(VecDeque::clear);
            }
        }
        let now = self.parts.clocks[end].read(self.now);
        self.parts.ends[end].apply(now, command, &mut self.fault_counts);
        self.wake[end] = Some(self.now);
    }

    /// Delivers arrived datagrams to an endpoint, runs its expired timers, and sends its output.
    fn run_end(&mut self, end: usize) -> Result<(), Violation> {
        let from = 1 - end;
        let stalled = self.now < self.stalled[end];
        while let Some(datagram) = self.parts.channels[from].take(self.now) {
            self.waiting[end].push_back(datagram);
        }
        if stalled {
            self.wake[end] = self.wake[end].map(|at| at.max(self.stalled[end]));
            return Ok(());
        }
        let woken = self.wake[end].is_some_and(|at| at <= self.now);
        if !woken && self.waiting[end].is_empty() {
            return Ok(());
        }
        let now = self.parts.clocks[end].read(self.now);
        while let Some(mut datagram) = self.waiting[end].pop_front() {
            self.trace.event(self.now, end as u64, &datagram.bytes);
            self.parts.ends[end].receive(now, &mut datagram);
            self.parts.channels[from].recycle(datagram.bytes);
        }
        if self.parts.ends[end].due().is_some_and(|due| due <= now) {
            self.parts.ends[end].timeout(now);
        }
        self.transmit(end, now)?;
        self.parts.ends[end].check(&mut self.fault_counts)?;
        self.on_restart(end);
        self.set_wake(end, now)
    }

    fn transmit(&mut self, end: usize, now: Instant) -> Result<(), Violation> {
        let sender = &mut self.parts.ends[end];
        let promised = sender.promised_rate();
        let incarnation = sender.incarnation();
        let (channel, fault_counts, time) =
            (&mut self.parts.channels[end], &mut self.fault_counts, self.now);
        let bucket = &mut self.buckets[end];
        if let Some((rate, _)) = promised {
            bucket.drain(now, rate);
        }
        let mut beyond = 0;
        sender.transmit(now, &mut |bytes, is_data| {
            if is_data {
                beyond = beyond.max(bucket.level);
            }
            bucket.level += bytes.len() as u64;
            channel.offer(time, bytes, incarnation, fault_counts);
        });
        let Some((rate, catch_up)) = promised else { return Ok(()) };
        let allowed = rate.bytes_in(catch_up) + 1_500;
        bucket.highest = bucket.highest.max(beyond);
        if beyond > allowed {
            let text = format!("{beyond} octets in excess of {rate:?}; the limit is {allowed}");
            return Err(Violation::new(text));
        }
        Ok(())
    }

    /// After a restart all earlier datagrams belong to an old incarnation.
    fn on_restart(&mut self, end: usize) {
        let sessions = self.parts.ends[end].sessions();
        if sessions != self.sessions[end] {
            self.sessions[end] = sessions;
            self.buckets[end] = Bucket::default();
            self.parts.channels.iter_mut().for_each(Channel::mark_old);
        }
    }

    fn set_wake(&mut self, end: usize, now: Instant) -> Result<(), Violation> {
        let due = self.parts.ends[end].due();
        if due.is_some_and(|due| due <= now) {
            let text = format!("due at {due:?} after {now:?}: {}", self.parts.ends[end].describe());
            return Err(Violation::new(text));
        }
        if due != self.due[end] || self.wake[end].is_some_and(|at| at <= self.now) {
            self.due[end] = due;
            self.wake[end] = due.map(|due| {
                let at = self.parts.clocks[end].time_of(due).max(self.now);
                if self.parts.timer_delay.is_zero() {
                    return at;
                }
                self.fault_counts.count(Fault::LateTimer);
                at + self.parts.rng.exponential_span(self.parts.timer_delay)
            });
        }
        Ok(())
    }
}

impl Bucket {
    fn drain(&mut self, now: Instant, rate: BitRate) {
        self.level = self.level.saturating_sub(rate.bytes_in(now.since(self.at)));
        self.at = now;
    }
}
