//! What an experiment consists of, and what came out of its jobs.

use super::outcome::{Beside, Outcome};
use super::setting::{Parameter, Setting};
use super::statistics::Summary;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

/// A published experiment that can be run again.
#[derive(Debug)]
pub struct Entry {
    /// Its name on the command line.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// How often each point is run, unless said otherwise.
    pub replications: u32,
    /// What of it can be run live as well.
    pub live: Option<&'static Live>,
    /// What can be set about it.
    pub parameters: &'static [Parameter],
    /// What there is to run.
    pub plan: fn(&Setting) -> Vec<Point>,
    /// What to make of it.
    pub judge: fn(&Setting, &Results) -> Outcome,
}

/// The part of an experiment that runs with the kernel's TCP, the emulator and the gateway's
/// program, in network namespaces and real time.
#[derive(Debug)]
pub struct Live {
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Networks at once: slow links leave a processor idle.
    pub at_once: usize,
    /// What there is to run.
    pub plan: fn(&Setting) -> Vec<Point>,
    /// What to make of simulated and live results.
    pub judge: fn(&Setting, &Results, &Results) -> Beside,
}

/// What a job draws its chance from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The seed.
    pub seed: u64,
    /// The replication. Points that are to be compared in pairs use the same named streams.
    pub run: u64,
}

/// What a job computes.
type Simulate = Box<dyn Fn(&Draw) -> Result<Values, String> + Send + Sync>;

/// One point of a sweep, to be run several times.
pub struct Point {
    /// Which part of the experiment it belongs to.
    pub study: &'static str,
    /// What it is: everything that its jobs depend on but for the seed and the parameters.
    pub key: String,
    /// How often it is run.
    pub replications: u32,
    pub(super) simulate: Simulate,
}

impl Point {
    /// A point whose jobs are `simulate`, a pure function.
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

/// What a job found: numbers, and series of numbers, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Values(BTreeMap<String, Vec<f64>>);

impl Values {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one number more. Units stand last in the names.
    #[must_use]
    pub fn with(self, name: &str, value: f64) -> Self {
        self.with_series(name, vec![value])
    }

    /// With one series more.
    #[must_use]
    pub fn with_series(mut self, name: &str, values: Vec<f64>) -> Self {
        self.0.insert(name.to_owned(), values);
        self
    }

    /// The number called `name`.
    ///
    /// # Panics
    /// When there is none: the entry's two halves do not fit together.
    pub fn get(&self, name: &str) -> f64 {
        self.series(name)[0]
    }

    /// The series called `name`.
    ///
    /// # Panics
    /// When there is none.
    pub fn series(&self, name: &str) -> &[f64] {
        if self.0.is_empty() {
            return &UNKNOWN;
        }
        self.0.get(name).unwrap_or_else(|| panic!("no job of this point has a value {name:?}"))
    }

    /// The first value that is not a number, which no file could hold.
    pub(super) fn not_a_number(&self) -> Option<&str> {
        let bad =
            |(_, values): &(&String, &Vec<f64>)| values.iter().any(|value| !value.is_finite());
        self.0.iter().find(bad).map(|(name, _)| name.as_str())
    }
}

/// What a point that was not run has for every value; see [`Results::whole`].
static NOT_RUN: [Values; 1] = [Values(BTreeMap::new())];
static UNKNOWN: [f64; 64] = [f64::NAN; 64];

/// What all jobs found.
#[derive(Clone, Debug, Default)]
pub struct Results {
    points: BTreeMap<(String, String), Vec<Values>>,
    /// Whether there may be less than was planned.
    partial: bool,
    /// Whether somebody asked for what is not there.
    missed: Cell<bool>,
}

impl Results {
    /// None yet, and there may be points without: what was run live is a part of what was
    /// simulated.
    pub(super) fn partial() -> Self {
        Self { partial: true, ..Self::default() }
    }

    /// What `judge` makes of these; `None` when it asked for a point that was not run.
    pub(super) fn whole<T>(&self, judge: impl FnOnce(&Self) -> T) -> Option<T> {
        self.missed.set(false);
        let judged = judge(self);
        (!self.missed.get()).then_some(judged)
    }

    /// Adds what the replications of a point found, in their order.
    pub(super) fn insert(&mut self, study: &str, key: &str, values: Vec<Values>) {
        self.points.insert((study.to_owned(), key.to_owned()), values);
    }

    /// What each replication of a point found, in their order.
    ///
    /// # Panics
    /// When the point was not planned.
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

    /// Whether the point was planned.
    pub fn has(&self, study: &str, key: &str) -> bool {
        self.points.contains_key(&(study.to_owned(), key.to_owned()))
    }

    /// The values called `name` of a point's replications.
    pub fn values(&self, study: &str, key: &str, name: &str) -> Vec<f64> {
        self.of(study, key).iter().map(|values| values.get(name)).collect()
    }

    /// Mean and interval of the value called `name`.
    pub fn summary(&self, study: &str, key: &str, name: &str) -> Summary {
        Summary::of(&self.values(study, key, name))
    }

    /// Mean and interval of what `compare` makes of the same replication of two points: what
    /// chance did to both falls out of the difference.
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
