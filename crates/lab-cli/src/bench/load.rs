//! `bentpipe-lab bench gateway`, `connect`, `idle`, `scale` and `codec`.

use crate::{Outcome, values};
use clap::Subcommand;
use lab::LabError;
use lab::bench::{self, BenchReport, CodecConfig, LoadConfig, ScaleConfig, ends};
use lab::live::{OtherSystem, parse_systems};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use units::{BitRate, Span};

/// What all of these have in common
#[derive(clap::Args)]
pub(super) struct Common {
    /// Only cases whose name contains this; may be given more than once
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Only systems whose name contains this; may be given more than once
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    systems: Vec<String>,
    /// How often to run each case; the report has the medians
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: Option<u32>,
    /// One run of fewer cases, with less accurate results
    #[arg(long)]
    quick: bool,
    /// A command file with other systems to run the same work through
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// How long each measurement takes
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    seconds: Option<Span>,
    /// The gateways' configured rate, Mbit/s; without one they estimate it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    mbps: Option<u64>,
    /// Write the JSON here instead
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
    /// Print rates and processor time as a table in Markdown; JSON only to the file of --json
    #[arg(long)]
    markdown: bool,
}

/// Rate, processor time and memory of gateways that carry bulk data
///
/// Both gateways and the load in namespaces joined by veth, with encryption and without
/// impairment; 1, 10, 100 and 1,000 flows in each direction. Prints JSON on standard output and a
/// line for each measurement on standard error. Takes about 20 minutes, --quick less than two.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench gateway --quick --only download-1")]
pub(super) struct Gateway {
    #[command(flatten)]
    common: Common,
}

/// New connections and the latency of requests through gateways
///
/// Connections one after another and a hundred at once: how many per second, and their processor
/// time at each gateway; requests in parallel to a load of a tenth of one flow's rate. Prints JSON
/// on standard output. Takes about 5 minutes, --quick less than two.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench connect --quick")]
pub(super) struct Connect {
    #[command(flatten)]
    common: Common,
}

/// Memory of idle connections at gateways
///
/// Prints JSON on standard output. Takes about 5 minutes, --quick less than two.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench idle --connections 10000")]
pub(super) struct Idle {
    #[command(flatten)]
    common: Common,
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=25_000))]
    connections: u32,
}

/// Memory and processor time of a hub with many terminals
///
/// The hub is a gateway's process, the terminals run in one other, on the loopback interface:
/// start-up of all, the hub's cost of idle ones, requests at some of them, a reload, and a restart
/// of the hub. Prints JSON on standard output.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench scale --terminals 100 --active 20")]
pub(super) struct Scale {
    /// Terminals; 100 with --quick when not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8_000))]
    terminals: Option<u32>,
    /// Terminals with requests, once idle ones have been measured
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    active: u32,
    /// How long idle and active terminals are measured
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    seconds: Option<Span>,
    /// How often to run all of it; the report has the medians
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Fewer terminals and less time, with less accurate results
    #[arg(long)]
    quick: bool,
    /// Write the JSON here instead
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
}

/// Time and cycles that a packet costs without sockets
///
/// Sealing, opening, and a stream from one relay to another under virtual time. Prints JSON on
/// standard output. Takes less than a minute.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench codec --json codec.json")]
pub(super) struct Codec {
    /// Only cases whose name contains this; may be given more than once
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// How often to run each case; the report has the medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,
    /// A tenth of the packets, with less accurate results
    #[arg(long)]
    quick: bool,
    /// Write the JSON here instead
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
}

/// An end of a benchmark, as a process of its own
#[derive(Subcommand)]
pub(super) enum End {
    /// The server of a load
    Serve { address: SocketAddr },
    /// A proxy that moves octets by splice(2)
    Splice { listen: SocketAddr, target: SocketAddr },
    /// A sender over QUIC
    #[cfg(feature = "quinn")]
    QuinnServe { address: SocketAddr },
    /// A receiver over QUIC
    #[cfg(feature = "quinn")]
    QuinnReceive {
        server: SocketAddr,
        #[arg(value_parser = values::seconds)]
        settling: Span,
        #[arg(value_parser = values::seconds)]
        length: Span,
    },
}

/// A benchmark of `lab::bench` that takes turns with other systems.
type Bench = fn(&LoadConfig, &mut dyn FnMut(&str)) -> Result<BenchReport, LabError>;

pub(super) fn run_gateway(arguments: Gateway) -> Outcome {
    run(arguments.common, 1, bench::gateway)
}

pub(super) fn run_connect(arguments: Connect) -> Outcome {
    run(arguments.common, 1, bench::connect)
}

pub(super) fn run_idle(arguments: Idle) -> Outcome {
    run(arguments.common, arguments.connections as usize, bench::idle)
}

pub(super) fn run_scale(arguments: &Scale) -> Outcome {
    let Scale { terminals, active, seconds, runs, quick, ref json } = *arguments;
    values::reserve(json)?;
    let config = ScaleConfig {
        terminals: terminals.unwrap_or(if quick { 100 } else { 1_000 }) as usize,
        active: active as usize,
        length: seconds.unwrap_or(Span::from_secs(if quick { 5 } else { 20 })),
        runs,
    };
    report(json, bench::scale(&config, &mut |line| eprintln!("{line}")))
}

pub(super) fn run_codec(arguments: Codec) -> Outcome {
    let Codec { only, runs, quick, json } = arguments;
    values::reserve(&json)?;
    let datagrams = if quick { 20_000 } else { 200_000 };
    let config = CodecConfig { datagrams, runs, only };
    report(&json, bench::codec(&config, &mut |line| eprintln!("{line}")))
}

fn report(json: &Path, measured: Result<BenchReport, LabError>) -> Outcome {
    values::write_json(json, &measured.map_err(|error| error.to_string())?)
}

pub(super) fn run_end(end: &End) -> Outcome {
    let outcome = match end {
        End::Serve { address } => ends::serve(*address),
        End::Splice { listen, target } => ends::splice(*listen, *target),
        #[cfg(feature = "quinn")]
        End::QuinnServe { address } => ends::quinn_serve(*address),
        #[cfg(feature = "quinn")]
        End::QuinnReceive { server, settling, length } => {
            ends::quinn_receive(*server, *settling, *length)
        }
    };
    outcome.map_err(|error| error.to_string())
}

/// Reads a command file.
pub(super) fn others(file: Option<&Path>) -> Result<Vec<OtherSystem>, String> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let failed = |error: String| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    parse_systems(&text).map_err(failed)
}

fn run(common: Common, connections: usize, bench: Bench) -> Outcome {
    let Common { only, systems, runs, quick, against, seconds, mbps, json, markdown } = common;
    let others = others(against.as_deref())?;
    values::reserve(&json)?;
    testbed::permission::acquire().map_err(|error| error.to_string())?;
    let config = LoadConfig {
        quick,
        runs: runs.unwrap_or(if quick { 1 } else { 3 }),
        only,
        systems,
        others,
        rate: mbps.map(BitRate::from_mbps),
        length: seconds,
        connections,
    };
    let report =
        bench(&config, &mut |line| eprintln!("{line}")).map_err(|error| error.to_string())?;
    values::write_report(&json, &report, markdown.then(|| report.markdown()))
}
