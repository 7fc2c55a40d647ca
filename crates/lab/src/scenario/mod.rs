//! Scenario files: a question in TOML, simulated, measured and judged.
//!
//! ```text
//!   file.toml ── sweep ──▶ cases ── build ──▶ Network ── run ──▶ measures ──▶ runs.csv, cells.csv
//!    document    points     file    traffic                        store      criteria, figures
//! ```
//!
//! `docs/guide/scenarios.md` describes the keys and the results. A job is one replication of one
//! point; jobs, stores, shards and their merge are those of published experiments.

mod build;
mod bundle;
mod compare;
mod expect;
mod figures;
mod file;
mod measures;
mod record;
mod results;
mod simulation;
mod source;
mod sweep;
mod traffic;
mod transport;
mod values;

pub use bundle::{Checked, bundle, verify};
pub use compare::compare;
pub use results::Report;
pub use sim::Series;
pub use simulation::{Simulation, Which};
pub use source::Source;

use crate::LabError;
use crate::document::{self, Document};
use crate::experiments::{ALL, Options, Point, Stop, Values, run_points};
use crate::files;
use file::Case;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use sweep::Axes;

/// Replications of each point, unless given.
const REPLICATIONS: u32 = 10;
/// The study of all jobs in the store.
const STUDY: &str = "scenario";

/// One point of a scenario: a value for each swept key, and the case that follows.
struct CasePoint {
    /// The values of the swept keys, in the order of the keys.
    values: Vec<String>,
    case: Arc<Case>,
    /// Identifies everything that its results depend on, except code and seed.
    key: String,
}

/// A scenario file with its sweep.
struct Scenario {
    name: String,
    text: String,
    /// The files of traces, relative to the folder of the source.
    traces: BTreeSet<String>,
    /// The swept keys.
    keys: Vec<String>,
    points: Vec<CasePoint>,
}

/// Runs a scenario: the missing jobs, then the evaluation, below `options.out`. `seed` replaces the
/// seed of the file, and `options.set` its keys.
///
/// # Errors
/// If the scenario or an option is invalid, a job fails, or a file cannot be read or written.
pub fn run(source: &Source, options: &Options, seed: Option<u64>) -> Result<Report, LabError> {
    Options { set: Vec::new(), ..options.clone() }.check(&[])?;
    let scenario = read(source, &options.set)?;
    let first = &scenario.points[0].case;
    let seed = seed.or(first.seed).unwrap_or(options.seed);
    let usual = if options.quick { 1 } else { first.replications.unwrap_or(REPLICATIONS) };
    let replications = options.replications.unwrap_or(usual).max(1);
    let points: Vec<Point> =
        scenario.points.iter().map(|point| point.jobs(replications, &options.stop)).collect();
    let options = Options { seed, ..options.clone() };
    let results = match run_points(&scenario.name, &options, &points)? {
        Ok(results) => results,
        Err([done, jobs]) => return Ok(Report::Part { name: scenario.name, done, jobs }),
    };
    let values = |point: &CasePoint| results.of(STUDY, &point.key).to_vec();
    let values: Vec<Vec<Values>> = scenario.points.iter().map(values).collect();
    results::write(&scenario, &values, &options)
}

/// Returns whether `path` is a scenario file, and not a file with options of published experiments.
///
/// # Errors
/// If it cannot be read or is not TOML.
pub fn is_scenario(path: &Path) -> Result<bool, LabError> {
    let (text, file) = (files::read(path)?, path.display().to_string());
    let document = Document::parse(&file, &text)?;
    Ok(!document.has("run"))
}

impl CasePoint {
    fn jobs(&self, replications: u32, stop: &Stop) -> Point {
        let (case, stop) = (Arc::clone(&self.case), stop.clone());
        Point::new(STUDY, &self.key, replications, move |draw| {
            let mut built = case.build(draw);
            built.run_until(case.end(), &stop).map_err(|error| error.to_string())?;
            let measured = built.measured(&case).into_iter();
            Ok(measured.fold(Values::new(), |values, (name, value)| values.with(&name, value)))
        })
    }
}

/// Reads a scenario and all points of its sweep.
fn read(source: &Source, set: &[String]) -> Result<Scenario, LabError> {
    let Source { name, file, folder, text } = source;
    if ALL.iter().any(|entry| entry.id == *name) {
        let message = format!("{file}: found the name of a published experiment, expected another");
        return Err(LabError::Request(message));
    }
    let mut document = Document::parse(file, text)?;
    let words = set.iter().map(|word| sweep::setting(word)).collect::<Result<Vec<_>, _>>()?;
    words.iter().for_each(|replacement| document.replace(replacement));
    let axes = Axes::take(&mut document)?;
    let (mut points, mut traces) = (Vec::new(), BTreeSet::new());
    for replacements in axes.points() {
        let mut document = document.clone();
        replacements.iter().for_each(|replacement| document.replace(replacement));
        let mut case: Case = document.read()?;
        let courses = case.load(folder, &document)?;
        traces.extend(case.links.values().flat_map(values::Link::trace_files).cloned());
        case.check(&document)?;
        expect::check(&case, &axes.keys, &document)?;
        figures::check(&case, &axes.keys, &document)?;
        for key in ["title", "expect", "plot", "replications", "seed"] {
            document.take(key);
        }
        let values = replacements.iter().map(|one| document::shown(one.value.get_ref())).collect();
        let key = format!("{:016x}", hash(&(document.canonical() + &courses)));
        points.push(CasePoint { values, case: Arc::new(case), key });
    }
    for (place, point) in points.iter().enumerate() {
        if points[..place].iter().any(|other| other.key == point.key) {
            let found = format!("two equal points, with {}", point.values.join(", "));
            return Err(document.wrong("sweep", &found, "different ones"));
        }
    }
    let (name, text) = (name.clone(), text.clone());
    Ok(Scenario { name, text, traces, keys: axes.keys, points })
}

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
