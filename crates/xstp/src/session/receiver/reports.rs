//! When gaps are told of by USTAT.

use super::holes::Holes;
use alloc::vec::Vec;
use units::{Instant, Span};

/// Gaps on their way into a USTAT: first growing, then ripe, then gone.
#[derive(Clone, Debug)]
pub(super) struct Reports {
    threshold: u32,
    hold: Span,
    growing: Option<Growing>,
    /// What is to be told, in order; parts of it may have been filled meanwhile.
    ripe: Vec<(u64, u64)>,
    /// When the ripe ones are told of.
    due: Option<Instant>,
}

/// The newest gap, for as long as it may be mere reordering.
#[derive(Clone, Copy, Debug)]
struct Growing {
    low: u64,
    high: u64,
    /// Packets beyond it that have arrived.
    later: u32,
}

impl Reports {
    pub(super) const fn new(threshold: u32, hold: Span) -> Self {
        Self { threshold, hold, growing: None, ripe: Vec::new(), due: None }
    }

    /// When a USTAT is due.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// A packet has shown that `low..high` is missing. An older gap is told of at once.
    pub(super) fn on_gap(&mut self, now: Instant, low: u64, high: u64) {
        self.ripen(now);
        self.growing = Some(Growing { low, high, later: 0 });
    }

    /// A new packet has arrived, and `holes` knows.
    pub(super) fn on_packet(&mut self, now: Instant, number: u64, holes: &Holes) {
        let Some(growing) = &mut self.growing else { return };
        if number < growing.high {
            if holes.missing_in(growing.low, growing.high).next().is_none() {
                self.growing = None;
            }
            return;
        }
        growing.later += 1;
        if growing.later >= self.threshold {
            self.ripen(now);
        }
    }

    /// A STAT will tell what is missing below `sent_below`. Numbers from there on were sent after
    /// the POLL, so that its STAT would not have them sent again.
    ///
    /// Without a hold USTATs are sent as published, whatever STATs say.
    pub(super) fn on_answer(&mut self, sent_below: u64) {
        if self.hold.is_zero() {
            return;
        }
        self.ripe.retain_mut(|(low, high)| {
            *low = sent_below.max(*low);
            low < high
        });
        if self.ripe.is_empty() {
            self.due = None;
        }
        if let Some(growing) = &mut self.growing {
            growing.low = sent_below.max(growing.low);
            if growing.low >= growing.high {
                self.growing = None;
            }
        }
    }

    /// Hands what is still missing of the ripe gaps to `tell`, in order, until it refuses one;
    /// that one and those after it stay due.
    pub(super) fn take(&mut self, holes: &Holes, mut tell: impl FnMut(u64, u64) -> bool) {
        let mut told = 0;
        'ripe: for gap in &mut self.ripe {
            for (low, high) in holes.missing_in(gap.0, gap.1) {
                if !tell(low, high) {
                    gap.0 = low;
                    break 'ripe;
                }
            }
            told += 1;
        }
        self.ripe.drain(..told);
        if self.ripe.is_empty() {
            self.due = None;
        }
    }

    fn ripen(&mut self, now: Instant) {
        if let Some(Growing { low, high, .. }) = self.growing.take() {
            self.ripe.push((low, high));
            self.due.get_or_insert(now + self.hold);
        }
    }
}
