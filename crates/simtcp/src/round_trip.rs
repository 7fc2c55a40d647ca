//! The round trip and the retransmission timer (RFC 6298).
//!
//! ```text
//!   first sample R    SRTT = R            RTTVAR = R / 2
//!   then, R'          RTTVAR = (1 - beta) RTTVAR + beta |SRTT - R'|,    beta  = 1/4
//!                     SRTT   = (1 - alpha) SRTT + alpha R',             alpha = 1/8
//!   RTO = SRTT + max(G, 4 RTTVAR), within the bounds, doubled by each timeout
//! ```
//!
//! With timestamps there are many samples per round trip, and alpha and beta are divided by their
//! expected number (RFC 7323, appendix G); otherwise variation would be forgotten within one round
//! trip. In Linux each sample has full weight, but RTTVAR follows the largest deviation of a round
//! trip, upward immediately and downward by 1/4 per round trip, and a falling round trip increases
//! the deviation with 1/8 of the usual gain.

use units::{Instant, Span};

/// Parameters of the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// RTO without a sample (RFC 6298, rule 2.1: 1 s).
    pub initial: Span,
    /// Minimum RTO (rule 2.4: 1 s; Linux 200 ms).
    pub min: Span,
    /// Maximum RTO, with or without backoff (rule 2.5: at least 60 s).
    pub max: Span,
    /// G, the clock granularity: minimum of the margin above SRTT (rule 2.3). Linux uses its
    /// minimum RTO here.
    pub granularity: Span,
    /// The clock advances in ticks of that granularity, as 4.4BSD's of 500 ms: round trips are
    /// counted in ticks, and the timer expires on a tick, up to a tick early.
    pub ticks: bool,
    /// The estimator.
    pub estimator: Estimator,
}

/// Estimator of SRTT and RTTVAR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// RFC 6298, section 2, with the gains of RFC 7323, appendix G.
    #[default]
    Rfc6298,
    /// Linux: each sample has full weight, so that the timer follows a growing round trip within
    /// one round trip; RTTVAR is the largest deviation of a round trip, and at least 1/4 of the
    /// granularity, which is the minimum there (`tcp_rto_min`).
    Linux,
}

/// The sequence numbers at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckSample {
    /// Expected number of samples per round trip.
    pub(crate) expected: u64,
    /// SND.UNA and SND.NXT after the acknowledgement with the sample.
    pub(crate) oldest: u64,
    pub(crate) next: u64,
}

/// Additional state of Linux.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    /// The deviation (`mdev`), and the largest of this round trip (`mdev_max`).
    deviation: Span,
    largest: Span,
    /// The number whose acknowledgement ends the round trip (`rtt_seq`).
    round_end: u64,
}

/// State of the estimator and the timer.
#[derive(Clone, Debug)]
pub(crate) struct RoundTrip {
    config: RtoConfig,
    smoothed: Option<Span>,
    variation: Span,
    peak: Peak,
    base: Span,
    backoff: u32,
}

impl RoundTrip {
    pub(crate) fn new(config: RtoConfig) -> Self {
        let (variation, base) = (Span::ZERO, config.initial);
        Self { config, smoothed: None, variation, peak: Peak::default(), base, backoff: 0 }
    }

    /// Adds a sample; ends a backoff.
    pub(crate) fn sample(&mut self, sample: Span, seen: AckSample) {
        let smoothed = match (self.config.estimator, self.smoothed) {
            (Estimator::Rfc6298, None) => {
                self.variation = sample / 2;
                sample
            }
            (Estimator::Rfc6298, Some(old)) => {
                let expected = seen.expected.max(1);
                let error = old.max(sample) - old.min(sample);
                self.variation = toward(self.variation, error, 4 * expected);
                toward(old, sample, 8 * expected)
            }
            (Estimator::Linux, None) => {
                self.variation = (sample / 2).max(self.floor());
                let (deviation, largest) = (sample / 2, self.variation);
                self.peak = Peak { deviation, largest, round_end: seen.next };
                sample
            }
            (Estimator::Linux, Some(old)) => {
                self.follow_peak(old, sample, seen);
                toward(old, sample, 8)
            }
        };
        self.smoothed = Some(smoothed);
        let margin = (self.variation * 4).max(self.config.granularity);
        self.base = (smoothed + margin).max(self.config.min).min(self.config.max);
        self.backoff = 0;
    }

    /// Minimum of Linux's RTTVAR: four times it is the minimum margin.
    fn floor(&self) -> Span {
        self.config.granularity / 4
    }

    /// Linux's RTTVAR (`tcp_rtt_estimator`).
    fn follow_peak(&mut self, old: Span, sample: Span, seen: AckSample) {
        let floor = self.floor();
        let peak = &mut self.peak;
        let error = old.max(sample) - old.min(sample);
        // A falling round trip indicates little about the delay of the next one.
        let parts = if sample < old && error > peak.deviation { 4 * 8 } else { 4 };
        peak.deviation = toward(peak.deviation, error, parts);
        if peak.deviation > peak.largest {
            peak.largest = peak.deviation;
            self.variation = self.variation.max(peak.largest);
        }
        if seen.oldest > peak.round_end {
            if peak.largest < self.variation {
                self.variation = toward(self.variation, peak.largest, 4);
            }
            (peak.round_end, peak.largest) = (seen.next, floor);
        }
    }

    /// Whether round trips are counted in ticks.
    pub(crate) fn is_coarse(&self) -> bool {
        self.config.ticks
    }

    /// Handles a timeout: the RTO doubles (rule 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }

    /// A retransmitted SYN: the initial RTO of data is 3 s (rule 5.7).
    pub(crate) fn syn_was_lost(&mut self) {
        if self.smoothed.is_none() {
            self.base = self.base.max(Span::from_secs(3));
            self.backoff = 0;
        }
    }

    /// RTO: the time to wait for an acknowledgement.
    pub(crate) fn timeout(&self) -> Span {
        (self.base * (1_u64 << self.backoff)).min(self.config.max)
    }

    /// When a timer that is set at `now` expires.
    pub(crate) fn deadline(&self, now: Instant) -> Instant {
        let grain = self.config.granularity.as_nanos();
        if !self.config.ticks {
            return now + self.timeout();
        }
        let ticks = now.as_nanos() / grain + self.timeout().as_nanos().div_ceil(grain);
        Instant::from_nanos(ticks * grain)
    }

    /// The time from `sent` to `now` in the resolution of this clock.
    pub(crate) fn between(&self, sent: Instant, now: Instant) -> Span {
        let grain = self.config.granularity.as_nanos();
        if !self.config.ticks {
            return now.since(sent);
        }
        Span::from_nanos((now.as_nanos() / grain - sent.as_nanos() / grain) * grain)
    }

    /// SRTT.
    pub(crate) fn smoothed(&self) -> Option<Span> {
        self.smoothed
    }
}

/// `old` moved by 1/`parts` of the distance toward `new`.
fn toward(old: Span, new: Span, parts: u64) -> Span {
    if new > old { old + (new - old) / parts } else { old - (old - new) / parts }
}

#[cfg(test)]
mod tests;
