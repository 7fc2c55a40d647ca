//! The window of RFC 9438, in segments and seconds.
//!
//! ```text
//!   W_cubic(t) = C (t - K)^3 + W_max,   K = cbrt((W_max - cwnd_epoch) / C)      section 4.2
//!   target     = W_cubic(t + RTT), from cwnd to 1.5 cwnd
//!   W_est     += alpha acked / cwnd,    alpha = 3 (1 - beta) / (1 + beta),      section 4.3
//!                                       and 1 from cwnd_prior on
//!   an ACK       cwnd = W_est where W_cubic(t) < W_est,                         section 4.3
//!                else cwnd += (target - cwnd) / cwnd for each segment           4.4 and 4.5
//!   loss         W_max = cwnd, or cwnd (1 + beta) / 2 when below the last       4.7
//!                cwnd = ssthresh = beta flight                                  4.6
//!   timeout      ssthresh = beta flight, cwnd = 1; then K = 0, W_max = cwnd     4.8
//!   Linux        before the first loss, and after a timeout: at least a segment per 20
//! ```

use super::events::Acked;
use super::hystart::{HyStart, LinuxHyStart};
use super::levels::Levels;
use crate::config::EarlyEnd;
use units::{Instant, Span};

/// C, in segments per second cubed (section 5.1).
const C: f64 = 0.4;
/// beta_cubic (section 4.6), as a fraction.
const BETA: (u64, u64) = (7, 10);
const BETA_F: f64 = 0.7;
/// alpha_cubic: as much as Reno with halving gains (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA_F) / (1.0 + BETA_F);

/// Linux's window growth per acknowledged segment before any loss has shown the path's capacity: 5
/// % per round trip.
const LEAST_GROWTH: f64 = 1.0 / 20.0;

/// CUBIC's state.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    levels: Levels,
    /// W_max, in segments.
    top: f64,
    /// cwnd_prior, in segments.
    prior: f64,
    epoch: Option<Epoch>,
    /// When the last acknowledgement arrived.
    last: Instant,
    hystart: Option<HyStart>,
    linux: Option<LinuxHyStart>,
    /// No loss has occurred since the beginning or the last timeout.
    unknown: bool,
}

/// An epoch of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// K, in seconds.
    k: f64,
    /// W_est, in segments.
    estimate: f64,
    /// The window in segments, including fractions of an octet.
    window: f64,
}

impl Cubic {
    pub(crate) fn new(levels: Levels, early_end: EarlyEnd) -> Self {
        let (hystart, linux) = match early_end {
            EarlyEnd::Never => (None, None),
            EarlyEnd::HyStartPlusPlus => (Some(HyStart::new()), None),
            EarlyEnd::LinuxHyStart => (None, Some(LinuxHyStart::new())),
        };
        let (epoch, last) = (None, Instant::ZERO);
        Self { levels, top: 0.0, prior: 0.0, epoch, last, hystart, linux, unknown: true }
    }

    pub(crate) fn levels(&self) -> &Levels {
        &self.levels
    }

    pub(crate) fn levels_mut(&mut self) -> &mut Levels {
        &mut self.levels
    }

    pub(crate) fn on_ack(&mut self, acked: &Acked) {
        let since = acked.now.since(self.last);
        self.last = acked.now;
        if !acked.limited {
            // Time in which the window was not fully used does not count (section 4.2).
            self.on_idle(since);
            return;
        }
        if self.levels.threshold() < u64::MAX {
            // HyStart++ applies to the initial slow start (RFC 9406, section 4.3).
            self.hystart = None;
        }
        let mut divisor = 1;
        if self.levels.in_slow_start()
            && let Some(hystart) = &mut self.hystart
        {
            divisor = hystart.on_ack(acked);
            if hystart.is_over() {
                self.levels.set_threshold(self.levels.window());
            }
        }
        if self.levels.in_slow_start()
            && let Some(linux) = &mut self.linux
            && linux.on_ack(acked, self.levels.window(), self.levels.segment())
        {
            self.levels.set_threshold(self.levels.window());
        }
        let rest = self.levels.slow_start(acked.bytes, divisor);
        if rest > 0 {
            self.avoid(acked, rest);
        }
    }

    fn avoid(&mut self, acked: &Acked, bytes: u64) {
        let size = self.levels.segment() as f64;
        let segments = bytes as f64 / size;
        let now_window = self.levels.window() as f64 / size;
        let (top, epoch) = match &mut self.epoch {
            Some(epoch) => (self.top, epoch),
            none => {
                let k = if now_window < self.top {
                    libm::cbrt((self.top - now_window) / C)
                } else {
                    self.top = now_window;
                    0.0
                };
                let fresh = Epoch { start: acked.now, k, estimate: now_window, window: now_window };
                (self.top, none.insert(fresh))
            }
        };
        let k = epoch.k;
        let cubic = |seconds: f64| C * (seconds - k) * (seconds - k) * (seconds - k) + top;
        let passed = acked.now.since(epoch.start).as_secs_f64();
        let round_trip = acked.round_trip.unwrap_or(Span::ZERO).as_secs_f64();
        let alpha = if epoch.estimate >= self.prior { 1.0 } else { ALPHA };
        let window = epoch.window;
        epoch.estimate += alpha * segments / window;
        epoch.window = if cubic(passed) < epoch.estimate {
            window.max(epoch.estimate)
        } else {
            let target = cubic(passed + round_trip).clamp(window, 1.5 * window);
            window + (target - window) / window * segments
        };
        if self.linux.is_some() && self.unknown {
            // Linux: the cubic function is too slow where the capacity is unknown (bictcp_update).
            epoch.window = epoch.window.max(window + segments * LEAST_GROWTH);
        }
        self.levels.set_window((epoch.window * size) as u64);
    }

    pub(crate) fn on_loss(&mut self, flight: u64) {
        let window = self.reduce(flight);
        self.unknown = false;
        // Fast convergence (section 4.7): a flow that did not reach its previous window releases
        // capacity.
        let released = window < self.top;
        self.top = if released { window * (1.0 + BETA_F) / 2.0 } else { window };
        self.levels.set_window(self.levels.threshold());
    }

    pub(crate) fn on_timeout(&mut self, flight: u64, first: bool) {
        if first {
            self.reduce(flight);
        }
        self.top = 0.0;
        self.epoch = None;
        self.unknown = true;
        if let Some(linux) = &mut self.linux {
            // Linux resets HyStart after a timeout (bictcp_state).
            *linux = LinuxHyStart::new();
        }
        self.levels.set_window(self.levels.segment());
    }

    /// Sets the threshold; returns the previous window, in segments.
    fn reduce(&mut self, flight: u64) -> f64 {
        let window = self.levels.window();
        self.prior = window as f64 / self.levels.segment() as f64;
        // Data sent by limited transmit beyond the window does not count.
        self.levels.set_threshold(flight.min(window) * BETA.0 / BETA.1);
        self.epoch = None;
        self.prior
    }

    /// The window was changed externally: a new epoch starts.
    pub(crate) fn restart(&mut self) {
        self.epoch = None;
    }

    /// Excludes an interval from the time of the epoch (section 4.2).
    pub(crate) fn on_idle(&mut self, idle: Span) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += idle;
        }
    }
}

#[cfg(test)]
mod tests;
