//! Growth of the rate with cross traffic: the function of CUBIC (RFC 9438), over time alone.
//!
//! ```text
//!   W(t)   = 0.4 (t − K)³ + W_max      packets of 1500 octets, t seconds since the last event
//!   K      = ³√((W_max − β W) / 0.4)   W: window at the event
//!   rate   = W(t) / T
//!
//!   delay-based cross traffic   β = 0.9   T = 600 ms for all senders   event: a standing queue
//!   loss-based cross traffic    β = 0.7   T = min_rtt + q              event: loss at a long queue
//! ```
//!
//! With delay-based cross traffic the rate grows at least as that of a Reno-friendly window
//! (RFC 9438, section 4.3), by 3 (1 − β) / (1 + β) = 3/19 packets per min_rtt. On a short path the
//! cubic function alone takes 50 s for 1 Gbit/s.
//!
//! The increase is independent of the rate and the decrease is proportional to it, so the larger
//! one of two rates loses more at an event that both observe, and they converge (Chiu and Jain
//! 1989). Competing with loss-based senders, the function has their parameters.

use super::estimator::{PACKET_BITS, mul};
use units::{Instant, Span};

/// T for delay-based cross traffic.
const NOMINAL_RTT: Span = Span::from_millis(600);
/// Minimum round-trip time of the Reno-friendly growth, which is then 1.9 Gbit/s per second.
const MIN_RENO_RTT: Span = Span::from_millis(1);

/// Kind of the senders that share the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CrossTraffic {
    /// Senders that back off for a queue.
    DelayBased,
    /// A sender that fills the queue.
    LossBased,
}

/// A rate that grows with time, and what the last congestion events have shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct CubicCurve {
    pub(super) traffic: CrossTraffic,
    /// W_max, thousandths of packets.
    w_max_milli: u64,
    /// K, milliseconds.
    k_ms: u64,
    began: Instant,
    /// Bottleneck rate at the last event, bits per second.
    pub(super) last_bottleneck_bps: u64,
    /// Consecutive events with an equal bottleneck rate.
    pub(super) equal_events: u32,
    /// Consecutive events after which the queue was empty.
    pub(super) drained_events: u32,
    /// Consecutive events after which the remaining queue was constant.
    pub(super) unmoved_events: u32,
    /// Maximum queuing delay of the last events, microseconds.
    pub(super) max_queue_us: i64,
}

impl CubicCurve {
    /// A curve whose growth starts with [`Self::begin`] or [`Self::start_at`].
    pub(super) fn new(traffic: CrossTraffic, bottleneck_bps: u64) -> Self {
        Self {
            traffic,
            w_max_milli: 0,
            k_ms: 0,
            began: Instant::ZERO,
            last_bottleneck_bps: bottleneck_bps,
            equal_events: 0,
            drained_events: 0,
            unmoved_events: 0,
            max_queue_us: 0,
        }
    }

    /// A curve after a standing queue that delay-based cross traffic may have caused.
    pub(super) fn after_queue(bottleneck_bps: u64, min_rtt: Span) -> Self {
        let mut curve = Self::new(CrossTraffic::DelayBased, bottleneck_bps);
        curve.on_event(bottleneck_bps, min_rtt, Span::ZERO);
        curve
    }

    pub(super) fn is_loss_based(&self) -> bool {
        self.traffic == CrossTraffic::LossBased
    }

    /// β in tenths.
    fn beta_tenths(&self) -> u64 {
        if self.is_loss_based() { 7 } else { 9 }
    }

    /// T.
    fn time(&self, min_rtt: Span, queue: Span) -> Span {
        if self.is_loss_based() { min_rtt + queue } else { NOMINAL_RTT }
    }

    /// A congestion event at `rate`; returns the reduced rate.
    pub(super) fn on_event(&mut self, rate: u64, min_rtt: Span, queue: Span) -> u64 {
        let beta = self.beta_tenths();
        let window = window_milli(rate, self.time(min_rtt, queue));
        self.w_max_milli = match self.traffic {
            // No return to a proportional value: all senders gain the same.
            CrossTraffic::DelayBased => window * beta / 10,
            // Fast convergence (RFC 9438, section 4.7).
            CrossTraffic::LossBased if window < self.w_max_milli => window * (10 + beta) / 20,
            CrossTraffic::LossBased => window,
        };
        let rise = self.w_max_milli.saturating_sub(window * beta / 10);
        self.k_ms = cube_root(mul(rise, 5_000_000, 2));
        mul(rate, beta, 10)
    }

    /// Starts the growth at `rate` without an event, where the curve is flat.
    pub(super) fn start_at(&mut self, now: Instant, rate: u64, min_rtt: Span, queue: Span) {
        self.w_max_milli = window_milli(rate, self.time(min_rtt, queue));
        self.k_ms = 0;
        self.began = now;
    }

    /// Starts the growth after an event.
    pub(super) fn begin(&mut self, now: Instant) {
        self.began = now;
    }

    /// Excludes an application-limited time, or one without STATs.
    pub(super) fn exclude(&mut self, span: Span) {
        self.began += span;
    }

    /// The rate at `now`.
    pub(super) fn rate(&self, now: Instant, min_rtt: Span, queue: Span) -> u64 {
        let since = now.since(self.began).as_millis().min(1 << 20);
        let from_flat = i128::from(since) - i128::from(self.k_ms);
        let mut rise = from_flat * from_flat * from_flat * 2 / 5_000_000;
        if !self.is_loss_based() {
            rise = rise.max(reno_rise_milli(since, min_rtt).into());
        }
        let packets = (i128::from(self.w_max_milli) + rise).clamp(2_000, 1 << 40);
        let packets = u64::try_from(packets).unwrap_or(2_000);
        let time = self.time(min_rtt, queue).as_nanos();
        mul(packets * PACKET_BITS, 1_000_000, time)
    }
}

/// Packets in flight at `rate` in `time`, in thousandths.
fn window_milli(rate: u64, time: Span) -> u64 {
    mul(rate, time.as_micros(), PACKET_BITS * 1_000)
}

/// Growth of the rate of a Reno-friendly window in `millis`, as packets in [`NOMINAL_RTT`], in
/// thousandths.
fn reno_rise_milli(millis: u64, min_rtt: Span) -> u64 {
    let rtt_us = min_rtt.max(MIN_RENO_RTT).as_micros();
    let divisor = rtt_us.saturating_mul(rtt_us).saturating_mul(19);
    mul(millis * 3, NOMINAL_RTT.as_micros() * 1_000_000, divisor)
}

/// The largest number whose cube is at most `value`.
fn cube_root(value: u64) -> u64 {
    let (mut low, mut high) = (0_u64, 1_u64 << 21);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if middle * middle * middle <= value { low = middle } else { high = middle - 1 }
    }
    low
}
