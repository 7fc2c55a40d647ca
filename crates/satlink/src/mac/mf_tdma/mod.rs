//! MF-TDMA with bandwidth on demand: the return link of DVB-RCS.
//!
//! ```text
//!  scheduler   plan f            plan f+1          plan f+2          every period
//!     │          ╲                  ╲ ▲               ╲
//!     │           ╲ 270 ms           ╲│ request        ╲
//!  terminal        ● receives it      ● request in slot ●
//!     │              10 ms ╲
//!     ▼ frame f as heard    ┌─┬─┬─┬─┬─┬─┐  slots of 53 or 188 bytes, guard times between,
//!       at the scheduler    │3│1│2│3│1│…│  on each of the carriers
//!                           └─┴─┴─┴─┴─┴─┘
//! ```
//!
//! Frames are timed at the scheduler: a terminal sends earlier by its own propagation delay, so
//! that different delays matter only beyond the guard time. A packet is segmented into
//! [slots](super::slots::SlotFormat); it arrives with the last one, or not at all if one is lost. A
//! capacity request waits for a slot, the delay to the scheduler, the next plan, the delay back,
//! and the granted slot.
//!
//! ```
//! use satlink::mac::mf_tdma::{Class, MfTdma, MfTdmaConfig};
//! use units::{Instant, Span};
//!
//! let mut link: MfTdma<Vec<u8>> = MfTdma::new(&MfTdmaConfig::mhatre_rosenberg(20), 1, 0)?;
//! let start = Instant::ZERO + Span::from_secs(2);
//! link.offer(start, 3, Class::Data, vec![0; 83]);
//! let arrived = loop {
//!     let at = link.poll_timeout().expect("a packet is under way");
//!     if let Some(arrived) = link.poll_arrival(at) {
//!         break arrived;
//!     }
//! };
//! // Two cells in slots that were free, one behind the other.
//! assert!((0.27..0.27 + 0.25).contains(&(arrived.at.since(start)).as_secs_f64()));
//! # Ok::<(), satlink::mac::schedule::ScheduleError>(())
//! ```
//!
//! Source: Mhatre and Rosenberg 2002, sections V to VII; EN 301 790 for the names.

mod config;
mod counters;
mod events;
mod log_on;
mod terminal;

pub use config::{AskIn, Demand, MfTdmaConfig, Order, Site, TerminalConfig};
pub use counters::{MfTdmaCounters, TerminalCounters};
pub use terminal::Claim;

use super::arrivals::Arrivals;
pub use super::arrivals::Arrived;
use super::schedule::{ScheduleError, Scheduler};
use super::slots::{Layout, Place};
use crate::{Admission, DropCause, Frame, Tally};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use events::{Damage, Event, Word};
use log_on::Calls;
use terminal::{Terminal, Waiting};
use units::{Instant, RngStream, Span};

/// Class of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Data.
    Data,
    /// Acknowledgements and other control packets.
    Control,
}

/// A return link shared by a burst time plan.
///
/// As for a [`Link`](crate::Link), all events are computed from scheduled times: late calls change
/// nothing. If time runs backwards it counts as unchanged.
#[derive(Debug)]
pub struct MfTdma<F> {
    config: MfTdmaConfig,
    layout: Layout,
    ahead: Span,
    scheduler: Scheduler,
    terminals: Vec<Terminal<F>>,
    /// Damage of the packet that is arriving, by terminal and class.
    damage: Vec<[Option<Damage>; 2]>,
    agenda: BTreeMap<(Instant, u64), Event<F>>,
    next_event: u64,
    next_plan: Instant,
    frame: u64,
    calls: Calls,
    /// Number of dropped terminals at the last check.
    dropped_before: u64,
    /// Slots with an unauthorized burst.
    noise: BTreeSet<(u64, Place)>,
    arrived: Arrivals<F>,
    rng: RngStream,
    counters: MfTdmaCounters,
    each: Vec<TerminalCounters>,
    now: Instant,
}

impl<F: Frame> MfTdma<F> {
    /// A link whose random numbers derive from `seed` and `run`. The first plan is made at time
    /// zero.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn new(config: &MfTdmaConfig, seed: u64, run: u64) -> Result<Self, ScheduleError> {
        config.validate()?;
        let mut scheduler = Scheduler::new(config.schedule())?;
        let mut terminals = Vec::new();
        for (place, settings) in config.terminals.iter().enumerate() {
            let number = scheduler.add(settings.contract);
            if settings.logged_on {
                scheduler.log_on(number);
            }
            let late = settings.late > config.guard;
            terminals.push(Terminal::new(config.way(place), late, settings.logged_on));
        }
        let count = terminals.len();
        let mut link = Self {
            layout: Layout::new(config.placement, config.carriers, config.positions()),
            ahead: config.ahead(),
            config: config.clone(),
            scheduler,
            terminals,
            damage: alloc::vec![[None; 2]; count],
            agenda: BTreeMap::new(),
            next_event: 0,
            next_plan: Instant::ZERO,
            frame: 0,
            calls: Calls::new(seed, run),
            dropped_before: 0,
            noise: BTreeSet::new(),
            arrived: Arrivals::new(),
            rng: RngStream::new(seed, run, "satlink/mf-tdma"),
            counters: MfTdmaCounters::default(),
            each: alloc::vec![TerminalCounters::default(); count],
            now: Instant::ZERO,
        };
        link.put(Instant::ZERO, Event::Plan);
        Ok(link)
    }

    /// Queues a packet at `terminal`.
    ///
    /// # Panics
    /// If the terminal does not exist.
    pub fn offer(&mut self, now: Instant, terminal: usize, class: Class, frame: F) -> Admission<F> {
        self.advance(now);
        self.offer_since(now, terminal, class, frame, self.now)
    }

    /// As `offer`, for a packet that its terminal has had since `offered_at`.
    pub(super) fn offer_since(
        &mut self,
        now: Instant,
        terminal: usize,
        class: Class,
        frame: F,
        offered_at: Instant,
    ) -> Admission<F> {
        self.advance(now);
        let bytes = frame.len() as u64;
        self.counters.offered.add(bytes);
        let sender = &mut self.terminals[terminal];
        if !sender.online || sender.waiting() >= self.config.queue {
            self.counters.overflowed.add(bytes);
            return Admission::Dropped(DropCause::QueueFull, frame);
        }
        self.counters.held.add(bytes);
        let left = self.config.format.slots_for(bytes);
        let queue = match self.config.order {
            Order::Arrival => Class::Data,
            Order::ControlFirst => class,
        };
        sender.push(queue, Waiting { frame, left, begun: false, offered_at });
        Admission::Queued
    }

    /// Returns when to call [`MfTdma::poll_arrival`]; plans are made without end.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let first = self.agenda.keys().next().map(|&(at, _)| at);
        // Unused slots have no visible effect.
        let next = if self.counters.held.packets > 0 { first } else { Some(self.next_plan) };
        [self.arrived.next_at(), next].into_iter().flatten().min()
    }

    /// The next packet that arrived by `now`.
    pub fn poll_arrival(&mut self, now: Instant) -> Option<Arrived<F>> {
        self.advance(now);
        let MfTdmaCounters { held, delivered, .. } = &mut self.counters;
        let arrived = self.arrived.fetch(now, held, delivered)?;
        self.each[arrived.terminal].delivered.add(arrived.frame.len() as u64);
        Some(arrived)
    }

    /// Sets the weight of `terminal`, such as its number of connections.
    pub fn set_weight(&mut self, now: Instant, terminal: usize, weight: u32) {
        self.advance(now);
        self.scheduler.set_weight(terminal, weight);
    }

    /// Announces that `terminal` will soon need `slots`.
    pub fn expect(&mut self, now: Instant, terminal: usize, slots: u32) {
        self.advance(now);
        self.scheduler.expect(terminal, slots);
    }

    /// Logs `terminal` on: it contends for a [log-on slot](MfTdmaConfig::log_on), or is logged on
    /// immediately where there are none. Packets offered meanwhile are queued.
    pub fn log_on(&mut self, now: Instant, terminal: usize) {
        self.advance(now);
        self.terminals[terminal].online = true;
        self.begin_call(self.now, terminal);
    }

    /// Logs `terminal` off; queued packets are dropped.
    pub fn log_off(&mut self, now: Instant, terminal: usize) {
        self.vanish(now, terminal);
        self.say(terminal, Word::LogOff);
    }

    /// `terminal` disappears without logging off; its granted slots stay unused.
    pub fn vanish(&mut self, now: Instant, terminal: usize) {
        self.advance(now);
        let sender = &mut self.terminals[terminal];
        sender.online = false;
        sender.call = None;
        for waiting in sender.clear() {
            let bytes = waiting.frame.len() as u64;
            self.counters.held.remove(bytes);
            self.counters.abandoned.add(bytes);
        }
    }

    /// Whether `terminal` has its carrier on.
    pub fn is_on(&self, terminal: usize) -> bool {
        self.terminals[terminal].online
    }

    /// Sets what `terminal` requests from now on.
    pub fn set_claim(&mut self, now: Instant, terminal: usize, claim: Claim) {
        self.advance(now);
        self.terminals[terminal].claim = claim;
    }

    /// `terminal` sends an unauthorized burst on `carrier` now; the slot that it overlaps is lost.
    pub fn intrude(&mut self, now: Instant, terminal: usize, carrier: u32) {
        self.advance(now);
        let at = self.now + self.terminals[terminal].way;
        if at < Instant::ZERO + self.ahead {
            return;
        }
        let since = at.since(Instant::ZERO + self.ahead).as_nanos();
        let period = self.config.period.as_nanos();
        let position = (since % period) / self.config.slot().as_nanos();
        self.counters.intruders += 1;
        let place = Place { carrier, position: position as u32 };
        self.noise.insert((since / period, place));
    }

    /// Counters.
    pub fn counters(&self) -> &MfTdmaCounters {
        &self.counters
    }

    /// Counters of a terminal.
    pub fn terminal(&self, terminal: usize) -> &TerminalCounters {
        &self.each[terminal]
    }

    /// The scheduler.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Slots needed for the queue of a terminal.
    pub fn backlog(&self, terminal: usize) -> u64 {
        self.terminals[terminal].backlog()
    }

    /// Whether packet conservation holds, with the held packets recounted.
    pub fn audit(&self) -> bool {
        let mut held = Tally::default();
        let waiting = self.terminals.iter().flat_map(|terminal| &terminal.queues).flatten();
        for waiting in waiting {
            held.add(waiting.frame.len() as u64);
        }
        for event in self.agenda.values() {
            if let Event::Burst { sent, .. } = event
                && let Some(waiting) = &sent.cell.last
            {
                held.add(waiting.frame.len() as u64);
            }
        }
        self.arrived.count_into(&mut held);
        held == self.counters.held && self.counters.balances()
    }
}

#[cfg(test)]
mod tests;
