//! Parameters of an experiment, and their values in one run.

use crate::LabError;
use std::collections::BTreeMap;

/// A parameter that `--set NAME=VALUE` changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Name.
    pub name: &'static str,
    /// Description with the unit.
    pub about: &'static str,
    /// Default value.
    pub default: f64,
    /// Smallest accepted value.
    pub min: f64,
    /// Largest accepted value.
    pub max: f64,
    /// Whether it is an integer.
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

    /// Describes the accepted values.
    pub fn range(&self) -> String {
        let Self { min, max, whole, .. } = self;
        match whole {
            true => format!("a whole number from {min} to {max}"),
            false => format!("{min} to {max}"),
        }
    }
}

/// The setting of one run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Seed of all random streams, together with the replication number.
    pub seed: u64,
    /// Default number of replications per point.
    pub replications: u32,
    /// Fewer points and replications.
    pub quick: bool,
    pub(super) parameters: BTreeMap<&'static str, f64>,
    /// Live values by the names of `bench control`.
    pub(super) measured: Option<BTreeMap<String, f64>>,
}

impl Setting {
    /// Returns the value of the parameter called `name`.
    ///
    /// # Panics
    /// If the entry declares no such parameter.
    pub fn get(&self, name: &str) -> f64 {
        let value = self.parameters.get(name);
        *value.unwrap_or_else(|| panic!("the entry declares no parameter {name:?}"))
    }

    /// Returns the number of replications for points that need at most `replications`.
    pub fn at_most(&self, replications: u32) -> u32 {
        self.replications.min(replications)
    }
}
