//! Two ends, their clocks, the weather between them, and what is to happen when.

use super::clock::{Clock, Leap};
use super::fault::{Fault, Strikes};
use super::gateways::Account;
use super::report::{Damage, Record};
use super::weather::{Conditions, Flying, Lane};
use crate::{Agenda, TraceHash};
use std::collections::VecDeque;
use units::{BitRate, Instant, RngStream, Span};
use xstp::session::Coverage;

/// Rounds without any time passing after which somebody is always due.
const STANDING: u32 = 20_000;

/// Datagrams in one direction after which a storm has no end.
const ENOUGH: u64 = 200_000;

/// What an end is told to do, or has done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Starts anew, with or without memory of its last incarnation.
    Restart { amnesia: bool },
    /// Gives up.
    Abort,
    /// The path carries segments of at most this many bytes.
    Segment(usize),
    /// Reads on, or not.
    Reading(bool),
    /// The storm is over.
    Calm,
}

/// One end: a protocol and what uses it.
pub(crate) trait End {
    /// Takes a datagram that arrived at `now`, on this end's clock as everywhere below.
    fn receive(&mut self, now: Instant, flying: &mut Flying);
    /// Sends all that may leave at `now`; says of each datagram whether data is in it.
    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8], bool));
    /// When to call [`End::timeout`].
    fn due(&self) -> Option<Instant>;
    /// Does what is due.
    fn timeout(&mut self, now: Instant);
    /// Does what it is told.
    fn obey(&mut self, now: Instant, order: Order, strikes: &mut Strikes);
    /// The incarnation under which it sends now.
    fn incarnation(&self) -> u64;
    /// How often it has begun.
    fn lives(&self) -> u64;
    /// The rate that it promises to keep, and how long it may make up for lost time.
    fn promised_rate(&self) -> Option<(BitRate, Span)>;
    /// The first promise that it found broken, or has broken, and what struck within.
    fn verdict(&mut self, strikes: &mut Strikes) -> Result<(), Damage>;
    /// When its clock has passed every stamp that it used, where that matters.
    fn fresh_from(&self) -> Instant {
        Instant::ZERO
    }
    /// Whether it has nothing more to do.
    fn is_settled(&self) -> bool;
    /// Its lives, the present one last.
    fn records(&self) -> Vec<Record>;
    /// Which states and events its sessions met.
    fn coverage(&self) -> Coverage;
    /// Where it is, for people.
    fn describe(&self) -> String;
    /// Its books, where those of both ends are to agree.
    fn account(&self) -> Option<Account> {
        None
    }
}

/// What happens at a time that is set beforehand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Nothing passes in these directions.
    Dark { lanes: [bool; 2], length: Span },
    /// The delay in one direction.
    Delay { lane: usize, delay: Span },
    /// The rate in one direction.
    Rate { lane: usize, rate: BitRate },
    /// A clock leaps.
    Leap { end: usize, by: Leap },
    /// An end stands still.
    Stall { end: usize, length: Span },
    /// An end is told something.
    Order { end: usize, order: Order },
}

/// What the arena is made of.
pub(crate) struct Cast {
    pub(crate) ends: [Box<dyn End>; 2],
    pub(crate) clocks: [Clock; 2],
    pub(crate) lanes: [Lane; 2],
    /// What the lanes are like after the storm, but for their delay.
    pub(crate) calm: [Conditions; 2],
    /// How late timers are on average.
    pub(crate) lag: Span,
    /// Whether what was sent before a restart without memory may still arrive: no.
    pub(crate) rng: RngStream,
}

/// Everything together, and time.
pub(crate) struct Arena {
    cast: Cast,
    agenda: Agenda<Act>,
    /// What each end wanted when its wake was set, on its clock, and when that is.
    due: [Option<Instant>; 2],
    wake: [Option<Instant>; 2],
    stalled: [Instant; 2],
    waiting: [VecDeque<Flying>; 2],
    buckets: [Bucket; 2],
    lives: [u64; 2],
    strikes: Strikes,
    trace: TraceHash,
    now: Instant,
    standing: u32,
}

/// What an end has sent beyond its promised rate.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    level: u64,
    at: Instant,
    highest: u64,
}

impl Arena {
    pub(crate) fn new(cast: Cast) -> Self {
        Self {
            cast,
            agenda: Agenda::new(),
            due: [None; 2],
            wake: [Some(Instant::ZERO); 2],
            stalled: [Instant::ZERO; 2],
            waiting: Default::default(),
            buckets: Default::default(),
            lives: [1; 2],
            strikes: Strikes::default(),
            trace: TraceHash::new(),
            now: Instant::ZERO,
            standing: 0,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn trace(&self) -> u64 {
        self.trace.value()
    }

    pub(crate) fn ends(&self) -> &[Box<dyn End>; 2] {
        &self.cast.ends
    }

    pub(crate) fn strikes(&mut self) -> &mut Strikes {
        &mut self.strikes
    }

    pub(crate) fn lanes(&mut self) -> &mut [Lane; 2] {
        &mut self.cast.lanes
    }

    pub(crate) fn plan(&mut self, at: Instant, act: Act) {
        self.agenda.put(at, act);
    }

    /// The weather clears, and the ends are told so.
    pub(crate) fn calm(&mut self) {
        for (lane, calm) in self.cast.lanes.iter_mut().zip(self.cast.calm) {
            let delay = lane.conditions().delay.min(Span::from_millis(300));
            *lane.conditions() = Conditions { delay, ..calm };
            lane.lighten();
        }
        self.cast.lag = Span::ZERO;
        for end in 0..2 {
            self.order(end, Order::Calm);
            self.stalled[end] = self.now;
        }
    }

    /// Runs until `end`, or until both ends are settled when `until_settled`; says whether they
    /// are.
    pub(crate) fn run(&mut self, end: Instant, until_settled: bool) -> Result<bool, Damage> {
        loop {
            if until_settled && self.cast.ends.iter().all(|end| end.is_settled()) {
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
        let lanes = self.cast.lanes.iter().filter_map(Lane::next_at);
        lanes.chain(self.wake.into_iter().flatten()).chain(self.agenda.next_at()).min()
    }

    fn step(&mut self, at: Instant) -> Result<(), Damage> {
        if at > self.now {
            self.now = at;
            self.standing = 0;
        } else {
            self.standing += 1;
            if self.standing > STANDING {
                let ends = [0, 1].map(|end| self.cast.ends[end].describe());
                return Err(Damage::new(format!("somebody is always due: {ends:?}")));
            }
        }
        while let Some((_, act)) = self.agenda.take_due(self.now) {
            self.perform(act);
        }
        for end in 0..2 {
            self.serve(end)?;
        }
        for lane in &self.cast.lanes {
            if lane.counts().offered > ENOUGH {
                let ends = [0, 1].map(|end| self.cast.ends[end].describe());
                return Err(Damage::new(format!("more than {ENOUGH} datagrams: {ends:?}")));
            }
            if !lane.balances() {
                return Err(Damage::new(format!("datagrams are missing: {:?}", lane.counts())));
            }
        }
        Ok(())
    }

    fn perform(&mut self, act: Act) {
        match act {
            Act::Dark { lanes, length } => {
                let fault =
                    if lanes == [true; 2] { Fault::Blackout } else { Fault::OneWayBlackout };
                self.strikes.count(fault);
                let until = self.now + length;
                for lane in (0..2).filter(|&lane| lanes[lane]) {
                    self.cast.lanes[lane].darken(until);
                }
            }
            Act::Delay { lane, delay } => {
                self.strikes.count(Fault::DelayStep);
                self.cast.lanes[lane].conditions().delay = delay;
            }
            Act::Rate { lane, rate } => {
                self.strikes.count(Fault::RateChange);
                self.cast.lanes[lane].conditions().rate = Some(rate);
            }
            Act::Leap { end, by } => {
                self.strikes.count(match by {
                    Leap::Forward(_) => Fault::ClockForward,
                    Leap::Back(_) => Fault::ClockBack,
                });
                self.cast.clocks[end].leap(self.now, by);
                self.due[end] = None;
                self.wake[end] = Some(self.now);
            }
            Act::Stall { end, length } => {
                self.strikes.count(Fault::Stall);
                self.stalled[end] = self.stalled[end].max(self.now + length);
            }
            Act::Order { end, order } => self.order(end, order),
        }
    }

    fn order(&mut self, end: usize, order: Order) {
        if let Order::Restart { amnesia } = order {
            let fresh_from = self.cast.ends[end].fresh_from();
            self.cast.clocks[end].set_right(self.now, fresh_from);
            self.due[end] = None;
            // Who forgets everything waits until nothing of it is left in the network.
            if amnesia {
                self.cast.lanes.iter_mut().for_each(Lane::forget);
                self.waiting.iter_mut().for_each(VecDeque::clear);
            }
        }
        let now = self.cast.clocks[end].read(self.now);
        self.cast.ends[end].obey(now, order, &mut self.strikes);
        self.wake[end] = Some(self.now);
    }

    /// Gives an end what has come for it and what is due, and takes what it sends.
    fn serve(&mut self, end: usize) -> Result<(), Damage> {
        let from = 1 - end;
        let stalled = self.now < self.stalled[end];
        while let Some(flying) = self.cast.lanes[from].take(self.now) {
            self.waiting[end].push_back(flying);
        }
        if stalled {
            self.wake[end] = self.wake[end].map(|at| at.max(self.stalled[end]));
            return Ok(());
        }
        let woken = self.wake[end].is_some_and(|at| at <= self.now);
        if !woken && self.waiting[end].is_empty() {
            return Ok(());
        }
        let now = self.cast.clocks[end].read(self.now);
        while let Some(mut flying) = self.waiting[end].pop_front() {
            self.trace.event(self.now, end as u64, &flying.bytes);
            self.cast.ends[end].receive(now, &mut flying);
            self.cast.lanes[from].recycle(flying.bytes);
        }
        if self.cast.ends[end].due().is_some_and(|due| due <= now) {
            self.cast.ends[end].timeout(now);
        }
        self.speak(end, now)?;
        self.cast.ends[end].verdict(&mut self.strikes)?;
        self.reckon_lives(end);
        self.set_wake(end, now)
    }

    fn speak(&mut self, end: usize, now: Instant) -> Result<(), Damage> {
        let speaker = &mut self.cast.ends[end];
        let promised = speaker.promised_rate();
        let incarnation = speaker.incarnation();
        let (lane, strikes, time) = (&mut self.cast.lanes[end], &mut self.strikes, self.now);
        let bucket = &mut self.buckets[end];
        if let Some((rate, _)) = promised {
            bucket.drain(now, rate);
        }
        let mut beyond = 0;
        speaker.transmit(now, &mut |bytes, is_data| {
            if is_data {
                beyond = beyond.max(bucket.level);
            }
            bucket.level += bytes.len() as u64;
            lane.offer(time, bytes, incarnation, strikes);
        });
        let Some((rate, catch_up)) = promised else { return Ok(()) };
        let allowed = rate.bytes_in(catch_up) + 1_500;
        bucket.highest = bucket.highest.max(beyond);
        if beyond > allowed {
            let text = format!("{beyond} bytes beyond {rate:?}, where {allowed} are allowed");
            return Err(Damage::new(text));
        }
        Ok(())
    }

    /// When an end has begun anew, what was sent before is of an old incarnation.
    fn reckon_lives(&mut self, end: usize) {
        let lives = self.cast.ends[end].lives();
        if lives != self.lives[end] {
            self.lives[end] = lives;
            self.buckets[end] = Bucket::default();
            self.cast.lanes.iter_mut().for_each(Lane::bury);
        }
    }

    fn set_wake(&mut self, end: usize, now: Instant) -> Result<(), Damage> {
        let due = self.cast.ends[end].due();
        if due.is_some_and(|due| due <= now) {
            let text = format!("due at {due:?} after {now:?}: {}", self.cast.ends[end].describe());
            return Err(Damage::new(text));
        }
        if due != self.due[end] || self.wake[end].is_some_and(|at| at <= self.now) {
            self.due[end] = due;
            self.wake[end] = due.map(|due| {
                let at = self.cast.clocks[end].time_of(due).max(self.now);
                if self.cast.lag.is_zero() {
                    return at;
                }
                self.strikes.count(Fault::LateTimer);
                at + self.cast.rng.exponential_span(self.cast.lag)
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
