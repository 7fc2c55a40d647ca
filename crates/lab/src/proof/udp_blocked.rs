//! UDP is blocked while a download fills a geostationary link, and works again later: connections
//! use TLS in between.

use super::long::Long;
use super::network::{Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, failed, sleep_ms};
use crate::LabError;
use crate::threads::joined;
use rt::Clock;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use testbed::traffic::{self, Way};
use units::Span;

/// Drops all UDP that the hub receives or sends on the satellite side.
const BLOCK: &str = "table inet blocked {
    chain in { type filter hook input priority 0; iifname \"sat\" meta l4proto udp drop; }
    chain out { type filter hook output priority 0; oifname \"sat\" meta l4proto udp drop; }
}";
const UNBLOCK: &str = "delete table inet blocked";
const PATIENCE: Span = Span::from_secs(30);
/// Time for which the download fills the link before UDP is blocked.
const FILLING_MS: u64 = 8_000;
/// The first download.
const SEED: u64 = 9_100_000;

/// Times since UDP was blocked, in the order in which they come.
#[derive(Clone, Copy, Debug, Default)]
struct Phases {
    /// The terminal has begun to connect by TCP.
    detected: Option<Span>,
    /// The TCP connection is established.
    connected: Option<Span>,
    /// The terminal sends by TLS.
    secured: Option<Span>,
    /// The hub sends by TLS.
    moved: Option<Span>,
}

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let setup = Setup {
        link: "delay 300ms rate 10mbit limit 1bdp",
        rates: "rate_up = \"10mbit\"\nrate_down = \"10mbit\"\nround_trip = \"600ms\"",
        terminal_tables: "[tls]\n".to_owned(),
        hub_tables: "[tls]\n".to_owned(),
        ..Setup::new(config.seed)
    };
    let runs = if config.quick { 1 } else { 5 };
    let mut times: [Vec<f64>; 5] = Default::default();
    for number in 0..runs {
        let (phases, first) = block(&setup, SEED + number, config.quick, verdict)?;
        let Phases { detected, connected, secured, moved } = phases;
        for (all, at) in times.iter_mut().zip([detected, connected, secured, moved, first]) {
            all.extend(at.map(Span::as_secs_f64));
        }
    }
    let names = ["detected_s", "tcp_s", "tls_s", "moved_s", "first_octet_s"];
    for (name, mut all) in names.into_iter().zip(times) {
        all.sort_by(f64::total_cmp);
        if let (Some(&median), Some(&most)) = (all.get(all.len() / 2), all.last()) {
            verdict.figure(name, median);
            verdict.figure(&format!("{name}_max"), most);
        }
    }
    Ok(())
}

/// Blocks UDP in the middle of a download, makes a new connection, and unblocks UDP.
fn block(
    setup: &Setup,
    seed: u64,
    is_quick: bool,
    verdict: &mut Verdict,
) -> Result<(Phases, Option<Span>), LabError> {
    let mut network = TestNetwork::without_gateways(setup)?;
    let sockets = Sockets::new()?;
    for side in [Side::Hub, Side::Terminal] {
        let control = format!("[control]\nsocket = \"{}\"\n[limits]\n", sockets.at(side).display());
        network.reconfigure(side, "[limits]\n", &control);
        network.start(side)?;
    }
    let server = network.server();
    let ask = |patience| traffic::ask(Way::Direct, server, (64, 64), patience);
    let clock = Clock::new();
    let from = clock.now();
    while network.net.client.run(|| ask(Span::from_secs(3))).error.is_some() {
        network.check()?;
        if clock.now().since(from) > PATIENCE {
            return Err(LabError::Proof("no request crosses the network".to_owned()));
        }
        sleep_ms(100);
    }
    let long = Long::start(&network, seed);
    sleep_ms(FILLING_MS);
    verdict.figure("rate_before_mbps", long.rate(1_000));
    nft(&network, BLOCK)?;
    let is_over = AtomicBool::new(false);
    let (phases, exchange) = thread::scope(|scope| {
        let watched = scope.spawn(|| watch(&network, &sockets, &is_over));
        let exchange = network.net.client.run(|| ask(PATIENCE));
        // Until the hub's status shows the carrier.
        sleep_ms(200);
        is_over.store(true, Relaxed);
        (joined(watched.join()), exchange)
    });
    let first = exchange.took;
    verdict.demand(first.is_some(), "a new connection has its answer by TLS");
    verdict.demand(phases.moved.is_some(), "the hub answers by TLS");
    let (full, most) = long.await_rate(0.8 * 10.0 * 0.96, PATIENCE);
    verdict
        .demand(full.is_some(), &format!("the download fills the link by TLS ({most:.1} Mbit/s)"));
    if let Some(full) = full {
        verdict.figure("full_after_first_octet_s", full.as_secs_f64());
    }
    if !is_quick {
        verdict.figure("rate_by_tls_mbps", long.rate(10_000));
    }
    nft(&network, UNBLOCK)?;
    let from = clock.now();
    while sockets.uses_tls(Side::Terminal) && clock.now().since(from) < PATIENCE * 2 {
        sleep_ms(100);
    }
    let back = clock.now().since(from);
    verdict.demand(!sockets.uses_tls(Side::Terminal), "UDP is used again when it works");
    verdict.figure("udp_again_s", back.as_secs_f64());
    long.finish(verdict)?;
    network.check()?;
    Ok((phases, first))
}

/// Samples the state of the carrier until `is_over`.
fn watch(network: &TestNetwork, sockets: &Sockets, is_over: &AtomicBool) -> Phases {
    let clock = Clock::new();
    let from = clock.now();
    let mut phases = Phases::default();
    while !is_over.load(Relaxed) {
        let tcp = network.net.terminal.run(tcp_state);
        let now = clock.now().since(from);
        let note = |at: &mut Option<Span>, is_so: bool| {
            if is_so && at.is_none() {
                *at = Some(now);
            }
        };
        note(&mut phases.detected, tcp.is_some());
        note(&mut phases.connected, tcp == Some(Tcp::Established));
        if phases.connected.is_some() && phases.secured.is_none() {
            note(&mut phases.secured, sockets.uses_tls(Side::Terminal));
        }
        if phases.secured.is_some() && phases.moved.is_none() {
            note(&mut phases.moved, sockets.uses_tls(Side::Hub));
        }
        sleep_ms(5);
    }
    phases
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tcp {
    Connecting,
    Established,
}

/// Returns the state of this host's connection to port 443, if there is one.
fn tcp_state() -> Option<Tcp> {
    let table = fs::read_to_string("/proc/thread-self/net/tcp").ok()?;
    let mut states = table.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(2);
        let peer = fields.next()?;
        let state = fields.next()?;
        match state {
            "02" if peer.ends_with(":01BB") => Some(Tcp::Connecting),
            "01" if peer.ends_with(":01BB") => Some(Tcp::Established),
            _ => None,
        }
    });
    states.next_back()
}

fn nft(network: &TestNetwork, rules: &str) -> Result<(), LabError> {
    let mut command = Command::new("nft");
    command.arg(rules);
    let stopped = |error: &dyn std::fmt::Display| LabError::Proof(format!("nft: {error}"));
    let mut process = network.net.hub.start(command).map_err(|error| stopped(&error))?;
    let status = process.wait().map_err(|error| stopped(&error))?;
    if status.success() { Ok(()) } else { Err(LabError::Proof(format!("nft: {status}"))) }
}

/// The control sockets, in a folder that is removed at the end.
struct Sockets {
    folder: PathBuf,
}

impl Sockets {
    fn new() -> Result<Self, LabError> {
        let folder = std::env::temp_dir().join(format!("bentpipe-blocked-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(failed("a folder"))?;
        Ok(Self { folder })
    }

    fn at(&self, side: Side) -> PathBuf {
        self.folder.join(format!("{}.sock", side.name()))
    }

    /// Whether the status of a gateway has a peer by TLS.
    fn uses_tls(&self, side: Side) -> bool {
        status(&self.at(side)).is_ok_and(|status| status.contains("\"carrier\":\"tls\""))
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn status(socket: &Path) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
    stream.write_all(b"{\"ask\": \"status\"}\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line.replace("\": \"", "\":\""))
}
