//! Pacer of the shared link.

use units::{BitRate, Instant, Span};

/// Maximum burst after a late call, as time at the rate, as in sessions (XSTP-8.1.2).
const CATCH_UP: Span = Span::from_millis(20);
/// Maximum delay that packets out of turn may cause to others.
const AHEAD: Span = Span::from_millis(250);
/// Duration of one terminal's turn, unless a packet takes longer.
const TURN: Span = Span::from_millis(1);

/// Pacer of all packets on one link.
#[derive(Clone, Debug)]
pub(super) struct Line {
    rate: BitRate,
    next: Instant,
    /// Remainder of `next`, in units of 1/rate nanoseconds.
    rest: u64,
    /// No member has queued data, so the burst allowance does not grow.
    idle: bool,
}

impl Line {
    pub(super) fn new(rate: BitRate) -> Self {
        Self { rate, next: Instant::ZERO, rest: 0, idle: true }
    }

    pub(super) fn rate(&self) -> BitRate {
        self.rate
    }

    pub(super) fn set_rate(&mut self, rate: BitRate) {
        (self.rate, self.rest) = (rate, 0);
    }

    /// Returns when there is room again.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn has_room(&self, now: Instant) -> bool {
        self.next <= now
    }

    pub(super) fn idle(&mut self) {
        self.idle = true;
    }

    /// Returns the bytes of one turn.
    pub(super) fn turn(&self) -> usize {
        usize::try_from(self.rate.bytes_in(TURN)).unwrap_or(usize::MAX).max(1)
    }

    pub(super) fn charge(&mut self, now: Instant, octets: u64) {
        let earliest = if self.idle { now } else { now - CATCH_UP };
        if self.next < earliest {
            (self.next, self.rest) = (earliest, 0);
        }
        self.idle = false;
        let (span, rest) = self.rate.time_and_rest(octets, self.rest);
        (self.next, self.rest) = ((self.next + span).min(now + AHEAD.max(span)), rest);
    }
}
