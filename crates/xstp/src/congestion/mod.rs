//! Congestion control: how much may be outstanding, decided by one file for each controller.
//!
//! A controller sees what STATs and USTATs released and whether they reported a loss, and
//! answers with a window in bytes, or with none: then only the configured rate, the number
//! window and the peer's window bound what is outstanding.

mod ceiling;
mod fixed;
mod newreno;

pub(crate) use ceiling::{Answered, Ceiling};
pub use fixed::Fixed;
pub use newreno::NewReno;

use crate::session::SessionConfig;
use units::{Instant, Span};

/// Which controller a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// The configured rate and no congestion window.
    Fixed,
    /// Slow start, congestion avoidance by byte counting, and halving once for each window:
    /// STP as published.
    NewReno,
}

/// What one STAT or USTAT told about the data in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// When it arrived.
    pub now: Instant,
    /// Payload bytes that it released.
    pub released: u64,
    /// Segments that it newly reported missing.
    pub lost: u64,
    /// The oldest number without acknowledgement after it, counted without wrap: "VT(A)".
    pub oldest: u64,
    /// The next new number, counted without wrap: "VT(S)".
    pub next: u64,
    /// The smoothed round trip, once there is one.
    pub round_trip: Option<Span>,
}

/// A running controller.
#[derive(Clone, Debug)]
pub(crate) enum Congestion {
    Fixed(Fixed),
    NewReno(NewReno),
}

impl Congestion {
    pub(crate) fn new(config: &SessionConfig) -> Self {
        match config.controller {
            Controller::Fixed => Self::Fixed(Fixed),
            Controller::NewReno => Self::NewReno(NewReno::new(config)),
        }
    }

    /// Bytes that may be outstanding; `None` when the controller keeps no window.
    pub(crate) fn window(&self) -> Option<u64> {
        match self {
            Self::Fixed(fixed) => fixed.window(),
            Self::NewReno(newreno) => Some(newreno.window()),
        }
    }

    /// Takes in one STAT or USTAT. True when it made the window smaller.
    pub(crate) fn on_feedback(&mut self, feedback: &Feedback) -> bool {
        match self {
            Self::Fixed(fixed) => fixed.on_feedback(feedback),
            Self::NewReno(newreno) => newreno.on_feedback(feedback),
        }
    }

    /// Data is about to be sent after `idle` without anything outstanding.
    pub(crate) fn on_restart(&mut self, idle: Span) {
        match self {
            Self::Fixed(fixed) => fixed.on_restart(idle),
            Self::NewReno(newreno) => newreno.on_restart(idle),
        }
    }
}
