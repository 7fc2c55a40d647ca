//! The replay window of received counters, after RFC 6479.

/// Words of the ring; one is always being cleared, so the window is one word smaller.
const WORDS: usize = 64;
const BITS: u64 = 64;

/// Size of the replay window: 4,032 packets, one second at 50 Mbit/s, far more than the reordering
/// of a path.
pub const REPLAY_WINDOW: u64 = (WORDS as u64 - 1) * BITS;

/// Detects repeated counters with a ring of words indexed by counter / 64: advancing clears whole
/// words and shifts nothing.
#[derive(Clone, Debug)]
pub(crate) struct ReplayWindow {
    words: [u64; WORDS],
    /// Highest accepted counter plus one; 0 before the first.
    next: u64,
}

impl ReplayWindow {
    pub(crate) fn new() -> Self {
        Self { words: [0; WORDS], next: 0 }
    }

    /// Returns the highest accepted counter plus one; 0 before the first.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the complete counter of a datagram that contains its low 32 bits: the one closest to
    /// the next expected.
    pub(crate) fn reconstruct(&self, low: u32) -> u64 {
        let expected = self.next;
        let base = (expected & !0xffff_ffff) | u64::from(low);
        let span = 1u64 << 32;
        if base + span / 2 < expected {
            base + span
        } else if base > expected + span / 2 && base >= span {
            base - span
        } else {
            base
        }
    }

    /// Returns true if `counter` is within the window and new. It changes nothing, so that it can
    /// be called before the datagram is authenticated.
    pub(crate) fn is_new(&self, counter: u64) -> bool {
        if counter >= self.next {
            return true;
        }
        self.next - counter <= REPLAY_WINDOW && self.words[word(counter)] & bit(counter) == 0
    }

    /// Marks `counter` as received; returns true if it is the highest so far.
    pub(crate) fn accept(&mut self, counter: u64) -> bool {
        let newest = counter >= self.next;
        if newest {
            // The word of the highest accepted counter is in use; the following ones are stale.
            let first = self.next.div_ceil(BITS);
            let last = counter / BITS;
            for index in first..=last.min(first.saturating_add(WORDS as u64 - 1)) {
                self.words[(index % WORDS as u64) as usize] = 0;
            }
            self.next = counter + 1;
        }
        self.words[word(counter)] |= bit(counter);
        newest
    }
}

fn word(counter: u64) -> usize {
    ((counter / BITS) % WORDS as u64) as usize
}

fn bit(counter: u64) -> u64 {
    1 << (counter % BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// ASC-3.1
    #[test]
    fn counters_wrap_on_the_wire_but_not_in_the_window() {
        let mut window = ReplayWindow::new();
        assert_eq!(window.reconstruct(5), 5);
        assert_eq!(window.reconstruct(0xffff_ffff), 0xffff_ffff, "nothing is below zero");
        window.accept(0xffff_fff0);
        assert_eq!(window.reconstruct(0x0000_0003), 0x1_0000_0003);
        window.accept(0x1_0000_0003);
        assert_eq!(window.reconstruct(0xffff_fff1), 0xffff_fff1);
    }

    /// ASC-3.2
    #[test]
    fn counters_below_the_window_are_rejected() {
        let mut window = ReplayWindow::new();
        window.accept(10_000);
        assert!(!window.is_new(10_000));
        assert!(window.is_new(10_001 - REPLAY_WINDOW));
        assert!(!window.is_new(10_000 - REPLAY_WINDOW));
    }

    proptest! {
        /// Compares with a set of all counters.
        #[test]
        fn the_ring_agrees_with_a_set(steps in prop::collection::vec((0u64..3, 0u64..6_000), 1..400)) {
            let mut window = ReplayWindow::new();
            let mut seen = BTreeSet::new();
            let mut next = 0u64;
            for (kind, distance) in steps {
                let counter = match kind {
                    0 => next + distance % 3,
                    1 => next + distance,
                    _ => next.saturating_sub(distance),
                };
                let expected = !seen.contains(&counter)
                    && (counter >= next || next - counter <= REPLAY_WINDOW);
                prop_assert_eq!(window.is_new(counter), expected, "counter {} next {}", counter, next);
                if expected {
                    prop_assert_eq!(window.accept(counter), counter >= next);
                    seen.insert(counter);
                    next = next.max(counter + 1);
                }
            }
        }
    }
}
