//! Histograms of durations, cheap enough for each round of a loop.

use serde::Serialize;
use units::Span;

/// Upper bounds of the buckets, in microseconds.
pub(crate) const BOUNDS_MICROS: [u64; 8] =
    [100, 250, 1_000, 2_500, 10_000, 25_000, 100_000, 1_000_000];

/// A histogram of durations.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Histogram {
    /// Counts by bucket: up to 0.1, 0.25, 1, 2.5, 10, 25, 100 and 1000 ms, and above.
    pub classes: [u64; BOUNDS_MICROS.len() + 1],
    /// Sum of the durations, seconds.
    pub sum_seconds: f64,
    /// Maximum, seconds.
    pub most_seconds: f64,
}

impl Histogram {
    /// Counts a duration.
    pub(crate) fn count(&mut self, span: Span) {
        let micros = span.as_nanos().div_ceil(1000);
        let class = BOUNDS_MICROS.partition_point(|&bound| bound < micros);
        self.classes[class] += 1;
        let seconds = span.as_secs_f64();
        self.sum_seconds += seconds;
        self.most_seconds = self.most_seconds.max(seconds);
    }

    /// Returns the number of counted durations.
    pub fn total(&self) -> u64 {
        self.classes.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_falls_into_its_class() {
        let mut histogram = Histogram::default();
        for nanos in [0, 100_000, 100_001, 1_000_000_000, 1_000_000_001] {
            histogram.count(Span::from_nanos(nanos));
        }
        assert_eq!(histogram.classes, [2, 1, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(histogram.total(), 5);
        assert!(histogram.most_seconds > 1.0 && histogram.sum_seconds > 2.0);
    }
}
