//! The declaration of an experiment, and the results of its jobs.

use super::outcome::{CrossTraffic, Outcome};
use super::setting::{Parameter, Setting};
use super::statistics::Summary;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

/// A reproducible published experiment.
#[derive(Debug)]
pub struct Entry {
    /// Name on the command line.
    pub id: &'static str,
    /// Title of the experiment.
    pub title: &'static str,
    /// Reference of the publication.
    pub source: &'static str,
    /// Description in one sentence.
    pub about: &'static str,
    /// Default number of replications per point.
    pub replications: u32,
    /// The part that can also be run live.
    pub live: Option<&'static Live>,
    /// Parameters that `--set` accepts.
    pub parameters: &'static [Parameter],
    /// Returns the points to run.
    pub plan: fn(&Setting) -> Vec<Point>,
    /// Evaluates the results.
    pub judge: fn(&Setting, &Results) -> Outcome,
}

/// The live part of an experiment: the kernel's TCP, the emulator and the gateway program in
/// network namespaces and real time.
#[derive(Debug)]
pub struct Live {
    /// Description in one sentence.
    pub about: &'static str,
    /// Number of parallel networks; slow links leave a processor idle.
    pub at_once: usize,
    /// Returns the points to run.
    pub plan: fn(&Setting) -> Vec<Point>,
    /// Evaluates live results, with the simulated results as the first argument.
    pub judge: fn(&Setting, &Results, &Results) -> CrossTraffic,
}

/// Seed and replication number of a job, from which its random streams derive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The seed.
    pub seed: u64,
    /// Replication number. Points that are compared in pairs use streams of the same names.
    pub run: u64,
}

type Simulate = Box<dyn Fn(&Draw) -> Result<Values, String> + Send + Sync>;

/// One point of a parameter sweep, run in several replications.
pub struct Point {
    /// Part of the experiment.
    pub study: &'static str,
    /// Name of the point within the study: all inputs of its jobs except seed and parameters.
    pub key: String,
    /// Number of replications.
    pub replications: u32,
    pub(super) simulate: Simulate,
}

impl Point {
    /// Returns a point whose jobs call `simulate`, a pure function.
    pub fn new(
        study: &'static str,
        key: impl Into<String>,
        replications: u32,
        simulate: impl Fn(&Draw) -> Result<Values, String> + Send + Sync + 'static,
    ) -> Self {
        Self { study, key: key.into(), replications, simulate: Box::new(simulate) }
    }
}

impl fmt::Debug for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} x{}", self.study, self.key, self.replications)
    }
}

/// Results of one job: numbers and series of numbers, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Values(BTreeMap<String, Vec<f64>>);

impl Values {
    /// Returns an empty set of values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a number. Names end in the unit.
    #[must_use]
    pub fn with(self, name: &str, value: f64) -> Self {
        self.with_series(name, vec![value])
    }

    /// Adds a series.
    #[must_use]
    pub fn with_series(mut self, name: &str, values: Vec<f64>) -> Self {
        self.0.insert(name.to_owned(), values);
        self
    }

    /// Returns the number called `name`.
    ///
    /// # Panics
    /// If there is none: plan and evaluation disagree.
    pub fn get(&self, name: &str) -> f64 {
        self.series(name)[0]
    }

    /// Returns the series called `name`.
    ///
    /// # Panics
    /// If there is none.
    pub fn series(&self, name: &str) -> &[f64] {
        if self.0.is_empty() {
            return &UNKNOWN;
        }
        self.0.get(name).unwrap_or_else(|| panic!("no job of this point has a value {name:?}"))
    }

    /// Returns the number called `name`, if there is one.
    pub(crate) fn find(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.first().copied()
    }

    /// Returns the name of the first value that is not finite, which JSON could not store.
    pub(super) fn not_a_number(&self) -> Option<&str> {
        let bad =
            |(_, values): &(&String, &Vec<f64>)| values.iter().any(|value| !value.is_finite());
        self.0.iter().find(bad).map(|(name, _)| name.as_str())
    }
}

/// The values of a point that was not run; see [`Results::whole`].
static NOT_RUN: [Values; 1] = [Values(BTreeMap::new())];
static UNKNOWN: [f64; 64] = [f64::NAN; 64];

/// Results of all jobs.
#[derive(Clone, Debug, Default)]
pub struct Results {
    points: BTreeMap<(String, String), Vec<Values>>,
    /// Whether points may be missing.
    partial: bool,
    /// Whether a missing point was requested.
    missed: Cell<bool>,
}

impl Results {
    /// Returns an empty set of results in which points may be missing: the live runs cover only
    /// some of the simulated points.
    pub(super) fn partial() -> Self {
        Self { partial: true, ..Self::default() }
    }

    /// Returns the result of `judge`, or `None` if it requested a point that was not run.
    pub(super) fn whole<T>(&self, judge: impl FnOnce(&Self) -> T) -> Option<T> {
        self.missed.set(false);
        let judged = judge(self);
        (!self.missed.get()).then_some(judged)
    }

    /// Adds the values of a point's replications, in order.
    pub(super) fn insert(&mut self, study: &str, key: &str, values: Vec<Values>) {
        self.points.insert((study.to_owned(), key.to_owned()), values);
    }

    /// Returns the values of each replication of a point, in order.
    ///
    /// # Panics
    /// If the point was not planned.
    pub fn of(&self, study: &str, key: &str) -> &[Values] {
        match self.points.get(&(study.to_owned(), key.to_owned())) {
            Some(found) => found,
            None if self.partial => {
                self.missed.set(true);
                &NOT_RUN
            }
            None => panic!("the point {study}/{key} was not planned"),
        }
    }

    /// Returns true if the point was planned.
    pub fn has(&self, study: &str, key: &str) -> bool {
        self.points.contains_key(&(study.to_owned(), key.to_owned()))
    }

    /// Returns the value called `name` of each replication.
    pub fn values(&self, study: &str, key: &str, name: &str) -> Vec<f64> {
        self.of(study, key).iter().map(|values| values.get(name)).collect()
    }

    /// Returns mean and confidence interval of the value called `name`.
    pub fn summary(&self, study: &str, key: &str, name: &str) -> Summary {
        Summary::of(&self.values(study, key, name))
    }

    /// Returns mean and confidence interval of `compare` over the replications of two points,
    /// paired by number, so that common random numbers cancel.
    pub fn paired(
        &self,
        study: &str,
        first: &str,
        second: &str,
        name: &str,
        compare: impl Fn(f64, f64) -> f64,
    ) -> Summary {
        let pairs = self.values(study, first, name).into_iter();
        let pairs = pairs.zip(self.values(study, second, name));
        Summary::of(&pairs.map(|(a, b)| compare(a, b)).collect::<Vec<f64>>())
    }
}
