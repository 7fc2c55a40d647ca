//! Memory used by the connections of a gateway.

use units::{Instant, Span};

/// Octets buffered by a gateway for its connections. (Henderson and Katz 1999, section 6.1: two to
/// three bandwidth-delay products, 200 to 500 kbyte for an active connection.)
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BufferUsage {
    /// Connections carried so far.
    pub connections: u64,
    /// Maximum octets of a single connection.
    pub peak: u64,
    /// Mean over connections of their maxima.
    pub mean_peak: f64,
    /// Mean over connections of their time averages, from the opening until both ends have ended
    /// and nothing is buffered.
    pub mean: f64,
    /// Maximum octets of all connections together.
    pub peak_in_all: u64,
}

/// Octets buffered over time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    from: Instant,
    since: Instant,
    bytes: u64,
    peak: u64,
    /// Integral up to `since`, in octet nanoseconds.
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

    /// Mean from the beginning until the last change.
    fn mean(&self) -> f64 {
        let time = self.since.since(self.from);
        if time == Span::ZERO {
            self.bytes as f64
        } else {
            self.area as f64 / time.as_nanos() as f64
        }
    }
}

/// The levels of all connections; closed ones as sums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Levels {
    over: BufferUsage,
    in_all: u64,
}

impl Levels {
    /// Changes a connection's level.
    pub(super) fn set(&mut self, now: Instant, level: &mut Level, bytes: u64) {
        self.in_all = self.in_all + bytes - level.bytes();
        self.over.peak_in_all = self.over.peak_in_all.max(self.in_all);
        level.set(now, bytes);
    }

    /// A connection has closed.
    pub(super) fn end(&mut self, now: Instant, level: &mut Level) {
        self.set(now, level, 0);
        self.over = self.with(level);
    }

    /// The usage including the connections that are open.
    pub(super) fn usage<'a>(&self, live: impl Iterator<Item = &'a Level>) -> BufferUsage {
        live.fold(*self, |sum, level| Self { over: sum.with(level), ..sum }).over
    }

    fn with(&self, level: &Level) -> BufferUsage {
        let BufferUsage { connections, peak, mean_peak, mean, peak_in_all } = self.over;
        let all = (connections + 1) as f64;
        BufferUsage {
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
    fn means_are_over_time_then_over_connections() {
        let mut all = Levels::default();
        let (mut one, mut other) = (Level::new(at(0)), Level::new(at(10)));
        all.set(at(10), &mut one, 1_000);
        all.set(at(10), &mut other, 500);
        // 0 for 10 ms, 1,000 for 30 ms; 500 for 10 ms until now.
        all.end(at(40), &mut one);
        all.set(at(20), &mut other, 500);
        let usage = all.usage([&other].into_iter());
        assert_eq!((usage.connections, usage.peak, usage.peak_in_all), (2, 1_000, 1_500));
        assert_eq!((usage.mean_peak, usage.mean), (750.0, (750.0 + 500.0) / 2.0));
    }
}
