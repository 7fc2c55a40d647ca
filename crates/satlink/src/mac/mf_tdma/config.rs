//! Carriers, frames and slots; how terminals ask; what can go wrong.

use crate::mac::schedule::{Contract, Free, ScheduleConfig, ScheduleError};
use crate::mac::slots::{Placement, SlotFormat};
use alloc::vec::Vec;
use units::{BitRate, Span};

/// How a terminal asks for slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Not at all.
    None,
    /// The slots that it needs beyond those that it knows it has; each request overrides the
    /// last. As Mhatre and Rosenberg have it: AVBDC.
    Absolute,
    /// The slots that it needs beyond what it asked for before: VBDC. Every eighth request
    /// starts anew with an absolute one, in case some were lost.
    Volume,
    /// As many a frame as came in a frame, and a quarter of what waits: RBDC.
    Rate,
}

/// In which of its slots a terminal asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskIn {
    /// In the first of a frame that it uses.
    First,
    /// In every one.
    Every,
}

/// What goes first in a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// What came first.
    Arrival,
    /// Acknowledgements and what else is [control](super::Class::Control), as far as any
    /// waits; a slot that it is granted carries that before it carries data.
    ControlFirst,
}

/// Where the scheduler stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// At the hub: a request and its answer cross the satellite twice.
    Hub,
    /// On board: once.
    OnBoard,
}

/// A terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalConfig {
    /// What it may have.
    pub contract: Contract,
    /// From its antenna to the satellite.
    pub up: Span,
    /// How much later than it should it sends. What is above the guard time costs the burst,
    /// and the one behind it.
    pub late: Span,
    /// Whether it is logged on from the start.
    pub logged_on: bool,
}

impl TerminalConfig {
    /// One that is logged on, `up` from the satellite, in time, with the default contract.
    pub fn new(up: Span) -> Self {
        Self { contract: Contract::default(), up, late: Span::ZERO, logged_on: true }
    }
}

/// An MF-TDMA return link.
#[derive(Clone, Debug, PartialEq)]
pub struct MfTdmaConfig {
    /// Bits per second of one carrier.
    pub rate: BitRate,
    /// How many there are, all alike.
    pub carriers: u32,
    /// What a slot carries.
    pub format: SlotFormat,
    /// Time between two bursts.
    pub guard: Span,
    /// A frame, and the time between two burst time plans.
    pub period: Span,
    /// Where the slots of one terminal lie in a frame.
    pub placement: Placement,
    /// How terminals ask.
    pub demand: Demand,
    /// In which slots.
    pub ask_in: AskIn,
    /// What goes first in a terminal.
    pub order: Order,
    /// Where the scheduler stands.
    pub site: Site,
    /// From the satellite to the hub.
    pub hub_leg: Span,
    /// Time that the terminals have to take a plan in.
    pub lead: Span,
    /// Each terminal has a burst of its own, outside of the traffic slots, in every so manieth
    /// frame; it carries a request, and says that the terminal is there. `None`:
    /// requests travel in traffic slots alone.
    pub sync: Option<u32>,
    /// Slots of a frame, outside of the traffic slots, in which terminals log on, and for which
    /// they contend. `None`: who logs on is heard.
    pub log_on: Option<u32>,
    /// What is done with slots that nobody asked for.
    pub free: Free,
    /// As [`ScheduleConfig::rate_frames`].
    pub rate_frames: u32,
    /// As [`ScheduleConfig::volume_frames`].
    pub volume_frames: u32,
    /// As [`ScheduleConfig::expected_frames`].
    pub expected_frames: u32,
    /// As [`ScheduleConfig::most_request`].
    pub most_request: u32,
    /// As [`ScheduleConfig::silence`]; needs [`MfTdmaConfig::sync`], for idle terminals are
    /// silent otherwise.
    pub silence: Option<u32>,
    /// Share of the bursts that are lost.
    pub burst_loss: f64,
    /// Share of the requests that are lost though their burst is not.
    pub request_loss: f64,
    /// Share of the plans that a terminal misses.
    pub plan_loss: f64,
    /// Packets that wait in a terminal, at most.
    pub queue: usize,
    /// The terminals.
    pub terminals: Vec<TerminalConfig>,
}

impl MfTdmaConfig {
    /// The link of Mhatre and Rosenberg 2002, section VII: one carrier of 100 kbit/s, cells of
    /// ATM, a plan every 250 ms, requests in data slots, free slots shared equally; 540 ms there
    /// and back. 10 ms to take a plan in.
    pub fn mhatre_rosenberg(terminals: usize) -> Self {
        let leg = Span::from_millis(135);
        Self {
            rate: BitRate::from_kbps(100),
            carriers: 1,
            format: SlotFormat::Atm,
            guard: Span::ZERO,
            period: Span::from_millis(250),
            placement: Placement::Spread,
            demand: Demand::Absolute,
            ask_in: AskIn::First,
            order: Order::Arrival,
            site: Site::Hub,
            hub_leg: leg,
            lead: Span::from_millis(10),
            sync: None,
            log_on: None,
            free: Free::Equal,
            rate_frames: 2,
            volume_frames: 16,
            expected_frames: 4,
            most_request: 4_080,
            silence: None,
            burst_loss: 0.0,
            request_loss: 0.0,
            plan_loss: 0.0,
            queue: 256,
            terminals: alloc::vec![TerminalConfig::new(leg); terminals],
        }
    }

    /// The time of one slot, with its guard.
    pub fn slot(&self) -> Span {
        self.rate.time_for(self.format.on_air()) + self.guard
    }

    /// Slots of one carrier in a frame.
    pub fn positions(&self) -> u32 {
        let slots = self.period.as_nanos() / self.slot().as_nanos().max(1);
        u32::try_from(slots).unwrap_or(u32::MAX)
    }

    /// From a terminal to the scheduler.
    pub fn way(&self, terminal: usize) -> Span {
        let up = self.terminals[terminal].up;
        match self.site {
            Site::Hub => up + self.hub_leg,
            Site::OnBoard => up,
        }
    }

    /// From a plan's being made to the start of its frame, as the scheduler hears it: time for
    /// the farthest terminal to hear of it and be heard.
    pub fn ahead(&self) -> Span {
        let ways = (0..self.terminals.len()).map(|terminal| self.way(terminal));
        let longest = ways.max().unwrap_or(Span::ZERO);
        longest + longest + self.lead
    }

    pub(super) fn schedule(&self) -> ScheduleConfig {
        let each = self.positions();
        ScheduleConfig {
            slots: each.saturating_mul(self.carriers),
            most_each: each,
            free: self.free,
            rate_frames: self.rate_frames,
            volume_frames: self.volume_frames,
            expected_frames: self.expected_frames,
            most_request: self.most_request,
            silence: self.silence,
        }
    }

    /// Checks every number.
    ///
    /// # Errors
    /// The first setting that makes no sense.
    pub fn validate(&self) -> Result<(), ScheduleError> {
        let error = |setting, expected| Err(ScheduleError { setting, expected });
        if self.carriers == 0 || self.carriers > 10_000 {
            return error("carriers", "1 to 10,000");
        }
        if self.period > Span::from_secs(60) || self.positions() == 0 {
            return error("period", "at least one slot and at most 60 s");
        }
        if self.terminals.is_empty() || self.terminals.len() > 100_000 {
            return error("terminals", "1 to 100,000");
        }
        if self.queue == 0 {
            return error("queue", "at least 1");
        }
        if self.sync == Some(0) {
            return error("sync", "at least 1 frame, or none");
        }
        if self.log_on.is_some_and(|slots| slots == 0 || slots > self.positions()) {
            return error("log_on", "1 to a carrier's slots of a frame, or none");
        }
        let shares = [
            ("burst_loss", self.burst_loss),
            ("request_loss", self.request_loss),
            ("plan_loss", self.plan_loss),
        ];
        for (setting, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return error(setting, "a share from 0 to 1");
            }
        }
        match (self.silence, self.sync) {
            (Some(silence), sync) if sync.is_none_or(|every| every >= silence) => {
                error("silence", "more frames than between two sync bursts, which it needs")
            }
            (Some(_) | None, _) => self.schedule().validate(),
        }
    }
}
