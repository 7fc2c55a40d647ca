//! What terminals may have of a link that they share: plans, and whose turn it is.
//!
//! ```text
//!   link ── its rate ──┬─ plan ──┬─ terminal ── its session ── class ── connection
//!                      │         └─ terminal
//!                      └─ plan (one for all of its terminals, or one for each)
//! ```
//!
//! Each terminal has what was [committed](Rates::committed) to it first. What is left is shared
//! in proportion to weights, as far as each wants it and up to its [peak](Rates::peak): nobody
//! could have more without somebody else having less who has no more for his weight (max-min
//! fairness). [`allocate`] computes that in rates, for return links, whose senders are told; a
//! [`Shaper`] does it packet by packet, for the forward link, at whose end it stands.

mod allocate;
mod line;
mod shaper;

pub use allocate::{Claim, allocate};
pub use shaper::{By, Ready, Shaper, Turn};

use units::BitRate;

/// The part of a link, in percent, that commitments may take; the rest is left for those who have
/// none, so that nobody starves.
pub const COMMITTED_MOST: u64 = 95;

/// What one terminal of a plan may have in one direction, and what all of them together may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// What each terminal has as soon as it wants it.
    pub committed: Option<BitRate>,
    /// What each terminal has at most.
    pub peak: Option<BitRate>,
    /// What all terminals of the plan have at most.
    pub total: Option<BitRate>,
}

/// A plan in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// In bits of whole IP packets per second.
    pub rates: Rates,
    /// Its share of what commitments leave, against others; 0 counts as 1.
    pub weight: u32,
    /// The weight is that of all its terminals together, who divide what it brings evenly; else
    /// each terminal has the weight.
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
    /// What people call it.
    pub name: String,
    /// From the hub to terminals.
    pub down: Rates,
    /// From terminals to the hub.
    pub up: Rates,
    /// The weight of each terminal, or of all together: see [`Terms`].
    pub weight: u32,
    /// Whether it is that of all together.
    pub shared_weight: bool,
}

impl Plan {
    /// The plan on the way from the hub.
    pub fn terms_down(&self) -> Terms {
        Terms { rates: self.down, weight: self.weight, shared_weight: self.shared_weight }
    }

    /// The plan on the way to the hub.
    pub fn terms_up(&self) -> Terms {
        Terms { rates: self.up, weight: self.weight, shared_weight: self.shared_weight }
    }
}

#[cfg(test)]
mod tests;
