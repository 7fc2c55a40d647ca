//! A set of octet ranges.

use std::collections::BTreeMap;

/// Disjoint ranges that do not touch: start to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    ranges: BTreeMap<u64, u64>,
    total: u64,
}

impl Ranges {
    /// Adds `start..end`, which may overlap existing ranges.
    pub(crate) fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((&low, &high)) = self.ranges.range(..=end).next_back()
            && high >= start
        {
            self.ranges.remove(&low);
            self.total -= high - low;
            start = start.min(low);
            end = end.max(high);
        }
        self.ranges.insert(start, end);
        self.total += end - start;
    }

    /// Sum of the lengths.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_count_once() {
        let mut ranges = Ranges::default();
        for (start, end, total) in [(10, 20, 10), (30, 40, 20), (15, 18, 20), (18, 32, 30)] {
            ranges.insert(start, end);
            assert_eq!(ranges.total(), total);
        }
        ranges.insert(0, 100);
        assert_eq!((ranges.total(), ranges.ranges.len()), (100, 1));
    }
}
