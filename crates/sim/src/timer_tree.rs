//! A set of timers with fast access to the earliest.

use units::Instant;

/// A time for each of a fixed number of indices, kept as a tournament tree: each inner node has the
/// earlier time of its two children, so the earliest is at the root, and a change ascends only
/// while it has an effect. Of equal times the lowest index is first.
#[derive(Clone, Debug)]
pub struct TimerTree {
    /// The root is at 1, the children of `n` at `2n` and `2n + 1`, the indices start at `leaves`.
    times: Vec<Instant>,
    leaves: usize,
}

impl TimerTree {
    /// Creates a set with one index and no timer.
    pub fn new() -> Self {
        Self { times: vec![Instant::FAR_FUTURE; 2], leaves: 1 }
    }

    /// Extends the set to `count` indices and keeps all timers.
    pub fn grow(&mut self, count: usize) {
        if count <= self.leaves {
            return;
        }
        let leaves = count.next_power_of_two();
        let mut grown = Self { times: vec![Instant::FAR_FUTURE; 2 * leaves], leaves };
        for place in 0..self.leaves {
            grown.set(place, Some(self.times[self.leaves + place]));
        }
        *self = grown;
    }

    /// Sets or clears the timer of the index `place`.
    pub fn set(&mut self, place: usize, at: Option<Instant>) {
        let mut at = at.unwrap_or(Instant::FAR_FUTURE);
        let mut node = self.leaves + place;
        while self.times[node] != at {
            self.times[node] = at;
            if node == 1 {
                return;
            }
            at = at.min(self.times[node ^ 1]);
            node /= 2;
        }
    }

    /// The earliest time.
    pub fn next_at(&self) -> Option<Instant> {
        Some(self.times[1]).filter(|&at| at != Instant::FAR_FUTURE)
    }

    /// The earliest time; the far future if no timer is set.
    pub(crate) fn earliest(&self) -> Instant {
        self.times[1]
    }

    /// The first index whose timer has expired by `now`.
    pub fn first_due(&self, now: Instant) -> Option<usize> {
        let at = self.times[1];
        if at > now || at == Instant::FAR_FUTURE {
            return None;
        }
        let mut node = 1;
        while node < self.leaves {
            node = 2 * node + usize::from(self.times[2 * node] != at);
        }
        Some(node - self.leaves)
    }
}

impl Default for TimerTree {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{RngStream, Span};

    #[test]
    fn first_due_is_the_earliest_and_of_equal_times_the_lowest_index() {
        let mut rng = RngStream::new(1, 0, "calendar");
        let mut tree = TimerTree::new();
        let mut plain: Vec<Option<Instant>> = Vec::new();
        for step in 0..5_000_u64 {
            if step % 100 == 0 {
                plain.push(None);
                tree.grow(plain.len());
            }
            let place = rng.below(plain.len() as u64) as usize;
            plain[place] = rng.chance(0.9).then(|| Instant::from_nanos(rng.below(50)));
            tree.set(place, plain[place]);
            let first = plain.iter().flatten().min().copied();
            assert_eq!(tree.next_at(), first);
            if let Some(at) = first {
                let lowest = plain.iter().position(|&time| time == Some(at));
                assert_eq!(tree.first_due(at), lowest);
                if at > Instant::ZERO {
                    assert_eq!(tree.first_due(at - Span::from_nanos(1)), None);
                }
            }
        }
    }
}
