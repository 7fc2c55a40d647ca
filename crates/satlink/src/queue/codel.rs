//! Controlled delay (CoDel, RFC 8289).
//!
//! ```text
//!   sojourn   from arrival to the start of transmission
//!   begins    when the sojourn has been at or above target for an interval
//!   signals   drop or mark one frame then, the next after interval / sqrt(count)
//!   ends      with a sojourn below target, or with at most one full frame queued
//!   returns   soon after its end with the former count less the drops of its beginning
//! ```

use super::{Exit, Waiting};
use crate::Frame;
use units::{Instant, Span};

/// CoDel's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoDel {
    /// Acceptable standing queue; RFC 8289 recommends 5 to 10 % of `interval`, and at least the
    /// transmission time of a full packet.
    pub target: Span,
    /// About the round trip of the connections; 100 ms suits terrestrial paths.
    pub interval: Span,
    /// Mark ECN-capable frames instead of dropping them.
    pub mark: bool,
}

/// With so many octets queued or fewer nothing is dropped: a full packet with Ethernet's header.
const FULL_FRAME: u64 = 1_514;
/// Intervals for which the drop rate of the last episode is remembered.
const MEMORY: u64 = 16;

/// The state of one queue.
#[derive(Debug, Default)]
pub(super) struct CoDelState {
    /// When the sojourn will have been above the target for an interval.
    first_above: Option<Instant>,
    dropping: bool,
    next: Instant,
    count: u32,
    last_count: u32,
}

impl CoDelState {
    /// Decides on a frame that leaves the queue, in which `backlog` octets remain.
    pub(super) fn pass<F: Frame>(
        &mut self,
        codel: &CoDel,
        now: Instant,
        mut waiting: Waiting<F>,
        backlog: u64,
    ) -> Exit<F> {
        let signal = self.signals(codel, now, now.since(waiting.offered_at), backlog);
        let marked = signal && codel.mark && waiting.frame.mark();
        if signal && !marked { Exit::Shed(waiting) } else { Exit::Goes { waiting, marked } }
    }

    /// The queue is empty.
    pub(super) fn empty(&mut self) {
        (self.first_above, self.dropping) = (None, false);
    }

    fn signals(&mut self, codel: &CoDel, now: Instant, sojourn: Span, backlog: u64) -> bool {
        if sojourn < codel.target || backlog <= FULL_FRAME {
            self.empty();
            return false;
        }
        let first_above = *self.first_above.get_or_insert(now + codel.interval);
        if self.dropping {
            let due = now >= self.next;
            if due {
                self.count = self.count.saturating_add(1);
                self.next = self.after(codel, self.next);
            }
            return due;
        }
        if now < first_above {
            return false;
        }
        self.dropping = true;
        let recent = now.since(self.next) < codel.interval * MEMORY;
        let former = self.count - self.last_count;
        self.count = if former > 1 && recent { former } else { 1 };
        self.last_count = self.count;
        self.next = self.after(codel, now);
        true
    }

    fn after(&self, codel: &CoDel, at: Instant) -> Instant {
        let wait = codel.interval.as_secs_f64() / libm::sqrt(f64::from(self.count));
        at + Span::from_secs_f64(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const CODEL: CoDel =
        CoDel { target: Span::from_millis(5), interval: Span::from_millis(100), mark: false };

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// Milliseconds of the signals for a frame each millisecond.
    fn signals(state: &mut CoDelState, times: core::ops::Range<u64>, sojourn_ms: u64) -> Vec<u64> {
        let sojourn = Span::from_millis(sojourn_ms);
        times.filter(|&at| state.signals(&CODEL, ms(at), sojourn, 9_000)).collect()
    }

    #[test]
    fn drops_follow_the_control_law() {
        let mut state = CoDelState::default();
        assert_eq!(signals(&mut state, 0..1_000, 4), [], "below the target");
        // One at 1,100 after an interval; then 100/1, 100/sqrt(2), 100/sqrt(3) and 100/2 ms apart.
        let seen = signals(&mut state, 1_000..1_400, 6);
        assert_eq!(seen, [1_100, 1_200, 1_271, 1_329, 1_379]);
    }

    #[test]
    fn the_rate_is_remembered_for_sixteen_intervals_and_a_short_queue_is_spared() {
        let mut state = CoDelState::default();
        assert_eq!(signals(&mut state, 0..400, 6).len(), 5);
        assert_eq!(signals(&mut state, 400..401, 1), []);
        // The count was 5, and 1 at the beginning: the first wait is 100 / sqrt(4).
        assert_eq!(signals(&mut state, 500..660, 6), [600, 650]);
        let mut state = CoDelState::default();
        assert_eq!(signals(&mut state, 0..400, 6).len(), 5);
        assert_eq!(signals(&mut state, 400..401, 1), []);
        assert_eq!(signals(&mut state, 2_500..2_700, 6), [2_600], "forgotten: the next at 2,700");
        let short = state.signals(&CODEL, ms(3_000), Span::from_secs(1), FULL_FRAME);
        assert!(!short && !state.dropping, "one full frame is no standing queue");
    }
}
