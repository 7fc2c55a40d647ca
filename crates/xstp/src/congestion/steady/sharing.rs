//! SHARING and COMPETING: cross traffic uses the bottleneck, and the rate follows a
//! [`CubicCurve`].
//!
//! ```text
//!   SHARING     on entry   C of the last event; cross traffic backs off for a queue
//!               event      a standing queue: drain, then 0.9 C
//!               exit       three events with an equal C: the shares have converged, or there is no
//!                          cross traffic ──▶ CRUISE
//!   COMPETING   on entry   a queue did not drain: another sender fills it
//!               event      a congestion loss while q exceeds 3/4 of its maximum: drain the own part
//!                          of the queue, then 0.7 of the rate
//!               exit       the queue was drained after two events        ──▶ SHARING
//!                          it was constant after three events            ──▶ CRUISE, new base delay
//!                          q < Q/4 for two RTTs                          ──▶ CRUISE
//! ```

use super::cubic::{CrossTraffic, CubicCurve};
use super::drain::AfterDrain;
use super::estimator::{SampleInterval, micros, mul};
use super::{LOW_JITTER_US, MIN_RATE_SPAN, MIN_SAMPLES, State, Steady};
use units::{Instant, Span};

/// Two bottleneck rates are equal if they differ by less than 1/96.
const EQUAL_DIVISOR: u64 = 96;
/// Consecutive equal bottleneck rates that end SHARING; one may be random.
const MIN_EQUAL_EVENTS: u32 = 2;
/// Time for which detected cross traffic is assumed to continue.
const CROSS_TRAFFIC_MEMORY: Span = Span::from_secs(60);

impl Steady {
    /// A POLL is answered, `since_last` after the last one.
    pub(super) fn on_sharing(&mut self, now: Instant, mut curve: CubicCurve, since_last: Span) {
        self.path.update_jitter();
        // Without STATs the rate does not grow. They are 5 ms apart on a shorter path, too.
        curve.exclude(since_last.saturating_sub((self.min_rtt * 2).max(MIN_RATE_SPAN)));
        let span = self.rate_span();
        let Some(recent) = self.path.recent_interval(span, MIN_SAMPLES) else {
            self.state = State::Sharing(curve);
            return;
        };
        if self.is_app_limited(&recent) {
            curve.exclude(since_last);
            self.state = State::Sharing(curve);
            return;
        }
        match curve.traffic {
            CrossTraffic::DelayBased => {
                self.path.update_error_ratio(self.queue_threshold_us() / 4, span * 2);
                if self.is_queue(&recent) {
                    self.on_shared_queue(now, curve, &recent);
                    return;
                }
            }
            CrossTraffic::LossBased => {
                let queue_us = self.path.last_queue_us();
                curve.max_queue_us = (curve.max_queue_us - curve.max_queue_us / 256).max(queue_us);
                let is_full = queue_us > curve.max_queue_us / 4 * 3;
                if is_full && recent.has_congestion_loss(self.path.error_ppm()) {
                    self.on_congestion_loss(now, curve);
                    return;
                }
                let standing = self.path.standing_queue_us(self.min_rtt * 2, MIN_SAMPLES);
                if standing.is_some_and(|queue_us| queue_us < self.queue_threshold_us() / 4) {
                    self.state = State::Cruise;
                    self.probes.reset(now, self.min_rtt);
                    return;
                }
            }
        }
        self.grow(now, curve);
        // At most 1.5 times the delivery rate without corruption.
        let kept = 1_000_000_u64.saturating_sub(self.path.error_ppm()).max(1);
        let limit = mul(recent.delivery_rate_bps(), 1_500_000, kept);
        self.base_rate_bps = self.base_rate_bps.min(limit).max(self.min_rate_bps);
    }

    /// Sets the rate to that of the curve.
    fn grow(&mut self, now: Instant, curve: CubicCurve) {
        let rate = curve.rate(now, self.min_rtt, self.last_queue());
        self.base_rate_bps = rate.clamp(self.min_rate_bps, self.max_rate());
        self.state = State::Sharing(curve);
    }

    /// SHARING: a standing queue.
    fn on_shared_queue(&mut self, now: Instant, mut curve: CubicCurve, recent: &SampleInterval) {
        let bottleneck_bps = self.queued_bottleneck_bps(recent);
        let is_precise = self.path.jitter_us() <= LOW_JITTER_US;
        let divisor = if is_precise { EQUAL_DIVISOR } else { EQUAL_DIVISOR / 3 };
        let last = curve.last_bottleneck_bps;
        let is_equal = bottleneck_bps.abs_diff(last) <= last / divisor;
        curve.last_bottleneck_bps = bottleneck_bps;
        curve.equal_events = if is_equal { curve.equal_events + 1 } else { 0 };
        if !is_equal {
            // The bottleneck is shared: the rate without cross traffic is not recovered.
            self.rate_drop = None;
            self.sharing_until = now + CROSS_TRAFFIC_MEMORY;
        }
        curve.on_event(bottleneck_bps, self.min_rtt, Span::ZERO);
        let has_converged = curve.equal_events >= MIN_EQUAL_EVENTS;
        let then = if has_converged { AfterDrain::Cruise } else { AfterDrain::Share(curve) };
        self.drain(now, bottleneck_bps, then);
    }

    /// COMPETING: a congestion loss at a long queue.
    fn on_congestion_loss(&mut self, now: Instant, mut curve: CubicCurve) {
        self.competing_until = now + CROSS_TRAFFIC_MEMORY;
        let rate = self.base_rate_bps;
        let reduced = curve.on_event(rate, self.min_rtt, self.last_queue());
        self.drain(now, rate, AfterDrain::Share(curve));
        self.base_rate_bps = reduced;
    }

    /// Enters SHARING after a probe that found capacity: other senders may have released it, and
    /// all of them grow by the same amount.
    pub(super) fn enter_sharing(&mut self, now: Instant) {
        let bottleneck_bps = self.bottleneck_bps.unwrap_or(self.base_rate_bps);
        self.start_curve(now, CubicCurve::new(CrossTraffic::DelayBased, bottleneck_bps));
    }

    /// Enters COMPETING: a queue became shorter but was not drained.
    pub(super) fn enter_competing(&mut self, now: Instant) {
        self.undrained_queues = 0;
        self.competing_until = now + CROSS_TRAFFIC_MEMORY;
        self.start_curve(now, CubicCurve::new(CrossTraffic::LossBased, self.base_rate_bps));
    }

    fn start_curve(&mut self, now: Instant, mut curve: CubicCurve) {
        curve.start_at(now, self.base_rate_bps, self.min_rtt, self.last_queue());
        self.grow(now, curve);
    }

    /// Enters SHARING or COMPETING after an event.
    pub(super) fn resume_sharing(&mut self, now: Instant, mut curve: CubicCurve) {
        curve.begin(now);
        self.grow(now, curve);
    }

    /// COMPETING: the queue `is_drained` after an event, or what remains of it `is_unmoved`.
    pub(super) fn after_loss_event(
        &mut self,
        now: Instant,
        mut curve: CubicCurve,
        is_drained: bool,
        is_unmoved: bool,
    ) {
        curve.drained_events = if is_drained { curve.drained_events + 1 } else { 0 };
        curve.unmoved_events = if is_unmoved && !is_drained { curve.unmoved_events + 1 } else { 0 };
        if curve.unmoved_events >= 3 {
            self.adopt_base_delay(now, self.base_rate_bps);
            return;
        }
        if curve.drained_events >= 2 {
            curve = CubicCurve::after_queue(self.below(self.base_rate_bps), self.min_rtt);
        }
        self.resume_sharing(now, curve);
    }

    /// Queuing delay of the newest sample.
    fn last_queue(&self) -> Span {
        micros(self.path.last_queue_us())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SessionConfig;
    use crate::congestion::controller::CongestionController;
    use units::BitRate;

    /// The peer may announce any rate, and min_rate may equal max_rate, which has headroom.
    #[test]
    fn a_rate_cap_below_every_minimum_holds() {
        let usual = SessionConfig::gateway_auto();
        let rate = |bps| Some(BitRate::from_bps(bps));
        let slow = SessionConfig { max_rate: rate(500), ..usual.clone() };
        let narrow = SessionConfig { max_rate: rate(9_000), min_rate: rate(9_000), ..usual };
        for (config, max_rate) in [(slow, 500), (narrow, 9_000)] {
            let now = Instant::ZERO + Span::from_secs(1);
            let mut steady = Steady::new(&config);
            steady.resume_sharing(now, CubicCurve::new(CrossTraffic::DelayBased, max_rate));
            assert!((1..=max_rate).contains(&steady.pace(now).unwrap().as_bps()));
            steady.enter_competing(now);
            assert!((1..=max_rate).contains(&steady.pace(now).unwrap().as_bps()));
        }
    }
}
