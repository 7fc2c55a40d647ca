//! Results of jobs, stored between runs.
//!
//! There is one file per experiment, setting and shard, with one JSON object per line: a header
//! with all inputs of the results, then one line per finished job. Files are replaced atomically,
//! so that an interruption leaves the last complete one.

use super::plan::{Entry, Values};
use super::{Options, Setting};
use crate::LabError;
use crate::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All inputs that the results of a file depend on, except the job itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) experiment: String,
    /// Hash of the code that produced the results.
    pub(super) code: String,
    pub(super) seed: u64,
    /// Whether the points are those of a quick run.
    pub(super) quick: bool,
    pub(super) parameters: BTreeMap<String, f64>,
    /// Whether these are live results, which depend on the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) live: bool,
}

/// Identifies a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct JobName {
    pub(super) study: String,
    pub(super) point: String,
    pub(super) replication: u32,
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    job: JobName,
    values: Values,
}

/// Results by job.
pub(super) type Found = BTreeMap<JobName, Values>;

impl Header {
    pub(super) fn new(entry: &Entry, setting: &Setting) -> Self {
        let named = |(name, value): (&&'static str, &f64)| ((*name).to_owned(), *value);
        Self {
            experiment: entry.id.to_owned(),
            code: code_of(entry),
            seed: setting.seed,
            quick: setting.quick,
            parameters: setting.parameters.iter().map(named).collect(),
            live: false,
        }
    }

    /// Returns the header of live results.
    pub(super) fn live(entry: &Entry, setting: &Setting) -> Self {
        let code = codes(&["simulated", "live", &folder_of(entry)]);
        Self { code, live: true, ..Self::new(entry, setting) }
    }

    /// Returns the header of the results of a scenario file.
    pub(super) fn scenario(name: &str, seed: u64) -> Self {
        Self {
            experiment: name.to_owned(),
            code: scenario_code(),
            seed,
            quick: false,
            parameters: BTreeMap::new(),
            live: false,
        }
    }

    /// Returns the path of the file of a shard.
    pub(super) fn path(&self, options: &Options) -> PathBuf {
        let (part, of) = options.shard.unwrap_or((1, 1));
        self.folder(&options.out).join(format!("{:016x}-{part}of{of}.jsonl", self.hash()))
    }

    fn folder(&self, out: &Path) -> PathBuf {
        out.join(&self.experiment).join(FOLDER)
    }

    /// Returns the FNV-1a hash of the header as JSON; only the file name depends on it.
    fn hash(&self) -> u64 {
        let text = serde_json::to_string(self).unwrap_or_default();
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}

/// Folder of the stores, below the experiment's folder.
const FOLDER: &str = "store";

/// Returns the hash of the code that determines an entry's simulated results: the crates that run
/// in it, and its own folder.
pub(super) fn code_of(entry: &Entry) -> String {
    codes(&["simulated", &folder_of(entry)])
}

/// Returns the hash of the code that determines the results of scenario files.
pub(crate) fn scenario_code() -> String {
    codes(&["simulated", "scenario"])
}

fn folder_of(entry: &Entry) -> String {
    entry.id.replace('-', "_")
}

fn codes(names: &[&str]) -> String {
    let codes = env!("BENTPIPE_LAB_CODES");
    let of = |name: &&str| {
        let mut words = codes.split(',').filter_map(|word| word.split_once('='));
        words.find(|(known, _)| known == name).map_or("none", |(_, code)| code)
    };
    names.iter().map(of).collect::<Vec<_>>().join("-")
}

/// Loads all stored results with this header, of every shard.
pub(super) fn load(out: &Path, header: &Header) -> Result<Found, LabError> {
    let mut found = Found::new();
    for path in stores(&header.folder(out))? {
        let (other, results) = read(&path)?;
        if other == *header {
            found.extend(results);
        }
    }
    Ok(found)
}

/// Writes the results of a shard.
pub(super) fn save(path: &Path, header: &Header, found: &Found) -> Result<(), LabError> {
    let mut text = to_json(path, header)?;
    for (job, values) in found {
        text.push('\n');
        text += &to_json(path, &Line { job: job.clone(), values: values.clone() })?;
    }
    text.push('\n');
    files::write_whole(path, text.as_bytes())
}

/// Merges the stores below `from` into `out`; returns the number of added results.
///
/// # Errors
/// If a folder has no store, a file is malformed, or two results of one job differ.
pub(super) fn merge(from: &[PathBuf], out: &Path) -> Result<usize, LabError> {
    let mut new = 0;
    for folder in from {
        let experiments = files::folders(folder)?;
        let mut any = false;
        for path in experiments.iter().map(|path| stores(&path.join(FOLDER))) {
            for path in path? {
                any = true;
                new += take_over(&path, out)?;
            }
        }
        if !any {
            let folder = folder.display();
            return Err(LabError::Request(format!("{folder}: found no results of `lab run`")));
        }
    }
    Ok(new)
}

fn take_over(path: &Path, out: &Path) -> Result<usize, LabError> {
    let (header, results) = read(path)?;
    let here = load(out, &header)?;
    let mut fresh = 0;
    let target = header.folder(out).join(format!("{:016x}-merged.jsonl", header.hash()));
    let mut all = if target.exists() { read(&target)?.1 } else { Found::new() };
    for (job, values) in results {
        match here.get(&job) {
            Some(known) if *known != values => {
                let JobName { study, point, replication } = job;
                return Err(LabError::Request(format!(
                    "{}: {study}/{point}, replication {replication}, has another result in {}",
                    path.display(),
                    out.display()
                )));
            }
            Some(_) => {}
            None => {
                fresh += 1;
                all.insert(job, values);
            }
        }
    }
    if fresh > 0 {
        save(&target, &header, &all)?;
    }
    Ok(fresh)
}

fn stores(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let is_store = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl");
    Ok(files::listed(folder)?.into_iter().filter(is_store).collect())
}

fn read(path: &Path) -> Result<(Header, Found), LabError> {
    let text = files::read(path)?;
    let mut lines = text.lines().enumerate();
    let broken = |number: usize, error: serde_json::Error| {
        let (path, line) = (path.display(), number + 1);
        LabError::Request(format!("{path}, line {line}: {error}; remove the file to start anew"))
    };
    let (_, first) = lines.next().unwrap_or((0, ""));
    let header = serde_json::from_str(first).map_err(|error| broken(0, error))?;
    let mut found = Found::new();
    for (number, line) in lines {
        let line: Line = serde_json::from_str(line).map_err(|error| broken(number, error))?;
        found.insert(line.job, line.values);
    }
    Ok((header, found))
}

fn to_json(path: &Path, value: &impl Serialize) -> Result<String, LabError> {
    serde_json::to_string(value)
        .map_err(|error| LabError::Request(format!("{}: {error}", path.display())))
}
