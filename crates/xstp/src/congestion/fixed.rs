//! The configured rate and nothing else.
//!
//! ```text
//!   window = none      rate = what the configuration says
//! ```
//!
//! For links whose capacity is known: a rate plan, a modem's setting, a MAC's grant. Loss is
//! not taken for congestion, because nothing but errors on the link can lose a packet that was
//! paced below its rate. What is outstanding is bounded by the number window and the peer's.

use super::Feedback;
use units::Span;

/// The controller that leaves everything to the pacer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed;

impl Fixed {
    /// No window.
    pub(super) fn window(&self) -> Option<u64> {
        None
    }

    /// Nothing is learnt from feedback.
    pub(super) fn on_feedback(&mut self, _: &Feedback) -> bool {
        false
    }

    /// A known rate is as good after a pause as before.
    pub(super) fn on_restart(&mut self, _: Span) {}
}
