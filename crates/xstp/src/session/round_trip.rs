//! The round trip: smoothed over the answers to POLLs.
//!
//! ```text
//!   first sample      SRTT = s               RTTVAR = s / 2
//!   later samples     RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - s|      SRTT = 7/8 SRTT + 1/8 s
//! ```
//!
//! A sample is the time from a POLL to the STAT that echoes it. POLLs that were sent before an
//! outage ended give none: what they measure is the outage.

use units::Span;

/// Round trips above this are taken for this, so that no timer can be put off for ever.
const LONGEST: Span = Span::from_secs(60);

/// However short round trips are: answers are spaced, and hosts are busy at times.
const LEAST_PATIENCE: Span = Span::from_millis(100);

/// Smoothed round trip and its variation.
#[derive(Clone, Debug)]
pub(crate) struct RoundTrip {
    initial: Span,
    measured: Option<Measured>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    smoothed: Span,
    variation: Span,
    least: Span,
    last: Span,
}

impl RoundTrip {
    /// No sample yet: `initial` is assumed.
    pub(crate) fn new(initial: Span) -> Self {
        Self { initial: initial.min(LONGEST), measured: None }
    }

    /// Takes in one sample.
    pub(crate) fn sample(&mut self, sample: Span) {
        let sample = sample.min(LONGEST);
        self.measured = Some(match self.measured {
            None => {
                Measured { smoothed: sample, variation: sample / 2, least: sample, last: sample }
            }
            Some(m) => {
                let error =
                    if sample > m.smoothed { sample - m.smoothed } else { m.smoothed - sample };
                Measured {
                    smoothed: (m.smoothed * 7 + sample) / 8,
                    variation: (m.variation * 3 + error) / 4,
                    least: m.least.min(sample),
                    last: sample,
                }
            }
        });
    }

    /// A POLL of what was taken for an outage has been answered after all, after `span`: the round
    /// trip may have become longer, up to twice what it was.
    pub(crate) fn stretch(&mut self, span: Span) {
        if let Some(m) = &mut self.measured {
            m.smoothed = m.smoothed.max(span.min(m.smoothed * 2)).min(LONGEST);
        }
    }

    /// The smoothed round trip, or what is assumed before the first sample.
    pub(crate) fn smoothed(&self) -> Span {
        self.measured.map_or(self.initial, |m| m.smoothed)
    }

    /// The smoothed round trip once there is a sample.
    pub(crate) fn measured(&self) -> Option<Span> {
        self.measured.map(|m| m.smoothed)
    }

    /// The last sample, or what is assumed before the first one.
    pub(crate) fn last(&self) -> Span {
        self.measured.map_or(self.initial, |m| m.last)
    }

    /// The shortest sample so far.
    pub(crate) fn least(&self) -> Option<Span> {
        self.measured.map(|m| m.least)
    }

    /// By this time after a POLL its answer should be there, unless one of the two was lost.
    pub(crate) fn answer(&self) -> Span {
        match self.measured {
            None => self.initial,
            Some(m) => (m.smoothed + m.variation * 4).min(m.smoothed * 2),
        }
    }

    /// After this long without an answer to a POLL something is wrong with the link: twice the
    /// smoothed round trip, or more where round trips vary much, and 100 ms in any case.
    pub(crate) fn patience(&self) -> Span {
        match self.measured {
            None => self.initial * 2,
            Some(m) => (m.smoothed * 3 / 2 + m.variation * 4)
                .max(m.smoothed * 2)
                .clamp(LEAST_PATIENCE, LONGEST * 4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// XSTP-10.1.1
    #[test]
    fn samples_are_smoothed_by_eighths() {
        let mut round_trip = RoundTrip::new(Span::from_secs(3));
        assert_eq!(round_trip.smoothed(), Span::from_secs(3));
        assert_eq!(round_trip.measured(), None);
        round_trip.sample(Span::from_millis(600));
        assert_eq!(round_trip.smoothed(), Span::from_millis(600));
        round_trip.sample(Span::from_millis(680));
        assert_eq!(round_trip.smoothed(), Span::from_millis(610));
        round_trip.sample(Span::from_millis(530));
        assert_eq!(round_trip.smoothed(), Span::from_millis(600));
        assert_eq!(round_trip.least(), Some(Span::from_millis(530)));
    }

    /// XSTP-10.1.2
    #[test]
    fn no_sample_can_put_timers_off_for_ever() {
        let mut round_trip = RoundTrip::new(Span::from_secs(1));
        round_trip.sample(Span::MAX);
        assert!(round_trip.smoothed() <= LONGEST);
        assert!(round_trip.patience() <= LONGEST * 4);
    }

    #[test]
    fn no_path_is_so_short_that_each_poll_is_an_outage() {
        let mut round_trip = RoundTrip::new(Span::from_secs(1));
        round_trip.sample(Span::ZERO);
        assert_eq!(round_trip.patience(), LEAST_PATIENCE);
    }
}
