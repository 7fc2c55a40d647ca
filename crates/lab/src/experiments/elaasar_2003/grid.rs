//! The cells of section 6 under all combinations of four parameters that the paper does not state.
//!
//! The runs take longer than all others of the entry together, and so they are made only if the
//! parameter `grid` is 1; the table they give is stored.

use super::conditions::{self, CONNECTED_5, CORRUPTION_10, Condition};
use super::joint::Reading;
use super::trial::{Party, Trial};
use super::variants::{AS_CHOSEN, NO_BACKOFF, NO_EARLY_TIMEOUT, NO_IDLE, NO_RECOVERY, Variant};
use super::{AMBIGUITIES, FIGURES, TRIED_AT, figure_key, variant_key};
use crate::experiments::{Draw, Point, Results, Setting};

/// The study of the grid.
const STUDY: &str = "grid";
/// Replications of each point.
const OFTEN: u32 = 6;

/// A combination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Combination {
    /// Idle threshold in seconds.
    pub(super) idle: f64,
    /// The others.
    pub(super) reading: Reading,
}

const IDLE: [f64; 2] = [3.0, 300.0];
const TOLERANCES: [f64; 2] = [0.1, 0.5];
const CAPS: [u32; 3] = [4, 6, 8];

impl Combination {
    /// Returns all combinations.
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for idle in IDLE {
            for tolerance in TOLERANCES {
                for backoff_cap in CAPS {
                    for drops_in_both in [false, true] {
                        let reading = Reading { tolerance, backoff_cap, drops_in_both };
                        all.push(Self { idle, reading });
                    }
                }
            }
        }
        all
    }

    /// Returns the values of the four parameters, in words.
    pub(super) fn words(&self) -> [String; 4] {
        let Reading { tolerance, backoff_cap, drops_in_both } = self.reading;
        let states = if drops_in_both { "both" } else { "bad" };
        let cap = (1_u32 << backoff_cap).to_string();
        [tolerance.to_string(), format!("{} s", self.idle), cap, states.to_owned()]
    }

    /// Returns the setting of the combination.
    pub(super) fn setting(&self, setting: &Setting) -> Setting {
        let mut setting = setting.clone();
        setting.replications = setting.at_most(OFTEN);
        setting.parameters.insert("tolerance", self.reading.tolerance);
        setting.parameters.insert("idle_threshold_s", self.idle);
        setting
    }

    fn key(&self, study: &str, key: &str) -> String {
        format!("{}/{study}/{key}", self.words().join("/"))
    }

    /// Returns the study, key and trial of each point that cells of section 6 depend on.
    fn trials(&self, setting: &Setting) -> Vec<(&'static str, String, Trial)> {
        let setting = self.setting(setting);
        let trial = |party, condition: Condition, percent| {
            self.reading.of(Trial::new(&setting, party, condition, percent), condition)
        };
        let mut all = Vec::new();
        for condition in conditions::ALL {
            for &percent in condition.points(setting.quick) {
                for party in Party::PAPER {
                    let key = figure_key(condition, percent, party);
                    all.push((FIGURES, key, trial(party, condition, percent)));
                }
            }
        }
        let tried =
            TRIED_AT.into_iter().filter(|(at, _)| [CORRUPTION_10, CONNECTED_5].contains(at));
        for (condition, points) in tried {
            for variant in &PARTS {
                for percent in points {
                    for party in Party::PAPER {
                        let key = variant_key(variant, condition, percent, party);
                        let trial = variant.of(trial(party, condition, percent));
                        all.push((AMBIGUITIES, key, trial));
                    }
                }
            }
        }
        all
    }

    /// Returns `results` with the points of this combination in place of those of the set-up.
    pub(super) fn results(&self, setting: &Setting, results: &Results) -> Results {
        let mut changed = results.clone();
        for (study, key, _) in self.trials(setting) {
            let values = results.of(STUDY, &self.key(study, &key)).to_vec();
            changed.insert(study, &key, values);
        }
        changed
    }
}

/// The parts of the mechanism that differing cells of corruption and connectivity ask about.
const PARTS: [Variant; 5] = [AS_CHOSEN, NO_RECOVERY, NO_EARLY_TIMEOUT, NO_BACKOFF, NO_IDLE];

/// Returns whether the grid is to be run.
pub(super) fn is_run(setting: &Setting) -> bool {
    setting.get("grid") == 1.0
}

pub(super) fn plan(setting: &Setting) -> Vec<Point> {
    let mut all = Vec::new();
    for combination in Combination::all().into_iter().filter(|_| is_run(setting)) {
        for (study, key, trial) in combination.trials(setting) {
            let key = combination.key(study, &key);
            let simulate = move |draw: &Draw| trial.run(draw);
            all.push(Point::new(STUDY, key, setting.at_most(OFTEN), simulate));
        }
    }
    all
}
