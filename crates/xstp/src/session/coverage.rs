//! Which rows and columns of the state table a session has been through.

use super::state::{State, Stimulus};

/// Pairs of a state and an event that it met: one bit for each cell of the table in XSTP-6.2.1.
///
/// Kept by every session, at the cost of one OR for each event: so what tests have reached can
/// be counted, and what happened in the field can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage(u128);

impl Coverage {
    /// How many pairs there are.
    pub const PAIRS: usize = State::ALL.len() * Stimulus::ALL.len();

    /// Every pair, state by state.
    pub fn all() -> impl Iterator<Item = (State, Stimulus)> {
        State::ALL
            .into_iter()
            .flat_map(|state| Stimulus::ALL.into_iter().map(move |stimulus| (state, stimulus)))
    }

    /// Whether `stimulus` was met in `state`.
    pub fn has(self, state: State, stimulus: Stimulus) -> bool {
        self.0 & bit(state, stimulus) != 0
    }

    /// How many pairs were met.
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Adds what another session has met.
    pub fn merge(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// `stimulus` was met in `state`.
    pub fn mark(&mut self, state: State, stimulus: Stimulus) {
        self.0 |= bit(state, stimulus);
    }
}

const fn bit(state: State, stimulus: Stimulus) -> u128 {
    // Both enums count up from zero in the order of their `ALL`.
    1 << (state as usize * Stimulus::ALL.len() + stimulus as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_a_bit_of_its_own() {
        let mut seen = Coverage::default();
        for (number, (state, stimulus)) in Coverage::all().enumerate() {
            assert!(!seen.has(state, stimulus), "{state:?} × {stimulus:?}");
            assert_eq!(seen.count(), number);
            seen.mark(state, stimulus);
        }
        assert_eq!(seen.count(), Coverage::PAIRS);
        let mut other = Coverage::default();
        other.merge(seen);
        assert_eq!(other, seen);
    }
}
