//! The weights that a hub announces for terminals: the number of connections of each.
//!
//! A number expires unless it is repeated: without announcements the hub may be down, and a
//! terminal has the weight of its contract.

use super::schedule::Contract;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use units::{Instant, Span};

/// Maximum weight, so that announced weights do not overflow a sum.
pub const MOST: u32 = 1_000_000;

/// Announced connection counts of terminals.
#[derive(Clone, Debug)]
pub struct Weights {
    terminals: BTreeMap<String, usize>,
    usual: Vec<u32>,
    /// When each was last announced.
    reported_at: Vec<Option<Instant>>,
    keep: Span,
    counters: WeightCounters,
}

/// Counters of announcements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeightCounters {
    /// Numbers announced for existing terminals.
    pub told: u64,
    /// Numbers announced for unknown terminals.
    pub unknown: u64,
    /// Terminals that returned to the weight of their contract.
    pub stale: u64,
}

impl Weights {
    /// Creates a set without announced numbers, which expire after `keep`.
    pub fn new<'a>(terminals: impl Iterator<Item = (&'a str, Contract)>, keep: Span) -> Self {
        let mut weights = Self {
            terminals: BTreeMap::new(),
            usual: Vec::new(),
            reported_at: Vec::new(),
            keep,
            counters: WeightCounters::default(),
        };
        for (number, (name, contract)) in terminals.enumerate() {
            weights.terminals.insert(name.into(), number);
            weights.usual.push(contract.weight);
            weights.reported_at.push(None);
        }
        weights
    }

    /// The number of a terminal.
    pub fn terminal(&self, name: &str) -> Option<usize> {
        self.terminals.get(name).copied()
    }

    /// Handles the announcement that the terminal `name` has `connections`. Returns its number and
    /// its weight: at least one, because a terminal without slots cannot request any, and at most
    /// [`MOST`]. `None`: the terminal is unknown.
    pub fn tell(&mut self, now: Instant, name: &str, connections: u64) -> Option<(usize, u32)> {
        let Some(terminal) = self.terminal(name) else {
            self.counters.unknown += 1;
            return None;
        };
        self.counters.told += 1;
        self.reported_at[terminal] = Some(now);
        Some((terminal, connections.clamp(1, u64::from(MOST)) as u32))
    }

    /// Returns when to call [`Weights::poll_stale`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.reported_at.iter().flatten().min().map(|&at| at + self.keep)
    }

    /// The next terminal whose number has expired, with the weight of its contract.
    pub fn poll_stale(&mut self, now: Instant) -> Option<(usize, u32)> {
        let old = |at: &Option<Instant>| at.is_some_and(|at| at + self.keep <= now);
        let terminal = self.reported_at.iter().position(old)?;
        self.reported_at[terminal] = None;
        self.counters.stale += 1;
        Some((terminal, self.usual[terminal]))
    }

    /// Counters of announcements.
    pub fn counters(&self) -> WeightCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn announced_number_expires() {
        let contract = Contract { weight: 3, ..Contract::default() };
        let names = [("boat", contract), ("hut", Contract::default())];
        let mut weights = Weights::new(names.into_iter(), Span::from_secs(5));
        assert_eq!(weights.poll_timeout(), None);
        assert_eq!(weights.tell(at(1), "boat", 17), Some((0, 17)));
        assert_eq!(weights.tell(at(2), "hut", 0), Some((1, 1)), "who is idle must be able to ask");
        assert_eq!(weights.tell(at(2), "hut", u64::MAX), Some((1, MOST)));
        assert_eq!(weights.tell(at(2), "plane", 9), None);
        assert_eq!(weights.poll_timeout(), Some(at(6)));
        assert_eq!(weights.poll_stale(at(5)), None);
        assert_eq!(weights.tell(at(5), "boat", 17), Some((0, 17)), "a repeated report is accepted");
        assert_eq!(weights.poll_stale(at(9)), Some((1, 1)));
        assert_eq!(weights.poll_stale(at(9)), None);
        assert_eq!(weights.poll_stale(at(10)), Some((0, 3)), "its contract's weight");
        assert_eq!(weights.poll_timeout(), None);
        let counted = WeightCounters { told: 4, unknown: 1, stale: 2 };
        assert_eq!(weights.counters(), counted);
    }
}
