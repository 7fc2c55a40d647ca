//! The ends' own clocks.

use units::{Instant, Span};

/// Parts in which a clock's rate is told.
const PARTS: u64 = 1_000_000;

/// A clock that starts where it likes, runs at a rate of its own, and can leap.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// What it showed when time was `since`.
    shown: Instant,
    since: Instant,
    /// Its seconds in a million seconds, divided by a million.
    rate: u64,
    /// The latest that it ever showed.
    latest: Instant,
    /// How far it leapt back in all.
    back: Span,
}

impl Clock {
    /// A clock that shows `start` at time zero and runs `drift` parts in a million too fast.
    pub(crate) fn new(start: Instant, drift: i64) -> Self {
        let rate = PARTS.saturating_add_signed(drift).max(1);
        Self { shown: start, since: Instant::ZERO, rate, latest: start, back: Span::ZERO }
    }

    /// What it shows at `time`.
    pub(crate) fn at(&self, time: Instant) -> Instant {
        self.shown + time.since(self.since).mul_ratio(self.rate, PARTS)
    }

    /// What it shows at `time`, remembered as shown.
    pub(crate) fn read(&mut self, time: Instant) -> Instant {
        let shown = self.at(time);
        self.latest = self.latest.max(shown);
        shown
    }

    /// The first time at which it shows `shown` or later.
    pub(crate) fn time_of(&self, shown: Instant) -> Instant {
        let ahead = shown.since(self.shown).as_nanos();
        let time = (u128::from(ahead) * u128::from(PARTS)).div_ceil(u128::from(self.rate));
        self.since + Span::from_nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// Leaps at `time`.
    pub(crate) fn leap(&mut self, time: Instant, by: Leap) {
        let shown = self.read(time);
        self.shown = match by {
            Leap::Forward(span) => shown + span,
            Leap::Back(span) => {
                self.back += span;
                shown - span
            }
        };
        self.since = time;
    }

    /// Is set right at `time`: it shows more than it ever did, starting takes a second, and it is
    /// `fresh_from` at least: it has passed the stamps of POLLs, which may run ahead of it by more.
    pub(crate) fn set_right(&mut self, time: Instant, fresh_from: Instant) {
        let least = self.latest + self.back + Span::from_secs(1);
        let shown = self.at(time).max(least).max(fresh_from);
        self.shown = shown;
        self.since = time;
    }
}

/// A clock's leap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leap {
    Forward(Span),
    Back(Span),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_called_when_it_shows_what_was_asked_for() {
        let at = |nanos| Instant::from_nanos(nanos);
        for drift in [-50_000, 0, 7, 30_000] {
            let mut clock = Clock::new(at(1_234_567), drift);
            clock.leap(at(1_000_003), Leap::Forward(Span::from_millis(3)));
            for ahead in [0, 1, 999, 123_456_789] {
                let wanted = clock.at(at(1_000_003)) + Span::from_nanos(ahead);
                let time = clock.time_of(wanted);
                assert!(clock.at(time) >= wanted, "{drift} {ahead}");
                assert!(ahead == 0 || clock.at(time - Span::from_nanos(1)) < wanted);
            }
        }
    }

    #[test]
    fn a_clock_that_leapt_back_is_set_right() {
        let mut clock = Clock::new(Instant::from_nanos(5_000_000_000), 0);
        let second = Instant::ZERO + Span::from_secs(1);
        clock.leap(second, Leap::Back(Span::from_secs(2)));
        assert_eq!(clock.at(second), Instant::from_nanos(4_000_000_000));
        clock.set_right(second, Instant::ZERO);
        assert!(clock.at(second) > Instant::from_nanos(6_000_000_000));
        let fresh_from = Instant::from_nanos(60_000_000_000);
        clock.set_right(second, fresh_from);
        assert_eq!(clock.at(second), fresh_from);
    }
}
