//! Stream numbers that the peer has used.

use std::collections::VecDeque;

/// Maximum distance of a stream's number from the lowest unused one. The side that opens streams
/// observes it.
pub(crate) const NUMBER_SPAN: u32 = 1 << 16;

/// A set of numbers that fills up from below.
#[derive(Debug, Default)]
pub(crate) struct SeenNumbers {
    /// Every number below this was used; a multiple of 64.
    base: u32,
    words: VecDeque<u64>,
}

impl SeenNumbers {
    pub(crate) fn contains(&self, number: u32) -> bool {
        let Some(above) = number.checked_sub(self.base) else { return true };
        self.words.get((above / 64) as usize).is_some_and(|word| word >> (above % 64) & 1 == 1)
    }

    /// Returns whether a number from `first` on was used.
    pub(crate) fn has_from(&self, first: u32) -> bool {
        // The last word contains a number, because only inserting one extends the list. A peer can
        // cause this call with every frame, so its time does not depend on the length of the list.
        let unseen_above = self.words.back().map_or(0, |word| word.leading_zeros());
        first < self.base + self.words.len() as u32 * 64 - unseen_above
    }

    /// Returns whether every number below `end` was used.
    pub(crate) fn has_all_below(&self, end: u32) -> bool {
        (self.base..end).all(|number| self.contains(number))
    }

    /// Adds a number; returns false if it exceeds [`NUMBER_SPAN`].
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let Some(above) = number.checked_sub(self.base) else { return true };
        if above >= NUMBER_SPAN + 64 {
            return false;
        }
        let index = (above / 64) as usize;
        if self.words.len() <= index {
            self.words.resize(index + 1, 0);
        }
        self.words[index] |= 1 << (above % 64);
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.base += 64;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_recorded_in_any_order_in_bounded_memory() {
        let mut seen = SeenNumbers::default();
        // Blocks of 100 in reverse order; one number is missing.
        for block in 0..600 {
            for number in (block * 100..block * 100 + 100).rev().filter(|&n| n != 1_234) {
                assert!(!seen.contains(number), "{number}");
                assert!(seen.insert(number));
                assert!(seen.contains(number));
            }
        }
        assert!(!seen.contains(1_234));
        assert!(seen.words.len() <= (NUMBER_SPAN / 64 + 1) as usize);
        seen.insert(1_234);
        assert!(seen.words.len() <= 1, "all below is one number now");
    }

    #[test]
    fn gaps_and_the_highest_number_are_found() {
        let mut seen = SeenNumbers::default();
        assert!(seen.has_all_below(0) && !seen.has_all_below(1) && !seen.has_from(0));
        for number in (0..200).filter(|&number| number != 150) {
            seen.insert(number);
        }
        assert!(seen.has_all_below(150) && !seen.has_all_below(151));
        assert!(seen.has_from(0) && seen.has_from(199) && !seen.has_from(200));
        seen.insert(150);
        for number in 200..256 {
            assert!(seen.has_from(number - 1) && !seen.has_from(number));
            seen.insert(number);
        }
        assert!(seen.words.is_empty() && seen.has_from(255) && !seen.has_from(256));
    }

    #[test]
    fn a_number_above_the_span_is_rejected() {
        let mut seen = SeenNumbers::default();
        assert!(!seen.insert(NUMBER_SPAN + 64));
        assert!(seen.insert(NUMBER_SPAN));
        assert!(!seen.contains(0));
        for number in 0..128 {
            assert!(seen.insert(number));
        }
        assert!(seen.insert(NUMBER_SPAN + 128));
    }
}
