//! Options of a run, and the setting of one experiment that follows from them.

use super::{Entry, Parameter, Setting};
use crate::LabError;
use crate::files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options for running experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Output folder of stores, plots and reports.
    pub out: PathBuf,
    /// Replications of each point; `None` for the entry's default.
    pub replications: Option<u32>,
    /// Seed of all random streams, together with the replication number.
    pub seed: u64,
    /// Fewer points and replications.
    pub quick: bool,
    /// Run only part `.0` of `.1` parts, counted from 1.
    pub shard: Option<(u32, u32)>,
    /// Parallel jobs; `None` for one per processor.
    pub jobs: Option<usize>,
    /// Parameters as `NAME=VALUE`.
    pub set: Vec<String>,
    /// Also run the live parts of the experiments.
    pub live: bool,
    /// Stops the run from another thread.
    pub stop: Stop,
    /// Report of `bench control` with live values to show next to the simulated ones.
    pub measured: Option<PathBuf>,
}

/// A request to stop a run: no further job begins, those of scenario files are given up, and results of
/// finished ones are stored.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Requests it.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was requested.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl PartialEq for Stop {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.is_set() == other.is_set()
    }
}

impl Options {
    /// Returns the default options with results below `out`.
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self {
            out: out.into(),
            replications: None,
            seed: 1,
            quick: false,
            shard: None,
            jobs: None,
            set: Vec::new(),
            live: false,
            stop: Stop::default(),
            measured: None,
        }
    }

    /// Validates the options before any job runs.
    ///
    /// # Errors
    /// The first invalid option, with the accepted values.
    pub(crate) fn check(&self, entries: &[&Entry]) -> Result<(), LabError> {
        let wrong = |text: String| Err(LabError::Request(text));
        if self.replications.is_some_and(|count| !(1..=10_000).contains(&count)) {
            let found = self.replications.unwrap_or_default();
            return wrong(format!("--replications: found {found}, expected 1 to 10000"));
        }
        if let Some((part, of)) = self.shard
            && !(1..=10_000).contains(&of)
        {
            return wrong(format!("--shard: found {part}/{of}, expected at most 10000 parts"));
        }
        if let Some((part, of)) = self.shard
            && !(1..=of).contains(&part)
        {
            return wrong(format!("--shard: found {part}/{of}, expected 1/{of} to {of}/{of}"));
        }
        if self.live && self.shard.is_some() {
            return wrong(
                "--live: found with --shard, expected alone: a machine's live runs are \
                          its own"
                    .to_owned(),
            );
        }
        if self.live && entries.iter().all(|entry| entry.live.is_none()) {
            let live = super::ALL.iter().filter(|entry| entry.live.is_some());
            let known = live.map(|entry| entry.id).collect::<Vec<_>>().join(", ");
            return wrong(format!("--live: found nothing to run live, expected one of {known}"));
        }
        if self.jobs.is_some_and(|count| !(1..=1_024).contains(&count)) {
            let found = self.jobs.unwrap_or_default();
            return wrong(format!("--jobs: found {found}, expected 1 to 1024"));
        }
        let known: Vec<&Parameter> =
            entries.iter().flat_map(|entry| entry.parameters.iter()).collect();
        for word in &self.set {
            let (name, _) = split(word)?;
            if !known.iter().any(|parameter| parameter.name == name) {
                return wrong(unknown(name, &known));
            }
        }
        for entry in entries {
            self.setting(entry)?;
        }
        Ok(())
    }

    /// Returns the setting of `entry` under these options.
    ///
    /// # Errors
    /// If the value of a parameter is out of range.
    pub(super) fn setting(&self, entry: &Entry) -> Result<Setting, LabError> {
        let defaults = entry.parameters.iter();
        let mut parameters: BTreeMap<&'static str, f64> =
            defaults.map(|parameter| (parameter.name, parameter.default)).collect();
        for word in &self.set {
            let (name, value) = split(word)?;
            if let Some(parameter) = entry.parameters.iter().find(|known| known.name == name) {
                parameters.insert(parameter.name, parameter.read(value)?);
            }
        }
        let usual = if self.quick { entry.replications.min(QUICK) } else { entry.replications };
        Ok(Setting {
            seed: self.seed,
            replications: self.replications.unwrap_or(usual),
            quick: self.quick,
            parameters,
            measured: self.measured.as_deref().map(measured).transpose()?,
        })
    }
}

/// Returns the `values` of a report of `bench control`.
fn measured(path: &Path) -> Result<BTreeMap<String, f64>, LabError> {
    /// The part of the report that is used.
    #[derive(serde::Deserialize)]
    struct Report {
        values: BTreeMap<String, f64>,
    }
    let report: Report = serde_json::from_str(&files::read(path)?).map_err(|error| {
        let path = path.display();
        LabError::Request(format!(
            "--measured: {path}: {error}; expected what bench control writes"
        ))
    })?;
    Ok(report.values)
}

/// Maximum number of replications of a quick run.
const QUICK: u32 = 8;

fn split(word: &str) -> Result<(&str, &str), LabError> {
    word.split_once('=')
        .map(|(name, value)| (name.trim(), value.trim()))
        .ok_or_else(|| LabError::Request(format!("--set: found {word:?}, expected NAME=VALUE")))
}

fn unknown(name: &str, known: &[&Parameter]) -> String {
    if known.is_empty() {
        return format!("--set: found {name:?}, expected none: the experiment has no parameters");
    }
    let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
    format!("--set: found {name:?}, expected one of {}", names.join(", "))
}
