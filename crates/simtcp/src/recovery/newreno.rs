//! Fast retransmit and fast recovery of RFC 6582.
//!
//! ```text
//!   third duplicate     recover = highest sent, oldest retransmitted, window inflated by 3  step 2
//!   another duplicate   inflated by one more: new data may be sent                          step 3
//!   partial ACK         next one retransmitted, inflation less acknowledged data plus one   step 3
//!   full ACK            window reduced to the threshold or the flight                       step 3
//!   timeout             recover = highest sent: its duplicates start no recovery            step 4
//! ```
//!
//! The first two duplicates allow new data (RFC 3042). After a timeout, duplicates count once an
//! acknowledgement exceeds `recover`. The optional heuristic of section 4.1, by which they also count
//! after a small advance, is left out: duplicates of data from before the timeout follow such an
//! advance, and set the threshold to two segments.

use super::{Deflate, Outstanding, Report, Verdict, deflated};
use crate::config::RepairTimer;
use crate::segment::Block;

/// Duplicates that indicate a loss (RFC 5681, section 3.2).
const DUPLICATES: u32 = 3;

/// NewReno's state.
#[derive(Clone, Debug)]
pub(crate) struct NewReno {
    limited_transmit: bool,
    timer: RepairTimer,
    /// The number after `recover`; `None` before the first loss.
    recover: Option<u64>,
    repairing: bool,
    duplicates: u32,
    /// Octets by which the window is inflated; negative below the threshold.
    inflation: i64,
    /// The oldest segment is to be retransmitted.
    due: bool,
    partial_seen: bool,
}

impl NewReno {
    pub(crate) fn new(limited_transmit: bool, timer: RepairTimer) -> Self {
        Self {
            limited_transmit,
            timer,
            recover: None,
            repairing: false,
            duplicates: 0,
            inflation: 0,
            due: false,
            partial_seen: false,
        }
    }

    pub(super) fn inflation(&self) -> i64 {
        self.inflation
    }

    pub(super) fn is_repairing(&self) -> bool {
        self.repairing
    }

    pub(super) fn lost(&mut self, now: &Outstanding) -> Option<Block> {
        if !core::mem::take(&mut self.due) {
            return None;
        }
        Some((now.oldest, (now.oldest + now.segment).min(now.end)))
    }

    pub(super) fn on_timeout(&mut self, now: &Outstanding) {
        self.recover = Some(now.end);
        self.repairing = false;
        self.duplicates = 0;
        self.inflation = 0;
        self.due = false;
    }

    pub(super) fn on_ack(&mut self, now: &Outstanding, report: &Report<'_>) -> Verdict {
        let acked = now.oldest - report.before;
        if acked > 0 {
            self.on_progress(now, acked, report.window)
        } else if report.duplicate {
            self.on_duplicate(now)
        } else if self.repairing {
            Verdict::Repairing { restart_timer: false }
        } else {
            Verdict::Open
        }
    }

    fn on_progress(&mut self, now: &Outstanding, acked: u64, window: u64) -> Verdict {
        self.duplicates = 0;
        if !self.repairing {
            self.inflation = 0;
            return Verdict::Open;
        }
        if self.recover.is_none_or(|recover| now.oldest >= recover) {
            self.repairing = false;
            self.inflation = 0;
            self.due = false;
            return Verdict::Repaired { deflate: Deflate::ToFlight };
        }
        self.due = true;
        let more = if acked >= now.segment { now.segment } else { 0 };
        self.inflation = deflated(window, self.inflation, acked, more);
        let first = !core::mem::replace(&mut self.partial_seen, true);
        Verdict::Repairing { restart_timer: first || self.timer == RepairTimer::SlowButSteady }
    }

    fn on_duplicate(&mut self, now: &Outstanding) -> Verdict {
        if self.repairing {
            self.inflation += now.segment.cast_signed();
            return Verdict::Repairing { restart_timer: false };
        }
        self.duplicates += 1;
        if self.duplicates < DUPLICATES {
            if self.limited_transmit && now.next == now.end {
                self.inflation = i64::from(self.duplicates) * now.segment.cast_signed();
            }
            return Verdict::Open;
        }
        let beyond = self.recover.is_none_or(|recover| now.oldest > recover);
        if self.duplicates > DUPLICATES || !beyond {
            self.inflation = 0;
            return Verdict::Open;
        }
        self.recover = Some(now.end);
        self.repairing = true;
        self.partial_seen = false;
        self.due = true;
        self.inflation = i64::from(DUPLICATES) * now.segment.cast_signed();
        Verdict::Loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;
    const INFLATION: i64 = 1_000;

    fn outstanding(oldest: u64, end: u64) -> Outstanding {
        Outstanding { oldest: oldest * MSS, next: end * MSS, end: end * MSS, segment: MSS }
    }

    fn report(before: u64, duplicate: bool) -> Report<'static> {
        Report {
            before: before * MSS,
            window: 10 * MSS,
            duplicate,
            sack: &[],
            ..super::super::tests_report()
        }
    }

    #[test]
    fn three_duplicates_then_partial_then_full() {
        let mut newreno = NewReno::new(true, RepairTimer::Impatient);
        let now = outstanding(10, 20);
        for step in 1..=2 {
            assert_eq!(newreno.on_ack(&now, &report(10, true)), Verdict::Open);
            assert_eq!(newreno.inflation(), step * INFLATION, "limited transmit (RFC 3042)");
        }
        assert_eq!(newreno.on_ack(&now, &report(10, true)), Verdict::Loss);
        assert_eq!(newreno.lost(&now), Some((10 * MSS, 11 * MSS)));
        assert_eq!(newreno.lost(&now), None, "once");
        for _ in 0..4 {
            newreno.on_ack(&now, &report(10, true));
        }
        assert_eq!(newreno.inflation(), 7 * INFLATION);
        // Up to 15 of 20: 7 - 5 + 1 = 3.
        let partial = outstanding(15, 20);
        let verdict = newreno.on_ack(&partial, &report(10, false));
        assert_eq!(verdict, Verdict::Repairing { restart_timer: true });
        assert_eq!(newreno.inflation(), 3 * INFLATION);
        assert_eq!(newreno.lost(&partial), Some((15 * MSS, 16 * MSS)));
        let second = outstanding(17, 20);
        let verdict = newreno.on_ack(&second, &report(15, false));
        assert_eq!(verdict, Verdict::Repairing { restart_timer: false }, "impatient");
        let full = outstanding(20, 24);
        let verdict = newreno.on_ack(&full, &report(17, false));
        assert_eq!(verdict, Verdict::Repaired { deflate: Deflate::ToFlight });
        assert_eq!((newreno.inflation(), newreno.is_repairing()), (0, false));
    }

    #[test]
    fn a_partial_acknowledgement_of_more_than_the_inflated_window_leaves_a_segment() {
        let mut newreno = NewReno::new(true, RepairTimer::Impatient);
        let now = outstanding(10, 40);
        for _ in 0..3 {
            newreno.on_ack(&now, &report(10, true));
        }
        // The window of 10 and 3 of inflation, less 20: not below zero, plus one.
        let verdict = newreno.on_ack(&outstanding(30, 40), &report(10, false));
        assert_eq!(verdict, Verdict::Repairing { restart_timer: true });
        assert_eq!(newreno.inflation(), -9 * INFLATION);
    }

    #[test]
    fn slow_but_steady_starts_the_timer_with_each_partial_acknowledgement() {
        let mut newreno = NewReno::new(false, RepairTimer::SlowButSteady);
        let now = outstanding(10, 20);
        for _ in 0..3 {
            newreno.on_ack(&now, &report(10, true));
        }
        for (before, oldest) in [(10, 12), (12, 14), (14, 17)] {
            let verdict = newreno.on_ack(&outstanding(oldest, 20), &report(before, false));
            assert_eq!(verdict, Verdict::Repairing { restart_timer: true });
        }
    }

    #[test]
    fn duplicates_after_a_timeout_start_no_recovery() {
        let mut newreno = NewReno::new(true, RepairTimer::Impatient);
        newreno.on_timeout(&outstanding(10, 30));
        // Whether one segment is acknowledged or five.
        for (before, oldest) in [(10, 11), (11, 16)] {
            let now = outstanding(oldest, 30);
            assert_eq!(newreno.on_ack(&now, &report(before, false)), Verdict::Open);
            for _ in 0..5 {
                assert_eq!(newreno.on_ack(&now, &report(oldest, true)), Verdict::Open);
            }
        }
        // Beyond recover duplicates count again.
        assert_eq!(newreno.on_ack(&outstanding(31, 40), &report(16, false)), Verdict::Open);
        for _ in 0..2 {
            assert_eq!(newreno.on_ack(&outstanding(31, 40), &report(31, true)), Verdict::Open);
        }
        assert_eq!(newreno.on_ack(&outstanding(31, 40), &report(31, true)), Verdict::Loss);
    }
}
