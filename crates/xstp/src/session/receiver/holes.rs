//! Which numbers are missing, as runs.

use alloc::collections::BTreeMap;

/// The numbers up to VR(H), as the runs of those that are missing.
///
/// Numbers here are counts that never wrap. There is a run for each gap, not for each packet,
/// and every operation on one packet finds its run in logarithmic time.
#[derive(Clone, Debug)]
pub(super) struct Holes {
    /// First missing number of each run, and the one after its last. Runs do not touch.
    runs: BTreeMap<u64, u64>,
    highest: u64,
}

impl Holes {
    /// Nothing is missing below `first`, and nothing from it on was sent.
    pub(super) const fn new(first: u64) -> Self {
        Self { runs: BTreeMap::new(), highest: first }
    }

    /// VR(H): the number after the highest known one.
    pub(super) const fn highest(&self) -> u64 {
        self.highest
    }

    /// VR(R): the lowest number that is missing; VR(H) when none is.
    pub(super) fn next(&self) -> u64 {
        self.runs.first_key_value().map_or(self.highest, |(&low, _)| low)
    }

    /// Everything from VR(H) up to `end` is missing; nothing happens when that is nothing.
    pub(super) fn extend_to(&mut self, end: u64) {
        if end <= self.highest {
            return;
        }
        match self.runs.last_entry() {
            // The last known number is missing too: runs do not touch.
            Some(mut last) if *last.get() == self.highest => *last.get_mut() = end,
            _ => {
                self.runs.insert(self.highest, end);
            }
        }
        self.highest = end;
    }

    /// VR(H) itself is here.
    pub(super) fn append(&mut self) {
        self.highest += 1;
    }

    /// `number` is here now; says whether it was missing.
    pub(super) fn fill(&mut self, number: u64) -> bool {
        let Some((&low, high)) = self.runs.range_mut(..=number).next_back() else { return false };
        let end = *high;
        if number >= end {
            return false;
        }
        if low == number {
            self.runs.remove(&low);
        } else {
            *high = number;
        }
        if number + 1 < end {
            self.runs.insert(number + 1, end);
        }
        true
    }

    /// The parts of `low..high` that are missing.
    pub(super) fn missing_in(&self, low: u64, high: u64) -> impl Iterator<Item = (u64, u64)> {
        let before = self.runs.range(..low).next_back().filter(move |(_, end)| **end > low);
        before
            .into_iter()
            .chain(self.runs.range(low..high.max(low)))
            .map(move |(&start, &end)| (start.max(low), end.min(high)))
    }

    /// Each missing run from `from` on, with how many numbers are here between it and the next
    /// one or VR(H).
    pub(super) fn runs_from(&self, from: u64) -> impl Iterator<Item = (u64, u64, u64)> {
        let mut missing = self.missing_in(from, self.highest).peekable();
        core::iter::from_fn(move || {
            let (low, high) = missing.next()?;
            let next = missing.peek().map_or(self.highest, |&(next, _)| next);
            Some((low, high, next - high))
        })
    }
}
