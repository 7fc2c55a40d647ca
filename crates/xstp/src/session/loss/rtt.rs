//! Estimator of the round-trip time (RFC 6298, RFC 9002 section 5).
//!
//! ```text
//!   first sample      SRTT = s               RTTVAR = s / 2
//!   later samples     RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - s|      SRTT = 7/8 SRTT + 1/8 s
//! ```
//!
//! A sample is the time from a POLL to the STAT that echoes it.

use units::Span;

/// Maximum of a sample, so that no sample can disable a timer.
const MAX_RTT: Span = Span::from_secs(60);

/// Minimum of the outage timeout: STATs are spaced, and hosts schedule late.
const MIN_OUTAGE_TIMEOUT: Span = Span::from_millis(100);

/// Smoothed round-trip time and its variation.
#[derive(Clone, Debug)]
pub(in crate::session) struct RttEstimator {
    initial: Span,
    measured: Option<Measured>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    smoothed: Span,
    variation: Span,
    min: Span,
    last: Span,
}

impl RttEstimator {
    /// An estimator without samples, which assumes `initial`.
    pub(in crate::session) fn new(initial: Span) -> Self {
        Self { initial: initial.min(MAX_RTT), measured: None }
    }

    /// Processes a sample.
    pub(in crate::session) fn sample(&mut self, sample: Span) {
        let sample = sample.min(MAX_RTT);
        self.measured = Some(match self.measured {
            None => Measured { smoothed: sample, variation: sample / 2, min: sample, last: sample },
            Some(m) => {
                let error =
                    if sample > m.smoothed { sample - m.smoothed } else { m.smoothed - sample };
                Measured {
                    smoothed: (m.smoothed * 7 + sample) / 8,
                    variation: (m.variation * 3 + error) / 4,
                    min: m.min.min(sample),
                    last: sample,
                }
            }
        });
    }

    /// A POLL was answered after `span`, which ended an outage: the RTT may have become longer. Sets
    /// SRTT to `span`, to at most twice its value.
    pub(in crate::session) fn extend_after_outage(&mut self, span: Span) {
        if let Some(m) = &mut self.measured {
            m.smoothed = m.smoothed.max(span.min(m.smoothed * 2)).min(MAX_RTT);
        }
    }

    /// SRTT, or the assumed RTT before the first sample.
    pub(in crate::session) fn smoothed(&self) -> Span {
        self.measured.map_or(self.initial, |m| m.smoothed)
    }

    /// SRTT, if there was a sample.
    pub(in crate::session) fn measured(&self) -> Option<Span> {
        self.measured.map(|m| m.smoothed)
    }

    /// The last sample, or the assumed RTT before the first one.
    pub(in crate::session) fn last(&self) -> Span {
        self.measured.map_or(self.initial, |m| m.last)
    }

    /// Minimum RTT so far.
    pub(in crate::session) fn min(&self) -> Option<Span> {
        self.measured.map(|m| m.min)
    }

    /// Time after a POLL within which its STAT is received unless one of the two was lost:
    /// `min(SRTT + 4 RTTVAR, 2 SRTT)`.
    pub(in crate::session) fn response_timeout(&self) -> Span {
        match self.measured {
            None => self.initial,
            Some(m) => (m.smoothed + m.variation * 4).min(m.smoothed * 2),
        }
    }

    /// Time without a STAT after which there is an outage:
    /// `max(2 SRTT, 3/2 SRTT + 4 RTTVAR, 100 ms)`.
    pub(in crate::session) fn outage_timeout(&self) -> Span {
        match self.measured {
            None => self.initial * 2,
            Some(m) => (m.smoothed * 3 / 2 + m.variation * 4)
                .max(m.smoothed * 2)
                .clamp(MIN_OUTAGE_TIMEOUT, MAX_RTT * 4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// XSTP-10.1.1
    #[test]
    fn samples_are_smoothed_by_eighths() {
        let mut rtt = RttEstimator::new(Span::from_secs(3));
        assert_eq!(rtt.smoothed(), Span::from_secs(3));
        assert_eq!(rtt.measured(), None);
        rtt.sample(Span::from_millis(600));
        assert_eq!(rtt.smoothed(), Span::from_millis(600));
        rtt.sample(Span::from_millis(680));
        assert_eq!(rtt.smoothed(), Span::from_millis(610));
        rtt.sample(Span::from_millis(530));
        assert_eq!(rtt.smoothed(), Span::from_millis(600));
        assert_eq!(rtt.min(), Some(Span::from_millis(530)));
    }

    /// XSTP-10.1.2
    #[test]
    fn no_sample_can_disable_timers() {
        let mut rtt = RttEstimator::new(Span::from_secs(1));
        rtt.sample(Span::MAX);
        assert!(rtt.smoothed() <= MAX_RTT);
        assert!(rtt.outage_timeout() <= MAX_RTT * 4);
    }

    #[test]
    fn the_outage_timeout_has_a_minimum() {
        let mut rtt = RttEstimator::new(Span::from_secs(1));
        rtt.sample(Span::ZERO);
        assert_eq!(rtt.outage_timeout(), MIN_OUTAGE_TIMEOUT);
    }
}
