//! Lateness of departures.

use hdrhistogram::Histogram;
use serde::Serialize;
use units::Span;

/// Values above this are recorded as this.
const LONGEST: Span = Span::from_secs(3600);

/// Difference between a packet's scheduled departure and the end of the system call that sent it,
/// measured with the emulator's clock.
#[derive(Clone, Debug)]
pub(super) struct LatenessRecord {
    /// In nanoseconds, with three significant digits.
    histogram: Histogram<u64>,
    /// Maximum since the last query.
    recent: Span,
}

/// Lateness of departures in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Packets sent.
    pub packets: u64,
    /// Median.
    pub p50_seconds: f64,
    /// 99th percentile.
    pub p99_seconds: f64,
    /// 99.9th percentile.
    pub p999_seconds: f64,
    /// Maximum.
    pub max_seconds: f64,
}

impl LatenessRecord {
    pub(super) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST.as_nanos(), 3)
            .expect("the bounds are ones that the histogram takes");
        Self { histogram, recent: Span::ZERO }
    }

    pub(super) fn note(&mut self, late: Span) {
        self.recent = self.recent.max(late);
        self.histogram.saturating_record(late.as_nanos().max(1));
    }

    /// The maximum since the last call.
    pub(super) fn take_recent(&mut self) -> Span {
        std::mem::take(&mut self.recent)
    }

    pub(super) fn summary(&self) -> Lateness {
        if self.histogram.is_empty() {
            return Lateness::default();
        }
        let at = |quantile| self.histogram.value_at_quantile(quantile) as f64 / 1e9;
        Lateness {
            packets: self.histogram.len(),
            p50_seconds: at(0.5),
            p99_seconds: at(0.99),
            p999_seconds: at(0.999),
            max_seconds: self.histogram.max() as f64 / 1e9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sample() {
        let mut record = LatenessRecord::new();
        assert_eq!(record.summary(), Lateness::default());
        for micros in 1..=1000 {
            record.note(Span::from_micros(micros));
        }
        let summary = record.summary();
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.002;
        assert!(near(summary.p50_seconds, 500e-6) && near(summary.p99_seconds, 990e-6));
        assert!(near(summary.p999_seconds, 999e-6) && near(summary.max_seconds, 1e-3));
        assert_eq!(summary.packets, 1000);
        assert_eq!(record.take_recent(), Span::from_millis(1));
        assert_eq!(record.take_recent(), Span::ZERO);
    }
}
