//! Configuration of carriers, frames, slots and capacity requests.

use crate::mac::schedule::{Contract, Free, ScheduleConfig, ScheduleError};
use crate::mac::slots::{Placement, SlotFormat};
use alloc::vec::Vec;
use units::{BitRate, Span};

/// Category of a terminal's capacity requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// None.
    None,
    /// Absolute volume (AVBDC): the slots needed beyond those granted; each request replaces the
    /// last one. As in Mhatre and Rosenberg.
    Absolute,
    /// Volume (VBDC): the slots needed beyond those already requested. Every eighth request is
    /// absolute, in case some were lost.
    Volume,
    /// Rate (RBDC), in slots per frame: the arrivals of the last frame plus 1/4 of the queue.
    Rate,
}

/// The slots that carry requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskIn {
    /// The first used slot of a frame.
    First,
    /// Every slot.
    Every,
}

/// Service order in a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First in, first out.
    Arrival,
    /// [Control packets](super::Class::Control), such as acknowledgements, have priority over data.
    ControlFirst,
}

/// Location of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// At the hub: a request and its plan take two satellite hops each way.
    Hub,
    /// On board: one hop.
    OnBoard,
}

/// A terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalConfig {
    /// Its contract.
    pub contract: Contract,
    /// Propagation delay to the satellite.
    pub up: Span,
    /// Timing error: how late it sends. Beyond the guard time its burst is lost, and the following
    /// one.
    pub late: Span,
    /// Whether it is logged on initially.
    pub logged_on: bool,
}

impl TerminalConfig {
    /// A terminal with the delay `up` to the satellite, logged on, without timing error, with the
    /// default contract.
    pub fn new(up: Span) -> Self {
        Self { contract: Contract::default(), up, late: Span::ZERO, logged_on: true }
    }
}

/// An MF-TDMA return link.
#[derive(Clone, Debug, PartialEq)]
pub struct MfTdmaConfig {
    /// Rate of one carrier in bit/s.
    pub rate: BitRate,
    /// Number of carriers.
    pub carriers: u32,
    /// The capacity of a slot.
    pub format: SlotFormat,
    /// Guard time between two bursts.
    pub guard: Span,
    /// Duration of a frame, and interval between two burst time plans.
    pub period: Span,
    /// Position of a terminal's slots in a frame.
    pub placement: Placement,
    /// Category of capacity requests.
    pub demand: Demand,
    /// Slots that carry requests.
    pub ask_in: AskIn,
    /// Service order in a terminal.
    pub order: Order,
    /// Location of the scheduler.
    pub site: Site,
    /// Propagation delay from the satellite to the hub.
    pub hub_leg: Span,
    /// Time that terminals need to process a plan.
    pub lead: Span,
    /// Interval in frames of a terminal's sync burst, a burst of its own outside of the traffic
    /// slots; it carries a request and shows that the terminal is present. `None`: requests are
    /// sent in traffic slots only.
    pub sync: Option<u32>,
    /// Log-on slots per frame, outside of the traffic slots, for which terminals contend. `None`:
    /// log-on is immediate.
    pub log_on: Option<u32>,
    /// Assignment of unrequested slots.
    pub free: Free,
    /// As [`ScheduleConfig::rate_frames`].
    pub rate_frames: u32,
    /// As [`ScheduleConfig::volume_frames`].
    pub volume_frames: u32,
    /// As [`ScheduleConfig::expected_frames`].
    pub expected_frames: u32,
    /// As [`ScheduleConfig::most_request`].
    pub most_request: u32,
    /// As [`ScheduleConfig::silence`]; requires [`MfTdmaConfig::sync`], because idle terminals send
    /// nothing otherwise.
    pub silence: Option<u32>,
    /// Probability that a burst is lost.
    pub burst_loss: f64,
    /// Probability that a request is lost although its burst is received.
    pub request_loss: f64,
    /// Probability that a terminal misses a plan.
    pub plan_loss: f64,
    /// Maximum packets queued in a terminal.
    pub queue: usize,
    /// The terminals.
    pub terminals: Vec<TerminalConfig>,
}

impl MfTdmaConfig {
    /// The link of Mhatre and Rosenberg 2002, section VII: one carrier of 100 kbit/s, ATM cells, a
    /// plan every 250 ms, requests in data slots, free slots divided equally, a round trip of 540
    /// ms; 10 ms to process a plan.
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

    /// Duration of one slot, guard time included.
    pub fn slot(&self) -> Span {
        self.rate.time_for(self.format.on_air()) + self.guard
    }

    /// Slots of one carrier in a frame.
    pub fn positions(&self) -> u32 {
        let slots = self.period.as_nanos() / self.slot().as_nanos().max(1);
        u32::try_from(slots).unwrap_or(u32::MAX)
    }

    /// One-way delay from a terminal to the scheduler.
    pub fn way(&self, terminal: usize) -> Span {
        let up = self.terminals[terminal].up;
        match self.site {
            Site::Hub => up + self.hub_leg,
            Site::OnBoard => up,
        }
    }

    /// Time from making a plan to the start of its frame at the scheduler: the delay to the
    /// farthest terminal and back.
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

    /// Checks all values.
    ///
    /// # Errors
    /// The first invalid setting.
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
