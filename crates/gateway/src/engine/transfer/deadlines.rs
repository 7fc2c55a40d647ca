//! Deadlines of connections.

use std::collections::BTreeSet;
use units::Instant;

/// Deadlines in the order of their times.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    ordered: BTreeSet<(Instant, usize)>,
}

impl Deadlines {
    /// Moves the deadline of `key` from `*held` to `new`; the caller stores `held`.
    pub(crate) fn set(&mut self, key: usize, held: &mut Option<Instant>, new: Option<Instant>) {
        if let Some(old) = held.take() {
            self.ordered.remove(&(old, key));
        }
        if let Some(due) = new {
            self.ordered.insert((due, key));
        }
        *held = new;
    }

    /// Returns the number of deadlines.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn len(&self) -> usize {
        self.ordered.len()
    }

    /// Returns the first deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.ordered.first().map(|&(due, _)| due)
    }

    /// Returns a key whose deadline has passed at `now`; it stays until its deadline is moved.
    pub(crate) fn due(&self, now: Instant) -> Option<usize> {
        self.ordered.first().filter(|&&(due, _)| due <= now).map(|&(_, key)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_come_in_order_and_can_move() {
        let mut deadlines = Deadlines::default();
        let at = Instant::from_nanos;
        let (mut one, mut two) = (None, None);
        deadlines.set(1, &mut one, Some(at(10)));
        deadlines.set(2, &mut two, Some(at(5)));
        assert_eq!(deadlines.next(), Some(at(5)));
        assert_eq!(deadlines.due(at(4)), None);
        assert_eq!(deadlines.due(at(5)), Some(2));
        deadlines.set(2, &mut two, None);
        assert_eq!(deadlines.due(at(99)), Some(1));
        deadlines.set(1, &mut one, None);
        assert_eq!((deadlines.next(), one, two), (None, None, None));
    }
}
