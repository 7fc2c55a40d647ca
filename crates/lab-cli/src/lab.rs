//! Experiments, fault-injection runs and system tests.

mod fuzz;
mod proof;

use crate::{Outcome, values};
use clap::Subcommand;
use lab::experiments::{self, ALL, Options, Ran, Request, Verdict};
use lab::{scenario, watch};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use units::Span;

/// Commands for experiments, fault-injection runs and system tests.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the experiments and their parameters
    #[command(after_help = "Example: bentpipe lab list")]
    List,
    Run(Run),
    Report(Report),
    Merge(Merge),
    Compare(Compare),
    Bundle(Bundle),
    Watch(Watch),
    Fuzz(fuzz::Arguments),
    Proof(proof::Arguments),
}

/// Run experiments or scenario files
///
/// A scenario file (docs/guide/scenarios.md) describes links, gateways, traffic, a sweep and
/// criteria; the exit code is 1 if a criterion is not met.
///
/// Results are stored below --out: interrupted runs are resumed, and jobs with stored results of
/// the same code, seed and parameters are not repeated. Writes report.html and results.json there,
/// and for each experiment its cells, figures and tables.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe lab run elaasar-2003 --quick")]
pub(crate) struct Run {
    /// Names of experiments, or all; or files: scenarios, or values of the options below
    #[arg(value_name = "ID|FILE.toml", required_unless_present = "file")]
    ids: Vec<String>,
    /// An experiment file with values of the options below
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Output folder
    #[arg(long, value_name = "DIR", default_value = OUT)]
    out: PathBuf,
    /// Replications of each point
    #[arg(long, value_name = "N")]
    replications: Option<u32>,
    /// Seed of all random streams; default: 1
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Fewer points and replications
    #[arg(long)]
    quick: bool,
    /// Only part I of N, such as 1/4; `merge` combines the parts
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<(u32, u32)>,
    /// Number of parallel jobs; default: one per processor
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Set a parameter (`list` names them), or a key of a scenario file; may be given more than
    /// once
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Run the live parts as well: hosts in network namespaces, the kernel's TCP, the emulator and
    /// the gateways, in real time; live values are shown next to simulated ones
    #[arg(long)]
    live: bool,
    /// Output of `bench control --json`, to show next to the simulated values of `controllers`
    #[arg(long, value_name = "FILE")]
    measured: Option<PathBuf>,
}

/// Write report.html and results.json from stored results
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe lab report --out bentpipe-lab")]
pub(crate) struct Report {
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = OUT)]
    out: PathBuf,
}

/// Merge the results of other folders, such as those of shards
///
/// Then `run` with the same options runs the missing jobs and writes the report.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe lab merge part1 part2 --out whole")]
pub(crate) struct Merge {
    /// Output folders of `run`
    #[arg(value_name = "DIR", required = true)]
    from: Vec<PathBuf>,
    /// Output folder
    #[arg(long, value_name = "DIR", default_value = OUT)]
    out: PathBuf,
}

/// Compare the results of a scenario in two folders
///
/// Prints each measure of each point side by side with 95 % intervals, and which of them differ.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe lab compare before after")]
pub(crate) struct Compare {
    /// Folder of the results of a scenario, such as bentpipe-lab/NAME
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Another folder, of another run or version
    #[arg(value_name = "B")]
    second: PathBuf,
}

/// Put scenarios, their results and all inputs into one archive, or repeat one
///
/// Runs missing jobs, as `run` does. The archive has the same octets whenever the results are the
/// same. With --verify the scenarios of an archive are run again and all files compared; the exit
/// code is 1 if one differs.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe lab bundle my.toml --archive my.tar")]
pub(crate) struct Bundle {
    /// Scenario files
    #[arg(value_name = "FILE.toml", required_unless_present = "verify")]
    files: Vec<PathBuf>,
    /// The archive to write
    #[arg(long, value_name = "FILE.tar", required_unless_present = "verify")]
    archive: Option<PathBuf>,
    /// Repeat an archive's runs and compare their results
    #[arg(long, value_name = "FILE.tar", conflicts_with_all = ["files", "archive", "seed", "replications", "quick", "set"])]
    verify: Option<PathBuf>,
    /// Output folder
    #[arg(long, value_name = "DIR", default_value = OUT)]
    out: PathBuf,
    /// Replications of each point
    #[arg(long, value_name = "N")]
    replications: Option<u32>,
    /// Seed of all random streams; default: the file's, or 1
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// One replication of each point
    #[arg(long)]
    quick: bool,
    /// Number of parallel jobs; default: one per processor
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Set a key of the scenario files; may be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Simulate flows that share a link, and record them
///
/// Prints the goodput of each flow. --capture and --series write the traffic of the link and the
/// senders' variables.
#[derive(clap::Args)]
#[command(
    after_help = "Example: bentpipe lab watch steady cubic --link geo --seconds 60 --capture out"
)]
pub(crate) struct Watch {
    /// The flows: fixed, newreno, probing, steady, cubic; or gateways: two gateways without a
    /// configured rate, with one download
    #[arg(value_name = "FLOW", required = true)]
    flows: Vec<String>,
    /// A profile's name or a file that describes the link
    #[arg(long, value_name = "LINK", default_value = "geo")]
    link: String,
    /// Duration of the run
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds, default_value = "60")]
    seconds: Span,
    /// Interval between starts of flows
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    stagger: Option<Span>,
    /// Seed of all random streams
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the traffic of the link to DIR/link.pcapng
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,
    /// Write a time series of each variable to DIR, as CSV
    #[arg(long, value_name = "DIR")]
    series: Option<PathBuf>,
    /// Sampling interval
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds, default_value = "0.1")]
    every: Span,
}

const OUT: &str = "bentpipe-lab";

fn shard(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    parts.ok_or_else(|| "expected a part and the number of parts, such as 1/4".to_owned())
}

pub(crate) fn run(command: Command) -> Outcome {
    match command {
        Command::List => list(),
        Command::Run(run) => run_all(run),
        Command::Report(Report { out }) => {
            let path = experiments::report(&out).map_err(|error| error.to_string())?;
            values::print(&format!("{}\n", path.display()))
        }
        Command::Compare(Compare { first, second }) => {
            let text = scenario::compare(&first, &second).map_err(|error| error.to_string())?;
            values::print(&text)
        }
        Command::Bundle(bundle) => bundle_run(bundle),
        Command::Watch(arguments) => watch_run(arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Proof(arguments) => proof::run(&arguments),
        Command::Merge(Merge { from, out }) => {
            let new = experiments::merge(&from, &out).map_err(|error| error.to_string())?;
            values::print(&format!("{new} results taken over into {}\n", out.display()))
        }
    }
}

fn bundle_run(arguments: Bundle) -> Outcome {
    let Bundle { files, archive, verify, out, replications, seed, quick, jobs, set } = arguments;
    if let Some(archive) = verify {
        let checked = scenario::verify(&archive, jobs).map_err(|error| error.to_string())?;
        values::print(&checked.text)?;
        return match checked.different.is_empty() {
            true => Ok(()),
            false => Err(format!("{}: the repetition differs", archive.display())),
        };
    }
    let archive = archive.expect("clap demands it without --verify");
    let options = Options { replications, quick, jobs, set, ..Options::new(out) };
    let met = scenario::bundle(&files, &options, seed, &archive);
    let met = met.map_err(|error| error.to_string())?;
    let note = if met { "" } else { "; not all criteria are met" };
    values::print(&format!("{}{note}\n", archive.display()))
}

fn watch_run(arguments: Watch) -> Outcome {
    let Watch { flows, link, seconds, stagger, seed, capture, series, every } = arguments;
    let failed = |error: lab::LabError| error.to_string();
    let gateways = flows == [watch::GATEWAYS];
    let flows = if gateways { &[] } else { flows.as_slice() };
    let ways = flows.iter().map(|name| watch::way(name)).collect::<Result<Vec<_>, _>>();
    let config = watch::WatchConfig {
        ways: ways.map_err(failed)?,
        stagger: stagger.unwrap_or(Span::ZERO),
        link: lab::demo::read_link(&link).map_err(failed)?,
        length: seconds,
        seed,
        capture,
        series,
        every,
    };
    let mut text = String::new();
    let watched = match gateways {
        true => watch::watch_gateways(&config).map(|seen| vec![seen]),
        false => watch::watch(&config),
    };
    for flow in watched.map_err(failed)? {
        let mbps = flow.goodput_bits_per_second / 1e6;
        let _ = writeln!(
            text,
            "{:<12} {mbps:9.3} Mbit/s {:6.3} of a fair share",
            flow.flow, flow.of_fair
        );
    }
    values::print(&text)
}

fn list() -> Outcome {
    let mut text = String::new();
    for entry in ALL {
        let _ = writeln!(text, "{:<16} {}\n{:17}{}", entry.id, entry.title, "", entry.about);
        if let Some(live) = entry.live {
            let _ = writeln!(text, "{:17}--live: {}", "", live.about);
        }
        for parameter in entry.parameters {
            let experiments::Parameter { name, about, default, .. } = parameter;
            let _ = writeln!(text, "{:17}{name}={default} ({}): {about}", "", parameter.range());
        }
    }
    values::print(&text)
}

/// Runs the scenario files, and then the experiments.
fn run_all(mut arguments: Run) -> Outcome {
    let is_file = |id: &String| id.ends_with(".toml");
    let (files, ids): (Vec<String>, Vec<String>) =
        std::mem::take(&mut arguments.ids).into_iter().partition(is_file);
    arguments.ids = ids;
    let mut missed = Vec::new();
    for path in files.into_iter().map(PathBuf::from) {
        if !scenario::is_scenario(&path).map_err(|error| error.to_string())? {
            if arguments.file.replace(path).is_some() {
                return Err("found two files with options, expected at most one".to_owned());
            }
        } else if !run_scenario(&path, &arguments)? {
            missed.push(path.display().to_string());
        }
    }
    if arguments.file.is_some() || !arguments.ids.is_empty() {
        run_entries(arguments)?;
    }
    match missed.is_empty() {
        true => Ok(()),
        false => Err(format!("not all criteria are met: {}", missed.join(", "))),
    }
}

/// Runs a scenario file; returns whether its criteria are met.
fn run_scenario(path: &Path, arguments: &Run) -> Result<bool, String> {
    let Run { out, replications, seed, quick, shard, jobs, set, live, .. } = arguments;
    let options = Options {
        replications: *replications,
        quick: *quick,
        shard: *shard,
        jobs: *jobs,
        set: set.clone(),
        live: *live,
        ..Options::new(out)
    };
    let source = scenario::Source::read(path).map_err(|error| error.to_string())?;
    match scenario::run(&source, &options, *seed).map_err(|error| error.to_string())? {
        scenario::Report::Part { name, done, jobs } => {
            values::print(&format!("{name}: {done} of {jobs} jobs are done\n"))?;
            Ok(true)
        }
        scenario::Report::Whole { folder, text, met } => {
            values::print(&format!("{text}\n{}\n", folder.display()))?;
            Ok(met)
        }
    }
}

fn run_entries(arguments: Run) -> Outcome {
    let Run { mut ids, file, out, replications, seed, quick, shard, jobs, set, live, measured } =
        arguments;
    let mut options =
        Options { replications, quick, shard, jobs, set, live, measured, ..Options::new(out) };
    if let Some(file) = file {
        let request = Request::read(&file).map_err(|error| error.to_string())?;
        request.apply(&mut options);
        if ids.is_empty() {
            ids = request.run;
        }
        if ids.is_empty() {
            let file = file.display();
            return Err(format!("{file}: found no experiments, expected run = [\"ID\"]"));
        }
    }
    options.seed = seed.unwrap_or(options.seed);
    let entries = experiments::choose(&ids).map_err(|error| error.to_string())?;
    if options.live {
        // Called first, because a process with threads cannot enter a user namespace.
        testbed::permission::acquire().map_err(|refusal| format!("--live: {refusal}"))?;
    }
    let ran = experiments::run(&entries, &options).map_err(|error| error.to_string())?;
    let mut text = String::new();
    for one in &ran {
        match one {
            Ran::Part { id, done, jobs } => {
                let _ = writeln!(text, "{id}: {done} of {jobs} jobs are done");
            }
            Ran::Whole(judged) => text += &summary(judged),
        }
    }
    if ran.iter().any(|one| matches!(one, Ran::Whole(_))) {
        let _ = writeln!(text, "\n{}", options.out.join("report.html").display());
    }
    values::print(&text)
}

fn summary(judged: &experiments::Judged) -> String {
    let outcome = &judged.outcome;
    let mut text =
        format!("{}: {} Fitted values: {}.\n", judged.id, outcome.headline(), outcome.fitted());
    let [live, agree] = outcome.vouched();
    if live > 0 {
        let _ = writeln!(text, "  live: {live} cells, {agree} of them as simulated");
    }
    for cell in outcome.cells().filter(|cell| cell.verdict == Verdict::Differs) {
        let _ = writeln!(text, "  differs: {} ({})", cell.name, cell.place);
    }
    text
}
