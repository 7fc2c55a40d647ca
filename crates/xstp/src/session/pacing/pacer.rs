//! Pacer (RFC 9002 section 7.7): every segment is accounted to it, and data waits for it.
//!
//! ```text
//!   next_send ──charge──▶ next_send + octets / rate
//! ```
//!
//! `next_send` advances from its last value and not from the time of the call, so that a late timer
//! costs no rate. The time that is caught up is bounded, so that a late timer causes no large
//! burst. Segments that are not delayed (STAT, POLL, handshakes) are accounted, too.

use units::{BitRate, Instant, Span};

/// Bounds of the time for which segments that are not delayed put data off: this time, or that of so
/// many octets if it is longer. Path MTU probes at a very low rate would stop data for minutes.
const MAX_DEBT: Span = Span::from_secs(1);
const MAX_DEBT_OCTETS: u64 = 3_000;

/// Time of the next transmission of data.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    next_send: Instant,
    /// Planned time of the last segment, and its minimum interval to the next one.
    last: Instant,
    min_interval: Span,
    /// Remainder of `next_send` at `rate`, in units of 1/rate nanoseconds.
    remainder: u64,
    rate: Option<BitRate>,
    /// Maximum age of `next_send` while data is waiting.
    max_burst: Span,
    /// No data is waiting: time that passes is not caught up.
    idle: bool,
}

impl Pacer {
    pub(crate) fn new(max_burst: Span) -> Self {
        Self {
            next_send: Instant::ZERO,
            last: Instant::ZERO,
            min_interval: Span::ZERO,
            remainder: 0,
            rate: None,
            max_burst,
            idle: true,
        }
    }

    /// Time of the next transmission of data.
    pub(crate) fn next_send(&self) -> Instant {
        self.next_send
    }

    /// Whether data may be sent at `now`.
    pub(crate) fn ready(&self, now: Instant) -> bool {
        now >= self.next_send
    }

    /// No data is waiting: the pause that begins allows no burst after it.
    pub(crate) fn idle(&mut self) {
        self.idle = true;
    }

    /// Accounts `bytes` sent at `now`, paced at `rate`.
    pub(crate) fn charge_bytes(&mut self, now: Instant, bytes: u64, rate: BitRate) {
        if self.rate != Some(rate) {
            self.rate = Some(rate);
            self.remainder = 0;
        }
        self.start(now);
        let (span, remainder) = rate.time_and_rest(bytes, self.remainder);
        let latest = now + MAX_DEBT.max(rate.time_for(bytes.max(MAX_DEBT_OCTETS)));
        self.next_send = (self.next_send + span).min(latest);
        self.remainder = remainder;
    }

    /// Adds an interval after a segment sent at `now`. [`Self::bring_forward`] keeps at least
    /// `min_interval` of it.
    pub(crate) fn charge_span(&mut self, now: Instant, interval: Span, min_interval: Span) {
        self.start(now);
        self.next_send += interval;
        self.min_interval = min_interval;
    }

    /// Starts a schedule with `interval` between segments at `now`: a later `next_send` is brought
    /// forward.
    pub(crate) fn bring_forward(&mut self, now: Instant, interval: Span) {
        self.next_send = self.next_send.min((self.last + interval.max(self.min_interval)).max(now));
    }

    /// Discards the schedule: data may be sent at `now`.
    pub(crate) fn reset(&mut self, now: Instant) {
        self.next_send = self.next_send.min(now);
        self.remainder = 0;
    }

    fn start(&mut self, now: Instant) {
        let earliest = if self.idle { now } else { now - self.max_burst };
        if self.next_send < earliest {
            self.next_send = earliest;
            self.remainder = 0;
        }
        self.idle = false;
        self.last = self.next_send;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: BitRate = BitRate::from_mbps(12);
    const PACKET: u64 = 1500; // 1 ms at 12 Mbit/s
    const MS: Span = Span::from_millis(1);

    /// XSTP-8.1.5
    #[test]
    fn segments_that_are_not_delayed_put_data_off_for_a_bounded_time() {
        let mut pacer = pacer();
        let now = Instant::from_nanos(1_000);
        let low = BitRate::from_kbps(2);
        for _ in 0..10 {
            pacer.charge_bytes(now, PACKET, low);
        }
        assert_eq!(pacer.next_send(), now + low.time_for(3_000));
        let mut fast = Pacer::new(MS * 5);
        for _ in 0..3_000 {
            fast.charge_bytes(now, PACKET, RATE);
        }
        assert_eq!(fast.next_send(), now + Span::from_secs(1));
    }

    fn pacer() -> Pacer {
        Pacer::new(MS * 5)
    }

    /// XSTP-8.1.1
    #[test]
    fn a_late_timer_costs_no_rate() {
        let mut pacer = pacer();
        let start = Instant::from_nanos(1_000_000_000);
        pacer.charge_bytes(start, PACKET, RATE);
        // The timer is 2 ms late: three packets may go at once, and the fourth is on time.
        let late = start + MS * 3;
        for _ in 0..3 {
            assert!(pacer.ready(late));
            pacer.charge_bytes(late, PACKET, RATE);
        }
        assert!(!pacer.ready(late));
        assert_eq!(pacer.next_send(), start + MS * 4);
    }

    /// XSTP-8.1.2
    #[test]
    fn what_is_caught_up_is_bounded() {
        let mut pacer = pacer();
        let start = Instant::from_nanos(1_000_000_000);
        pacer.charge_bytes(start, PACKET, RATE);
        let late = start + Span::from_secs(1);
        let mut sent = 0;
        while pacer.ready(late) {
            pacer.charge_bytes(late, PACKET, RATE);
            sent += 1;
        }
        assert_eq!(sent, 6, "5 ms worth, and the one that was due");
    }

    /// XSTP-8.1.3
    #[test]
    fn a_pause_gives_no_right_to_a_burst() {
        let mut pacer = pacer();
        let start = Instant::from_nanos(1_000_000_000);
        pacer.charge_bytes(start, PACKET, RATE);
        pacer.idle();
        let later = start + Span::from_secs(1);
        pacer.charge_bytes(later, PACKET, RATE);
        assert_eq!(pacer.next_send(), later + MS);
    }

    /// XSTP-8.1.4
    #[test]
    fn remainders_are_carried() {
        let mut pacer = pacer();
        let rate = BitRate::from_bps(333_333_333);
        let mut now = Instant::from_nanos(0);
        for _ in 0..100_000 {
            pacer.charge_bytes(now, 1499, rate);
            now = pacer.next_send();
        }
        let exact = 1499u128 * 100_000 * 8_000_000_000 / 333_333_333;
        assert_eq!(u128::from(now.as_nanos()), exact);
    }

    /// XSTP-8.1.5
    #[test]
    fn an_interval_is_counted_from_the_planned_time() {
        let mut pacer = pacer();
        pacer.charge_span(Instant::from_nanos(10), MS, MS / 4);
        pacer.charge_span(Instant::from_nanos(10) + MS + Span::from_nanos(7), MS, MS / 4);
        assert_eq!(pacer.next_send(), Instant::from_nanos(10) + MS * 2);
        let now = Instant::from_nanos(10) + MS + Span::from_nanos(7);
        pacer.bring_forward(now, MS / 2);
        assert_eq!(pacer.next_send(), Instant::from_nanos(10) + MS + MS / 2);
        pacer.bring_forward(now, MS * 9);
        assert_eq!(pacer.next_send(), Instant::from_nanos(10) + MS + MS / 2, "never put off");
        pacer.bring_forward(Instant::ZERO, MS / 8);
        let earliest = Instant::from_nanos(10) + MS + MS / 4;
        assert_eq!(pacer.next_send(), earliest, "nor before what the rate allows");
    }
}
