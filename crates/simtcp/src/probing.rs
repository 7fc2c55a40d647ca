//! TCP-probing: before the window is reduced for a loss, the path is asked whether it is
//! congested.
//!
//! Tsaoussidis and Badr (ICNP 2000), as Elaasar et al. (2003, section 4.2) describe it:
//!
//! ```text
//!   loss, by duplicates or timeout    no data goes; a cycle of two exchanges begins
//!   PROBE1 ──▶  ◀── answer   PROBE2 ──▶  ◀── answer
//!   an exchange without answer        the cycle is given up, a new one gets the next number
//!   both answers                      both round trips at or below the estimate at the loss: the
//!                                     window stays [immediate recovery]; otherwise it is halved,
//!                                     or after a timeout goes back to slow start
//! ```
//!
//! Probes and answers are segments without data that carry the cycle's number in an option; the
//! receiver answers each.

use crate::segment::Probe;
use units::{Instant, Span};

/// The settings of TCP-probing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// An exchange is given up after so many hundredths of the estimated round trip. The paper
    /// says 100; with that no cycle would end on a path whose round trip has grown, which it
    /// names as a weakness, so that the preset says 200.
    pub patience_percent: u32,
    /// The round trips may be larger than the estimate by so many hundredths.
    pub tolerance_percent: u32,
    /// After so long without an end to a cycle the connection is given up.
    pub give_up: Span,
}

impl Default for Probing {
    fn default() -> Self {
        let give_up = Span::from_secs(900);
        Self { patience_percent: 200, tolerance_percent: 0, give_up }
    }
}

/// Why a cycle began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Duplicates,
    Timeout,
}

/// What a cycle found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// A round trip had grown.
    Congestion,
    /// It was the link.
    Clear,
}

/// The sender's part.
#[derive(Clone, Debug)]
pub(crate) struct Prober {
    config: Probing,
    cycle: u32,
    running: Option<Running>,
    forgave: bool,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    cause: Cause,
    /// What was outstanding at the loss.
    flight: u64,
    /// The estimate at the loss.
    estimate: Option<Span>,
    began: Instant,
    /// The first exchange's round trip, once it is there.
    first: Option<Span>,
    /// When the probe that waits for its answer went; None while it is to go.
    sent: Option<Instant>,
    deadline: Option<Instant>,
}

impl Prober {
    pub(crate) fn new(config: Probing) -> Self {
        Self { config, cycle: 0, running: None, forgave: false }
    }

    /// Data waits for a cycle's end.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// The last cycle found no congestion.
    pub(crate) fn forgave(&self) -> bool {
        self.forgave
    }

    /// When the exchange is given up.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.running.and_then(|running| running.deadline)
    }

    /// A loss was found.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        cause: Cause,
        flight: u64,
        estimate: Option<Span>,
    ) {
        if self.running.is_some() {
            return;
        }
        self.cycle = self.cycle.wrapping_add(1);
        self.forgave = false;
        let (first, sent, deadline) = (None, None, None);
        self.running = Some(Running { cause, flight, estimate, began: now, first, sent, deadline });
    }

    /// The probe that is to go now, if one is.
    pub(crate) fn take(&mut self, now: Instant, estimate: Option<Span>) -> Option<Probe> {
        let running = self.running.as_mut().filter(|running| running.sent.is_none())?;
        let estimate = running.estimate.or(estimate).unwrap_or(Span::from_secs(1));
        running.sent = Some(now);
        running.deadline = Some(now + estimate * u64::from(self.config.patience_percent) / 100);
        Some(Probe { cycle: self.cycle, second: running.first.is_some(), answer: false })
    }

    /// The exchange had no answer in time: a new cycle; false when it is time to give up.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        let Some(running) = &mut self.running else { return true };
        self.cycle = self.cycle.wrapping_add(1);
        (running.first, running.sent, running.deadline) = (None, None, None);
        now.since(running.began) < self.config.give_up
    }

    /// An answer came; says what the cycle found when that ends it.
    pub(crate) fn answer(&mut self, now: Instant, probe: Probe) -> Option<(Cause, u64, Finding)> {
        let running = self.running.as_mut()?;
        let expected = probe.cycle == self.cycle && probe.second == running.first.is_some();
        let round_trip = now.since(running.sent.filter(|_| expected)?);
        let Some(first) = running.first else {
            running.first = Some(round_trip);
            (running.sent, running.deadline) = (None, None);
            return None;
        };
        let percent = u64::from(self.config.tolerance_percent) + 100;
        let bound = running.estimate.map_or(Span::MAX, |estimate| estimate * percent / 100);
        let finding =
            if first.max(round_trip) > bound { Finding::Congestion } else { Finding::Clear };
        self.forgave = finding == Finding::Clear;
        let (cause, flight) = (running.cause, running.flight);
        self.running = None;
        Some((cause, flight, finding))
    }
}
