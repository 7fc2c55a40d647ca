//! Coverage of the state table by one session.

use super::state::{State, StateInput};

/// Set of the (state, input) pairs that have occurred, as a bitmap of the table in XSTP-6.2.1.
///
/// Every session maintains it at the cost of one OR per input; tests measure their coverage with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage(u128);

impl Coverage {
    /// Number of pairs.
    pub const PAIRS: usize = State::ALL.len() * StateInput::ALL.len();

    /// All pairs, ordered by state.
    pub fn all() -> impl Iterator<Item = (State, StateInput)> {
        State::ALL
            .into_iter()
            .flat_map(|state| StateInput::ALL.into_iter().map(move |input| (state, input)))
    }

    /// Whether `input` has occurred in `state`.
    pub fn has(self, state: State, input: StateInput) -> bool {
        self.0 & bit(state, input) != 0
    }

    /// Number of pairs in the set.
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Adds the pairs of another session.
    pub fn merge(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Adds the pair of `state` and `input`.
    pub fn mark(&mut self, state: State, input: StateInput) {
        self.0 |= bit(state, input);
    }
}

const fn bit(state: State, input: StateInput) -> u128 {
    // Both enums count up from zero in the order of their `ALL`.
    1 << (state as usize * StateInput::ALL.len() + input as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_its_own_bit() {
        let mut seen = Coverage::default();
        for (number, (state, input)) in Coverage::all().enumerate() {
            assert!(!seen.has(state, input), "{state:?} × {input:?}");
            assert_eq!(seen.count(), number);
            seen.mark(state, input);
        }
        assert_eq!(seen.count(), Coverage::PAIRS);
        let mut other = Coverage::default();
        other.merge(seen);
        assert_eq!(other, seen);
    }
}
