//! The readings on which the sizes of gains depend, all combined: tolerance, cap of the back-off of
//! polling, and whether the good state of the corruption tests drops packets as well.

use super::conditions::{
    CONNECTED_5, CONNECTED_10, CORRUPTION_1, CORRUPTION_10, Condition, HANDOFF_1, HANDOFF_HALF,
};
use super::figure_key;
use super::trial::{Party, Trial};
use crate::experiments::{Draw, Point, Setting};

/// The study of combined readings.
pub(super) const JOINT: &str = "joint";

/// A combination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reading {
    /// RTT_TOLERANCE as a fraction of the round trip.
    pub(super) tolerance: f64,
    /// Binary logarithm of the largest back-off of polling, in intervals.
    pub(super) backoff_cap: u32,
    /// Both states of the corruption tests drop packets, as section 6.1 says.
    pub(super) drops_in_both: bool,
}

const TOLERANCES: [f64; 2] = [0.1, 0.5];
const CAPS: [u32; 3] = [4, 5, 6];

/// Conditions and points, by test: corruption, hand-off, connectivity.
pub(super) const TESTS: [([Condition; 2], &[u32]); 3] = [
    ([CORRUPTION_10, CORRUPTION_1], &[5, 20, 50]),
    ([HANDOFF_HALF, HANDOFF_1], &[1, 7, 15]),
    ([CONNECTED_5, CONNECTED_10], &[1, 10, 30]),
];

impl Reading {
    /// Returns all combinations.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let both = [false, true].into_iter();
        both.flat_map(|drops_in_both| {
            TOLERANCES.into_iter().flat_map(move |tolerance| {
                CAPS.map(|backoff_cap| Self { tolerance, backoff_cap, drops_in_both })
            })
        })
    }

    /// Returns the key of a point.
    pub(super) fn key(&self, condition: Condition, percent: u32, party: Party) -> String {
        let Self { tolerance, backoff_cap, drops_in_both } = self;
        let states = if *drops_in_both { "both" } else { "bad" };
        format!("{tolerance}/{backoff_cap}/{states}/{}", figure_key(condition, percent, party))
    }

    /// Applies the combination to a trial.
    pub(super) fn of(&self, mut trial: Trial, condition: Condition) -> Trial {
        trial.source.poll_backoff_cap = self.backoff_cap;
        if let Some(probing) = &mut trial.source.xstp.probing {
            probing.tolerance_millionths = (self.tolerance * 1e6) as u32;
        }
        let is_corruption = matches!(condition, Condition::Corruption(_));
        if let Some(process) =
            trial.link.shared.as_mut().filter(|_| self.drops_in_both && is_corruption)
        {
            process.states[0].drop = process.states[1].drop;
        }
        trial
    }
}

/// Returns the conditions and points of all tests.
pub(super) fn places() -> impl Iterator<Item = (Condition, u32)> {
    TESTS.into_iter().flat_map(|(conditions, points)| {
        conditions.into_iter().flat_map(move |at| points.iter().map(move |&point| (at, point)))
    })
}

pub(super) fn plan(setting: &Setting) -> Vec<Point> {
    let mut all = Vec::new();
    for reading in Reading::all() {
        for (condition, percent) in places() {
            for party in Party::PAPER {
                let trial = Trial::new(setting, party, condition, percent);
                let trial = reading.of(trial, condition);
                let key = reading.key(condition, percent, party);
                let simulate = move |draw: &Draw| trial.run(draw);
                all.push(Point::new(JOINT, key, setting.at_most(10), simulate));
            }
        }
    }
    all
}
