//! `bentpipe bench scale`: one hub and many terminals.
//!
//! ```text
//!   requests ─ terminal ─┐
//!              terminal ─┼─ UDP on the loopback interface ─ hub ─ server
//!              terminal ─┘
//! ```
//!
//! The hub is a gateway's process, the terminals are in this one. The benchmark measures the hub: its memory and processor
//! time with idle and active terminals, the time until all are connected, the duration of a reload,
//! and the recovery from a restart.

mod terminals;
mod texts;

use super::figures::{BenchReport, Figures, MAIN, Machine, interleave, quantile};
use super::plans::sessions;
use crate::LabError;
use crate::live::{Gateway, Program, Usage};
use gateway::{PrivateKey, SystemEntropy};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rt::Clock;
use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use terminals::Terminals;
use units::Span;

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct ScaleConfig {
    /// Terminals.
    pub terminals: usize,
    /// Number of terminals whose clients send requests, limited to the number of terminals.
    pub active: usize,
    /// Duration of the measurement of each state.
    pub length: Span,
    /// Runs.
    pub runs: u32,
}

/// Maximum memory of a terminal here and at the hub, octets, which must be free for each.
const MEMORY: u64 = 1 << 20;
/// Time limit until all terminals are connected.
const PATIENCE: Span = Span::from_secs(300);
/// Time limit of a reload.
const RELOAD: Span = Span::from_secs(60);
/// Time from the last change to the start of a measurement.
const SETTLING: Span = Span::from_secs(5);
/// The hub's log message of a complete reload.
const RELOADED: &str = "reloaded";

/// Measures a hub with its terminals.
///
/// # Errors
/// If there is too little memory for the terminals, they do not all connect, or the hub ends.
pub fn scale(config: &ScaleConfig, note: &mut dyn FnMut(&str)) -> Result<BenchReport, LabError> {
    let machine = Machine::here();
    enough_memory(config.terminals)?;
    // The hub, which inherits the limit, has a connection of each active terminal.
    super::ends::raise_descriptors(config.terminals + config.active * 2 + 100)?;
    let cases = [format!("terminals-{}", config.terminals)];
    let measured = interleave(config.runs, &cases, &[(MAIN, ())], |_, ()| measure(config), note);
    let (series, notes) = measured?;
    Ok(BenchReport {
        bench: "scale",
        machine,
        debug_build: cfg!(debug_assertions),
        runs: config.runs,
        seconds: config.length.as_secs_f64(),
        results: series.results(MAIN),
        notes,
    })
}

fn enough_memory(terminals: usize) -> Result<(), LabError> {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    let needed = terminals as u64 * MEMORY;
    match available.map(|kilobytes| kilobytes * 1024) {
        Some(available) if available < needed => Err(LabError::Request(format!(
            "{terminals} terminals need {} MB of memory, of which {} are available",
            needed >> 20,
            available >> 20
        ))),
        Some(_) | None => Ok(()),
    }
}

fn measure(config: &ScaleConfig) -> Result<Figures, LabError> {
    let mut site = Site::start(config)?;
    let mut figures = Figures::default();
    let alone = site.hub_usage()?;
    let started = site.start_terminals(config)?;
    figures.add("start-up", "s", started.as_secs_f64());
    site.wait(SETTLING);
    let before = site.hub_usage()?;
    site.wait(config.length);
    let after = site.hub_usage()?;
    let count = config.terminals as f64;
    let grown = after.resident.saturating_sub(alone.resident) as f64 / count;
    figures.add("memory-idle", "octets/terminal", grown);
    // Core-seconds per second and terminal, in millionths.
    let share = |before: Usage, after: Usage| {
        (after.cpu - before.cpu) / config.length.as_secs_f64() / count * 1e6
    };
    figures.add("cpu-idle", "us/s/terminal", share(before, after));
    let before = site.hub_usage()?;
    let latencies = site.request(config);
    let after = site.hub_usage()?;
    figures.add("cpu-active", "us/s/terminal", share(before, after));
    figures.add("requests", "requests/s", latencies.len() as f64 / config.length.as_secs_f64());
    let quantile_ms = |latencies: &[f64], part| quantile(latencies, part).unwrap_or(f64::NAN) * 1e3;
    figures.add("latency-p50", "ms", quantile_ms(&latencies, 0.5));
    figures.add("latency-p99", "ms", quantile_ms(&latencies, 0.99));
    figures.add("reload", "s", site.reload()?.as_secs_f64());
    let (took, latencies) = site.restart(config)?;
    figures.add("restart", "s", took.as_secs_f64());
    figures.add("restart-latency-p99", "ms", quantile_ms(&latencies, 0.99));
    figures.add("restart-latency-longest", "ms", quantile_ms(&latencies, 1.0));
    site.check()?;
    Ok(figures)
}

/// The hub, its terminals, and a server.
struct Site {
    clock: Clock,
    // Dropped in this order: without terminals the hub ends immediately.
    terminals: Option<Terminals>,
    hub: Gateway,
    _server: Program,
    server: SocketAddr,
    hub_at: SocketAddr,
    metrics: SocketAddr,
    /// Keys of the terminals, and last of the hub.
    keys: Vec<PrivateKey>,
    folder: Folder,
}

/// A directory that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn hub(&self) -> PathBuf {
        self.0.join("hub.toml")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn failed(what: &str) -> impl Fn(io::Error) -> LabError + '_ {
    move |error| LabError::Request(format!("{what}: {error}"))
}

/// Writes a file that only this user can read, because it contains a key.
fn write(path: &Path, text: &str) -> Result<(), LabError> {
    let failed = |source| LabError::File { path: path.to_owned(), source };
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)
}

impl Site {
    fn start(config: &ScaleConfig) -> Result<Self, LabError> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let free = || TcpListener::bind(any).and_then(|socket| socket.local_addr());
        let udp = UdpSocket::bind(any).and_then(|socket| socket.local_addr());
        let no_port = failed("a free port");
        let hub_at = udp.map_err(&no_port)?;
        let (metrics, server) = (free().map_err(&no_port)?, free().map_err(&no_port)?);
        let keys: Vec<PrivateKey> =
            (0..=config.terminals).map(|_| PrivateKey::generate(&mut SystemEntropy)).collect();
        let path = std::env::temp_dir().join(format!("bentpipe-scale-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(failed("a directory"))?;
        let folder = Folder(path);
        write(&folder.hub(), &texts::hub(hub_at, metrics, &keys))?;
        let command = super::ends::command(&["serve", &server.to_string()])?;
        let served = Program::start(None, command, "")?;
        let hub = Gateway::start_from(&folder.hub(), "hub")?;
        let (clock, terminals) = (Clock::new(), None);
        let mut site =
            Self { clock, terminals, hub, _server: served, server, hub_at, metrics, keys, folder };
        site.wait_until(RELOAD, "the hub answers", |site| sessions(site.metrics).is_ok())?;
        Ok(site)
    }

    fn wait(&self, span: Span) {
        self.clock.sleep_until(self.clock.now() + span);
    }

    /// Waits until `condition` holds; returns the time that this took.
    fn wait_until(
        &mut self,
        patience: Span,
        what: &str,
        condition: impl Fn(&Self) -> bool,
    ) -> Result<Span, LabError> {
        let start = self.clock.now();
        while !condition(self) {
            self.check()?;
            if self.clock.now().since(start) > patience {
                return Err(LabError::Request(format!("{what}: not within {patience}")));
            }
            self.wait(Span::from_millis(20));
        }
        Ok(self.clock.now().since(start))
    }

    /// Checks that all gateways still run.
    fn check(&mut self) -> Result<(), LabError> {
        match &self.terminals {
            Some(terminals) if !terminals.are_running() => {
                return Err(LabError::Request("the terminals have failed".into()));
            }
            Some(_) | None => {}
        }
        self.hub.check()
    }

    fn hub_usage(&mut self) -> Result<Usage, LabError> {
        Usage::of(self.hub.id())
    }

    /// Starts all terminals; returns the time until all have a session.
    fn start_terminals(&mut self, config: &ScaleConfig) -> Result<Span, LabError> {
        let start = self.clock.now();
        let (hub_key, keys) = self.keys.split_last().expect("the hub has a key");
        let hub = (self.hub_at, hub_key.public());
        let started = Terminals::start(keys, hub, self.server).map_err(failed("the terminals"))?;
        self.terminals = Some(started);
        // The hub's metrics would show it too, at the cost of all terminals' lines each time.
        self.wait_until(PATIENCE, "a session of every terminal", |site| {
            site.terminals.as_ref().is_some_and(|all| all.sessions() >= config.terminals)
        })?;
        Ok(self.clock.now().since(start))
    }

    /// Sends requests from the active terminals; returns their response times in seconds, sorted.
    fn request(&self, config: &ScaleConfig) -> Vec<f64> {
        let Some(terminals) = &self.terminals else { return Vec::new() };
        terminals.set_active(config.active);
        self.wait(config.length);
        terminals.take_latencies()
    }

    /// Adds a terminal to the hub's list; returns the time until the hub has reloaded.
    fn reload(&mut self) -> Result<Span, LabError> {
        let key = PrivateKey::generate(&mut SystemEntropy);
        let added = self.keys.len() - 1;
        self.keys.insert(added, key);
        write(&self.folder.hub(), &texts::hub(self.hub_at, self.metrics, &self.keys))?;
        let hub = Pid::from_raw(self.hub.id() as i32);
        kill(hub, Signal::SIGHUP).map_err(|error| failed("SIGHUP to the hub")(error.into()))?;
        self.wait_until(RELOAD, "the hub's reload", |site| site.hub.said().contains(RELOADED))
    }

    /// Kills the hub and starts it again while the active terminals send requests; returns the time
    /// until all terminals have a session again, and the response times in seconds, sorted, of those
    /// that had one before the others.
    fn restart(&mut self, config: &ScaleConfig) -> Result<(Span, Vec<f64>), LabError> {
        let sessions = |site: &Self| site.terminals.as_ref().map_or(0, Terminals::sessions);
        if let Some(terminals) = &self.terminals {
            terminals.set_active(config.active);
        }
        let all = sessions(self) + config.terminals;
        let hub = Pid::from_raw(self.hub.id() as i32);
        kill(hub, Signal::SIGKILL).map_err(|error| failed("the hub's end")(error.into()))?;
        while self.hub.check().is_ok() {
            self.wait(Span::from_millis(1));
        }
        self.hub = Gateway::start_from(&self.folder.hub(), "hub")?;
        let what = "a session of every terminal after the restart";
        let took = self.wait_until(PATIENCE, what, |site| sessions(site) >= all)?;
        Ok((took, self.terminals.as_ref().map_or_else(Vec::new, Terminals::take_latencies)))
    }
}
