//! Runs entries: plans, resumes, executes jobs, evaluates, and writes the results.

use super::judged::Judged;
use super::options::Options;
use super::output;
use super::plan::{Entry, Point, Results};
use super::setting::Setting;
use super::store::{self, Found, Header};
use super::sweep::{self, Job};
use crate::LabError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rt::Clock;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::thread;
use units::{Instant, Span};

/// Interval between saves of results while jobs run.
const SAVE: Span = Span::from_secs(5);

/// Status of an entry after a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Ran {
    /// All jobs are done and evaluated.
    Whole(Box<Judged>),
    /// A shard is done; jobs of other shards are missing.
    Part {
        /// Name of the entry.
        id: &'static str,
        /// Number of jobs that are done.
        done: usize,
        /// Total number of jobs.
        jobs: usize,
    },
}

/// Runs `entries`. Jobs with stored results for the same setting are skipped.
///
/// # Errors
/// If an option is invalid, a job fails, or a file cannot be read or written.
pub fn run(entries: &[&'static Entry], options: &Options) -> Result<Vec<Ran>, LabError> {
    options.check(entries)?;
    let mut ran = Vec::new();
    for entry in entries {
        ran.push(run_one(entry, options)?);
    }
    if ran.iter().any(|one| matches!(one, Ran::Whole(_))) {
        report(&options.out)?;
    }
    Ok(ran)
}

fn run_one(entry: &'static Entry, options: &Options) -> Result<Ran, LabError> {
    let setting = options.setting(entry)?;
    let points = (entry.plan)(&setting);
    check_keys(entry, &points)?;
    let header = Header::new(entry, &setting);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let workers = options.jobs.unwrap_or(cores);
    let jobs = sweep::jobs(&points);
    let found = find(entry.id, options, &header, &jobs, workers)?;
    let done = jobs.iter().filter(|job| found.contains_key(&job.name())).count();
    if done < jobs.len() {
        return Ok(Ran::Part { id: entry.id, done, jobs: jobs.len() });
    }
    let mut results = Results::default();
    gather(&points, &found, &mut results);
    let mut outcome = (entry.judge)(&setting, &results);
    if let (true, Some(live)) = (options.live, entry.live) {
        let points = (live.plan)(&setting);
        check_keys(entry, &points)?;
        let header = Header::live(entry, &setting);
        let found = find(entry.id, options, &header, &sweep::jobs(&points), live.at_once)?;
        let mut measured = Results::partial();
        gather(&points, &found, &mut measured);
        outcome.put_beside((live.judge)(&setting, &results, &measured));
    }
    let judged = Judged {
        id: entry.id.to_owned(),
        title: entry.title.to_owned(),
        source: entry.source.to_owned(),
        about: entry.about.to_owned(),
        command: command(entry, options, &setting),
        code: header.code,
        replications: setting.replications,
        jobs: jobs.len(),
        outcome,
    };
    output::write_entry(&options.out, &judged)?;
    Ok(Ran::Whole(Box::new(judged)))
}

/// Runs the points of a scenario file called `name`, as [`run`] does for an entry; returns the
/// results, or the numbers of finished and of all jobs if jobs of other shards are missing.
///
/// # Errors
/// If a job fails, or a file cannot be read or written.
pub(crate) fn run_points(
    name: &str,
    options: &Options,
    points: &[Point],
) -> Result<Result<Results, [usize; 2]>, LabError> {
    let header = Header::scenario(name, options.seed);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = sweep::jobs(points);
    let found = find(name, options, &header, &jobs, options.jobs.unwrap_or(cores))?;
    let done = jobs.iter().filter(|job| found.contains_key(&job.name())).count();
    if done < jobs.len() {
        return Ok(Err([done, jobs.len()]));
    }
    let mut results = Results::default();
    gather(points, &found, &mut results);
    Ok(Ok(results))
}

/// Rejects two points with the same name, which would share results.
pub(super) fn check_keys(entry: &Entry, points: &[Point]) -> Result<(), LabError> {
    let mut seen = BTreeSet::new();
    match points.iter().find(|point| !seen.insert((point.study, point.key.as_str()))) {
        Some(twice) => Err(LabError::Request(format!("{}: two points {twice:?}", entry.id))),
        None => Ok(()),
    }
}

/// Loads the stored results of `jobs` and runs the missing ones of this shard.
fn find(
    id: &str,
    options: &Options,
    header: &Header,
    jobs: &[Job<'_>],
    workers: usize,
) -> Result<Found, LabError> {
    let mut found = store::load(&options.out, header)?;
    let (part, of) = options.shard.unwrap_or((1, 1));
    let ours = |(index, job): &(usize, &Job<'_>)| {
        *index % of as usize == part as usize - 1 && !found.contains_key(&job.name())
    };
    let to_do: Vec<Job<'_>> = jobs.iter().enumerate().filter(ours).map(|(_, job)| *job).collect();
    if !to_do.is_empty() {
        sweep_and_save(id, options, header, (&to_do, workers), &mut found)?;
    }
    Ok(found)
}

fn sweep_and_save(
    id: &str,
    options: &Options,
    header: &Header,
    (to_do, workers): (&[Job<'_>], usize),
    found: &mut Found,
) -> Result<(), LabError> {
    let path = header.path(options);
    let clock = Clock::new();
    let mut saved = clock.now();
    let bar = bar(id, to_do.len());
    let swept = sweep::run(to_do, workers, options.seed, |name, values| {
        found.insert(name, values);
        bar.inc(1);
        if options.stop.is_set() {
            return Err(LabError::Stopped);
        }
        if is_due(&clock, &mut saved) { store::save(&path, header, found) } else { Ok(()) }
    });
    bar.finish_and_clear();
    // Results from before a failed job are kept.
    store::save(&path, header, found)?;
    swept.map_err(|error| if options.stop.is_set() { LabError::Stopped } else { error })
}

fn is_due(clock: &Clock, saved: &mut Instant) -> bool {
    let now = clock.now();
    let due = now.since(*saved) >= SAVE;
    if due {
        *saved = now;
    }
    due
}

/// Returns a progress bar, which is hidden unless standard error is a terminal.
fn bar(id: &str, jobs: usize) -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(Some(jobs as u64), target);
    let style = ProgressStyle::with_template("{prefix} {bar:40} {pos} of {len} jobs, {eta} to go")
        .expect("the template is a constant")
        .progress_chars("━╸─");
    bar.set_style(style);
    bar.set_prefix(id.to_owned());
    bar
}

fn gather(points: &[Point], found: &Found, results: &mut Results) {
    for point in points {
        let names = (0..point.replications).map(|replication| Job { point, replication }.name());
        let values = names.map(|name| found[&name].clone()).collect();
        results.insert(point.study, &point.key, values);
    }
}

/// Returns the command that reproduces the results.
fn command(entry: &Entry, options: &Options, setting: &Setting) -> String {
    let mut words = format!("bentpipe lab run {} --seed {}", entry.id, setting.seed);
    if options.quick {
        words += " --quick";
    }
    if let Some(count) = options.replications {
        words += &format!(" --replications {count}");
    }
    if options.live && entry.live.is_some() {
        words += " --live";
    }
    if let Some(measured) = &options.measured {
        words += &format!(" --measured {}", measured.display());
    }
    for parameter in entry.parameters {
        let value = setting.get(parameter.name);
        if value != parameter.default {
            words += &format!(" --set {}={value}", parameter.name);
        }
    }
    words
}

/// Writes `report.html` and `results.json` from the evaluated entries below `out`; returns the path
/// of the report.
///
/// # Errors
/// If there are no results, or a file cannot be read or written.
pub fn report(out: &Path) -> Result<PathBuf, LabError> {
    output::write_report(out)
}

/// Merges the stores of other folders into `out`; returns the number of added results.
///
/// # Errors
/// If a folder has no results, a file is malformed, or two results of one job differ.
pub fn merge(from: &[PathBuf], out: &Path) -> Result<usize, LabError> {
    store::merge(from, out)
}
