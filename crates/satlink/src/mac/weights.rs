//! What a hub tells the scheduler of its terminals: how many connections lead to each.
//!
//! A number is believed until it is told again, or for a time: a hub that is silent may be gone,
//! and then a terminal has the weight that its contract gives it.

use super::schedule::Contract;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use units::{Instant, Span};

/// Weights above this are this: what somebody tells must not add up to more than can be counted.
pub const MOST: u32 = 1_000_000;

/// Connection counts of terminals, as they were told.
#[derive(Clone, Debug)]
pub struct Weights {
    terminals: BTreeMap<String, usize>,
    usual: Vec<u32>,
    /// When each was last told.
    told: Vec<Option<Instant>>,
    keep: Span,
    counters: WeightCounters,
}

/// What was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeightCounters {
    /// Numbers that were told of terminals that exist.
    pub told: u64,
    /// Numbers that were told of terminals that do not.
    pub unknown: u64,
    /// Terminals that went back to their usual weight because nothing was told any more.
    pub stale: u64,
}

impl Weights {
    /// Nothing has been told yet of these terminals; `keep` is how long a number is believed.
    pub fn new<'a>(terminals: impl Iterator<Item = (&'a str, Contract)>, keep: Span) -> Self {
        let mut weights = Self {
            terminals: BTreeMap::new(),
            usual: Vec::new(),
            told: Vec::new(),
            keep,
            counters: WeightCounters::default(),
        };
        for (number, (name, contract)) in terminals.enumerate() {
            weights.terminals.insert(name.into(), number);
            weights.usual.push(contract.weight);
            weights.told.push(None);
        }
        weights
    }

    /// The number of a terminal.
    pub fn terminal(&self, name: &str) -> Option<usize> {
        self.terminals.get(name).copied()
    }

    /// Somebody says that `connections` lead to the terminal of that name. Returns which it is
    /// and what it weighs now: at least one, because who has no slot cannot ask for one, and at
    /// most [`MOST`]. `None`: there is no such terminal.
    pub fn tell(&mut self, now: Instant, name: &str, connections: u64) -> Option<(usize, u32)> {
        let Some(terminal) = self.terminal(name) else {
            self.counters.unknown += 1;
            return None;
        };
        self.counters.told += 1;
        self.told[terminal] = Some(now);
        Some((terminal, connections.clamp(1, u64::from(MOST)) as u32))
    }

    /// When to call [`Weights::poll_stale`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.told.iter().flatten().min().map(|&told| told + self.keep)
    }

    /// The next terminal of which nothing has been told for too long, with its usual weight.
    pub fn poll_stale(&mut self, now: Instant) -> Option<(usize, u32)> {
        let old = |told: &Option<Instant>| told.is_some_and(|told| told + self.keep <= now);
        let terminal = self.told.iter().position(old)?;
        self.told[terminal] = None;
        self.counters.stale += 1;
        Some((terminal, self.usual[terminal]))
    }

    /// What was told.
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
    fn what_is_told_is_believed_for_a_time() {
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
        assert_eq!(weights.tell(at(5), "boat", 17), Some((0, 17)), "told again, believed again");
        assert_eq!(weights.poll_stale(at(9)), Some((1, 1)));
        assert_eq!(weights.poll_stale(at(9)), None);
        assert_eq!(weights.poll_stale(at(10)), Some((0, 3)), "its contract's weight");
        assert_eq!(weights.poll_timeout(), None);
        let counted = WeightCounters { told: 4, unknown: 1, stale: 2 };
        assert_eq!(weights.counters(), counted);
    }
}
