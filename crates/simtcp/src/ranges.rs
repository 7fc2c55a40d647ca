//! Sets of sequence numbers.

use crate::segment::Block;
use alloc::collections::VecDeque;

/// A set of sequence numbers as disjoint runs that do not touch, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    runs: VecDeque<Block>,
    total: u64,
}

impl Ranges {
    /// Adds a run; returns how many of its numbers are new, and the run that contains it.
    pub(crate) fn insert(&mut self, (start, end): Block) -> (u64, Block) {
        if start >= end {
            return (0, (start, end));
        }
        // Most runs touch the last one, or follow it.
        let first = match self.runs.back() {
            None => 0,
            Some(last) if last.1 < start => self.runs.len(),
            Some(_) => self.runs.partition_point(|run| run.1 < start),
        };
        let mut merged = (start, end);
        let mut covered = 0;
        let mut last = first;
        while let Some(&run) = self.runs.get(last).filter(|run| run.0 <= merged.1) {
            merged = (merged.0.min(run.0), merged.1.max(run.1));
            covered += run.1 - run.0;
            last += 1;
        }
        let fresh = (merged.1 - merged.0) - covered;
        self.total += fresh;
        if last == first {
            self.runs.insert(first, merged);
        } else {
            self.runs[first] = merged;
            self.runs.drain(first + 1..last);
        }
        (fresh, merged)
    }

    /// Removes everything below `bound`.
    pub(crate) fn remove_below(&mut self, bound: u64) {
        while let Some(run) = self.runs.front_mut() {
            if run.0 >= bound {
                return;
            }
            let cut = run.1.min(bound);
            self.total -= cut - run.0;
            run.0 = cut;
            if run.0 < run.1 {
                return;
            }
            self.runs.pop_front();
        }
    }

    /// The runs, lowest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Block> {
        self.runs.iter().copied()
    }

    /// The lowest run.
    pub(crate) fn first(&self) -> Option<Block> {
        self.runs.front().copied()
    }

    /// The highest run.
    pub(crate) fn last(&self) -> Option<Block> {
        self.runs.back().copied()
    }

    /// Number of elements.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Number of runs.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Number of elements below `bound`.
    pub(crate) fn total_below(&self, bound: u64) -> u64 {
        match self.runs.back() {
            Some(last) if bound < last.1 => {
                let below = self.runs.iter().take_while(|run| run.0 < bound);
                below.map(|run| run.1.min(bound) - run.0).sum()
            }
            Some(_) | None => self.total,
        }
    }

    /// The first run of numbers from `from` on that are *not* in the set, up to `end`. `None` if
    /// all are in it.
    pub(crate) fn gap_from(&self, from: u64, end: u64) -> Option<Block> {
        let index = self.runs.partition_point(|run| run.1 <= from);
        let (start, next) = match self.runs.get(index) {
            Some(run) if run.0 <= from => (run.1, self.runs.get(index + 1)),
            later => (from, later),
        };
        let stop = next.map_or(end, |run| run.0.min(end));
        (start < stop).then_some((start, stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn runs_that_touch_become_one() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.insert((10, 20)), (10, (10, 20)));
        assert_eq!(ranges.insert((30, 40)), (10, (30, 40)));
        assert_eq!(ranges.insert((15, 30)), (10, (10, 40)));
        assert_eq!((ranges.len(), ranges.total()), (1, 30));
        assert_eq!(ranges.gap_from(0, 100), Some((0, 10)));
        assert_eq!(ranges.gap_from(12, 100), Some((40, 100)));
        assert_eq!(ranges.gap_from(12, 40), None);
        assert_eq!(ranges.insert((12, 12)).0, 0);
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_set(
            steps in prop::collection::vec((0_u64..60, 0_u64..15, prop::bool::weighted(0.1)), 1..40),
        ) {
            let (mut ranges, mut plain) = (Ranges::default(), BTreeSet::new());
            for (start, len, cut) in steps {
                if cut {
                    ranges.remove_below(start);
                    plain.retain(|&number| number >= start);
                } else {
                    let before = plain.len();
                    plain.extend(start..start + len);
                    let (fresh, merged) = ranges.insert((start, start + len));
                    prop_assert_eq!(fresh as usize, plain.len() - before);
                    prop_assert!((merged.0..merged.1).all(|n| plain.contains(&n)));
                }
                prop_assert_eq!(ranges.total() as usize, plain.len());
                prop_assert_eq!(ranges.total_below(33) as usize, plain.range(..33).count());
                let listed: Vec<u64> = ranges.iter().flat_map(|run| run.0..run.1).collect();
                prop_assert_eq!(listed, plain.iter().copied().collect::<Vec<_>>());
                let gap: Vec<u64> = (20..50).skip_while(|n| plain.contains(n))
                    .take_while(|n| !plain.contains(n)).collect();
                let expected = gap.first().map(|&first| (first, first + gap.len() as u64));
                prop_assert_eq!(ranges.gap_from(20, 50), expected);
            }
        }
    }
}
