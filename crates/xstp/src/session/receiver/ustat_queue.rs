//! Gaps that USTATs report, and when they do.

use super::gaps::GapSet;
use alloc::vec::Vec;
use units::{Instant, Span};

/// Gaps that are to be reported by USTAT: first suspected of being reordered, then due, then
/// reported.
#[derive(Clone, Debug)]
pub(super) struct UstatQueue {
    threshold: u32,
    hold: Span,
    suspected: Option<ReorderingGap>,
    /// Gaps to be reported, in order. Parts of them may have been filled meanwhile.
    pending: Vec<(u64, u64)>,
    /// Time at which they are reported.
    due: Option<Instant>,
}

/// The newest gap, as long as it may be due to reordering.
#[derive(Clone, Copy, Debug)]
struct ReorderingGap {
    low: u64,
    high: u64,
    /// Number of packets received after it.
    later: u32,
}

impl UstatQueue {
    pub(super) const fn new(threshold: u32, hold: Span) -> Self {
        Self { threshold, hold, suspected: None, pending: Vec::new(), due: None }
    }

    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// A packet has revealed the gap `low..high`. An older gap is reported without waiting for
    /// the reordering threshold.
    pub(super) fn on_gap(&mut self, now: Instant, low: u64, high: u64) {
        self.promote(now);
        self.suspected = Some(ReorderingGap { low, high, later: 0 });
    }

    /// A new packet was received and entered into `gaps`.
    pub(super) fn on_packet(&mut self, now: Instant, number: u64, gaps: &GapSet) {
        let Some(gap) = &mut self.suspected else { return };
        if number < gap.high {
            if gaps.missing_in(gap.low, gap.high).next().is_none() {
                self.suspected = None;
            }
            return;
        }
        gap.later += 1;
        if gap.later >= self.threshold {
            self.promote(now);
        }
    }

    /// A STAT will report the packets missing below `sent_below`. Later packets were sent after
    /// the POLL, so that the STAT does not cause their retransmission.
    ///
    /// Without a hold time USTATs are sent as published, independent of STATs.
    pub(super) fn on_stat(&mut self, sent_below: u64) {
        if self.hold.is_zero() {
            return;
        }
        self.pending.retain_mut(|(low, high)| {
            *low = sent_below.max(*low);
            low < high
        });
        if self.pending.is_empty() {
            self.due = None;
        }
        if let Some(gap) = &mut self.suspected {
            gap.low = sent_below.max(gap.low);
            if gap.low >= gap.high {
                self.suspected = None;
            }
        }
    }

    /// Passes the missing parts of the pending gaps to `report`, in order, until it returns false;
    /// that part and the following ones stay pending.
    pub(super) fn take(&mut self, gaps: &GapSet, mut report: impl FnMut(u64, u64) -> bool) {
        let mut reported = 0;
        'pending: for gap in &mut self.pending {
            for (low, high) in gaps.missing_in(gap.0, gap.1) {
                if !report(low, high) {
                    gap.0 = low;
                    break 'pending;
                }
            }
            reported += 1;
        }
        self.pending.drain(..reported);
        if self.pending.is_empty() {
            self.due = None;
        }
    }

    fn promote(&mut self, now: Instant) {
        if let Some(ReorderingGap { low, high, .. }) = self.suspected.take() {
            self.pending.push((low, high));
            self.due.get_or_insert(now + self.hold);
        }
    }
}
