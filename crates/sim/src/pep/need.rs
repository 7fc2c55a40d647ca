//! How much memory connections through a gateway need.

use units::{Instant, Span};

/// Bytes that a gateway held for its connections. (Henderson and Katz 1999, section 6.1: two to
/// three bandwidth-delay products, 200 to 500 kbyte for an active connection.)
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BufferNeed {
    /// Connections that it has carried.
    pub connections: u64,
    /// The most bytes held for any one of them.
    pub peak: u64,
    /// The mean over connections of each one's peak.
    pub mean_peak: f64,
    /// The mean over connections of the mean over time, from a connection's opening until both
    /// its ends have ended and nothing more was held.
    pub mean: f64,
    /// The most bytes held for all of them together.
    pub peak_in_all: u64,
}

/// Bytes held, over time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    from: Instant,
    since: Instant,
    bytes: u64,
    peak: u64,
    /// Byte nanoseconds up to `since`.
    area: u128,
}

impl Level {
    pub(super) fn new(now: Instant) -> Self {
        Self { from: now, since: now, bytes: 0, peak: 0, area: 0 }
    }

    pub(super) fn set(&mut self, now: Instant, bytes: u64) {
        self.area += u128::from(self.bytes) * u128::from(now.since(self.since).as_nanos());
        self.since = now;
        self.bytes = bytes;
        self.peak = self.peak.max(bytes);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The mean from its beginning until its last change.
    fn mean(&self) -> f64 {
        let time = self.since.since(self.from);
        if time == Span::ZERO {
            self.bytes as f64
        } else {
            self.area as f64 / time.as_nanos() as f64
        }
    }
}

/// The levels of all connections: those that are over in sums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Levels {
    over: BufferNeed,
    in_all: u64,
}

impl Levels {
    /// A connection's level changes.
    pub(super) fn set(&mut self, now: Instant, level: &mut Level, bytes: u64) {
        self.in_all = self.in_all + bytes - level.bytes();
        self.over.peak_in_all = self.over.peak_in_all.max(self.in_all);
        level.set(now, bytes);
    }

    /// A connection needs nothing any more.
    pub(super) fn end(&mut self, now: Instant, level: &mut Level) {
        self.set(now, level, 0);
        self.over = self.with(level);
    }

    /// With the levels of the connections that are not over.
    pub(super) fn need<'a>(&self, live: impl Iterator<Item = &'a Level>) -> BufferNeed {
        live.fold(*self, |sum, level| Self { over: sum.with(level), ..sum }).over
    }

    fn with(&self, level: &Level) -> BufferNeed {
        let BufferNeed { connections, peak, mean_peak, mean, peak_in_all } = self.over;
        let all = (connections + 1) as f64;
        BufferNeed {
            connections: connections + 1,
            peak: peak.max(level.peak),
            mean_peak: mean_peak + (level.peak as f64 - mean_peak) / all,
            mean: mean + (level.mean() - mean) / all,
            peak_in_all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn means_are_over_time_and_then_over_connections() {
        let mut all = Levels::default();
        let (mut one, mut other) = (Level::new(at(0)), Level::new(at(10)));
        all.set(at(10), &mut one, 1_000);
        all.set(at(10), &mut other, 500);
        // 0 for 10 ms, 1,000 for 30 ms; 500 for 10 ms and still so.
        all.end(at(40), &mut one);
        all.set(at(20), &mut other, 500);
        let need = all.need([&other].into_iter());
        assert_eq!((need.connections, need.peak, need.peak_in_all), (2, 1_000, 1_500));
        assert_eq!((need.mean_peak, need.mean), (750.0, (750.0 + 500.0) / 2.0));
    }
}
