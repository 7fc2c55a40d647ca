//! The accounts of an MF-TDMA link.

use crate::Tally;

/// The accounts of the whole link.
///
/// At every moment `offered = delivered + dropped + held`; see [`MfTdmaCounters::balances`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MfTdmaCounters {
    /// Handed in.
    pub offered: Tally,
    /// Handed out.
    pub delivered: Tally,
    /// Waiting, on air, or arrived and not yet fetched.
    pub held: Tally,
    /// Dropped: no room in the terminal, or the terminal is not logged on.
    pub overflowed: Tally,
    /// Dropped: a burst of it was lost.
    pub lost: Tally,
    /// Dropped: somebody else was in one of its slots.
    pub collided: Tally,
    /// Dropped: the terminal left while it waited.
    pub abandoned: Tally,
    /// Slots that were granted and have begun.
    pub granted: u64,
    /// Of those, slots that carried something.
    pub used: u64,
    /// Bursts in slots of others.
    pub intruders: u64,
    /// Bursts that came later than the guard time allows.
    pub late: u64,
    /// Requests sent, in traffic slots and sync bursts.
    pub requests: u64,
    /// Of those, requests that the scheduler never saw.
    pub requests_lost: u64,
    /// Bursts in log-on slots.
    pub calls: u64,
    /// Of those, bursts that were not heard: others called in the same slot, or they were lost.
    pub calls_lost: u64,
    /// Plans that a terminal with slots in them did not hear.
    pub plans_missed: u64,
}

impl MfTdmaCounters {
    /// Whether the accounts balance.
    pub fn balances(&self) -> bool {
        let sum = |part: fn(&Tally) -> u64| {
            let dropped = [self.overflowed, self.lost, self.collided, self.abandoned];
            dropped.iter().chain([&self.delivered, &self.held]).map(part).sum::<u64>()
        };
        sum(|tally| tally.packets) == self.offered.packets
            && sum(|tally| tally.bytes) == self.offered.bytes
    }
}

/// What one terminal had of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalCounters {
    /// Packets of it that arrived.
    pub delivered: Tally,
    /// Slots that it was granted and that have begun.
    pub granted: u64,
    /// Of those, slots in which it sent.
    pub used: u64,
}
