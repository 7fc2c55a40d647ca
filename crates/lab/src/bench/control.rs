//! `bentpipe bench control`: the cases of [`sim::scenario::controllers`], over the emulator.
//!
//! ```text
//!   client ── terminal gateway ══ emulator ══ hub gateway ── server     fixed … steady
//!   client ── terminal         ══ emulator ══ hub         ── server     cubic, bbr
//!             and in parallel, in some cases: plain TCP, or a second pair
//! ```
//!
//! Each run has its own network namespaces, so several can run in parallel: they take real time but
//! little processor time. Names and values are those of the simulation: `study/point/way`.

mod script;

use super::Machine;
use crate::LabError;
use crate::live::{CrossTraffic, TestNetwork, TestNetworkConfig, Way as FilesReport};
use crate::threads::joined;
use rt::Clock;
use script::Script;
use serde::Serialize;
use sim::scenario::controllers::{self, Case, Metric};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use testbed::traffic::{self, File, Limits, Progress, Transfer};
use units::{BitRate, Instant, Span};

/// A congestion controller of the gateways, or of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Gateways with this controller.
    Gateways(&'static str),
    /// The kernel's end-to-end TCP.
    Kernel(FilesReport),
}

impl Way {
    /// All controllers, in the order of tables.
    pub const ALL: [Self; 6] = [
        Self::Gateways("fixed"),
        Self::Gateways("newreno"),
        Self::Gateways("probing"),
        Self::Gateways("steady"),
        Self::Kernel(FilesReport::Cubic),
        Self::Kernel(FilesReport::Bbr),
    ];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gateways(name) => name,
            Self::Kernel(way) => way.name(),
        }
    }

    const fn carried(self) -> FilesReport {
        match self {
            Self::Gateways(_) => FilesReport::Bentpipe,
            Self::Kernel(way) => way,
        }
    }

    /// Returns the gateways' configuration: the link rates, but for `steady` only that of the
    /// return channel.
    fn keys(self, case: &Case) -> String {
        let word = |rate: Option<BitRate>| {
            rate.map_or("auto".to_owned(), |rate| format!("{}bit", rate.as_bps()))
        };
        let found = self == Self::Gateways("steady");
        let down = word(case.link.forward.rate.filter(|_| !found));
        let up = word(case.link.return_.rate);
        format!("controller = \"{}\"\nrate_up = \"{up}\"\nrate_down = \"{down}\"", self.name())
    }
}

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct ControlConfig {
    /// Names of cases, `study/point`, or parts of them; empty for all cases.
    pub only: Vec<String>,
    /// Names of controllers; empty for all.
    pub ways: Vec<String>,
    /// Number of parallel runs.
    pub parallel: usize,
    /// Shorter runs with less accurate results.
    pub quick: bool,
    /// Seed of the links' random processes.
    pub seed: u64,
}

impl Default for ControlConfig {
    fn default() -> Self {
        Self { only: Vec::new(), ways: Vec::new(), parallel: 6, quick: false, seed: 1 }
    }
}

/// Results of the benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct ControlReport {
    /// `control`.
    pub bench: &'static str,
    /// Where it was measured.
    pub machine: Machine,
    /// Seed of the links' random processes.
    pub seed: u64,
    /// Number of parallel runs.
    pub parallel: usize,
    /// Results of the cases, by `study/point/way`.
    pub values: BTreeMap<String, f64>,
    /// Results of each run.
    pub runs: Vec<ControlRun>,
}

/// One case with one controller.
#[derive(Clone, Debug, Serialize)]
pub struct ControlRun {
    /// `study/point`.
    pub case: String,
    /// The controller.
    pub way: &'static str,
    /// The kind of the value: `share`, `of_fair` or `jain`.
    pub asked: &'static str,
    /// The result; `None` if the run failed.
    pub value: Option<f64>,
    /// Goodput of each flow from the case's start to its end, in bits/s.
    pub goodput_bits_per_second: Vec<f64>,
    /// Traffic of the return channel with all headers, in bits/s.
    pub return_bits_per_second: Option<f64>,
    /// Whether all received octets were correct.
    pub matches: bool,
    /// Whether the emulator kept its schedule.
    pub emulator_kept_up: bool,
    /// Errors and remarks.
    pub notes: Vec<String>,
}

/// A run. Cases with the same link and kind of value share one run.
struct Job {
    names: Vec<String>,
    case: Case,
    way: Way,
}

/// Runs the benchmark; calls `tell` with the result of each run.
///
/// # Errors
/// If a name matches no case or controller, or no network can be created.
pub fn control(
    config: &ControlConfig,
    tell: &(dyn Fn(&ControlRun) + Sync),
) -> Result<ControlReport, LabError> {
    let jobs = jobs(config)?;
    let machine = Machine::here();
    let next = AtomicUsize::new(0);
    let runs = Mutex::new(Vec::new());
    let worker = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = run(job, config.seed)?;
            tell(&result);
            let mut runs = runs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            runs.extend(
                job.names.iter().map(|name| ControlRun { case: name.clone(), ..result.clone() }),
            );
        }
        Ok::<(), LabError>(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..config.parallel.clamp(1, 32)).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .map(|worker| joined(worker.join()))
            .collect::<Result<Vec<()>, LabError>>()
    })?;
    let mut runs = runs.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    runs.sort_by(|a, b| (&a.case, a.way).cmp(&(&b.case, b.way)));
    let values = runs
        .iter()
        .filter_map(|run| Some((format!("{}/{}", run.case, run.way), round(run.value?))))
        .collect();
    Ok(ControlReport {
        bench: "control",
        machine,
        seed: config.seed,
        parallel: config.parallel,
        values,
        runs,
    })
}

fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Returns the selected runs, the longest first.
fn jobs(config: &ControlConfig) -> Result<Vec<Job>, LabError> {
    let cases: Vec<Case> = controllers::all();
    for name in &config.only {
        if !cases.iter().any(|case| case.key().contains(name.as_str())) {
            let known: Vec<String> = cases.iter().map(Case::key).collect();
            let known = known.join(", ");
            return Err(LabError::Request(format!(
                "case: found {name:?}, expected (a part of) one of {known}"
            )));
        }
    }
    let known = || Way::ALL.map(Way::name).join(", ");
    if let Some(name) =
        config.ways.iter().find(|name| Way::ALL.iter().all(|way| way.name() != **name))
    {
        let known = known();
        return Err(LabError::Request(format!("way: found {name:?}, expected one of {known}")));
    }
    let wanted = |case: &Case| {
        config.only.is_empty() || config.only.iter().any(|name| case.key().contains(name.as_str()))
    };
    let ways = Way::ALL
        .into_iter()
        .filter(|way| config.ways.is_empty() || config.ways.iter().any(|name| name == way.name()));
    let ways: Vec<Way> = ways.collect();
    let mut jobs: Vec<Job> = Vec::new();
    for case in cases.into_iter().filter(wanted) {
        let case = if config.quick { shorter(case) } else { case };
        for &way in &ways {
            let same = jobs.iter_mut().find(|job| job.way == way && is_same(&job.case, &case));
            match same {
                Some(job) => job.names.push(case.key()),
                None => jobs.push(Job { names: vec![case.key()], case: case.clone(), way }),
            }
        }
    }
    jobs.sort_by_key(|job| std::cmp::Reverse(job.case.to));
    Ok(jobs)
}

fn is_same(one: &Case, other: &Case) -> bool {
    one.link == other.link
        && one.changes == other.changes
        && (one.metric, one.from, one.to) == (other.metric, other.from, other.to)
}

/// Shortens a case to a third if its link does not change.
fn shorter(case: Case) -> Case {
    if !case.changes.is_empty() || !case.link.outages.is_empty() {
        return case;
    }
    let start = case.from.since(Instant::ZERO);
    let length = case.to.since(case.from) / 3;
    Case { to: Instant::ZERO + start + length, ..case }
}

fn run(job: &Job, seed: u64) -> Result<ControlRun, LabError> {
    let mut run = ControlRun {
        case: job.case.key(),
        way: job.way.name(),
        asked: match job.case.metric {
            Metric::Share => "share",
            Metric::OfFair => "of_fair",
            Metric::Jain => "jain",
        },
        value: None,
        goodput_bits_per_second: Vec::new(),
        return_bits_per_second: None,
        matches: false,
        emulator_kept_up: false,
        notes: Vec::new(),
    };
    match measure(job, seed, &mut run) {
        Ok(()) => {}
        // Without namespaces nothing can be measured.
        Err(error @ LabError::Testbed(_)) => return Err(error),
        Err(error) => run.notes.push(error.to_string()),
    }
    Ok(run)
}

/// One download, with its start relative to that of the case.
struct Flow {
    through: traffic::Way,
    server: std::net::SocketAddr,
    congestion: &'static str,
    at: Span,
}

fn measure(job: &Job, seed: u64, run: &mut ControlRun) -> Result<(), LabError> {
    let (case, way) = (&job.case, job.way);
    let script = Script::of(case);
    let network = TestNetwork::new(&TestNetworkConfig {
        link: script.first.clone(),
        way: way.carried(),
        rates: None,
        keys: Some(way.keys(case)),
        beside: match case.metric {
            Metric::Share => CrossTraffic::Nothing,
            Metric::OfFair => CrossTraffic::PlainTcp,
            Metric::Jain => CrossTraffic::Gateways,
        },
        seed,
    })?;
    let transfers = play(&network, case, way, &script)?;
    let outcome = network.close()?;
    run.emulator_kept_up = outcome.emulator.end.kept_up;
    run.notes.extend(outcome.emulator.end.reasons.iter().cloned());
    run.matches = transfers.iter().all(|(_, transfer)| transfer.matches);
    run.notes.extend(transfers.iter().filter_map(|(_, transfer)| transfer.error.clone()));
    let seconds = case.to.since(case.from).as_secs_f64();
    let returned = outcome.emulator.end.r#return.offered.bytes as f64 * 8.0;
    run.return_bits_per_second = Some(returned / outcome.emulator.end.seconds.max(1.0));
    run.goodput_bits_per_second = transfers
        .iter()
        .map(|(at, transfer)| bytes(transfer, *at, case.from, case.to) as f64 * 8.0 / seconds)
        .collect();
    run.value = value(case, &run.goodput_bits_per_second);
    Ok(())
}

/// Runs the downloads and the changes of the link in parallel.
fn play(
    network: &TestNetwork,
    case: &Case,
    way: Way,
    script: &Script,
) -> Result<Vec<(Span, Transfer)>, LabError> {
    let direct = traffic::Way::Direct;
    let congestion = way.carried().congestion();
    let files = network.files();
    let mut flows = vec![Flow { through: direct, server: files, congestion, at: Span::ZERO }];
    match case.metric {
        Metric::Share => {}
        Metric::OfFair => flows.push(Flow {
            through: direct,
            server: network.bypass(),
            congestion: "cubic",
            at: Span::ZERO,
        }),
        Metric::Jain => flows.push(Flow {
            through: network.second(),
            server: files,
            congestion,
            at: Span::from_secs(20),
        }),
    }
    let clock = Clock::new();
    let start = clock.now();
    thread::scope(|scope| {
        let tasks: Vec<_> = (1..)
            .zip(&flows)
            .map(|(seed, flow)| {
                scope.spawn(move || {
                    let clock = Clock::new();
                    clock.sleep_until(start + flow.at);
                    let left = case.to.since(Instant::ZERO + flow.at);
                    let limits = Limits { after_first_byte: left, overall: left };
                    let file = File { seed, bytes: u64::MAX, congestion: flow.congestion };
                    let (through, server) = (flow.through, flow.server);
                    network.net().client.run(move || {
                        traffic::download(through, server, file, limits, &Progress::default())
                    })
                })
            })
            .collect();
        let played = script.play(network.emulation(), start);
        let transfers: Vec<Transfer> = tasks.into_iter().map(|task| joined(task.join())).collect();
        played?;
        Ok(flows.iter().map(|flow| flow.at).zip(transfers).collect())
    })
}

/// Returns the octets of a transfer, started at `at`, that arrived between `from` and `to`.
fn bytes(transfer: &Transfer, at: Span, from: Instant, to: Instant) -> u64 {
    let by = |when: Instant| {
        let since = when.since(Instant::ZERO + at);
        let count = transfer.series.partition_point(|sample| sample.at <= since);
        count.checked_sub(1).map_or(0, |last| transfer.series[last].bytes)
    };
    by(to) - by(from)
}

/// Returns the value of a case.
fn value(case: &Case, goodput: &[f64]) -> Option<f64> {
    let first = *goodput.first()?;
    match case.metric {
        Metric::Share => Some(first / case.allowed_bps),
        Metric::OfFair => Some(first / (case.allowed_bps / 2.0)),
        Metric::Jain => {
            let sum: f64 = goodput.iter().sum();
            let squares: f64 = goodput.iter().map(|bps| bps * bps).sum();
            (squares > 0.0).then(|| sum * sum / (goodput.len() as f64 * squares))
        }
    }
}

impl std::fmt::Display for ControlRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<18} {:<8} {}", self.case, self.way, self.asked)?;
        match self.value {
            Some(value) => write!(f, " {value:.3}")?,
            None => write!(f, " nothing")?,
        }
        let mbps: Vec<String> =
            self.goodput_bits_per_second.iter().map(|bps| format!("{:.3}", bps / 1e6)).collect();
        write!(f, " ({} Mbit/s)", mbps.join(", "))?;
        if !self.matches {
            write!(f, " (NOT WHAT WAS SENT)")?;
        }
        if !self.emulator_kept_up {
            write!(f, " (the emulator did not keep up)")?;
        }
        self.notes.iter().try_for_each(|note| write!(f, " ({note})"))
    }
}

#[cfg(test)]
mod tests;
