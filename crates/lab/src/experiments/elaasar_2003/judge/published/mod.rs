//! What the paper's sections 6 and 8 state, sentence by sentence, in our words.
//!
//! Written down before any of it was held against results, but for what the report's summary
//! names. Statements that the paper repeats in
//! one section stand once. "Gain" is ON's mean over OFF's, less one; a mean of a figure is the
//! mean over 20 replications; "point" is a point of a figure's horizontal axis.

pub(in super::super) mod conclusion;
pub(in super::super) mod connectivity;
pub(in super::super) mod corruption;
pub(in super::super) mod handoff;

use crate::experiments::{Criterion, Expected, Published};

/// A statement.
const fn claim(
    name: &'static str,
    place: &'static str,
    statement: &'static str,
    holds: &'static str,
) -> Expected {
    let (published, criterion) = (Published::Claim(statement), Criterion::Holds(holds));
    Expected { name, place, published, criterion }
}

/// A number of percent, and how many points of percent ours may be beside it.
const fn percent(name: &'static str, place: &'static str, value: f64, tolerance: f64) -> Expected {
    let published = Published::Number { value, unit: "%" };
    Expected { name, place, published, criterion: Criterion::Absolute(tolerance) }
}
