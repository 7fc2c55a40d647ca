//! Windowed maximum over rounds.

use alloc::collections::VecDeque;

/// A running maximum over a number of rounds.
#[derive(Clone, Debug)]
pub(super) struct MaxFilter {
    rounds: u64,
    /// Decreasing values by increasing rounds: each is the maximum since its round.
    kept: VecDeque<(u64, f64)>,
}

impl MaxFilter {
    pub(super) fn new(rounds: u64) -> Self {
        Self { rounds, kept: VecDeque::new() }
    }

    /// Adds a value of `round`.
    pub(super) fn update(&mut self, round: u64, value: f64) {
        while self.kept.back().is_some_and(|&(_, last)| last <= value) {
            self.kept.pop_back();
        }
        self.kept.push_back((round, value));
        while self.kept.front().is_some_and(|&(first, _)| first + self.rounds < round) {
            self.kept.pop_front();
        }
    }

    /// The maximum; 0 before the first value.
    pub(super) fn max(&self) -> f64 {
        self.kept.front().map_or(0.0, |&(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_for_as_many_rounds() {
        let mut filter = MaxFilter::new(10);
        assert_eq!(filter.max(), 0.0);
        filter.update(1, 5.0);
        filter.update(2, 9.0);
        filter.update(3, 7.0);
        assert_eq!(filter.max(), 9.0);
        filter.update(12, 1.0);
        assert_eq!(filter.max(), 9.0);
        filter.update(13, 2.0);
        assert_eq!(filter.max(), 7.0, "the second round's is too old");
    }
}
