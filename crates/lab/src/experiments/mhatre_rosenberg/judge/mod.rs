//! Evaluation of the paper's claims.

mod access;
mod bulk;
mod predicted;
mod readings;
mod scenarios;
mod sweeps;

use super::{SWEEPS, TABLE, key};
use crate::experiments::publication::paper;
use crate::experiments::statistics::{Summary, relative_gain, shown};
use crate::experiments::{Outcome, Results, Setting};
use sim::multi_access::Scenario;

paper!(PAPER = "mhatre-rosenberg");

pub(super) fn judge(setting: &Setting, results: &Results) -> Outcome {
    let seen = Seen { setting, results };
    let [one, two, three] =
        [Scenario::Static, Scenario::Equal, Scenario::Weighted].map(|scenario| scenario.name());
    let value = |key: &str, name: &str, digits| shown(seen.table(key, name), digits);
    let values = [
        ("replications", setting.replications.to_string()),
        ("objects_1", value(one, "objects", 0)),
        ("objects_2", value(two, "objects", 0)),
        ("objects_3", value(three, "objects", 0)),
        ("mean_1", value(one, "mean_s", 2)),
        ("mean_2", value(two, "mean_s", 2)),
        ("mean_3", value(three, "mean_s", 2)),
        ("more", shown(seen.gain(TABLE, three, two, "objects").scaled(100.0), 1)),
    ];
    let sections = vec![
        scenarios::table(&seen),
        scenarios::sentences(&seen),
        sweeps::section(&seen),
        bulk::section(&seen),
        predicted::section(&seen),
        access::section(&seen),
        readings::section(&seen),
    ];
    Outcome {
        summary: PAPER.summary(&values),
        set_up: PAPER.set_up(&values),
        sections,
        ..Outcome::default()
    }
}

/// Results with accessors for the quantities of the claims.
struct Seen<'a> {
    setting: &'a Setting,
    results: &'a Results,
}

impl Seen<'_> {
    /// Returns a value of the study of table I.
    fn table(&self, key: &str, name: &str) -> Summary {
        self.results.summary(TABLE, key, name)
    }

    /// Returns the ratio of the means of two points less one, paired by run.
    fn gain(&self, study: &str, first: &str, second: &str, name: &str) -> Summary {
        let values = |key: &str| self.results.values(study, key, name);
        relative_gain(&values(first), &values(second))
    }

    /// Returns the ratio of two values of the same runs.
    fn ratio(&self, key: &str, over: &str, under: &str) -> Summary {
        let values = |name: &str| self.results.values(TABLE, key, name).into_iter();
        let ratios: Vec<f64> =
            values(over).zip(values(under)).map(|(over, under)| over / under).collect();
        Summary::of(&ratios)
    }

    /// Returns the ratio of [`Seen::ratio`] at two points, paired by run.
    fn ratio_of(&self, first: &str, second: &str, over: &str, under: &str) -> Summary {
        let ratios = |key: &str| {
            let values = |name: &str| self.results.values(TABLE, key, name).into_iter();
            values(over).zip(values(under)).map(|(over, under)| over / under).collect::<Vec<f64>>()
        };
        let pairs = ratios(first).into_iter().zip(ratios(second));
        Summary::of(&pairs.map(|(first, second)| first / second).collect::<Vec<f64>>())
    }

    /// Returns [`Seen::gain`] of two scenarios at one point of a sweep.
    fn sweep_gain(&self, study: &str, value: f64, pair: [Scenario; 2], name: &str) -> Summary {
        let [first, second] = pair.map(|scenario| key(scenario, value));
        self.gain(study, &first, &second, name)
    }
}
