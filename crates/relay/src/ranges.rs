//! Sets of byte ranges.

use std::collections::BTreeMap;

/// A set of bytes, stored as ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeSet {
    /// Start to end (one past the last).
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of ranges.
    pub(crate) fn count(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the lowest range.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.ranges.first_key_value().map(|(&start, &end)| (start, end))
    }

    /// Adds `start..end`; returns the number of new bytes in it.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let (mut low, mut high, mut old) = (start, end, 0);
        // Every range that ends at or after `start` and begins at or before `end` is merged.
        while let Some((&from, &to)) = self.ranges.range(..=high).next_back() {
            if to < start {
                break;
            }
            old += to.min(end).saturating_sub(from.max(start));
            low = low.min(from);
            high = high.max(to);
            self.ranges.remove(&from);
        }
        self.ranges.insert(low, high);
        end - start - old
    }

    /// Removes everything below `bound`.
    pub(crate) fn remove_below(&mut self, bound: u64) {
        while let Some((start, end)) = self.first() {
            if start >= bound {
                break;
            }
            self.ranges.remove(&start);
            if end > bound {
                self.ranges.insert(bound, end);
                break;
            }
        }
    }

    /// Returns the number of bytes of `start..end` in the set.
    pub(crate) fn covered(&self, start: u64, end: u64) -> u64 {
        let mut total = 0;
        for (&from, &to) in self.ranges.range(..end).rev() {
            if to <= start {
                break;
            }
            total += to.min(end).saturating_sub(from.max(start));
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_agree_with_single_bytes(steps in prop::collection::vec((0u64..60, 0u64..20, any::<bool>()), 0..40)) {
            let mut set = RangeSet::default();
            let mut bytes = BTreeSet::new();
            for (start, len, cut) in steps {
                if cut {
                    set.remove_below(start / 4);
                    bytes.retain(|&byte| byte >= start / 4);
                } else {
                    let new = (start..start + len).filter(|&byte| bytes.insert(byte)).count();
                    prop_assert_eq!(set.insert(start, start + len), new as u64);
                }
                for from in [0, 7, start] {
                    let expected = bytes.range(from..from + 30).count();
                    prop_assert_eq!(set.covered(from, from + 30), expected as u64);
                }
                prop_assert_eq!(set.first().map(|range| range.0), bytes.first().copied());
                let edges = bytes.iter().filter(|&&b| b == 0 || !bytes.contains(&(b - 1))).count();
                prop_assert_eq!(set.count(), edges);
                prop_assert_eq!(set.is_empty(), bytes.is_empty());
            }
        }
    }
}
