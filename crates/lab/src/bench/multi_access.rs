//! `bentpipe bench multi-access`: the star network of Mhatre and Rosenberg with real gateways,
//! compared with the simulation.
//!
//! ```text
//!   users ─ SOCKS5 ─ gateway ══ emulated star: MF-TDMA, 100 kbit/s ══ hub ─ HTTP server
//!   20 namespaces, 60 users     ▲ connections of each terminal ───────┘
//! ```
//!
//! Both use one parameter set, [`Star::mhatre_rosenberg`]: the return link with its scheduler (the
//! same code), the forward link and the users' requests. They differ in the transport: published
//! STP connections in the simulation, sealed gateway sessions in the live runs, whose requests take
//! three cells instead of two. Further columns therefore simulate such requests, and the gateways
//! themselves: the same code with the same settings, on machines without processing time.

use crate::LabError;
use crate::experiments::{Summary, statistics::shown};
use crate::live::{Gateway, spawn_emulator};
use crate::threads::{joined, sleep};
use gateway::{PrivateKey, SystemEntropy};
use rt::Clock;
use rt::emulator::star::summary::StarEnd;
use rt::emulator::star::{StarEmulator, StarEmulatorConfig, StarHandle, StarSummary, TerminalPort};
use satlink::DirectionConfig;
use satlink::mac::star::StarConfig;
use serde::Serialize;
use serde_json::Value;
use sim::multi_access::{
    Control, GatewaysReport, Interpretation, Scenario, Segments, Star, StarReport,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use testbed::traffic::{Browsed, Browsing, ObjectServer, Way, browse};
use testbed::{SatelliteConfig, StarNetwork};
use units::{Instant, RngStream, Span};

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct MultiAccessConfig {
    /// Duration of each run from the users' start.
    pub length: Span,
    /// Live runs of each scenario.
    pub runs: usize,
    /// Simulated runs of each scenario.
    pub simulated: usize,
    /// The gateways' congestion controller: `newreno`, as in published STP, or another value of
    /// `link.controller`.
    pub controller: String,
    /// Seed of all random streams.
    pub seed: u64,
}

impl Default for MultiAccessConfig {
    /// Two live and twenty simulated runs of each scenario, with the paper's duration.
    fn default() -> Self {
        let controller = "newreno".to_owned();
        Self { length: Span::from_secs(80), runs: 2, simulated: 20, controller, seed: 1 }
    }
}

/// Results of the benchmark.
#[derive(Debug, Serialize)]
pub struct MultiAccessReport {
    /// Duration of each run in seconds.
    pub seconds: f64,
    /// The gateways' congestion controller.
    pub controller: String,
    /// Results of each scenario.
    pub scenarios: Vec<ScenarioReport>,
}

/// Results of one scenario.
#[derive(Debug, Serialize)]
pub struct ScenarioReport {
    /// Name of the scenario.
    pub name: &'static str,
    /// Live runs.
    pub live: Column,
    /// Simulation of published STP.
    pub simulated: Column,
    /// Simulation of published STP with requests of three cells, as sealed requests need.
    pub simulated_three_cells: Column,
    /// Simulation of the gateways.
    pub simulated_gateways: Column,
    /// Segments that simulated gateways send per object, to the hub and from the hub.
    pub segments_per_object: [SegmentsReport; 2],
    /// The live runs.
    pub runs: Vec<LiveRun>,
}

/// Means over runs with their 95 % confidence intervals.
#[derive(Debug, Serialize)]
pub struct Column {
    /// Retrieved objects.
    pub objects: Summary,
    /// Mean response time in seconds.
    pub mean_s: Summary,
    /// IP traffic received over the return link, bits/s.
    pub up_bps: Summary,
    /// Used slots per object.
    pub cells_per_object: Summary,
}

/// Segments per object.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SegmentsReport {
    /// Segments with data.
    pub data: f64,
    /// POLLs, piggybacked or standalone.
    pub polls: f64,
    /// STATs and USTATs.
    pub reports: f64,
}

/// One live run.
#[derive(Clone, Debug, Serialize)]
pub struct LiveRun {
    /// Retrieved objects.
    pub objects: usize,
    /// Mean response time in seconds.
    pub mean_s: f64,
    /// Longest response time in seconds.
    pub longest_s: f64,
    /// Mean response times in seconds of users at terminals of five, and at terminals of one.
    pub crowded_and_alone_s: [f64; 2],
    /// IP traffic received over the return link while users were active, bits/s.
    pub up_bps: f64,
    /// Slots of the return link that were used while users were active.
    pub used_slots: u64,
    /// Users whose connections failed.
    pub failed: usize,
    /// The error of the last of them.
    pub last_error: Option<String>,
    /// Summary of the emulator.
    pub emulator: StarEnd,
    /// Counters of the hub.
    pub hub: Value,
}

/// Runs the benchmark; reports each run to `note`.
///
/// # Errors
/// If namespaces, emulator or gateways cannot be started.
pub fn run(config: &MultiAccessConfig, note: impl Fn(&str)) -> Result<MultiAccessReport, LabError> {
    let mut scenarios = Vec::new();
    for scenario in [Scenario::Equal, Scenario::Weighted] {
        let mut star = Star::mhatre_rosenberg(scenario);
        star.duration = config.length;
        let mut runs = Vec::new();
        for number in 0..config.runs {
            let run = live(&star, config, number as u64)?;
            note(&format!("{} live {}: {}", scenario.name(), number + 1, words(&run)));
            runs.push(run);
        }
        let report = beside(scenario, &star, config, runs)?;
        note(&compared(&report));
        scenarios.push(report);
    }
    let controller = config.controller.clone();
    Ok(MultiAccessReport { seconds: config.length.as_secs_f64(), controller, scenarios })
}

fn words(run: &LiveRun) -> String {
    let LiveRun { objects, mean_s, longest_s, emulator, failed, .. } = run;
    let kept_up = if emulator.kept_up { "kept up" } else { "DID NOT KEEP UP" };
    format!(
        "{objects} objects, {mean_s:.2} s each ({longest_s:.1} at most), {failed} users failed; \
         {kept_up}, late by {} at the 99th percentile",
        Span::from_secs_f64(emulator.lateness.p99_seconds)
    )
}

fn compared(report: &ScenarioReport) -> String {
    let line = |name: &str, column: &Column| {
        let pair = |summary| shown(summary, 2);
        format!(
            "\n  {name:<24} {} objects, {} s, {} kbit/s up, {} cells each",
            pair(column.objects),
            pair(column.mean_s),
            pair(column.up_bps.scaled(1e-3)),
            pair(column.cells_per_object),
        )
    };
    let [up, down] = report.segments_per_object.map(|segments| {
        let SegmentsReport { data, polls, reports } = segments;
        format!("{data:.2} data, {polls:.2} POLLs, {reports:.2} STATs")
    });
    format!(
        "{}{}{}{}{}\n  simulated gateways send for an object: up {up}; down {down}",
        report.name,
        line("live", &report.live),
        line("simulated gateways", &report.simulated_gateways),
        line("simulated", &report.simulated),
        line("simulated, three cells", &report.simulated_three_cells),
    )
}

fn beside(
    scenario: Scenario,
    star: &Star,
    config: &MultiAccessConfig,
    runs: Vec<LiveRun>,
) -> Result<ScenarioReport, LabError> {
    let (simulated_gateways, segments_per_object) = gateways(star, config)?;
    let column =
        |of: &dyn Fn(&LiveRun) -> f64| Summary::of(&runs.iter().map(of).collect::<Vec<f64>>());
    let live = Column {
        objects: column(&|run| run.objects as f64),
        mean_s: column(&|run| run.mean_s),
        up_bps: column(&|run| run.up_bps),
        cells_per_object: column(&|run| run.used_slots as f64 / run.objects.max(1) as f64),
    };
    Ok(ScenarioReport {
        name: scenario.name(),
        live,
        simulated: simulated(star, config),
        simulated_three_cells: simulated(&Interpretation::LongRequest.of(star.clone()), config),
        simulated_gateways,
        segments_per_object,
        runs,
    })
}

fn simulated(star: &Star, config: &MultiAccessConfig) -> Column {
    let seen: Vec<_> = (0..config.simulated).map(|run| star.run(config.seed, run as u64)).collect();
    column_of(&seen)
}

/// Simulates the gateways; returns the column and the segments per object.
fn gateways(
    star: &Star,
    config: &MultiAccessConfig,
) -> Result<(Column, [SegmentsReport; 2]), LabError> {
    let control: Control = config
        .controller
        .parse()
        .map_err(|error| LabError::Request(format!("controller: {error}")))?;
    let all: Vec<GatewaysReport> = (0..config.simulated)
        .map(|run| star.run_gateways(control, config.seed, run as u64))
        .collect();
    let objects: usize = all.iter().map(|one| one.report.objects()).sum();
    let segments = |of: fn(&GatewaysReport) -> Segments| {
        let mean = |kind: fn(Segments) -> u64| {
            let sum: u64 = all.iter().map(|one| kind(of(one))).sum();
            sum as f64 / objects.max(1) as f64
        };
        SegmentsReport {
            data: mean(|one| one.data),
            polls: mean(|one| one.polls),
            reports: mean(|one| one.reports),
        }
    };
    let segments = [segments(|one| one.terminals), segments(|one| one.hub)];
    let seen: Vec<StarReport> = all.into_iter().map(|one| one.report).collect();
    Ok((column_of(&seen), segments))
}

fn column_of(seen: &[StarReport]) -> Column {
    let column =
        |of: &dyn Fn(&StarReport) -> f64| Summary::of(&seen.iter().map(of).collect::<Vec<f64>>());
    Column {
        objects: column(&|seen| seen.objects() as f64),
        mean_s: column(&|seen| seen.mean_response_s()),
        up_bps: column(&|seen| seen.up_bps()),
        cells_per_object: column(&|seen| seen.slots.1 as f64 / seen.objects().max(1) as f64),
    }
}

/// Time for the gateways to establish sessions before users start.
const SETTLING: Span = Span::from_secs(8);
/// The hub's port on the satellite side.
const PORT: u16 = 4500;
/// The servers' port.
const HTTP: u16 = 80;
/// Address of a terminal's proxy.
const PROXY: &str = "127.0.0.1:1080";

/// Runs `star` live.
fn live(star: &Star, config: &MultiAccessConfig, run: u64) -> Result<LiveRun, LabError> {
    let seed = config.seed;
    let net = StarNetwork::new(star.mac.terminals.len(), &SatelliteConfig::default())?;
    let counts = Counts::new(run);
    let emulation = Emulation::start(&net, star, &counts.path, (seed, run))?;
    let mut gateways = start_gateways(&net, star, &config.controller, &counts.path)?;
    let object = star.sites.first().map_or(0, |site| site.requests.object);
    let address = (StarNetwork::SERVER, HTTP).into();
    let server = ObjectServer::start(Some(&net.server), address, object as usize)?;
    let clock = Clock::new();
    sleep(SETTLING);
    gateways.iter_mut().try_for_each(Gateway::check)?;
    let begin = clock.now();
    let until = begin + star.duration;
    let users = start_users(&net, star, server.address(), until, (seed, run));
    let seen: Vec<(usize, Browsed)> = users.into_iter().map(|user| joined(user.join())).collect();
    gateways.iter_mut().try_for_each(Gateway::check)?;
    // The hub stops first, so that its counters include the terminals' sessions.
    let hub = gateways.remove(0).stop();
    let summary = emulation.stop()?;
    drop(gateways);
    let mut run = account(&seen, hub, &summary);
    note_slots(&mut run, &summary, begin, until);
    Ok(run)
}

fn account(seen: &[(usize, Browsed)], hub: Value, summary: &StarSummary) -> LiveRun {
    let mean = |of: &dyn Fn(usize) -> bool| {
        let sites = seen.iter().filter(|(connections, _)| of(*connections));
        let all: Vec<f64> = sites
            .flat_map(|(_, browsed)| &browsed.responses)
            .map(|(_, took)| took.as_secs_f64())
            .collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    let responses = || seen.iter().flat_map(|(_, browsed)| &browsed.responses);
    let errors = || seen.iter().filter_map(|(_, browsed)| browsed.error.clone());
    LiveRun {
        objects: responses().count(),
        mean_s: mean(&|_| true),
        longest_s: responses().map(|(_, took)| took.as_secs_f64()).fold(0.0, f64::max),
        crowded_and_alone_s: [mean(&|users| users > 1), mean(&|users| users == 1)],
        up_bps: 0.0,
        used_slots: 0,
        failed: errors().count(),
        last_error: errors().next_back(),
        emulator: summary.end.clone(),
        hub,
    }
}

/// Adds the traffic of the return link while users were active. Intervals are in seconds from the
/// start of the emulator.
fn note_slots(run: &mut LiveRun, summary: &StarSummary, begin: Instant, until: Instant) {
    let epoch = summary.start.epoch_unix_ns;
    let zero = Clock::new().epoch_unix_ns();
    let from_epoch = |at: Instant| (zero + at.as_nanos()).saturating_sub(epoch) as f64 / 1e9;
    let (begin, until) = (from_epoch(begin), from_epoch(until));
    let within = summary.intervals.iter().filter(|one| one.start >= begin && one.end <= until);
    let (mut seconds, mut bits, mut used) = (0.0, 0.0, 0);
    for interval in within {
        let length = interval.end - interval.start;
        seconds += length;
        bits += interval.r#return.bits_per_second * length;
        used += interval.slots.used;
    }
    run.up_bps = bits / f64::max(seconds, 1e-9);
    // Intervals do not begin with the users: the count is scaled to the whole time.
    run.used_slots = (used as f64 * (until - begin) / f64::max(seconds, 1e-9)) as u64;
}

/// Path of the socket for connection counts; dropping it removes the socket.
struct Counts {
    path: PathBuf,
}

impl Counts {
    fn new(run: u64) -> Self {
        let name = format!("bentpipe-{}-{run}.mac.sock", std::process::id());
        Self { path: std::env::temp_dir().join(name) }
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        // The emulator removes the socket if it ends normally.
        let _ = std::fs::remove_file(&self.path);
    }
}

struct Emulation {
    handle: StarHandle,
    thread: JoinHandle<Result<StarSummary, String>>,
}

impl Emulation {
    fn start(
        net: &StarNetwork,
        star: &Star,
        counts: &Path,
        (seed, run): (u64, u64),
    ) -> Result<Self, LabError> {
        let config = emulated(star, counts, (seed, run));
        let open = move || {
            let emulator = StarEmulator::open(config).map_err(|error| error.to_string())?;
            let handle = emulator.handle();
            Ok((emulator, handle))
        };
        let (handle, thread) = spawn_emulator(&net.space, open, |emulator| {
            emulator.run(&AtomicBool::new(false)).map_err(|error| error.to_string())
        })?;
        Ok(Self { handle, thread })
    }

    fn stop(self) -> Result<StarSummary, LabError> {
        self.handle.stop();
        joined(self.thread.join()).map_err(LabError::Emulator)
    }
}

/// Returns the configuration of the emulator; the weights come from the hub.
fn emulated(star: &Star, counts: &Path, (seed, run): (u64, u64)) -> StarEmulatorConfig {
    let first = &star.mac.terminals[0];
    let forward = DirectionConfig {
        rate: Some(star.forward),
        delay: first.up + star.mac.hub_leg,
        ..DirectionConfig::default()
    };
    let mut usual = first.clone();
    usual.contract.weight = 1;
    let network = StarConfig { forward, mac: star.mac.clone(), usual, ..StarConfig::default() };
    let port = |number| {
        let name = StarNetwork::name(number);
        TerminalPort { name: name.clone(), interface: name }
    };
    let ports = (0..star.mac.terminals.len()).map(port).collect();
    let mut config = StarEmulatorConfig::new(network, StarNetwork::TO_HUB, ports);
    config.counts = Some(counts.to_owned());
    (config.seed, config.run) = (seed, run);
    config
}

/// Starts the gateways of the hub and the terminals.
fn start_gateways(
    net: &StarNetwork,
    star: &Star,
    controller: &str,
    counts: &Path,
) -> Result<Vec<Gateway>, LabError> {
    let key = || PrivateKey::generate(&mut SystemEntropy);
    let (hub, terminals): (_, Vec<_>) = (key(), net.terminals.iter().map(|_| key()).collect());
    // A terminal may use the whole return link if it is otherwise idle.
    let link = format!(
        "rate_up = \"{}bit\"\nrate_down = \"{}bit\"\nround_trip = \"{}ms\"\n\
         controller = \"{controller}\"\n",
        star.mac.rate.as_bps(),
        star.forward.as_bps(),
        ((star.mac.terminals[0].up + star.mac.hub_leg) * 2).as_millis(),
    );
    let peer = format!("{}:{PORT}", StarNetwork::HUB);
    let mut text = format!(
        "role = \"hub\"\nprivate_key = \"{}\"\n[link]\nlisten = \"{peer}\"\n{link}\
         [mac]\nsocket = \"{}\"\n[limits]\ndrain = \"0s\"\n",
        hub.to_text(),
        counts.display(),
    );
    for (number, terminal) in terminals.iter().enumerate() {
        let name = StarNetwork::name(number);
        text +=
            &format!("[[terminal]]\nname = \"{name}\"\npublic_key = \"{}\"\n", terminal.public());
    }
    let mut gateways = vec![Gateway::start(Some(&net.hub), "hub", &text)?];
    for (number, (terminal, host)) in terminals.iter().zip(&net.terminals).enumerate() {
        let text = format!(
            "role = \"terminal\"\nname = \"{}\"\nprivate_key = \"{}\"\naccept = \"early\"\n\
             [link]\npeer = \"{peer}\"\npeer_public_key = \"{}\"\n{link}\
             [socks5]\nlisten = \"{PROXY}\"\n[limits]\ndrain = \"0s\"\n",
            StarNetwork::name(number),
            terminal.to_text(),
            hub.public(),
        );
        gateways.push(Gateway::start(Some(host), "terminal", &text)?);
    }
    Ok(gateways)
}

/// Starts the users of each site; a task returns the number of users of its site.
fn start_users(
    net: &StarNetwork,
    star: &Star,
    server: std::net::SocketAddr,
    until: Instant,
    (seed, run): (u64, u64),
) -> Vec<JoinHandle<(usize, Browsed)>> {
    let way = Way::Socks5(PROXY.parse().expect("an address"));
    let mut users = Vec::new();
    for (place, site) in star.sites.iter().enumerate() {
        let asking = site.requests;
        let browsing = Browsing {
            server,
            way,
            request: asking.request as usize,
            object: asking.object as usize,
            until,
        };
        for user in 0..site.connections {
            let mut rng = RngStream::new(seed, run, &format!("lab/users/{place}/{user}"));
            let connections = site.connections;
            users.push(net.terminals[site.terminal].spawn("user", move || {
                (connections, browse(&browsing, || rng.exponential_span(asking.think)))
            }));
        }
    }
    users
}
