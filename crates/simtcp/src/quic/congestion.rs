//! NewReno's congestion control (RFC 9002, section 7) and pacing (section 7.7).

use units::{Instant, Span};

/// State of the controller.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    datagram: u64,
    window: u64,
    threshold: u64,
    /// Start of the last recovery period.
    recovery_start: Option<Instant>,
    /// Octets that may be sent in one burst; refilled at the pacing rate.
    tokens: f64,
    refilled: Instant,
}

impl Congestion {
    /// The initial window of ten datagrams, at least 14,720 octets or two (section 7.2).
    pub(super) fn new(datagram: u64) -> Self {
        let window = (10 * datagram).min(14_720.max(2 * datagram));
        let threshold = u64::MAX;
        let (recovery_start, refilled) = (None, Instant::ZERO);
        Self { datagram, window, threshold, recovery_start, tokens: window as f64, refilled }
    }

    pub(super) fn window(&self) -> u64 {
        self.window
    }

    pub(super) fn threshold(&self) -> u64 {
        self.threshold
    }

    /// kMinimumWindow: two datagrams.
    fn least(&self) -> u64 {
        2 * self.datagram
    }

    /// Whether a packet that was sent at `sent` belongs to the last recovery period or is older.
    pub(super) fn is_in_recovery(&self, sent: Instant) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }

    /// Handles the acknowledgement of `bytes` that were sent at `sent`.
    pub(super) fn on_acked(&mut self, sent: Instant, bytes: u64, application_limited: bool) {
        // Sections 7.3.2 and 7.8.
        if self.is_in_recovery(sent) || application_limited {
            return;
        }
        if self.window < self.threshold {
            self.window += bytes;
        } else {
            self.window += (self.datagram * bytes).div_ceil(self.window);
        }
    }

    /// Handles the loss of a packet sent at `sent`: at most one reduction in a round trip (section
    /// 7.3.2); returns whether the window was reduced.
    pub(super) fn on_lost(&mut self, now: Instant, sent: Instant) -> bool {
        if self.is_in_recovery(sent) {
            return false;
        }
        self.recovery_start = Some(now);
        self.threshold = (self.window / 2).max(self.least());
        self.window = self.threshold;
        true
    }

    /// Handles persistent congestion: the minimum window and slow start (section 7.6.2).
    pub(super) fn on_persistent_congestion(&mut self) {
        self.window = self.least();
        self.recovery_start = None;
    }

    /// Pacing rate in octets per second: 5/4 of a window in a round trip (section 7.7).
    fn rate(&self, round_trip: Span) -> f64 {
        1.25 * self.window as f64 / round_trip.as_secs_f64().max(1e-6)
    }

    /// When `bytes` may be sent. Bursts are limited to the initial window.
    pub(super) fn paced_at(
        &mut self,
        now: Instant,
        bytes: u64,
        round_trip: Option<Span>,
    ) -> Instant {
        let Some(round_trip) = round_trip else { return now };
        let burst = Self::new(self.datagram).window as f64;
        let rate = self.rate(round_trip);
        let earned = now.since(self.refilled).as_secs_f64() * rate;
        self.tokens = (self.tokens + earned).min(burst);
        self.refilled = now;
        let missing = bytes as f64 - self.tokens;
        // Rounded up, so that the tokens suffice then.
        let wait = Span::from_secs_f64(missing / rate) + Span::from_micros(1);
        if missing <= 0.0 { now } else { now + wait }
    }

    /// Handles a transmission.
    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.tokens = (self.tokens - bytes as f64).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn rfc_9002_section_7_2_initial_window() {
        assert_eq!(Congestion::new(1_252).window(), 12_520);
        assert_eq!(Congestion::new(1_472).window(), 14_720);
        assert_eq!(Congestion::new(9_000).window(), 18_000);
    }

    #[test]
    fn rfc_9002_section_7_3_slow_start_recovery_and_avoidance() {
        let mut control = Congestion::new(1_000);
        control.on_acked(at(1), 10_000, false);
        assert_eq!(control.window(), 20_000, "slow start: by what was acknowledged");
        control.on_acked(at(1), 10_000, true);
        assert_eq!(control.window(), 20_000, "section 7.8: application-limited");
        assert!(control.on_lost(at(100), at(50)));
        assert_eq!((control.window(), control.threshold()), (10_000, 10_000));
        assert!(!control.on_lost(at(110), at(90)), "the same recovery period");
        control.on_acked(at(95), 5_000, false);
        assert_eq!(control.window(), 10_000, "sent before the recovery");
        control.on_acked(at(120), 10_000, false);
        assert_eq!(control.window(), 11_000, "a datagram a round trip");
        assert!(control.on_lost(at(300), at(200)));
        assert_eq!(control.window(), 5_500);
    }

    #[test]
    fn rfc_9002_section_7_6_2_persistent_congestion_collapses_the_window() {
        let mut control = Congestion::new(1_000);
        control.on_lost(at(100), at(50));
        control.on_persistent_congestion();
        assert_eq!((control.window(), control.threshold()), (2_000, 5_000));
        control.on_acked(at(60), 1_000, false);
        assert_eq!(control.window(), 3_000, "slow start, without a recovery period");
    }

    #[test]
    fn rfc_9002_section_7_7_bursts_are_ten_datagrams_and_then_paced() {
        let mut control = Congestion::new(1_000);
        let round_trip = Some(Span::from_millis(100));
        for _ in 0..10 {
            assert_eq!(control.paced_at(at(1_000), 1_000, round_trip), at(1_000));
            control.on_sent(1_000);
        }
        // 1.25 × 10,000 octets in 100 ms: 8 ms for each datagram.
        let next = control.paced_at(at(1_000), 1_000, round_trip);
        assert_eq!(next.since(at(1_000)).as_millis(), 8);
        assert_eq!(control.paced_at(next, 1_000, round_trip), next);
    }
}
