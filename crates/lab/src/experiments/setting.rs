//! What can be set about an experiment, and what was.

use crate::LabError;
use std::collections::BTreeMap;

/// Something that can be set about an experiment with `--set NAME=VALUE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is, with its unit.
    pub about: &'static str,
    /// What it is unless set.
    pub default: f64,
    /// The least allowed.
    pub min: f64,
    /// The most allowed.
    pub max: f64,
    /// Whether it is a count.
    pub whole: bool,
}

impl Parameter {
    pub(super) fn read(&self, value: &str) -> Result<f64, LabError> {
        let Self { name, min, max, whole, .. } = *self;
        let fits = |number: &f64| (min..=max).contains(number) && !(whole && number.fract() != 0.0);
        value.parse().ok().filter(fits).ok_or_else(|| {
            let range = self.range();
            LabError::Request(format!("{name}: found {value:?}, expected {range}"))
        })
    }

    /// What is allowed, in words.
    pub fn range(&self) -> String {
        let Self { min, max, whole, .. } = self;
        match whole {
            true => format!("a whole number from {min} to {max}"),
            false => format!("{min} to {max}"),
        }
    }
}

/// How one experiment is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// With the replication the source of all chance.
    pub seed: u64,
    /// How often each point is to be run.
    pub replications: u32,
    /// Whether a first look is enough.
    pub quick: bool,
    pub(super) parameters: BTreeMap<&'static str, f64>,
    /// What was measured live, by the names that `bench control` gives.
    pub(super) measured: Option<BTreeMap<String, f64>>,
}

impl Setting {
    /// The parameter called `name`.
    ///
    /// # Panics
    /// When the entry has none of this name.
    pub fn get(&self, name: &str) -> f64 {
        let value = self.parameters.get(name);
        *value.unwrap_or_else(|| panic!("the entry declares no parameter {name:?}"))
    }

    /// The number of replications, for points that do not need as many as others.
    pub fn at_most(&self, replications: u32) -> u32 {
        self.replications.min(replications)
    }
}
