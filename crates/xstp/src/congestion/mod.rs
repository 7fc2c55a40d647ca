//! Congestion control: at which rate packets leave and how much may be outstanding, decided by
//! one file for each controller.
//!
//! A controller sees what POLLs went out (`PollSent`), what the first STAT for each of them
//! measured (`Answered`), and what STATs and USTATs released and reported lost ([`Feedback`]).
//! It answers with a rate at which everything is paced, or with a window in bytes whose packets
//! the session spreads over a round trip. Where it answers with neither, only the number window
//! and the peer's bound what is outstanding.

mod fixed;
mod newreno;
mod steady;

use fixed::Fixed;
pub use newreno::NewReno;
use steady::Steady;

pub use crate::config::Controller;
use crate::config::SessionConfig;
use alloc::boxed::Box;
use core::ops::Range;
use units::{BitRate, Instant, Span};

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

/// A POLL goes out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollSent {
    /// When.
    pub(crate) now: Instant,
    /// Its count.
    pub(crate) count: u32,
    /// Octets sent before it in this session, headers below XSTP included.
    pub(crate) octets: u64,
}

/// What the first STAT for a POLL tells besides the list, where the profile tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    /// When the STAT came.
    pub(crate) now: Instant,
    /// The POLL's count.
    pub(crate) count: u32,
    /// Its stamp, microseconds of our clock, modulo 2³².
    pub(crate) stamp: u32,
    /// When it arrived, on the receiver's clock, microseconds, modulo 2³².
    pub(crate) arrived_at: u32,
    /// Octets that had arrived by then, modulo 2³².
    pub(crate) arrived: u32,
    /// The least round trip so far.
    pub(crate) least_round_trip: Span,
}

/// A running controller.
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

    /// Bytes that may be outstanding; `None` when the controller keeps no window.
    pub(crate) fn window(&self) -> Option<u64> {
        match self {
            Self::Fixed(_) | Self::Steady(_) => None,
            Self::NewReno(newreno) => Some(newreno.window()),
        }
    }

    /// Where a window stops to grow exponentially, in bytes; `None` while it has not been set,
    /// or without a window.
    pub(crate) fn threshold(&self) -> Option<u64> {
        match self {
            Self::Fixed(_) | Self::Steady(_) => None,
            Self::NewReno(newreno) => newreno.threshold(),
        }
    }

    /// The rate at which everything is paced from `now` on; `None` when the session's schedule
    /// for windows does that.
    pub(crate) fn pace(&self, now: Instant) -> Option<BitRate> {
        match self {
            Self::Fixed(fixed) => fixed.pace(now),
            Self::NewReno(_) => None,
            Self::Steady(steady) => Some(steady.pace(now)),
        }
    }

    /// The configured rate, less the headroom, is `most` from here on.
    pub(crate) fn set_most(&mut self, most: Option<BitRate>) {
        match self {
            Self::Fixed(fixed) => fixed.set_rate(most),
            // The session's pacing knows the rate.
            Self::NewReno(_) => {}
            Self::Steady(steady) => steady.set_most(most),
        }
    }

    /// This side may send at `most` by now, as somebody says who knows.
    pub(crate) fn grant(&mut self, most: Option<BitRate>) {
        match self {
            Self::Fixed(fixed) => fixed.grant(most),
            // The session's pacing knows the rate that is configured, and a window no other.
            Self::NewReno(_) => {}
            Self::Steady(steady) => steady.grant(most),
        }
    }

    /// The pace, where it is more than a guess.
    pub(crate) fn known(&self, now: Instant) -> Option<BitRate> {
        match self {
            Self::Steady(steady) => steady.known(now),
            Self::Fixed(_) | Self::NewReno(_) => self.pace(now),
        }
    }

    /// What it does, in a word.
    pub(crate) fn mode(&self, now: Instant) -> &'static str {
        match self {
            Self::Fixed(fixed) => fixed.mode(now),
            Self::NewReno(newreno) if newreno.in_slow_start() => "slow start",
            Self::NewReno(_) => "avoidance",
            Self::Steady(steady) => steady.mode(),
        }
    }

    /// What waits on the way, as far as the controller measures it.
    pub(crate) fn queue(&self) -> Option<Span> {
        match self {
            Self::Fixed(fixed) => fixed.queue(),
            Self::NewReno(_) => None,
            Self::Steady(steady) => steady.queue(),
        }
    }

    /// A POLL goes out.
    pub(crate) fn on_poll(&mut self, poll: &PollSent) {
        match self {
            Self::Fixed(fixed) => fixed.on_poll(poll),
            Self::NewReno(_) => {}
            Self::Steady(steady) => steady.on_poll(poll),
        }
    }

    /// Takes in the first STAT for a POLL.
    pub(crate) fn on_answer(&mut self, answered: &Answered) {
        match self {
            Self::Fixed(fixed) => fixed.on_answer(answered),
            Self::NewReno(_) => {}
            Self::Steady(steady) => steady.on_answer(answered),
        }
    }

    /// Takes in one STAT or USTAT. True when it made the window smaller.
    pub(crate) fn on_feedback(&mut self, feedback: &Feedback) -> bool {
        match self {
            Self::Fixed(_) | Self::Steady(_) => false,
            Self::NewReno(newreno) => newreno.on_feedback(feedback),
        }
    }

    /// Data is about to be sent after `idle` without. True when a window starts anew.
    pub(crate) fn on_restart(&mut self, idle: Span) -> bool {
        match self {
            // A known rate is as good after a pause as before.
            Self::Fixed(_) | Self::Steady(_) => false,
            Self::NewReno(newreno) => newreno.on_restart(idle),
        }
    }

    /// Whether new data may leave, as far as the controller bounds its amount.
    pub(crate) fn may_send(&self) -> bool {
        match self {
            Self::Fixed(_) | Self::NewReno(_) => true,
            Self::Steady(steady) => steady.may_send(),
        }
    }

    /// Whether new data must leave room for a POLL: it will ask for one that cannot wait for a
    /// segment of its own.
    pub(crate) fn keeps_room(&self) -> bool {
        match self {
            Self::Fixed(_) | Self::NewReno(_) => false,
            Self::Steady(steady) => steady.keeps_room(),
        }
    }

    /// A probe has found room, and a train is to show how much.
    #[cfg(test)]
    pub(crate) fn begin_regaining(&mut self) {
        if let Self::Steady(steady) = self {
            steady.begin_regaining();
        }
    }

    /// A packet with data leaves after `octets` in all. Whether a POLL is to go with it.
    pub(crate) fn on_data(&mut self, now: Instant, octets: u64) -> bool {
        match self {
            Self::Fixed(_) | Self::NewReno(_) => false,
            Self::Steady(steady) => {
                steady.on_data(now, octets);
                steady.take_ask()
            }
        }
    }

    /// The least and the largest distance of POLLs.
    pub(crate) fn poll_range(&self) -> Range<Span> {
        match self {
            Self::Fixed(_) | Self::NewReno(_) => Span::ZERO..Span::MAX,
            Self::Steady(steady) => steady.poll_range(),
        }
    }

    /// POLLs have gone unanswered for too long.
    pub(crate) fn on_outage(&mut self, now: Instant) {
        match self {
            Self::Fixed(_) | Self::NewReno(_) => {}
            Self::Steady(steady) => steady.on_outage(now),
        }
    }

    /// The peer was heard.
    pub(crate) fn on_heard(&mut self, now: Instant) {
        match self {
            Self::Fixed(_) | Self::NewReno(_) => {}
            Self::Steady(steady) => steady.on_heard(now),
        }
    }

    /// What was lost of late was too large for the way.
    pub(crate) fn on_resized(&mut self, now: Instant) {
        match self {
            Self::Fixed(_) | Self::NewReno(_) => {}
            Self::Steady(steady) => steady.on_resized(now),
        }
    }

    /// Whether no data leaves at all, not even again: only POLLs.
    pub(crate) fn is_quiet(&self) -> bool {
        match self {
            Self::Fixed(_) | Self::NewReno(_) => false,
            Self::Steady(steady) => steady.is_quiet(),
        }
    }

    /// The rate that is worth remembering.
    pub(crate) fn learnt(&self) -> Option<BitRate> {
        match self {
            Self::Fixed(_) | Self::NewReno(_) => None,
            Self::Steady(steady) => steady.learnt(),
        }
    }

    /// Probing found congestion: halves the window, or takes half of `flight`, once for each
    /// window; VT(S) is `next`.
    pub(crate) fn halve(&mut self, next: u64, flight: Option<u64>) {
        match self {
            Self::Fixed(_) | Self::Steady(_) => {}
            Self::NewReno(newreno) => {
                newreno.halve(next, flight);
            }
        }
    }

    /// Probing found congestion after a long time: slow start.
    pub(crate) fn slow_start(&mut self) {
        match self {
            Self::Fixed(_) | Self::Steady(_) => {}
            Self::NewReno(newreno) => newreno.slow_start(),
        }
    }

    /// Probing found no congestion: the window is again what it was before.
    pub(crate) fn restore(&mut self, window: u64, threshold: Option<u64>) {
        match self {
            Self::Fixed(_) | Self::Steady(_) => {}
            Self::NewReno(newreno) => newreno.restore(window, threshold),
        }
    }
}
