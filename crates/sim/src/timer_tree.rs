//! When each of many things is due, and which is first.

use units::Instant;

/// A time for each of a fixed number of places, kept as a tournament: each inner node has the
/// earlier time of the two below it, so the first is at the root, and a change climbs only as
/// far as it matters. Of equal times the lowest place is first.
#[derive(Clone, Debug)]
pub struct TimerTree {
    /// The root at 1, the children of `n` at `2n` and `2n + 1`, the places from `leaves` on.
    times: Vec<Instant>,
    leaves: usize,
}

impl TimerTree {
    /// One place, at which nothing is due.
    pub fn new() -> Self {
        Self { times: vec![Instant::FAR_FUTURE; 2], leaves: 1 }
    }

    /// Makes room for `count` places; times that are set stay.
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

    /// `place` is due at `at`, or not at all.
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

    /// When the first is due.
    pub fn next_at(&self) -> Option<Instant> {
        Some(self.times[1]).filter(|&at| at != Instant::FAR_FUTURE)
    }

    /// When the first is due; the far future when nothing is.
    pub(crate) fn earliest(&self) -> Instant {
        self.times[1]
    }

    /// The first place that is due by `now`.
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
    fn the_first_is_always_the_earliest_and_of_equals_the_lowest() {
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
