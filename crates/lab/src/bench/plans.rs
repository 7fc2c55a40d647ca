//! `bentpipe bench plans`: rate plans on a hub's link, with real gateways.
//!
//! ```text
//!   downloads ─ SOCKS5 ─ terminal ─┐
//!   downloads ─ SOCKS5 ─ terminal ─┼═ emulated link (UDP on the loopback interface) ═ hub ─ servers
//!   downloads ─ SOCKS5 ─ terminal ─┘
//! ```
//!
//! Each terminal is a gateway process, each connection one of the kernel's. A quarter of the
//! terminals have a plan of twice the weight. Measured are the fairness within a plan, the
//! throughput that the other terminals lose when one terminal floods, and the response time of an
//! urgent class over the loaded link.

mod load;
mod texts;

use super::figures::{Figure, Figures, MAIN, Series};
use crate::LabError;
use crate::live::{Gateway, UdpLink};
use gateway::{PrivateKey, SystemEntropy};
pub(super) use load::sessions;
use load::{Downloads, Source};
use rt::Clock;
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;
use testbed::traffic::{self, FileServer, Way};
use texts::{emulated, hub_text, proxy, terminal_text};
use units::{BitRate, Span};

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct PlansConfig {
    /// Number of terminals, 4 to 1,000.
    pub terminals: usize,
    /// Downloads of each terminal.
    pub connections: usize,
    /// Rate of the forward link; the return link has a fifth of it.
    pub rate: BitRate,
    /// Duration of each measurement.
    pub length: Span,
    /// Seed of the link's random processes.
    pub seed: u64,
}

impl Default for PlansConfig {
    fn default() -> Self {
        Self {
            terminals: 200,
            connections: 10,
            rate: BitRate::from_mbps(50),
            length: Span::from_secs(30),
            seed: 1,
        }
    }
}

/// Results of the benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct PlansReport {
    /// Number of terminals.
    pub terminals: usize,
    /// Downloads of each terminal.
    pub connections: usize,
    /// Rate of the forward link, bits/s.
    pub rate_bps: u64,
    /// Duration of each measurement in seconds.
    pub seconds: f64,
    /// Fraction of the link rate that carried IP packets.
    pub used: f64,
    /// The plans.
    pub classes: Vec<ClassReport>,
    /// The flood of one terminal.
    pub flood: FloodReport,
    /// The urgent requests.
    pub urgent: UrgentReport,
    /// Downloads that ended on their own.
    pub ended: usize,
    /// Whether the emulator kept its schedule.
    pub kept_up: bool,
    /// 99th percentile of the emulator's lateness in seconds.
    pub late_p99_s: f64,
    /// Counters of the hub.
    pub hub: Value,
    /// The main figures, in the form of all benchmarks.
    pub results: Vec<Figure>,
}

/// The terminals of one plan, all of which have data queued.
#[derive(Clone, Debug, Serialize)]
pub struct ClassReport {
    /// Name of the plan.
    pub plan: &'static str,
    /// Number of terminals.
    pub terminals: usize,
    /// Mean goodput of a terminal, bits/s.
    pub mean_bps: f64,
    /// Jain's fairness index over terminals.
    pub jain_terminals: f64,
    /// Jain's fairness index over connections.
    pub jain_connections: f64,
}

/// The effect of one terminal's flood on the others.
#[derive(Clone, Debug, Serialize)]
pub struct FloodReport {
    /// Downloads of the flood, and those of them in the urgent class.
    pub connections: (usize, usize),
    /// Goodput of all others relative to before.
    pub others_keep: f64,
    /// Goodput of the most affected terminal relative to before.
    pub worst_keeps: f64,
    /// Goodput of the flooding terminal relative to before.
    pub flooder_has: f64,
}

/// Urgent requests over the loaded link.
#[derive(Clone, Debug, Serialize)]
pub struct UrgentReport {
    /// Answered and unanswered requests.
    pub answered: (usize, usize),
    /// Round trip of the link in seconds.
    pub round_trip_s: f64,
    /// Median response time in round trips.
    pub median: f64,
    /// Longest response time in round trips.
    pub longest: f64,
}

/// One-way delay.
const DELAY: Span = Span::from_millis(270);
/// Time limit until all terminals have a session.
const CONNECTED: Span = Span::from_secs(300);
/// Time limit until another download receives data.
const ALL_HERE: Span = Span::from_secs(120);
/// Time for allocations to settle.
const SETTLING: Span = Span::from_secs(15);
/// Number of urgent requests.
const REQUESTS: usize = 40;
/// Octets of a request and of its response.
const ASKED: (usize, usize) = (100, 1_000);
/// Downloads of the flood: plain and urgent.
const FLOOD: (usize, usize) = (300, 100);
/// Time limit for a proxy to accept a connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the benchmark; reports each step to `note`.
///
/// # Errors
/// If gateways or the emulator cannot be started, or a terminal receives nothing.
pub fn run(config: &PlansConfig, note: impl Fn(&str)) -> Result<PlansReport, LabError> {
    if !(4..=1_000).contains(&config.terminals) || config.connections == 0 {
        return Err(LabError::Request("expected 4 to 1000 terminals with a download".into()));
    }
    let mut network = TestNetwork::start(config)?;
    note(&format!("{} terminals and a hub run", config.terminals));
    network.open(0..config.terminals, config.connections, network.bulk.address())?;
    match network.wait_for_all()? {
        0 => {}
        reset => note(&format!("{reset} downloads were reset without data and opened again")),
    }
    network.wait(SETTLING);
    let (before, carried) = (network.downloads.counted(), network.link.forwarded());
    network.wait(config.length);
    let had = differences(&before, &network.downloads.counted());
    let carried = network.link.forwarded() - carried;
    network.check()?;
    let classes = classes(config, &had);
    classes.iter().for_each(|class| note(&class.words()));
    let urgent = network.ask_urgently(config.terminals);
    note(&urgent.words());
    let flood = network.flood(config, &had)?;
    note(&flood.words());
    network.check()?;
    let ended = network.downloads.ended();
    let (hub, summary) = network.stop()?;
    let most = config.rate.bytes_in(config.length);
    let used = carried as f64 / most as f64;
    let results = results(used, &classes, &flood, &urgent);
    Ok(PlansReport {
        results,
        terminals: config.terminals,
        connections: config.connections,
        rate_bps: config.rate.as_bps(),
        seconds: config.length.as_secs_f64(),
        used,
        classes,
        flood,
        urgent,
        ended,
        kept_up: summary.end.kept_up,
        late_p99_s: summary.end.lateness.p99_seconds,
        hub,
    })
}

fn results(
    used: f64,
    classes: &[ClassReport],
    flood: &FloodReport,
    urgent: &UrgentReport,
) -> Vec<Figure> {
    let mut series = Series::default();
    let mut add = vec![("link", "used", "1", used)];
    for class in classes {
        add.push((class.plan, "mean", "bit/s", class.mean_bps));
        add.push((class.plan, "jain-terminals", "1", class.jain_terminals));
        add.push((class.plan, "jain-connections", "1", class.jain_connections));
    }
    add.push(("flood", "others-keep", "1", flood.others_keep));
    add.push(("flood", "worst-keeps", "1", flood.worst_keeps));
    add.push(("urgent", "p50", "round trips", urgent.median));
    add.push(("urgent", "longest", "round trips", urgent.longest));
    for (case, name, unit, value) in add {
        series.add(MAIN, case, Figures(vec![(name.to_owned(), unit, value)]));
    }
    series.results(MAIN)
}

/// Whether a terminal has the plan of twice the weight.
fn is_double(terminal: usize) -> bool {
    terminal % 4 == 3
}

/// Returns the octets that each download has received since `before`, with its terminal.
fn differences(before: &[(usize, u64)], after: &[(usize, u64)]) -> Vec<(usize, u64)> {
    let before = before.iter().map(|one| one.1).chain(std::iter::repeat(0));
    after
        .iter()
        .zip(before)
        .map(|(&(terminal, after), before)| (terminal, after - before))
        .collect()
}

/// Returns the sum of each terminal.
fn by_terminal(terminals: usize, downloads: &[(usize, u64)]) -> Vec<u64> {
    let mut all = vec![0; terminals];
    downloads.iter().for_each(|&(terminal, bytes)| all[terminal] += bytes);
    all
}

/// Returns Jain's fairness index: 1 for equal shares.
fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    if squares == 0.0 { 0.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

fn classes(config: &PlansConfig, had: &[(usize, u64)]) -> Vec<ClassReport> {
    let terminals = by_terminal(config.terminals, had);
    let class = |plan, double: bool| {
        let own = |terminal: &usize| is_double(*terminal) == double;
        let of_terminals: Vec<u64> =
            (0..config.terminals).filter(own).map(|terminal| terminals[terminal]).collect();
        let of_connections: Vec<u64> =
            had.iter().filter(|(terminal, _)| own(terminal)).map(|one| one.1).collect();
        let sum: u64 = of_terminals.iter().sum();
        let seconds = config.length.as_secs_f64();
        ClassReport {
            plan,
            terminals: of_terminals.len(),
            mean_bps: sum as f64 * 8.0 / seconds / of_terminals.len() as f64,
            jain_terminals: jain(&of_terminals),
            jain_connections: jain(&of_connections),
        }
    };
    vec![class("default", false), class("double", true)]
}

impl ClassReport {
    fn words(&self) -> String {
        let Self { plan, terminals, mean_bps, jain_terminals, jain_connections } = self;
        format!(
            "plan {plan}: {terminals} terminals of {:.1} kbit/s; Jain's index {jain_terminals:.4} \
             of terminals, {jain_connections:.4} of connections",
            mean_bps / 1e3
        )
    }
}

impl FloodReport {
    fn words(&self) -> String {
        let (all, urgent) = self.connections;
        format!(
            "a flood of {all} downloads, {urgent} of them urgent: the others keep {:.4}, the worst \
             {:.4}; the flooding terminal has {:.4}",
            self.others_keep, self.worst_keeps, self.flooder_has
        )
    }
}

impl UrgentReport {
    fn words(&self) -> String {
        let (answered, lost) = self.answered;
        format!(
            "{answered} urgent requests: {:.3} round trips at the median, {:.3} at most; {lost} \
             without an answer",
            self.median, self.longest
        )
    }
}

/// Opens a connection through a terminal.
fn connect(terminal: usize, server: SocketAddr) -> io::Result<TcpStream> {
    traffic::connect(Way::Socks5(proxy(terminal)), server, PATIENCE)
}

fn not_opened(terminal: usize, error: &io::Error) -> LabError {
    LabError::Request(format!("a download of terminal {terminal}: {error}"))
}

/// The gateways, the link between them, servers and clients.
struct TestNetwork {
    clock: Clock,
    terminals: Vec<Gateway>,
    hub: Gateway,
    link: UdpLink,
    bulk: Source,
    /// Servers of the urgent class: an unlimited source, and one that answers requests.
    pushing: Source,
    answering: FileServer,
    downloads: Downloads,
}

impl TestNetwork {
    fn start(config: &PlansConfig) -> Result<Self, LabError> {
        let failed = |error: io::Error| LabError::Request(format!("a server: {error}"));
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (bulk, pushing) =
            (Source::start(any).map_err(failed)?, Source::start(any).map_err(failed)?);
        let answering = FileServer::start(None, any)?;
        let hub_at = UdpSocket::bind(any).and_then(|socket| socket.local_addr()).map_err(failed)?;
        let link = UdpLink::start(&emulated(config), config.seed, hub_at)?;
        let metrics = TcpListener::bind(any).and_then(|socket| socket.local_addr());
        let metrics = metrics.map_err(failed)?;
        let urgent = [pushing.address(), answering.address()].map(|address| address.port());
        let keys: Vec<PrivateKey> =
            (0..=config.terminals).map(|_| PrivateKey::generate(&mut SystemEntropy)).collect();
        let hub = Gateway::start(None, "hub", &hub_text(config, [hub_at, metrics], urgent, &keys))?;
        let hub_key = keys[config.terminals].public().to_string();
        let terminals = (0..config.terminals).map(|number| {
            let text = terminal_text(config, number, link.address(), &keys[number], &hub_key);
            Gateway::start(None, "terminal", &text)
        });
        let terminals = terminals.collect::<Result<Vec<Gateway>, LabError>>()?;
        let downloads = Downloads::start();
        let clock = Clock::new();
        let mut network = Self { clock, terminals, hub, link, bulk, pushing, answering, downloads };
        let patience = network.clock.now() + CONNECTED;
        while !sessions(metrics).is_ok_and(|sessions| sessions >= config.terminals as u64) {
            network.check()?;
            if network.clock.now() >= patience {
                let text = format!("not every terminal has a session within {CONNECTED}");
                return Err(LabError::Request(text));
            }
            network.wait(Span::from_millis(100));
        }
        Ok(network)
    }

    fn wait(&self, span: Span) {
        self.clock.sleep_until(self.clock.now() + span);
    }

    /// Waits until every download has received data, which takes time with many terminals on a
    /// loaded machine. A download that is reset before, because its server was not reached in time,
    /// is opened again; returns how often that happened.
    fn wait_for_all(&self) -> Result<usize, LabError> {
        let (mut left, mut since, mut reset) = (usize::MAX, self.clock.now(), 0);
        loop {
            let empty = self.downloads.without_data();
            let now = self.clock.now();
            if empty.is_empty() {
                return Ok(reset);
            }
            if empty.len() < left {
                (left, since) = (empty.len(), now);
            }
            if now.since(since) >= ALL_HERE {
                return Err(LabError::Request(format!(
                    "{left} downloads have received nothing, and no other within {ALL_HERE}; \
                     {reset} were reset"
                )));
            }
            for (index, terminal, _) in empty.into_iter().filter(|one| !one.2) {
                let opened = connect(terminal, self.bulk.address());
                opened
                    .and_then(|stream| self.downloads.replace(index, stream))
                    .map_err(|error| not_opened(terminal, &error))?;
                reset += 1;
            }
            self.wait(Span::from_secs(1));
        }
    }

    /// Opens `count` downloads from `server` at each of these terminals.
    fn open(
        &self,
        terminals: std::ops::Range<usize>,
        count: usize,
        server: SocketAddr,
    ) -> Result<(), LabError> {
        for terminal in terminals {
            for _ in 0..count {
                connect(terminal, server)
                    .and_then(|stream| self.downloads.add(terminal, stream))
                    .map_err(|error| not_opened(terminal, &error))?;
            }
        }
        Ok(())
    }

    /// Checks that all gateways still run.
    fn check(&mut self) -> Result<(), LabError> {
        self.hub.check()?;
        self.terminals.iter_mut().try_for_each(Gateway::check)
    }

    /// Sends urgent requests, one after another, from different terminals.
    fn ask_urgently(&self, terminals: usize) -> UrgentReport {
        let round_trip = (DELAY * 2).as_secs_f64();
        let mut took: Vec<f64> = (0..REQUESTS)
            .filter_map(|number| {
                let way = Way::Socks5(proxy(number * terminals / REQUESTS));
                let server = self.answering.address();
                let exchange = traffic::ask(way, server, ASKED, Span::from_secs(10));
                exchange.took.map(|took| took.as_secs_f64() / round_trip)
            })
            .collect();
        took.sort_by(f64::total_cmp);
        UrgentReport {
            answered: (took.len(), REQUESTS - took.len()),
            round_trip_s: round_trip,
            median: took.get(took.len() / 2).copied().unwrap_or(f64::INFINITY),
            longest: took.last().copied().unwrap_or(f64::INFINITY),
        }
    }

    /// Starts the flood of the first terminal, and compares the goodput with `had`.
    fn flood(&self, config: &PlansConfig, had: &[(usize, u64)]) -> Result<FloodReport, LabError> {
        self.open(0..1, FLOOD.0, self.bulk.address())?;
        self.open(0..1, FLOOD.1, self.pushing.address())?;
        self.wait(SETTLING);
        let before = self.downloads.counted();
        self.wait(config.length);
        let now = by_terminal(config.terminals, &differences(&before, &self.downloads.counted()));
        let had = by_terminal(config.terminals, had);
        let ratio = |terminal: usize| now[terminal] as f64 / had[terminal].max(1) as f64;
        let others = 1..config.terminals;
        let sum = |all: &[u64]| all[1..].iter().sum::<u64>() as f64;
        Ok(FloodReport {
            connections: (FLOOD.0 + FLOOD.1, FLOOD.1),
            others_keep: sum(&now) / sum(&had).max(1.0),
            worst_keeps: others.map(ratio).fold(f64::INFINITY, f64::min),
            flooder_has: ratio(0),
        })
    }

    fn stop(self) -> Result<(Value, rt::emulator::Summary), LabError> {
        let Self { terminals, hub, link, downloads, .. } = self;
        drop(downloads);
        // The hub stops first, so that its counters include the terminals' sessions.
        let counted = hub.stop();
        drop(terminals);
        Ok((counted, link.stop()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_is_evaluated_by_plan() {
        let config = PlansConfig { terminals: 4, connections: 2, ..PlansConfig::default() };
        let before = vec![(0, 5), (0, 5), (1, 0), (1, 0), (2, 0), (2, 0), (3, 1), (3, 1)];
        let add =
            |&(terminal, bytes): &(usize, u64)| (terminal, bytes + [300, 300, 300, 600][terminal]);
        let after: Vec<(usize, u64)> = before.iter().map(add).chain([(0, 77)]).collect();
        let had = differences(&before, &after);
        assert_eq!(by_terminal(4, &had), [677, 600, 600, 1_200]);
        let classes = classes(&config, &had[..8]);
        assert_eq!([classes[0].terminals, classes[1].terminals], [3, 1]);
        assert!((classes[0].jain_terminals - 1.0).abs() < 1e-12);
        assert!((classes[1].mean_bps / classes[0].mean_bps - 2.0).abs() < 1e-12);
        assert!(jain(&[1, 3]) < 0.81);
    }
}
