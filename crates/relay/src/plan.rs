//! Rate plans of terminals on a shared link, and scheduling by them.
//!
//! ```text
//!   link ── its rate ──┬─ plan ──┬─ terminal ── its session ── class ── connection
//!                      │         └─ terminal
//!                      └─ plan (one for all of its terminals, or one for each)
//! ```
//!
//! Each terminal first receives its [committed](Rates::committed) rate. The rest is shared by
//! weighted max-min fairness, up to each terminal's demand and its [peak](Rates::peak) rate: no
//! terminal could have more without a reduction of another one that has no more per weight.
//! [`allocate`] computes the rates for return links, whose senders receive grants; a [`Shaper`]
//! schedules the packets of the forward link, at the hub.

mod allocate;
mod line;
mod shaper;

pub use allocate::{Claim, allocate};
pub use shaper::{By, Ready, Shaper, Turn};

use units::BitRate;

/// Maximum part of a link for commitments, in percent. The rest is left for terminals without a
/// commitment, so that they never starve.
pub const COMMITTED_MOST: u64 = 95;

/// The rates of a plan in one direction, of one terminal and of all its terminals together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Rate that each terminal receives on demand (CIR, RFC 2698).
    pub committed: Option<BitRate>,
    /// Maximum rate of each terminal (PIR, RFC 2698).
    pub peak: Option<BitRate>,
    /// Maximum rate of all terminals of the plan together.
    pub total: Option<BitRate>,
}

/// A plan in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Rates of whole IP packets.
    pub rates: Rates,
    /// Weight of the share of what commitments leave; 0 counts as 1.
    pub weight: u32,
    /// Whether the weight is that of all terminals together, which share it evenly; otherwise each
    /// terminal has the weight.
    pub shared_weight: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self { rates: Rates::default(), weight: 1, shared_weight: false }
    }
}

impl Terms {
    fn weight(&self) -> u64 {
        u64::from(self.weight.max(1))
    }

    fn committed_bps(&self) -> u64 {
        self.rates.committed.map_or(0, BitRate::as_bps)
    }

    fn peak_bps(&self) -> u64 {
        self.rates.peak.map_or(u64::MAX, BitRate::as_bps)
    }

    fn total_bps(&self) -> u64 {
        self.rates.total.map_or(u64::MAX, BitRate::as_bps)
    }
}

/// A rate plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The name of the plan.
    pub name: String,
    /// From the hub to terminals.
    pub down: Rates,
    /// From terminals to the hub.
    pub up: Rates,
    /// The weight of each terminal, or of all together: see [`Terms`].
    pub weight: u32,
    /// Whether the weight is that of all together.
    pub shared_weight: bool,
}

impl Plan {
    /// Returns the plan in the direction from the hub.
    pub fn terms_down(&self) -> Terms {
        Terms { rates: self.down, weight: self.weight, shared_weight: self.shared_weight }
    }

    /// Returns the plan in the direction to the hub.
    pub fn terms_up(&self) -> Terms {
        Terms { rates: self.up, weight: self.weight, shared_weight: self.shared_weight }
    }
}

#[cfg(test)]
mod tests;
