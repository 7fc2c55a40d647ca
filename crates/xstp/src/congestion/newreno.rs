//! The window of the Satellite Transport Protocol as published: TCP's rules, driven by STATs.
//!
//! ```text
//!   slow start (cwnd < ssthresh)   cwnd += released bytes
//!   avoidance                      cwnd += MSS × released / cwnd
//!   loss, once for each window     ssthresh = cwnd = max(cwnd / 2, 2 MSS)
//! ```
//!
//! Henderson and Katz 1999, section VII.B: growth by bytes and not by acknowledgements; slow
//! start is never entered again, as there are no timeouts. Elaasar and others 2003, section 3:
//! further losses of one window do not halve again (here: until everything that was
//! outstanding at the halving is acknowledged), and slow start may be entered again after an
//! idle time. A minimum rate puts a floor under the window, or it would not hold under loss.

use super::Feedback;
use crate::config::SessionConfig;
use units::{BitRate, Span};

/// Slow start, congestion avoidance and halving, in bytes.
#[derive(Clone, Debug)]
pub struct NewReno {
    segment: u64,
    initial: u64,
    window: u64,
    threshold: u64,
    /// What avoidance has earned but not yet added, in bytes times the window.
    earned: u64,
    /// Losses are ignored until VT(A) reaches this: VT(S) at the last halving.
    halved_until: Option<u64>,
    min_rate: Option<BitRate>,
    restart_after: Option<Span>,
    ceiling: u64,
}

impl NewReno {
    /// The controller of a session that is about to start.
    pub(crate) fn new(config: &SessionConfig) -> Self {
        let segment = config.payload_size().max(1) as u64;
        let initial = segment * u64::from(config.initial_window.max(1));
        Self {
            segment,
            initial,
            window: initial,
            threshold: u64::MAX,
            earned: 0,
            halved_until: None,
            min_rate: config.min_rate,
            restart_after: config.xstp.slow_start_after_idle,
            // A window beyond every number that may be outstanding says nothing.
            ceiling: segment.saturating_mul(u64::from(config.number_window)).max(initial),
        }
    }

    /// Bytes that may be outstanding.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Where the window stops to grow exponentially; `None` before the first loss.
    pub fn threshold(&self) -> Option<u64> {
        (self.threshold != u64::MAX).then_some(self.threshold)
    }

    /// Whether the window still grows exponentially.
    pub fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    pub(super) fn on_feedback(&mut self, feedback: &Feedback) -> bool {
        self.grow(feedback.released);
        if self.halved_until.is_some_and(|until| feedback.oldest >= until) {
            self.halved_until = None;
        }
        let halve = feedback.lost > 0 && self.halve(feedback.next, None);
        if let (Some(rate), Some(round_trip)) = (self.min_rate, feedback.round_trip) {
            self.window = self.window.max(rate.bytes_in(round_trip)).min(self.ceiling);
        }
        halve
    }

    /// Halves the window, or sets it to half of `flight`, once for each window: VT(S) is `next`.
    /// Whether it did.
    pub(super) fn halve(&mut self, next: u64, flight: Option<u64>) -> bool {
        if self.halved_until.is_some() {
            return false;
        }
        self.window = (flight.unwrap_or(self.window).min(self.window) / 2).max(2 * self.segment);
        self.threshold = self.window;
        self.earned = 0;
        self.halved_until = Some(next);
        true
    }

    /// Slow start anew, up to the window as it is.
    pub(super) fn slow_start(&mut self) {
        if self.window > self.initial {
            self.threshold = self.window;
            self.window = self.initial;
            self.earned = 0;
        }
    }

    /// Sets the window and its threshold to what they were.
    pub(super) fn restore(&mut self, window: u64, threshold: Option<u64>) {
        self.window = window;
        self.threshold = threshold.unwrap_or(u64::MAX);
        self.earned = 0;
    }

    /// Data is sent after a time without. Whether slow start begins anew.
    pub(super) fn on_restart(&mut self, idle: Span) -> bool {
        let restarts = self.restart_after.is_some_and(|limit| idle >= limit);
        if restarts {
            self.slow_start();
        }
        restarts
    }

    fn grow(&mut self, released: u64) {
        let mut released = released;
        if self.in_slow_start() {
            let step = released.min(self.threshold - self.window);
            self.window += step;
            released -= step;
        }
        if released > 0 {
            self.earned = self.earned.saturating_add(self.segment.saturating_mul(released));
            self.window += self.earned / self.window;
            self.earned %= self.window;
        }
        self.window = self.window.min(self.ceiling);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Instant;

    fn controller(initial_segments: u32) -> NewReno {
        let mut config = SessionConfig::stp_1999();
        config.initial_window = initial_segments;
        NewReno::new(&config)
    }

    fn feedback(released: u64, lost: u64, oldest: u64, next: u64) -> Feedback {
        Feedback { now: Instant::ZERO, released, lost, oldest, next, round_trip: None }
    }

    /// XSTP-9.2.1
    #[test]
    fn slow_start_grows_by_the_bytes_released() {
        let mut reno = controller(1);
        let segment = reno.segment;
        reno.on_feedback(&feedback(segment, 0, 1, 1));
        assert_eq!(reno.window(), 2 * segment);
        reno.on_feedback(&feedback(2 * segment, 0, 3, 3));
        assert_eq!(reno.window(), 4 * segment);
        reno.on_feedback(&feedback(10, 0, 4, 4));
        assert_eq!(reno.window(), 4 * segment + 10, "bytes are counted, not acknowledgements");
    }

    /// XSTP-9.2.2
    #[test]
    fn avoidance_adds_a_segment_for_each_window() {
        let mut reno = controller(8);
        let segment = reno.segment;
        assert!(reno.on_feedback(&feedback(0, 1, 0, 8)));
        assert_eq!(reno.window(), 4 * segment);
        for round in 0..4 {
            let before = reno.window();
            reno.on_feedback(&feedback(before, 0, 100, 100 + round));
            let grown = reno.window() - before;
            assert!(grown.abs_diff(segment) <= 1, "grew by {grown} in round {round}");
        }
    }

    /// XSTP-9.2.3
    #[test]
    fn a_window_is_halved_once() {
        let mut reno = controller(16);
        let segment = reno.segment;
        assert!(reno.on_feedback(&feedback(0, 3, 0, 16)));
        assert!(!reno.on_feedback(&feedback(0, 5, 8, 20)), "still the window of the first loss");
        assert_eq!(reno.window(), 8 * segment);
        assert!(reno.on_feedback(&feedback(0, 1, 16, 24)), "VT(A) has reached the old VT(S)");
        assert_eq!(reno.window(), 4 * segment);
        for round in 0..10 {
            reno.on_feedback(&feedback(0, 1, 100 + round, 100 + round));
        }
        assert_eq!(reno.window(), 2 * segment, "two segments are the floor");
    }

    /// XSTP-9.2.4
    #[test]
    fn slow_start_returns_only_after_a_configured_pause() {
        let mut reno = controller(4);
        reno.on_feedback(&feedback(40_000, 0, 1, 1));
        let grown = reno.window();
        reno.on_restart(Span::from_secs(3600));
        assert_eq!(reno.window(), grown, "never by default");
        reno.restart_after = Some(Span::from_secs(3));
        reno.on_restart(Span::from_secs(2));
        assert_eq!(reno.window(), grown);
        reno.on_restart(Span::from_secs(3));
        assert_eq!(reno.window(), reno.initial);
        assert!(reno.in_slow_start());
    }

    /// XSTP-9.2.5
    #[test]
    fn a_minimum_rate_holds_under_loss() {
        let mut config = SessionConfig::stp_1999();
        config.min_rate = Some(BitRate::from_mbps(1));
        let mut reno = NewReno::new(&config);
        let round_trip = Some(Span::from_millis(400));
        for round in 0..20 {
            reno.on_feedback(&Feedback { round_trip, ..feedback(0, 1, round, round) });
        }
        assert_eq!(reno.window(), 50_000);
    }
}
