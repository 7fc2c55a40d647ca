//! A folder over an emulated link with interruptions: `bentpipe send` beside rsync and scp.

mod ssh;

use super::{Machine, bound};
use crate::LabError;
use crate::live::{Emulation, Program, gateway_program};
use rt::Clock;
use satlink::{Direction, LinkConfig, words};
use serde::Serialize;
use ssh::Ssh;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::content::Content;
use testbed::{Satellite, SatelliteConfig, addresses};
use units::{Instant, Span};

/// How a folder crosses the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// `bentpipe send` and `bentpipe receive`.
    Bentpipe,
    /// rsync over ssh, which keeps incomplete files.
    Rsync,
    /// scp, which begins again.
    Scp,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bentpipe, Self::Rsync, Self::Scp];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bentpipe => "bentpipe",
            Self::Rsync => "rsync",
            Self::Scp => "scp",
        }
    }
}

impl std::str::FromStr for System {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let error = || LabError::Request(format!("system: {text:?} is not bentpipe, rsync or scp"));
        Self::ALL.into_iter().find(|system| system.name() == text).ok_or_else(error)
    }
}

/// What interrupts the transfer, at a quarter, half and three quarters of its shortest time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Interruption {
    /// The link carries nothing for 10 s.
    Outage,
    /// The sender is killed, and started again immediately.
    Kill,
}

/// Length of an outage.
const OUTAGE: Span = Span::from_secs(10);
/// Time between the end of a sender that has failed and its next start.
const RESTART: Span = Span::from_secs(1);
/// Port of the receivers.
const PORT: u16 = 7001;

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct TransferConfig {
    /// Link description.
    pub link: String,
    /// Octets of the folder.
    pub octets: u64,
    /// The systems.
    pub systems: Vec<System>,
    /// What interrupts them.
    pub interruption: Interruption,
    /// Maximum time, as a multiple of the shortest possible.
    pub patience: u32,
    /// Seed of the link's random processes.
    pub seed: u64,
}

/// Results.
#[derive(Clone, Debug, Serialize)]
pub struct TransferReport {
    /// The machine that ran it.
    pub machine: Machine,
    /// Link description.
    pub link: String,
    /// Octets of the folder.
    pub octets: u64,
    /// Files of the folder.
    pub files: u64,
    /// What interrupted the transfers.
    pub interruption: Interruption,
    /// Shortest possible time, outages included.
    pub bound_seconds: f64,
    /// The systems.
    pub runs: Vec<Transferred>,
}

/// One system.
#[derive(Clone, Debug, Serialize)]
pub struct Transferred {
    /// The system.
    pub system: System,
    /// Whether all files arrived as they were.
    pub complete: bool,
    /// Time until the sender ended, or the maximum.
    pub seconds: f64,
    /// The bound's share of this time, times the share that arrived.
    pub bound_share: f64,
    /// Number of times that the sender was started.
    pub starts: u32,
    /// Octets in the receiver's folder at the end, incomplete files included.
    pub octets: u64,
    /// Whether the emulator kept its schedule.
    pub emulator_kept_up: bool,
    /// The end of the standard error of a sender that failed.
    pub note: String,
}

impl std::fmt::Display for Transferred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { system, complete, seconds, bound_share, starts, octets, .. } = self;
        let name = system.name();
        let end = if *complete { "complete" } else { "incomplete" };
        write!(f, "{name:<9} {seconds:>7.1} s  {bound_share:.3} of the bound  {starts} starts  ")?;
        write!(f, "{octets} octets, {end}")?;
        if !self.emulator_kept_up {
            write!(f, " (the emulator did not keep up)")?;
        }
        if !self.note.is_empty() {
            write!(f, " ({})", self.note.replace('\n', "; "))?;
        }
        Ok(())
    }
}

/// A folder that is removed at the end.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the benchmark; calls `tell` with each result.
///
/// # Errors
/// If no network can be created, or a program cannot be started.
pub fn run(
    config: &TransferConfig,
    mut tell: impl FnMut(&Transferred),
) -> Result<TransferReport, LabError> {
    let machine = Machine::here();
    let link = words::parse_link(&config.link)
        .map_err(|error| LabError::Request(format!("link: {error}")))?;
    let root = std::env::temp_dir().join(format!("bentpipe-bench-{}", std::process::id()));
    let root = Temporary(root);
    let files = make_folder(&root.0.join("data"), config.octets)?;
    let bound_time = bound_time(&link, config)?;
    let mut runs = Vec::new();
    for &system in &config.systems {
        let transferred = Trial::new(config, &link, &root.0, bound_time)?.run(system)?;
        tell(&transferred);
        runs.push(transferred);
    }
    let (link, octets) = (config.link.clone(), config.octets);
    let (interruption, bound_seconds) = (config.interruption, bound_time.as_secs_f64());
    Ok(TransferReport { machine, link, octets, files, interruption, bound_seconds, runs })
}

/// Returns the shortest possible time: that of the octets at the bound of the goodput, a round trip
/// of propagation, and the outages.
fn bound_time(link: &LinkConfig, config: &TransferConfig) -> Result<Span, LabError> {
    let up = link.direction(Direction::Return);
    let no_rate = || LabError::Request("link: it has no rate".to_owned());
    let goodput = bound(up.rate.ok_or_else(no_rate)?, up.loss, up.bit_error_ratio);
    let outages = match config.interruption {
        Interruption::Outage => OUTAGE * 3,
        Interruption::Kill => Span::ZERO,
    };
    Ok(Span::from_secs_f64(config.octets as f64 * 8.0 / goodput) + link.round_trip() + outages)
}

/// Makes a folder with one file of two fifths of the octets, ten of two fifths together, and many
/// small ones; returns the number of files.
fn make_folder(path: &Path, octets: u64) -> Result<u64, LabError> {
    let small = 500;
    let sizes = std::iter::once(octets * 2 / 5).chain([octets / 25; 10]);
    let rest = octets - octets * 2 / 5 - octets / 25 * 10;
    let sizes = sizes.chain((0..small).map(|n| rest / small + u64::from(n < rest % small)));
    let mut files = 0;
    for (number, size) in sizes.enumerate() {
        let folder = path.join(format!("{}", number / 100));
        let name = folder.join(format!("file-{number}"));
        let failed = |source| LabError::File { path: name.clone(), source };
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut content = vec![0; size as usize];
        Content::new(number as u64).fill(0, &mut content);
        fs::write(&name, content).map_err(failed)?;
        files += 1;
    }
    Ok(files)
}

/// Returns the octets of the files in a folder.
fn octets_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let octets = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => octets_in(&entry.path()),
        Ok(_) => entry.metadata().map_or(0, |metadata| metadata.len()),
        Err(_) => 0,
    };
    entries.map(octets).sum()
}

/// Returns whether all files of `one` are in `other`, with the same content.
fn is_equal(one: &Path, other: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(one)? {
        let (from, to) = (entry?.path(), other);
        let to = to.join(from.file_name().unwrap_or_default());
        let same = if from.is_dir() {
            to.is_dir() && is_equal(&from, &to)?
        } else {
            to.is_file() && fs::read(&from)? == fs::read(&to)?
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A network in which one system is measured.
struct Trial<'a> {
    config: &'a TransferConfig,
    root: &'a Path,
    bound: Span,
    // Dropped in this order: emulator, hosts.
    emulation: Emulation,
    net: Satellite,
    clock: Clock,
}

impl<'a> Trial<'a> {
    fn new(
        config: &'a TransferConfig,
        link: &LinkConfig,
        root: &'a Path,
        bound: Span,
    ) -> Result<Self, LabError> {
        let net = Satellite::new(&SatelliteConfig::default())?;
        let emulation = Emulation::start(&net, link, config.seed)?;
        Ok(Self { config, root, bound, emulation, net, clock: Clock::new() })
    }

    fn run(self, system: System) -> Result<Transferred, LabError> {
        let to = self.root.join(format!("to-{}", system.name()));
        let own = |source| LabError::File { path: to.clone(), source };
        fs::create_dir_all(&to).map_err(own)?;
        let (receiver, commands) = match system {
            System::Bentpipe => self.start_bentpipe(&to)?,
            System::Rsync | System::Scp => {
                let ssh = Ssh::new(&self.root.join(format!("ssh-{}", system.name())))?;
                let receiver = ssh.start_server(&self.net.server)?;
                let from = self.root.join("data");
                let is_rsync = system == System::Rsync;
                (receiver, if is_rsync { ssh.rsync(&from, &to) } else { ssh.scp(&from, &to) })
            }
        };
        if system != System::Bentpipe {
            ssh::set_congestion(&self.net.client)?;
        }
        let mut transferred = self.send(system, &commands)?;
        drop(receiver);
        transferred.octets = octets_in(&to);
        let arrived = transferred.octets.min(self.config.octets) as f64;
        let share = arrived / self.config.octets as f64;
        transferred.bound_share = share * self.bound.as_secs_f64() / transferred.seconds;
        if transferred.complete {
            transferred.complete =
                is_equal(&self.root.join("data"), &to.join("data")).map_err(own)?;
        }
        transferred.emulator_kept_up = self.emulation.stop()?.end.kept_up;
        fs::remove_dir_all(&to).map_err(own)?;
        Ok(transferred)
    }

    /// Starts `bentpipe receive`; returns it, and the arguments of the sender.
    fn start_bentpipe(&self, to: &Path) -> Result<(Program, Vec<String>), LabError> {
        let key = |name: &str| {
            let path = self.root.join(name);
            let public = gateway::private_key(&path).map(|key| key.public().to_string());
            let failed = |error: gateway::KeyError| LabError::Request(error.to_string());
            public.map(|public| (path, public)).map_err(failed)
        };
        let (receiver_file, receiver_key) = key("receiver.key")?;
        let (sender_file, sender_key) = key("sender.key")?;
        let program = program()?;
        let mut receive = Command::new(&program);
        receive.arg("receive").arg(to).args(["--quiet", "--peer-key", &sender_key]);
        receive.args(["--listen", &format!("0.0.0.0:{PORT}")]).arg("--key").arg(receiver_file);
        let receiver = Program::start(Some(&self.net.server), receive, "")?;
        let server = addresses::SERVER.0;
        let words = [
            program.display().to_string(),
            "send".to_owned(),
            self.root.join("data").display().to_string(),
            "--quiet".to_owned(),
            "--to".to_owned(),
            format!("{server}:{PORT}"),
            "--peer-key".to_owned(),
            receiver_key,
            "--key".to_owned(),
            sender_file.display().to_string(),
        ];
        Ok((receiver, words.to_vec()))
    }

    fn start_sender(&self, words: &[String]) -> Result<Program, LabError> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        Ok(Program::start(Some(&self.net.client), command, "")?)
    }

    /// Runs the sender until it has succeeded, through all interruptions.
    fn send(&self, system: System, words: &[String]) -> Result<Transferred, LabError> {
        let begun = self.clock.now();
        let mut due = self.interruptions(begun);
        let limit = begun + self.bound.mul_ratio(u64::from(self.config.patience), 1);
        let mut sender = self.start_sender(words)?;
        let (mut starts, mut note, mut complete) = (1, String::new(), false);
        while self.clock.now() < limit {
            self.clock.sleep_until(self.clock.now() + Span::from_millis(20));
            if due.first().is_some_and(|&due| due <= self.clock.now()) {
                due.remove(0);
                match self.config.interruption {
                    Interruption::Outage => self.emulation.outage(OUTAGE)?,
                    Interruption::Kill => {
                        drop(sender); // By SIGKILL.
                        sender = self.start_sender(words)?;
                        starts += 1;
                    }
                }
            }
            match sender.ended() {
                Ok(Some(true)) => {
                    complete = true;
                    break;
                }
                Ok(None) => {}
                Ok(Some(false)) | Err(_) => {
                    note = sender.errors();
                    self.clock.sleep_until(self.clock.now() + RESTART);
                    sender = self.start_sender(words)?;
                    starts += 1;
                }
            }
        }
        let seconds = self.clock.now().since(begun).as_secs_f64();
        let (bound_share, octets, emulator_kept_up) = (0.0, 0, false);
        let note = if complete { String::new() } else { note };
        Ok(Transferred {
            system,
            complete,
            seconds,
            bound_share,
            starts,
            octets,
            emulator_kept_up,
            note,
        })
    }

    fn interruptions(&self, begun: Instant) -> Vec<Instant> {
        let outages = match self.config.interruption {
            Interruption::Outage => OUTAGE,
            Interruption::Kill => Span::ZERO,
        };
        let clear = self.bound.saturating_sub(outages * 3);
        (1..=3).map(|number| begun + clear.mul_ratio(number, 4) + outages * (number - 1)).collect()
    }
}

/// Returns this program, which has the commands `send` and `receive`.
fn program() -> Result<PathBuf, LabError> {
    gateway_program().map_err(|source| LabError::File { path: "this program".into(), source })
}
