//! The round-trip estimate (RFC 9002, section 5) and the probe timeout (section 6.2.1).

use units::{Instant, Span};

/// kInitialRtt.
const INITIAL: Span = Span::from_millis(333);
/// kGranularity.
pub(super) const GRANULARITY: Span = Span::from_millis(1);

/// State of the estimate.
#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    latest: Span,
    min: Span,
    smoothed: Span,
    variation: Span,
    /// When the first sample was taken.
    first_sample: Option<Instant>,
}

impl RoundTrip {
    pub(super) fn new() -> Self {
        let (latest, min) = (Span::ZERO, Span::ZERO);
        Self { latest, min, smoothed: INITIAL, variation: INITIAL / 2, first_sample: None }
    }

    /// Adds a sample; `ack_delay` is what the peer reports, bounded by its `max_ack_delay` once the
    /// handshake is confirmed (section 5.3).
    pub(super) fn sample(&mut self, now: Instant, latest: Span, ack_delay: Span) {
        self.latest = latest;
        if self.first_sample.is_none() {
            self.first_sample = Some(now);
            (self.min, self.smoothed, self.variation) = (latest, latest, latest / 2);
            return;
        }
        // Section 5.2: min_rtt is not adjusted by the delay.
        self.min = self.min.min(latest);
        let adjusted =
            if latest >= self.min + ack_delay { latest.saturating_sub(ack_delay) } else { latest };
        let error = self.smoothed.max(adjusted) - self.smoothed.min(adjusted);
        // In the order of appendix A.7.
        self.variation = (self.variation * 3 + error) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// Handles persistent congestion: min_rtt is the next sample (section 5.2).
    pub(super) fn restart_min(&mut self) {
        self.min = self.latest;
    }

    /// The estimate, once there is a sample.
    pub(super) fn measured(&self) -> Option<Span> {
        self.first_sample.map(|_| self.smoothed)
    }

    pub(super) fn first_sample(&self) -> Option<Instant> {
        self.first_sample
    }

    /// The time threshold of loss detection: 9/8 of the round trip (section 6.1.2).
    pub(super) fn loss_delay(&self) -> Span {
        (self.latest.max(self.smoothed) * 9 / 8).max(GRANULARITY)
    }

    /// PTO without backoff: smoothed_rtt + max(4 × rttvar, kGranularity) + max_ack_delay (section
    /// 6.2.1).
    pub(super) fn probe_timeout(&self, max_ack_delay: Span) -> Span {
        self.smoothed + (self.variation * 4).max(GRANULARITY) + max_ack_delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    #[test]
    fn rfc_9002_section_5_3_ack_delay_is_subtracted_unless_below_min_rtt() {
        let mut estimate = RoundTrip::new();
        assert_eq!(estimate.probe_timeout(Span::ZERO), ms(999), "section 6.2.2: 333 ms assumed");
        estimate.sample(Instant::ZERO, ms(600), ms(25));
        assert_eq!((estimate.smoothed, estimate.variation), (ms(600), ms(300)), "no adjustment");
        estimate.sample(Instant::ZERO, ms(640), ms(24));
        assert_eq!(estimate.smoothed, ms(602), "7/8 of 600 and 1/8 of 616");
        assert_eq!(estimate.variation, ms(229), "3/4 of 300 and 1/4 of 16");
        estimate.sample(Instant::ZERO, ms(602), ms(24));
        assert_eq!(estimate.smoothed, ms(602), "578 would be below min_rtt");
        assert_eq!(estimate.min, ms(600));
    }

    #[test]
    fn rfc_9002_section_6_thresholds_follow_the_estimate() {
        let mut estimate = RoundTrip::new();
        estimate.sample(Instant::ZERO, ms(800), Span::ZERO);
        assert_eq!(estimate.loss_delay(), ms(900));
        assert_eq!(estimate.probe_timeout(ms(25)), ms(800 + 4 * 400 + 25));
    }
}
