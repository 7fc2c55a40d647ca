//! `bentpipe bench radio`: the file transfer of Elaasar et al. 2003, section 7, over packet radio in
//! real time, beside its simulation and the published values.
//!
//! ```text
//!   file transfer ─ XSTP ─ IPv4, route ─ AX.25 ─ KISS over TCP ─┬─ the simulator's channel
//!                                                               └─ Dire Wolf, audio loop
//! ```
//!
//! The published values contain a pause of 7.5 s after each chunk (the lab's experiment
//! elaasar-2003), which neither the live runs nor these simulations have.

mod channel;
mod direwolf;
mod fetch;
#[cfg(test)]
mod tests;

pub use channel::Channel;
pub use direwolf::is_installed;

use super::Machine;
use crate::LabError;
use crate::experiments::elaasar_2003::{counted_bits, table_1};
use crate::threads::joined;
use direwolf::DireWolves;
use endpoint::published::{Host, Line, Parameters, Station, Tnc};
use fetch::fetch;
use satlink::mac::csma::CsmaConfig;
use serde::Serialize;
use sim::Pattern;
use sim::radio::{Radio, retrieve};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use units::{BitRate, Span};
use xstp::session::SessionConfig;
use xstp::wire::ipv4::MAX_HOPS;

/// Simulated runs of each transfer.
const SIMULATED: u64 = 30;
/// Maximum time of a transfer.
const PATIENCE: Duration = Duration::from_secs(900);

/// What carries the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// Two TNCs with the simulator's channel in real time.
    Model,
    /// Two processes of Dire Wolf with an audio loop.
    Direwolf,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Model, Self::Direwolf];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Direwolf => "direwolf",
        }
    }

    /// Returns the channel that its simulation has.
    fn channel(self, rate: u64) -> CsmaConfig {
        let kenwood = CsmaConfig::kenwood(BitRate::from_bps(rate));
        match self {
            Self::Model => kenwood,
            // Its tail by default; it sends all that it has in one transmission.
            Self::Direwolf => {
                CsmaConfig { tail: Span::from_millis(100), most_frames: 255, ..kenwood }
            }
        }
    }
}

impl std::str::FromStr for System {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let error = || LabError::Request(format!("system: {text:?} is not model or direwolf"));
        Self::ALL.into_iter().find(|system| system.name() == text).ok_or_else(error)
    }
}

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct RadioConfig {
    /// The systems; `None`: Dire Wolf if it is installed.
    pub systems: Option<Vec<System>>,
    /// Rates of the channel in bit/s: 1200, 9600.
    pub rates: Vec<u64>,
    /// Sizes of the files in octets.
    pub sizes: Vec<u64>,
    /// Seed of all random streams.
    pub seed: u64,
}

/// One transfer.
#[derive(Clone, Debug, Serialize)]
pub struct Transferred {
    /// What carried it.
    pub system: System,
    /// Rate of the channel in bit/s.
    pub rate: u64,
    /// Octets of the file.
    pub size: u64,
    /// Time from the request to the last octet, in seconds.
    pub live_seconds: f64,
    /// The mean of the simulated runs.
    pub simulated_seconds: f64,
    /// The shortest and the longest simulated run.
    pub simulated_range: [f64; 2],
    /// Throughput with all headers, as the paper counts it, in bit/s: live.
    pub live_bps: f64,
    /// The same, simulated.
    pub simulated_bps: f64,
    /// The same, published: table 1.
    pub published_bps: Option<f64>,
}

impl fmt::Display for Transferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { system, rate, size, live_seconds, simulated_seconds, .. } = self;
        let [least, most] = self.simulated_range;
        write!(f, "{:<8} {rate:>4} bit/s {size:>6} B  ", system.name())?;
        write!(f, "live {live_seconds:>6.2} s  simulated {simulated_seconds:>6.2} s ")?;
        write!(f, "({least:.2} to {most:.2})  ")?;
        write!(f, "throughput {:>5.0}, {:>5.0}", self.live_bps, self.simulated_bps)?;
        match self.published_bps {
            Some(bps) => write!(f, ", published {bps:>4.0} bit/s"),
            None => write!(f, " bit/s"),
        }
    }
}

/// Results.
#[derive(Clone, Debug, Serialize)]
pub struct RadioReport {
    /// The machine that ran it.
    pub machine: Machine,
    /// The transfers.
    pub transfers: Vec<Transferred>,
}

/// Runs the benchmark, systems and rates in parallel; calls `tell` with each result.
///
/// # Errors
/// If a program cannot be started, or a transfer fails.
pub fn run(
    config: &RadioConfig,
    tell: &(dyn Fn(&Transferred) + Sync),
) -> Result<RadioReport, LabError> {
    let machine = Machine::here();
    let systems = match &config.systems {
        Some(systems) => systems.clone(),
        None if is_installed() => System::ALL.to_vec(),
        None => vec![System::Model],
    };
    let cases =
        systems.iter().flat_map(|&system| config.rates.iter().map(move |&rate| (system, rate)));
    let results = thread::scope(|scope| {
        let run = |(system, rate)| scope.spawn(move || transfers(config, system, rate, tell));
        let running: Vec<_> = cases.map(run).collect();
        running.into_iter().map(|one| joined(one.join())).collect::<Vec<_>>()
    });
    let mut transfers = Vec::new();
    for result in results {
        transfers.extend(result?);
    }
    Ok(RadioReport { machine, transfers })
}

/// The transfers of all sizes over one channel, one after another.
fn transfers(
    config: &RadioConfig,
    system: System,
    rate: u64,
    tell: &(dyn Fn(&Transferred) + Sync),
) -> Result<Vec<Transferred>, LabError> {
    let failed = |source: io::Error| LabError::System {
        name: format!("{} at {rate} bit/s", system.name()),
        reason: source.to_string(),
    };
    let stop = AtomicBool::new(false);
    let measure = |ports: [SocketAddr; 2]| {
        let mut found = Vec::new();
        for &size in &config.sizes {
            let [(client, _), (server, station)] = hosts(ports, system, rate).map_err(failed)?;
            let pattern = Pattern(config.seed);
            let time = fetch(&client, (&server, station), pattern, size, PATIENCE);
            // The next transfer finds the channel free.
            client.close(PATIENCE).and(server.close(PATIENCE)).map_err(failed)?;
            let transferred = compare(system, rate, size, time.map_err(failed)?, config.seed)?;
            tell(&transferred);
            found.push(transferred);
        }
        Ok(found)
    };
    thread::scope(|scope| match system {
        System::Model => {
            let [a, b] = [0, 1].map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
            let listeners = [a.map_err(failed)?, b.map_err(failed)?];
            let ports = [listeners[0].local_addr(), listeners[1].local_addr()];
            let [a, b] = ports.map(|port| port.map_err(failed));
            let ports = [a?, b?];
            let channel = Channel::new(&system.channel(rate), listeners, config.seed);
            let channel = channel.map_err(failed)?;
            scope.spawn(|| channel.run(&stop));
            let found = measure(ports);
            stop.store(true, Ordering::Relaxed);
            found
        }
        System::Direwolf => {
            let name = format!("bentpipe-radio-{}-{rate}", std::process::id());
            let stations = DireWolves::start(&std::env::temp_dir().join(name), rate)?;
            let (stations, stop) = (Arc::new(stations), &stop);
            let audio = Arc::clone(&stations);
            scope.spawn(move || audio.pass_audio(stop));
            let found = measure(stations.kiss);
            stop.store(true, Ordering::Relaxed);
            found
        }
    })
}

/// The settings of both stations, live and simulated: the lab's stack without pauses.
fn radio(system: System, rate: u64) -> Radio {
    let mut session = SessionConfig::xstp_2003();
    session.stp.small_window = 10;
    Radio::published(system.channel(rate), &session)
}

fn hosts(ports: [SocketAddr; 2], system: System, rate: u64) -> io::Result<[(Host, Station); 2]> {
    let radio = radio(system, rate);
    let parameters = Parameters {
        tx_delay: Some(radio.channel.key_up),
        persistence: Some(radio.channel.persistence),
        slot_time: Some(radio.channel.slot),
        full_duplex: Some(false),
    };
    let [a, b] = [0, 1].map(|index: usize| {
        let call = format!("N0CALL-{}", index + 1).parse().map_err(io::Error::other)?;
        let station = Station::new(call);
        let tnc = Tnc {
            parameters,
            route: vec![station.address; MAX_HOPS],
            ..Tnc::new(Line::Tcp(ports[index].to_string()), station)
        };
        Ok::<_, io::Error>((Host::radio(&tnc, &radio.session)?, station))
    });
    Ok([a?, b?])
}

/// Puts a live transfer beside its simulation and the published value.
fn compare(
    system: System,
    rate: u64,
    size: u64,
    live: Span,
    seed: u64,
) -> Result<Transferred, LabError> {
    let radio = radio(system, rate);
    let mut simulated = Vec::new();
    for run in 0..SIMULATED {
        let found = retrieve(&radio, size, seed, run);
        let found = found.map_err(|error| LabError::Request(error.to_string()))?;
        simulated.push(found.latency.unwrap_or(radio.patience).as_secs_f64());
    }
    let mean = simulated.iter().sum::<f64>() / simulated.len() as f64;
    let least = simulated.iter().copied().fold(f64::INFINITY, f64::min);
    let most = simulated.iter().copied().fold(0.0, f64::max);
    Ok(Transferred {
        system,
        rate,
        size,
        live_seconds: live.as_secs_f64(),
        simulated_seconds: mean,
        simulated_range: [least, most],
        live_bps: counted_bits(size) / live.as_secs_f64(),
        simulated_bps: counted_bits(size) / mean,
        published_bps: table_1(rate, size),
    })
}
