//! The third axis: how much may be on the way.

mod cubic;
mod hystart;
mod levels;
mod reno;

pub(crate) use cubic::Cubic;
pub(crate) use levels::Levels;
pub(crate) use reno::Reno;

use crate::config::AfterIdle;
use units::{Instant, Span};

/// Which law the congestion window follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowKind {
    /// Slow start, congestion avoidance, half at a loss (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic {
        /// Slow start ends when the round trip grows (HyStart++, RFC 9406).
        hystart: bool,
    },
}

/// An acknowledgement of something new, as the window sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Instant,
    /// Bytes that it acknowledges.
    pub(crate) bytes: u64,
    /// The number up to which it does.
    pub(crate) up_to: u64,
    /// The next number to be sent.
    pub(crate) next: u64,
    /// The window was what held the sender back (RFC 9438, section 4.2; RFC 7661).
    pub(crate) limited: bool,
    /// The round trip that it measured.
    pub(crate) sample: Option<Span>,
    /// The smoothed round trip.
    pub(crate) round_trip: Option<Span>,
}

/// A congestion window: one of the laws.
#[derive(Clone, Debug)]
pub(crate) enum Window {
    Reno(Reno),
    Cubic(Cubic),
}

impl Window {
    pub(crate) fn new(kind: WindowKind, levels: Levels) -> Self {
        match kind {
            WindowKind::Reno => Self::Reno(Reno::new(levels)),
            WindowKind::Cubic { hystart } => Self::Cubic(Cubic::new(levels, hystart)),
        }
    }

    /// The two levels that all laws have.
    pub(crate) fn levels(&self) -> &Levels {
        match self {
            Self::Reno(reno) => reno.levels(),
            Self::Cubic(cubic) => cubic.levels(),
        }
    }

    fn levels_mut(&mut self) -> &mut Levels {
        match self {
            Self::Reno(reno) => reno.levels_mut(),
            Self::Cubic(cubic) => cubic.levels_mut(),
        }
    }

    /// Something new was acknowledged, and no loss is being repaired.
    pub(crate) fn on_ack(&mut self, acked: &Acked) {
        match self {
            Self::Reno(reno) => reno.on_ack(acked),
            Self::Cubic(cubic) => cubic.on_ack(acked),
        }
    }

    /// A loss was found by duplicates, with `flight` bytes outstanding.
    pub(crate) fn on_loss(&mut self, flight: u64) {
        match self {
            Self::Reno(reno) => reno.on_loss(flight),
            Self::Cubic(cubic) => cubic.on_loss(flight),
        }
    }

    /// The retransmission timer ran out; `first`: not already for the same data.
    pub(crate) fn on_timeout(&mut self, flight: u64, first: bool) {
        match self {
            Self::Reno(reno) => reno.on_timeout(flight, first),
            Self::Cubic(cubic) => cubic.on_timeout(flight, first),
        }
    }

    /// Repair is over with `flight` bytes outstanding: the window comes down to what keeps a
    /// burst away (RFC 6582, section 3.2, step 3, option 1).
    pub(crate) fn deflate(&mut self, flight: u64) {
        let levels = self.levels_mut();
        let segment = levels.segment();
        levels.set_window(levels.threshold().min(flight.max(segment) + segment));
    }

    /// Nothing was sent for `idle`, which was so many retransmission timers.
    pub(crate) fn on_idle(&mut self, idle: Span, timeouts: u64, after: AfterIdle) {
        match after {
            AfterIdle::SlowStart if timeouts > 0 => {
                self.levels_mut().restart();
                self.forget_epoch();
            }
            AfterIdle::Decay if timeouts > 0 => {
                self.levels_mut().decay(timeouts);
                self.forget_epoch();
            }
            AfterIdle::Keep | AfterIdle::SlowStart | AfterIdle::Decay => match self {
                Self::Reno(_) => {}
                Self::Cubic(cubic) => cubic.on_idle(idle),
            },
        }
    }

    fn forget_epoch(&mut self) {
        match self {
            Self::Reno(_) => {}
            Self::Cubic(cubic) => cubic.restart(),
        }
    }

    /// SYN was sent again: one segment at first (RFC 5681, section 3.1).
    pub(crate) fn syn_was_lost(&mut self) {
        let levels = self.levels_mut();
        levels.set_window(levels.segment());
    }
}
