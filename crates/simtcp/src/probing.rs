//! TCP-probing: before the window is reduced for a loss, probes determine whether the path is
//! congested.
//!
//! Tsaoussidis and Badr (ICNP 2000), as Elaasar et al. (2003, section 4.2) describe it:
//!
//! ```text
//!   loss, by duplicates or timeout    no data is sent; a cycle of two exchanges starts
//!   PROBE1 ──▶  ◀── response PROBE2 ──▶  ◀── response
//!   an exchange without response      the cycle is aborted, a new one gets the next number
//!   both responses                    both round trips at most the estimate at the loss: the
//!                                     window is kept [immediate recovery]; otherwise it is
//!                                     halved, or after a timeout reset to slow start
//!
//! Probes and responses are segments without data that carry the cycle's number in an option; the
//! receiver responds to each.

use crate::segment::Probe;
use units::{Instant, Span};

/// Parameters of TCP-probing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// Timeout of an exchange in percent of the estimated round trip. The paper has 100, with which
    /// no cycle would end on a path whose round trip has grown, a weakness that it mentions; the
    /// preset is 200.
    pub patience_percent: u32,
    /// Percentage by which the round trips may exceed the estimate.
    pub tolerance_percent: u32,
    /// Time without a finished cycle after which the connection is aborted.
    pub give_up: Span,
}

impl Default for Probing {
    fn default() -> Self {
        let give_up = Span::from_secs(900);
        Self { patience_percent: 200, tolerance_percent: 0, give_up }
    }
}

/// Why a cycle started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Duplicates,
    Timeout,
}

/// Result of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// A round trip has grown: congestion.
    Congestion,
    /// No congestion: a corruption loss.
    Clear,
}

/// The sender's state.
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
    /// Octets outstanding at the loss.
    flight: u64,
    /// The estimated round trip at the loss.
    estimate: Option<Span>,
    began: Instant,
    /// The first exchange's round trip, once it is measured.
    first: Option<Span>,
    /// When the outstanding probe was sent; `None` while it is to be sent.
    sent: Option<Instant>,
    deadline: Option<Instant>,
}

impl Prober {
    pub(crate) fn new(config: Probing) -> Self {
        Self { config, cycle: 0, running: None, forgave: false }
    }

    /// A cycle is running, and no data is sent.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// The last cycle found no congestion.
    pub(crate) fn forgave(&self) -> bool {
        self.forgave
    }

    /// The timeout of the exchange.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.running.and_then(|running| running.deadline)
    }

    /// Starts a cycle after a loss.
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

    /// The probe to be sent now, if there is one.
    pub(crate) fn take(&mut self, now: Instant, estimate: Option<Span>) -> Option<Probe> {
        let running = self.running.as_mut().filter(|running| running.sent.is_none())?;
        let estimate = running.estimate.or(estimate).unwrap_or(Span::from_secs(1));
        running.sent = Some(now);
        running.deadline = Some(now + estimate * u64::from(self.config.patience_percent) / 100);
        Some(Probe { cycle: self.cycle, second: running.first.is_some(), answer: false })
    }

    /// Handles the timeout of an exchange by a new cycle; false when the connection is to be
    /// aborted.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        let Some(running) = &mut self.running else { return true };
        self.cycle = self.cycle.wrapping_add(1);
        (running.first, running.sent, running.deadline) = (None, None, None);
        now.since(running.began) < self.config.give_up
    }

    /// Handles a response; returns the result when it ends the cycle.
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
