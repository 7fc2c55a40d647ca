//! The configured rate, less where the link cannot take it.
//!
//! ```text
//!   window = none      rate = what the configuration says, or the ceiling when that is lower
//! ```
//!
//! For links whose capacity is known: a rate plan, a modem's setting, a MAC's grant. Loss is
//! not taken for congestion, because nothing but errors on the link can lose a packet that was
//! paced below its rate. What is outstanding is bounded by the number window and the peer's.

mod ceiling;

use super::{Answered, PollSent};
use crate::config::SessionConfig;
use ceiling::Ceiling;
use units::{BitRate, Instant, Span};

/// The controller that sends at the configured rate.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    rate: Option<BitRate>,
    least: Option<BitRate>,
    /// Below a configured rate that turns out too high; `None` when that is not looked for.
    ceiling: Option<Ceiling>,
}

impl Fixed {
    /// The controller of a session that is about to start.
    pub(crate) fn new(config: &SessionConfig) -> Self {
        Self {
            rate: config.paced_rate(),
            least: config.min_rate,
            ceiling: config.gateway.detect_standing_queue.then(Ceiling::new),
        }
    }

    /// The configured rate, or what there is below it (XSTP-9.3).
    pub(super) fn pace(&self, now: Instant) -> Option<BitRate> {
        let rate = self.rate?;
        let paced = self.ceiling.as_ref().map_or(rate, |ceiling| ceiling.apply(now, rate));
        Some(self.least.map_or(paced, |least| paced.max(least)))
    }

    /// The configured rate is another; what was found out about the old one is forgotten.
    pub(super) fn set_rate(&mut self, rate: Option<BitRate>) {
        self.rate = rate;
        self.ceiling = self.ceiling.is_some().then(Ceiling::new);
    }

    /// The rate is another for now; what was found out about the link holds.
    pub(super) fn grant(&mut self, rate: Option<BitRate>) {
        self.rate = rate;
    }

    /// Whether a queue of our own is being drained, or a ceiling holds.
    pub(super) fn mode(&self, now: Instant) -> &'static str {
        self.ceiling.as_ref().map_or("free", |ceiling| ceiling.mode(now))
    }

    /// The last delay above the least.
    pub(super) fn queue(&self) -> Option<Span> {
        self.ceiling.as_ref()?.queue()
    }

    pub(super) fn on_poll(&mut self, poll: &PollSent) {
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.on_poll(poll.now, poll.count, poll.octets);
        }
    }

    pub(super) fn on_answer(&mut self, answered: &Answered) {
        if let (Some(ceiling), Some(rate)) = (&mut self.ceiling, self.rate) {
            ceiling.on_answer(answered, rate);
        }
    }
}
