//! Set of the packets that are missing.

use alloc::collections::BTreeMap;

/// Packets up to VR(H), as the gaps between received ones.
///
/// Sequence numbers are extended to 64 bits. There is one entry per gap, not per packet, and an
/// operation on one packet finds its gap in logarithmic time.
#[derive(Clone, Debug)]
pub(super) struct GapSet {
    /// First missing packet of each gap, and the packet after its last. Gaps do not touch.
    gaps: BTreeMap<u64, u64>,
    highest: u64,
}

impl GapSet {
    /// No packet is missing below `first`, and none from it on was sent.
    pub(super) const fn new(first: u64) -> Self {
        Self { gaps: BTreeMap::new(), highest: first }
    }

    /// VR(H): the packet after the highest known one.
    pub(super) const fn highest(&self) -> u64 {
        self.highest
    }

    /// VR(R): the lowest missing packet, or VR(H) if none is missing.
    pub(super) fn next(&self) -> u64 {
        self.gaps.first_key_value().map_or(self.highest, |(&low, _)| low)
    }

    /// Adds the packets from VR(H) up to `end` as missing, if there are any.
    pub(super) fn extend_to(&mut self, end: u64) {
        if end <= self.highest {
            return;
        }
        match self.gaps.last_entry() {
            // The packet before VR(H) is missing too: gaps do not touch.
            Some(mut last) if *last.get() == self.highest => *last.get_mut() = end,
            _ => {
                self.gaps.insert(self.highest, end);
            }
        }
        self.highest = end;
    }

    /// Packet VR(H) was received.
    pub(super) fn append(&mut self) {
        self.highest += 1;
    }

    /// Packet `number` was received; returns whether it was missing.
    pub(super) fn fill(&mut self, number: u64) -> bool {
        let Some((&low, high)) = self.gaps.range_mut(..=number).next_back() else { return false };
        let end = *high;
        if number >= end {
            return false;
        }
        if low == number {
            self.gaps.remove(&low);
        } else {
            *high = number;
        }
        if number + 1 < end {
            self.gaps.insert(number + 1, end);
        }
        true
    }

    /// The parts of `low..high` that are missing.
    pub(super) fn missing_in(&self, low: u64, high: u64) -> impl Iterator<Item = (u64, u64)> {
        let before = self.gaps.range(..low).next_back().filter(move |(_, end)| **end > low);
        before
            .into_iter()
            .chain(self.gaps.range(low..high.max(low)))
            .map(move |(&start, &end)| (start.max(low), end.min(high)))
    }

    /// Each gap from `from` on, with the number of received packets between it and the next gap
    /// or VR(H).
    pub(super) fn runs_from(&self, from: u64) -> impl Iterator<Item = (u64, u64, u64)> {
        let mut missing = self.missing_in(from, self.highest).peekable();
        core::iter::from_fn(move || {
            let (low, high) = missing.next()?;
            let next = missing.peek().map_or(self.highest, |&(next, _)| next);
            Some((low, high, next - high))
        })
    }
}
