//! DRAINING and SETTLING: a queue is drained, and its cause is determined.
//!
//! ```text
//!   DRAINING   on entry   C, queuing delay q, and the rate before
//!              sends      at C/2 for 2 q, or at C/8 for 8/7 q if q exceeds half of the RTT
//!              exit       at that time, which every sample updates
//!   SETTLING   on entry   as DRAINING
//!              sends      at C − C/256
//!              exit       POLLs of this state are answered, three, or one after a probe:
//!       q < max(Q/2, 1/4 of q on entry)   the queue is drained: AfterDrain
//!       q is constant to Q/8, no loss     the path delay has increased: CRUISE at the rate before,
//!                                         new base delay
//!       q varies                          another sender fills the queue: drain once more, then
//!                                         COMPETING
//! ```

use super::cubic::CubicCurve;
use super::estimator::{Sample, SampleInterval, as_micros, micros};
use super::{MAX_HOLDOFF, MIN_SAMPLES, State, Steady};
use units::{Instant, Span};

/// A queue that is drained.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    pub(super) rate: u64,
    pub(super) since: Instant,
    pub(super) until: Instant,
    /// Whether it is drained at C/8 instead of C/2.
    is_deep: bool,
    /// Queuing delay at its start, microseconds.
    queue_us: i64,
    /// Base rate before it.
    rate_before: u64,
    /// Whether the service rate was below the send rate in the queue.
    was_choked: bool,
    then: AfterDrain,
}

/// State after a queue that was drained.
#[derive(Clone, Copy, Debug)]
pub(super) enum AfterDrain {
    /// CRUISE: a probe or the ramp caused the queue.
    OwnQueue,
    /// CRUISE: the bottleneck rate is lower than estimated.
    Cruise,
    /// SHARING or COMPETING: cross traffic may have caused the queue.
    Share(CubicCurve),
}

impl AfterDrain {
    fn is_loss_based(&self) -> bool {
        matches!(self, Self::Share(curve) if curve.is_loss_based())
    }
}

impl Drain {
    /// Time in which a queue is drained.
    fn time_for(&self, queue: Span) -> Span {
        if self.is_deep { queue.mul_ratio(8, 7) } else { queue * 2 }
    }
}

impl Steady {
    /// Enters DRAINING: there is a standing queue, and the bottleneck rate is `bottleneck_bps`.
    pub(super) fn drain(&mut self, now: Instant, bottleneck_bps: u64, then: AfterDrain) {
        let bottleneck_bps = bottleneck_bps.max(self.min_rate_bps);
        let Some(last) = self.path.last() else { return };
        let queue_us = self.path.queue_us(last);
        // The queue has grown since that POLL was sent.
        let since = as_micros(now.since(last.sent_at));
        let recent = self.path.recent_interval(self.rate_span(), 2);
        let recent = recent.or_else(|| self.path.recent_interval(Span::ZERO, 2));
        let growth = recent.filter(|recent| !recent.overflows(self.path.error_ppm()));
        let growth = growth.map_or(0, |recent| {
            let interval = recent.send_interval_us.max(1) as i64;
            recent.delay_increase_us.max(0).saturating_mul(since) / interval
        });
        let queue = micros(queue_us.saturating_add(growth));
        let is_loss_based = then.is_loss_based();
        let is_deep = queue > self.min_rtt / 2 && !is_loss_based;
        let queued = self.path.queued_interval(self.queue_threshold_us() / 2);
        let was_choked = queued
            .is_some_and(|queued| queued.service_rate_bps() < queued.send_rate_bps() / 16 * 15);
        if !is_loss_based {
            self.note_rate_drop(now, bottleneck_bps);
        }
        let mut drain = Drain {
            rate: if is_deep { bottleneck_bps / 8 } else { bottleneck_bps / 2 },
            since: now,
            until: now,
            is_deep,
            queue_us,
            rate_before: self.base_rate_bps,
            was_choked,
            then,
        };
        drain.until = now + drain.time_for(queue);
        self.cross_traffic_seen |= matches!(then, AfterDrain::Share(_));
        self.base_rate_bps = self.below(bottleneck_bps);
        self.capped_since_confirmed = false;
        self.bottleneck_bps = Some(bottleneck_bps);
        self.state = State::Draining(drain);
        self.poll_requested = true;
    }

    /// Updates the end of DRAINING for the queue that a sample shows.
    pub(super) fn on_draining(&mut self, now: Instant, mut drain: Drain, sample: &Sample) {
        if sample.sent_at >= drain.since {
            let left = micros(self.path.queue_us(sample));
            drain.until = drain.until.min(sample.sent_at + drain.time_for(left));
        }
        self.state = State::Draining(drain);
        if now >= drain.until {
            self.enter_settling(now, drain);
        }
    }

    /// Enters SETTLING: DRAINING has ended.
    pub(super) fn enter_settling(&mut self, now: Instant, drain: Drain) {
        self.state = State::Settling(Drain { until: now, ..drain });
        self.poll_requested = true;
    }

    /// Determines the cause of the queue when a POLL of SETTLING is answered.
    pub(super) fn on_settling(&mut self, now: Instant, drain: &Drain) {
        let is_loss_based = drain.then.is_loss_based();
        let rest_us = if is_loss_based { 0 } else { drain.queue_us / 4 };
        let threshold = self.queue_threshold_us();
        let is_drained = self.path.last_queue_us() < rest_us.max(threshold / 2);
        let is_own = matches!(drain.then, AfterDrain::OwnQueue);
        let (samples, range) = self.path.delay_range(drain.until);
        // A queue below the threshold was detected by loss: was that loss corruption?
        let by_loss = drain.queue_us < threshold / 2 && !is_own;
        if (!is_drained || by_loss) && !is_own && samples < MIN_SAMPLES {
            return;
        }
        if is_drained && by_loss && self.path.detect_error_increase(drain.until) {
            self.base_rate_bps = drain.rate_before;
            self.state = State::Cruise;
            self.path.clear_samples();
            return;
        }
        // At this rate a queue caused by this sender becomes shorter.
        let is_unmoved =
            range <= (threshold / 8).max(self.path.jitter_us() * 4) && !self.has_congestion_loss();
        self.state = State::Cruise;
        self.queue_ignored_until = now;
        if is_drained {
            self.undrained_queues = 0;
        }
        if is_drained && !is_loss_based && self.has_collapsed() {
            self.restart_with_train(now);
            return;
        }
        match drain.then {
            AfterDrain::OwnQueue => {}
            AfterDrain::Share(curve) if is_loss_based => {
                self.after_loss_event(now, curve, is_drained, is_unmoved);
            }
            AfterDrain::Cruise if is_drained => {
                self.queue_holdoff = Span::ZERO;
                self.probes.reset(now, self.min_rtt);
            }
            AfterDrain::Share(curve) if is_drained => {
                self.queue_holdoff = Span::ZERO;
                self.resume_sharing(now, curve);
            }
            _ if is_unmoved && now >= self.competing_until => {
                // If only the path delay increased, all sent packets were served.
                let choked = drain.was_choked;
                let rate = if choked { self.base_rate_bps } else { drain.rate_before };
                self.adopt_base_delay(now, rate);
            }
            // Other senders of this kind drain, too, but not at the same time: once more.
            then if self.undrained_queues == 0 => {
                self.undrained_queues = 1;
                self.drain(now, self.base_rate_bps, then);
                return;
            }
            _ => self.enter_competing(now),
        }
        self.path.clear_samples();
    }

    /// The path delay has increased: the current delay is the base delay, and `rate` was right.
    pub(super) fn adopt_base_delay(&mut self, now: Instant, rate: u64) {
        self.path.reset_base_delay(now);
        self.base_rate_bps = rate;
        let first = self.min_rtt * 4;
        let doubled = (self.queue_holdoff * 2).min(MAX_HOLDOFF);
        self.queue_holdoff = if self.queue_holdoff < first { first } else { doubled };
        self.queue_ignored_until = now + self.queue_holdoff;
    }

    /// Whether the newest interval has a congestion loss.
    fn has_congestion_loss(&self) -> bool {
        let recent = self.path.recent_interval(self.rate_span(), MIN_SAMPLES);
        recent.is_some_and(|recent| recent.has_congestion_loss(self.path.error_ppm()))
    }

    /// The bottleneck rate since the queue became non-empty, or in `recent`.
    pub(super) fn queued_bottleneck_bps(&self, recent: &SampleInterval) -> u64 {
        let queued = self.path.queued_interval(self.queue_threshold_us() / 2);
        queued.as_ref().unwrap_or(recent).bottleneck_bps(self.path.error_ppm())
    }

    /// Drains a standing queue that was detected in CRUISE.
    pub(super) fn on_unprobed_queue(&mut self, now: Instant, recent: &SampleInterval) {
        let bottleneck_bps = self.queued_bottleneck_bps(recent);
        // A rate that was never confirmed as the bottleneck rate is too high, and so is one that
        // causes a queue below the threshold.
        let may_be_shared = self.bottleneck_bps.is_some() && self.is_queue(recent);
        let then = if may_be_shared {
            AfterDrain::Share(CubicCurve::after_queue(bottleneck_bps, self.min_rtt))
        } else {
            AfterDrain::Cruise
        };
        self.drain(now, bottleneck_bps, then);
    }

    /// Whether there is a queue: standing above the threshold in three samples, or two if the
    /// service rate is far below the send rate; or overflowing below the threshold.
    pub(super) fn is_queue(&self, recent: &SampleInterval) -> bool {
        let standing = self.path.standing_queue_us(self.rate_span(), MIN_SAMPLES).unwrap_or(0);
        standing > self.queue_threshold_us() || self.is_choked(recent) || self.path.overflows()
    }

    /// Whether a quarter of the threshold has been exceeded for eight RTTs.
    pub(super) fn has_persistent_queue(&self) -> bool {
        let standing = self.path.standing_queue_us(self.min_rtt * 8, MIN_SAMPLES);
        standing.is_some_and(|standing| standing > self.queue_threshold_us() / 4)
    }
}
