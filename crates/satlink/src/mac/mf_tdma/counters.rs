//! Counters of an MF-TDMA link.

use crate::Tally;

/// Counters of the whole link.
///
/// At all times `offered = delivered + dropped + held`; see [`MfTdmaCounters::balances`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MfTdmaCounters {
    /// Offered.
    pub offered: Tally,
    /// Delivered.
    pub delivered: Tally,
    /// Queued, on air, or arrived and not yet fetched.
    pub held: Tally,
    /// Dropped at a full queue, or because the terminal is not logged on.
    pub overflowed: Tally,
    /// Lost with one of its bursts.
    pub lost: Tally,
    /// Lost in a collision in one of its slots.
    pub collided: Tally,
    /// Dropped when the terminal logged off.
    pub abandoned: Tally,
    /// Slots granted whose time has come.
    pub granted: u64,
    /// Granted slots that carried data.
    pub used: u64,
    /// Bursts in slots of other terminals.
    pub intruders: u64,
    /// Bursts later than the guard time allows.
    pub late: u64,
    /// Requests sent, in traffic slots and sync bursts.
    pub requests: u64,
    /// Requests that did not reach the scheduler.
    pub requests_lost: u64,
    /// Bursts in log-on slots.
    pub calls: u64,
    /// Log-on bursts lost to a collision or an error.
    pub calls_lost: u64,
    /// Plans missed by a terminal with slots in them.
    pub plans_missed: u64,
}

impl MfTdmaCounters {
    /// Whether packet conservation holds.
    pub fn balances(&self) -> bool {
        let sum = |part: fn(&Tally) -> u64| {
            let dropped = [self.overflowed, self.lost, self.collided, self.abandoned];
            dropped.iter().chain([&self.delivered, &self.held]).map(part).sum::<u64>()
        };
        sum(|tally| tally.packets) == self.offered.packets
            && sum(|tally| tally.bytes) == self.offered.bytes
    }
}

/// Counters of one terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalCounters {
    /// Packets delivered.
    pub delivered: Tally,
    /// Slots granted whose time has come.
    pub granted: u64,
    /// Granted slots in which it sent.
    pub used: u64,
}
