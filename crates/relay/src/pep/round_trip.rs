//! The retransmission timeout of RFC 6298.

use units::Span;

/// Least addition to the smoothed round trip, and greatest timeout.
const MIN_VARIATION: Span = Span::from_millis(200);
const MAX_TIMEOUT: Span = Span::from_secs(60);

/// Estimate of a round trip to the receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    smoothed: Span,
    variation: Span,
    min: Span,
    backoff: u32,
}

impl RoundTrip {
    /// Begins with the round trip of the handshake.
    pub(super) fn new(first: Span) -> Self {
        Self { smoothed: first, variation: first / 2, min: first, backoff: 0 }
    }

    /// Takes a sample (RFC 6298, 2.3).
    pub(super) fn sample(&mut self, sample: Span) {
        let error = sample.saturating_sub(self.smoothed).max(self.smoothed.saturating_sub(sample));
        self.variation = (self.variation * 3 + error) / 4;
        self.smoothed = (self.smoothed * 7 + sample) / 8;
        self.min = self.min.min(sample);
    }

    /// The least one so far.
    pub(super) fn min(&self) -> Span {
        self.min
    }

    /// Time after which the first unacknowledged segment is retransmitted.
    pub(super) fn timeout(&self) -> Span {
        let usual = self.smoothed + (self.variation * 4).max(MIN_VARIATION);
        (usual * (1 << self.backoff)).min(MAX_TIMEOUT)
    }

    /// Doubles the timeout (RFC 6298, 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(8);
    }

    /// Ends the doubling, after new data was acknowledged.
    pub(super) fn recover(&mut self) {
        self.backoff = 0;
    }
}
