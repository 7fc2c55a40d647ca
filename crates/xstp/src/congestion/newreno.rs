//! Congestion window of the Satellite Transport Protocol as published: the rules of TCP, driven by
//! STATs.
//!
//! ```text
//!   slow start (cwnd < ssthresh)   cwnd += released octets
//!   avoidance                      cwnd += MSS × released / cwnd
//!   loss, once per window          ssthresh = cwnd = max(cwnd / 2, 2 MSS)
//! ```
//!
//! Henderson and Katz 1999, section VII.B: the window grows by octets and not by acknowledgements;
//! without timeouts there is no second slow start. Elaasar and others 2003, section 3: a window is
//! halved once (here: until all data that was outstanding at the halving is acknowledged), and a
//! session restarts with slow start after an idle time. A minimum rate bounds the window from below;
//! otherwise it would not hold under loss.

use crate::config::SessionConfig;
use crate::congestion::controller::{AckEvent, CongestionController};
use units::{BitRate, Instant, Span};

/// Slow start, congestion avoidance and halving, in octets.
#[derive(Clone, Debug)]
pub(crate) struct NewReno {
    segment: u64,
    initial: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Growth of congestion avoidance that is not yet added, in octets times the window.
    growth_remainder: u64,
    /// VT(S) at the last halving: losses are ignored until VT(A) reaches it.
    recovery_until: Option<u64>,
    min_rate: Option<BitRate>,
    restart_after: Option<Span>,
    max_window: u64,
}

impl NewReno {
    /// The controller of a session that starts.
    pub(crate) fn new(config: &SessionConfig) -> Self {
        let segment = config.payload_size().max(1) as u64;
        let initial = segment * u64::from(config.initial_window.max(1));
        Self {
            segment,
            initial,
            cwnd: initial,
            ssthresh: u64::MAX,
            growth_remainder: 0,
            recovery_until: None,
            min_rate: config.min_rate,
            restart_after: config.xstp.slow_start_after_idle,
            // A larger window has no effect.
            max_window: segment.saturating_mul(u64::from(config.number_window)).max(initial),
        }
    }

    /// Whether the window is below the slow-start threshold.
    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Halves the window, or sets it to half of `flight`, once per window; returns whether it did.
    fn reduce(&mut self, next: u64, flight: Option<u64>) -> bool {
        if self.recovery_until.is_some() {
            return false;
        }
        self.cwnd = (flight.unwrap_or(self.cwnd).min(self.cwnd) / 2).max(2 * self.segment);
        self.ssthresh = self.cwnd;
        self.growth_remainder = 0;
        self.recovery_until = Some(next);
        true
    }

    fn grow(&mut self, released: u64) {
        let mut released = released;
        if self.in_slow_start() {
            let step = released.min(self.ssthresh - self.cwnd);
            self.cwnd += step;
            released -= step;
        }
        if released > 0 {
            self.growth_remainder =
                self.growth_remainder.saturating_add(self.segment.saturating_mul(released));
            self.cwnd += self.growth_remainder / self.cwnd;
            self.growth_remainder %= self.cwnd;
        }
        self.cwnd = self.cwnd.min(self.max_window);
    }
}

impl CongestionController for NewReno {
    fn mode(&self, _: Instant) -> &'static str {
        if self.in_slow_start() { "slow start" } else { "avoidance" }
    }

    fn window(&self) -> Option<u64> {
        Some(self.cwnd)
    }

    fn ssthresh(&self) -> Option<u64> {
        (self.ssthresh != u64::MAX).then_some(self.ssthresh)
    }

    fn on_ack(&mut self, event: &AckEvent) {
        self.grow(event.released);
        if self.recovery_until.is_some_and(|until| event.oldest >= until) {
            self.recovery_until = None;
        }
        if event.lost > 0 {
            self.reduce(event.next, None);
        }
        if let (Some(rate), Some(srtt)) = (self.min_rate, event.srtt) {
            self.cwnd = self.cwnd.max(rate.bytes_in(srtt)).min(self.max_window);
        }
    }

    fn on_restart(&mut self, _: Instant, idle: Span) -> bool {
        let restarts = self.restart_after.is_some_and(|limit| idle >= limit);
        if restarts {
            self.slow_start();
        }
        restarts
    }

    fn halve(&mut self, next: u64, flight: Option<u64>) {
        self.reduce(next, flight);
    }

    /// Restarts with slow start up to the current window.
    fn slow_start(&mut self) {
        if self.cwnd > self.initial {
            self.ssthresh = self.cwnd;
            self.cwnd = self.initial;
            self.growth_remainder = 0;
        }
    }

    fn restore(&mut self, window: u64, ssthresh: Option<u64>) {
        self.cwnd = window;
        self.ssthresh = ssthresh.unwrap_or(u64::MAX);
        self.growth_remainder = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller(initial_segments: u32) -> NewReno {
        let mut config = SessionConfig::stp_1999();
        config.initial_window = initial_segments;
        NewReno::new(&config)
    }

    fn ack(released: u64, lost: u64, oldest: u64, next: u64) -> AckEvent {
        AckEvent { now: Instant::ZERO, released, lost, oldest, next, srtt: None }
    }

    /// XSTP-9.2.1
    #[test]
    fn slow_start_grows_by_released_octets() {
        let mut reno = controller(1);
        let segment = reno.segment;
        reno.on_ack(&ack(segment, 0, 1, 1));
        assert_eq!(reno.cwnd, 2 * segment);
        reno.on_ack(&ack(2 * segment, 0, 3, 3));
        assert_eq!(reno.cwnd, 4 * segment);
        reno.on_ack(&ack(10, 0, 4, 4));
        assert_eq!(reno.cwnd, 4 * segment + 10, "bytes are counted, not acknowledgements");
    }

    /// XSTP-9.2.2
    #[test]
    fn avoidance_adds_a_segment_per_window() {
        let mut reno = controller(8);
        let segment = reno.segment;
        reno.on_ack(&ack(0, 1, 0, 8));
        assert_eq!(reno.cwnd, 4 * segment);
        for round in 0..4 {
            let before = reno.cwnd;
            reno.on_ack(&ack(before, 0, 100, 100 + round));
            let grown = reno.cwnd - before;
            assert!(grown.abs_diff(segment) <= 1, "grew by {grown} in round {round}");
        }
    }

    /// XSTP-9.2.3
    #[test]
    fn a_window_is_halved_once() {
        let mut reno = controller(16);
        let segment = reno.segment;
        reno.on_ack(&ack(0, 3, 0, 16));
        reno.on_ack(&ack(0, 5, 8, 20));
        assert_eq!(reno.cwnd, 8 * segment, "still the window of the first loss");
        reno.on_ack(&ack(0, 1, 16, 24));
        assert_eq!(reno.cwnd, 4 * segment, "VT(A) has reached the old VT(S)");
        for round in 0..10 {
            reno.on_ack(&ack(0, 1, 100 + round, 100 + round));
        }
        assert_eq!(reno.cwnd, 2 * segment, "two segments are the floor");
    }

    /// XSTP-9.2.4
    #[test]
    fn slow_start_restarts_only_after_the_configured_idle_time() {
        let mut reno = controller(4);
        reno.on_ack(&ack(40_000, 0, 1, 1));
        let grown = reno.cwnd;
        reno.on_restart(Instant::ZERO, Span::from_secs(3600));
        assert_eq!(reno.cwnd, grown, "never by default");
        reno.restart_after = Some(Span::from_secs(3));
        reno.on_restart(Instant::ZERO, Span::from_secs(2));
        assert_eq!(reno.cwnd, grown);
        reno.on_restart(Instant::ZERO, Span::from_secs(3));
        assert_eq!(reno.cwnd, reno.initial);
        assert!(reno.in_slow_start());
    }

    /// XSTP-9.2.5
    #[test]
    fn a_minimum_rate_bounds_the_window_under_loss() {
        let mut config = SessionConfig::stp_1999();
        config.min_rate = Some(BitRate::from_mbps(1));
        let mut reno = NewReno::new(&config);
        let srtt = Some(Span::from_millis(400));
        for round in 0..20 {
            reno.on_ack(&AckEvent { srtt, ..ack(0, 1, round, round) });
        }
        assert_eq!(reno.cwnd, 50_000);
    }
}
