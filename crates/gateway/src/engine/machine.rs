//! What the driver of an engine calls.

use crate::engine::host::{Readiness, Source};
use crate::engine::lifecycle::view::EngineView;
use units::Instant;

/// An engine as its driver sees it.
pub(crate) trait Machine {
    /// Does all that can be done at `now` within its budget; true when there is more.
    fn round(&mut self, now: Instant) -> bool;
    /// Returns when to call [`Machine::round`] although no source has become ready.
    fn poll_timeout(&self, now: Instant) -> Instant;
    /// Notes that a source has become ready.
    fn handle_readiness(&mut self, now: Instant, source: Source, ready: Readiness);
    /// Returns the view of an observer; the clock's zero was `epoch_unix_ns` nanoseconds after
    /// 1970.
    fn view(&mut self, now: Instant, epoch_unix_ns: u64) -> EngineView<'_>;
    /// Returns a number that changes when anything moves.
    fn moved(&self) -> u64;
}
