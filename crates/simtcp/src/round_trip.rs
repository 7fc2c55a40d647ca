//! The round trip and the retransmission timer (RFC 6298).
//!
//! ```text
//!   first sample R    SRTT = R            RTTVAR = R / 2
//!   then, R'          RTTVAR = (1 - beta) RTTVAR + beta |SRTT - R'|,    beta  = 1/4
//!                     SRTT   = (1 - alpha) SRTT + alpha R',             alpha = 1/8
//!   RTO = SRTT + max(G, 4 RTTVAR), within the bounds, doubled by each timeout
//! ```
//!
//! With timestamps there are many samples in a round trip, and alpha and beta are divided by
//! how many are expected (RFC 7323, appendix G), or the variation of one round trip to the next
//! would be forgotten within one. Linux goes another way: each sample counts in full, but RTTVAR
//! follows the largest deviation of a round trip, at once upward and by a quarter a round trip
//! downward, and a round trip that falls raises the deviation by an eighth of the usual step.

use units::{Instant, Span};

/// The settings of the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// Before there is a sample (RFC 6298, rule 2.1: 1 s).
    pub initial: Span,
    /// Never less (rule 2.4: 1 s; Linux 200 ms).
    pub min: Span,
    /// Never more, backed off or not (rule 2.5: at least 60 s).
    pub max: Span,
    /// G, the clock's grain: the margin above SRTT is at least this (rule 2.3). Linux has its
    /// minimum here.
    pub granularity: Span,
    /// The clock moves in steps of that grain, as 4.4BSD's of 500 ms: round trips are counted in
    /// steps, and the timer runs out on one, up to a step early.
    pub ticks: bool,
    /// How samples are smoothed.
    pub estimator: Estimator,
}

/// How samples of the round trip become SRTT and RTTVAR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// RFC 6298, section 2, with the gains of RFC 7323, appendix G.
    #[default]
    Rfc6298,
    /// Linux: each sample counts in full, so that the timer follows a round trip that grows within
    /// one; RTTVAR is the largest deviation of a round trip, and never below a quarter of the
    /// clock's grain, which is its minimum there (`tcp_rto_min`).
    Linux,
}

/// When a sample was taken, by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// So many samples are expected in a round trip.
    pub(crate) expected: u64,
    /// SND.UNA and SND.NXT after the acknowledgement that brought it.
    pub(crate) oldest: u64,
    pub(crate) next: u64,
}

/// What Linux keeps besides.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    /// The deviation (`mdev`), and the largest of this round trip (`mdev_max`).
    deviation: Span,
    largest: Span,
    /// The round trip ends beyond this number (`rtt_seq`).
    round_end: u64,
}

/// What is known of the round trip.
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

    /// Takes in a sample; ends a back-off.
    pub(crate) fn sample(&mut self, sample: Span, seen: Seen) {
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

    /// The least of Linux's RTTVAR: four of them are its minimum.
    fn floor(&self) -> Span {
        self.config.granularity / 4
    }

    /// Linux's RTTVAR (`tcp_rtt_estimator`).
    fn follow_peak(&mut self, old: Span, sample: Span, seen: Seen) {
        let floor = self.floor();
        let peak = &mut self.peak;
        let error = old.max(sample) - old.min(sample);
        // A round trip that falls says little about how late the next one may be.
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

    /// Whether round trips are counted in steps of the clock.
    pub(crate) fn is_coarse(&self) -> bool {
        self.config.ticks
    }

    /// A timeout: the timer doubles (rule 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }

    /// SYN had to be retransmitted: data begins with 3 s (rule 5.7).
    pub(crate) fn syn_was_lost(&mut self) {
        if self.smoothed.is_none() {
            self.base = self.base.max(Span::from_secs(3));
            self.backoff = 0;
        }
    }

    /// RTO: how long to wait for an acknowledgement.
    pub(crate) fn timeout(&self) -> Span {
        (self.base * (1_u64 << self.backoff)).min(self.config.max)
    }

    /// When a timer runs out that is set at `now`.
    pub(crate) fn deadline(&self, now: Instant) -> Instant {
        let grain = self.config.granularity.as_nanos();
        if !self.config.ticks {
            return now + self.timeout();
        }
        let ticks = now.as_nanos() / grain + self.timeout().as_nanos().div_ceil(grain);
        Instant::from_nanos(ticks * grain)
    }

    /// The time from `sent` to `now` as this clock shows it.
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

/// `old` moved by one part in `parts` toward `new`.
fn toward(old: Span, new: Span, parts: u64) -> Span {
    if new > old { old + (new - old) / parts } else { old - (old - new) / parts }
}

#[cfg(test)]
mod tests;
