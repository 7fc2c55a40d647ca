//! How experiments are to be run, and what was set about one.

use super::{Entry, Parameter, Setting};
use crate::LabError;
use crate::files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How to run experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Where stores, plots and reports go.
    pub out: PathBuf,
    /// How often each point is run; `None`: as the entry has it.
    pub replications: Option<u32>,
    /// With the replication the source of all chance.
    pub seed: u64,
    /// Fewer points and replications, for a first look.
    pub quick: bool,
    /// Only this part of so many, from 1.
    pub shard: Option<(u32, u32)>,
    /// Jobs at once; `None`: one for each processor.
    pub jobs: Option<usize>,
    /// Parameters, as `NAME=VALUE`.
    pub set: Vec<String>,
    /// Whether to run live, too, what can be.
    pub live: bool,
    /// What `bench control` measured, to be shown beside simulated values.
    pub measured: Option<PathBuf>,
}

impl Options {
    /// The usual, with results under `out`.
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
            measured: None,
        }
    }

    /// Checks what can be checked before anything runs.
    ///
    /// # Errors
    /// The first option that makes no sense, with what is allowed.
    pub(super) fn check(&self, entries: &[&Entry]) -> Result<(), LabError> {
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

    /// What these options mean for `entry`.
    ///
    /// # Errors
    /// A parameter's value that is not allowed.
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

/// The `values` of a report of `bench control`.
fn measured(path: &Path) -> Result<BTreeMap<String, f64>, LabError> {
    /// The part of the report that counts here.
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

/// Replications of a quick run.
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
