//! Congestion control: the rate at which packets are sent, or the amount of outstanding data.
//!
//! ```text
//!   POLL sent ───────── on_poll ──────────▶ ┌──────────────────────┐ ── pace ────▶ rate, or
//!   first STAT for it ─ on_poll_answered ─▶ │ CongestionController │ ── window ──▶ octets
//!   STAT, USTAT ─────── on_ack ───────────▶ │  Fixed               │
//!   SD sent ─────────── on_data ──────────▶ │  NewReno             │ ── poll_range, may_send
//!   outage, pause ───── on_outage, … ─────▶ │  Steady              │
//!                                           └──────────────────────┘
//! ```
//!
//! A controller has a rate at which all segments are paced, or a window in octets whose packets
//! the session spreads over one RTT. With neither, the number window and the peer's window bound
//! the outstanding data. Every input carries the time; a controller has no clock and no timer, and
//! its outputs are valid until its next input.
//!
//! To add a controller, implement the trait `CongestionController` in a module of its own, add a
//! variant to [`Controller`] and one to the enum `Congestion`, and specify it in section 9 of
//! `docs/spec/session.md`.

mod controller;
mod filters;
mod fixed;
mod newreno;
mod steady;

pub use crate::config::Controller;
pub(crate) use controller::{AckEvent, CongestionController, PollAnswered, PollSent};

use crate::config::SessionConfig;
use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};
use fixed::Fixed;
use newreno::NewReno;
use steady::Steady;

/// The controller of a session.
#[derive(Clone, Debug)]
pub(crate) enum Congestion {
    Fixed(Fixed),
    NewReno(NewReno),
    Steady(Box<Steady>),
}

impl Congestion {
    pub(crate) fn new(config: &SessionConfig) -> Self {
        match config.controller {
            Controller::Fixed => Self::Fixed(Fixed::new(config)),
            Controller::NewReno => Self::NewReno(NewReno::new(config)),
            Controller::Steady => Self::Steady(Box::new(Steady::new(config))),
        }
    }
}

impl Deref for Congestion {
    type Target = dyn CongestionController;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Fixed(fixed) => fixed,
            Self::NewReno(newreno) => newreno,
            Self::Steady(steady) => &**steady,
        }
    }
}

impl DerefMut for Congestion {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Fixed(fixed) => fixed,
            Self::NewReno(newreno) => newreno,
            Self::Steady(steady) => &mut **steady,
        }
    }
}
