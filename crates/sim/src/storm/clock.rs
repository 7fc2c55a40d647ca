//! Local clocks of the endpoints, with offset, skew and steps.

use units::{Instant, Span};

/// Resolution of a clock's skew: parts per million.
const PARTS: u64 = 1_000_000;

/// A clock with an offset and a skew, which can be stepped.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Its reading at the time `since`.
    shown: Instant,
    since: Instant,
    /// Its rate relative to true time, in parts per million.
    rate: u64,
    /// The latest reading so far.
    latest: Instant,
    /// Sum of all backward steps.
    back: Span,
}

impl Clock {
    /// A clock that reads `start` at time zero and gains `drift` parts per million.
    pub(crate) fn new(start: Instant, drift: i64) -> Self {
        let rate = PARTS.saturating_add_signed(drift).max(1);
        Self { shown: start, since: Instant::ZERO, rate, latest: start, back: Span::ZERO }
    }

    /// Returns its reading at `time`.
    pub(crate) fn at(&self, time: Instant) -> Instant {
        self.shown + time.since(self.since).mul_ratio(self.rate, PARTS)
    }

    /// Returns its reading at `time` and records it.
    pub(crate) fn read(&mut self, time: Instant) -> Instant {
        let shown = self.at(time);
        self.latest = self.latest.max(shown);
        shown
    }

    /// Returns the first time at which it reads `shown` or later.
    pub(crate) fn time_of(&self, shown: Instant) -> Instant {
        let ahead = shown.since(self.shown).as_nanos();
        let time = (u128::from(ahead) * u128::from(PARTS)).div_ceil(u128::from(self.rate));
        self.since + Span::from_nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// Steps the clock at `time`.
    pub(crate) fn step_clock(&mut self, time: Instant, by: ClockStep) {
        let shown = self.read(time);
        self.shown = match by {
            ClockStep::Forward(span) => shown + span,
            ClockStep::Back(span) => {
                self.back += span;
                shown - span
            }
        };
        self.since = time;
    }

    /// Sets the clock at `time` beyond all earlier readings. The start takes 1 s, and the new
    /// reading is at least `earliest_restart`: POLL timestamps may run ahead of the clock by more
    /// than 1 s.
    pub(crate) fn resynchronize(&mut self, time: Instant, earliest_restart: Instant) {
        let least = self.latest + self.back + Span::from_secs(1);
        let shown = self.at(time).max(least).max(earliest_restart);
        self.shown = shown;
        self.since = time;
    }
}

/// A step of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockStep {
    Forward(Span),
    Back(Span),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_is_the_first_time_with_the_reading() {
        let at = |nanos| Instant::from_nanos(nanos);
        for drift in [-50_000, 0, 7, 30_000] {
            let mut clock = Clock::new(at(1_234_567), drift);
            clock.step_clock(at(1_000_003), ClockStep::Forward(Span::from_millis(3)));
            for ahead in [0, 1, 999, 123_456_789] {
                let wanted = clock.at(at(1_000_003)) + Span::from_nanos(ahead);
                let time = clock.time_of(wanted);
                assert!(clock.at(time) >= wanted, "{drift} {ahead}");
                assert!(ahead == 0 || clock.at(time - Span::from_nanos(1)) < wanted);
            }
        }
    }

    #[test]
    fn resynchronization_exceeds_readings_before_backward_steps() {
        let mut clock = Clock::new(Instant::from_nanos(5_000_000_000), 0);
        let second = Instant::ZERO + Span::from_secs(1);
        clock.step_clock(second, ClockStep::Back(Span::from_secs(2)));
        assert_eq!(clock.at(second), Instant::from_nanos(4_000_000_000));
        clock.resynchronize(second, Instant::ZERO);
        assert!(clock.at(second) > Instant::from_nanos(6_000_000_000));
        let earliest_restart = Instant::from_nanos(60_000_000_000);
        clock.resynchronize(second, earliest_restart);
        assert_eq!(clock.at(second), earliest_restart);
    }
}
