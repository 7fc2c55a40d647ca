//! CRUISE: the rate is R, and the queue is empty.
//!
//! ```text
//!   on entry   R, confirmed or as before the last state
//!   sends      at R; measures p_err and jitter
//!   exit       a probe is due, q ≤ Q/2, and R is below the rate cap                 ──▶ PROBING
//!              q > Q in three samples, q > Q/4 for eight RTTs, or loss far above
//!              p_err before three POLLs                                             ──▶ DRAINING
//!              a probe is due, and R has collapsed                                  ──▶ TRAIN
//! ```

use super::estimator::micros;
use super::{MIN_SAMPLES, State, Steady};
use units::Instant;

impl Steady {
    /// CRUISE: a POLL is answered.
    pub(super) fn on_cruise(&mut self, now: Instant) {
        let span = self.rate_span();
        self.path.update_jitter();
        self.path.update_error_ratio(self.queue_threshold_us() / 4, span * 2);
        let Some(recent) = self.path.recent_interval(span, MIN_SAMPLES) else { return };
        if self.has_collapsed() && self.probes.is_due(now) {
            self.restart_with_train(now);
            return;
        }
        self.best_rate_bps = self.best_rate_bps.max(self.base_rate_bps);
        // An application-limited session neither builds a queue nor finds capacity.
        if self.is_app_limited(&recent) {
            return;
        }
        // An increase of the path delay does not hide a lower bottleneck rate.
        if now < self.queue_ignored_until && !self.is_choked(&recent) {
            return;
        }
        let standing = self.path.standing_queue_us(span, MIN_SAMPLES).unwrap_or(0);
        if self.is_queue(&recent) || self.has_persistent_queue() {
            self.on_unprobed_queue(now, &recent);
        } else if standing < self.queue_threshold_us() / 2
            && self.probes.is_due(now)
            && self.base_rate_bps < self.max_rate()
        {
            self.begin_probe(now);
        }
    }

    /// Enters PROBING.
    pub(super) fn begin_probe(&mut self, now: Instant) {
        let time = self.min_rtt.max(micros(self.path.jitter_us() * 32));
        let (base, max_rate) = (self.base_rate_bps, self.max_rate());
        let error_ppm = self.path.error_ppm();
        let probe = self.probes.begin(now, base, max_rate, self.min_rtt, time, error_ppm);
        self.state = State::Probing(probe);
        self.poll_requested = true;
    }
}
