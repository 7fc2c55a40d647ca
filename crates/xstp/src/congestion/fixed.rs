//! Sends at the configured rate, or below it while it exceeds the rate of the link.
//!
//! ```text
//!   window = none      rate = max(min_rate, min(configured rate, rate cap))
//! ```
//!
//! For links of known capacity: a rate plan, the setting of a modem, a grant of a MAC. Loss is no
//! congestion signal, because packets that are paced below the rate of the link are lost to
//! corruption only. The number window and the peer's window bound the outstanding data.

mod rate_cap;

use crate::config::SessionConfig;
use crate::congestion::controller::{CongestionController, PollAnswered, PollSent};
use rate_cap::RateCap;
use units::{BitRate, Instant, Span};

/// Controller that sends at the configured rate.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    rate: Option<BitRate>,
    min_rate: Option<BitRate>,
    /// Rate cap for a configured rate that is too high; `None` if it is not detected.
    rate_cap: Option<RateCap>,
}

impl Fixed {
    /// The controller of a session that starts.
    pub(crate) fn new(config: &SessionConfig) -> Self {
        Self {
            rate: config.paced_rate(),
            min_rate: config.min_rate,
            rate_cap: config.gateway.detect_standing_queue.then(RateCap::new),
        }
    }
}

impl CongestionController for Fixed {
    /// Whether a queue is drained, or a rate cap holds.
    fn mode(&self, now: Instant) -> &'static str {
        self.rate_cap.as_ref().map_or("configured", |rate_cap| rate_cap.mode(now))
    }

    /// The configured rate, or the rate cap below it (XSTP-9.3).
    fn pace(&self, now: Instant) -> Option<BitRate> {
        let rate = self.rate?;
        let paced = self.rate_cap.as_ref().map_or(rate, |rate_cap| rate_cap.apply(now, rate));
        Some(self.min_rate.map_or(paced, |min| paced.max(min)))
    }

    fn queuing_delay(&self) -> Option<Span> {
        self.rate_cap.as_ref()?.queue()
    }

    /// Measurements that belong to the old rate are discarded.
    fn set_max_rate(&mut self, rate: Option<BitRate>) {
        self.rate = rate;
        self.rate_cap = self.rate_cap.is_some().then(RateCap::new);
    }

    /// A rate cap keeps its ratio to the granted rate (XSTP-9.3.7).
    fn apply_grant(&mut self, rate: Option<BitRate>) {
        self.rate = rate;
    }

    fn on_poll(&mut self, poll: &PollSent) {
        if let Some(rate_cap) = &mut self.rate_cap {
            rate_cap.on_poll(poll);
        }
    }

    fn on_poll_answered(&mut self, answered: &PollAnswered) {
        if let (Some(rate_cap), Some(rate)) = (&mut self.rate_cap, self.rate) {
            rate_cap.on_poll_answered(answered, rate);
        }
    }
}
