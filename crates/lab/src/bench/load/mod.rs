//! `bentpipe bench gateway`, `connect` and `idle`: maximum load of gateways and its cost, compared with
//! other systems.
//!
//! ```text
//!   client ──── terminal ════ hub ──── server     four namespaces joined by veth, no impairment
//!   load        gateway       gateway  load
//! ```
//!
//! The gateways encrypt, and intercept by TPROXY. Each measurement has its own network and
//! programs.

mod connect;
mod gateway;
mod idle;
mod reference;

pub use connect::connect;
pub use gateway::gateway;
pub use idle::idle;

use super::ends::{self, HEADER, exchange};
use super::figures::{BenchReport, Figures, MAIN, Machine, chosen, interleave};
use crate::LabError;
use crate::live::{Carrier, Clients, DirectConfig, DirectNetwork, OtherSystem, Program};
use rt::Clock;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use testbed::Satellite;
use units::{BitRate, Span};

/// Options of the benchmarks of this folder.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Less time and fewer cases.
    pub quick: bool,
    /// Runs of each case.
    pub runs: u32,
    /// Names of cases or parts of them; empty for all.
    pub only: Vec<String>,
    /// Names of systems or parts of them; empty for all.
    pub systems: Vec<String>,
    /// Systems to compare with, in addition to the built-in ones.
    pub others: Vec<OtherSystem>,
    /// The gateways' configured rate in each direction; `None`: they estimate it.
    pub rate: Option<BitRate>,
    /// Duration of each measurement in seconds; `None`: that of the benchmark.
    pub length: Option<Span>,
    /// Connections of `bench idle`.
    pub connections: usize,
}

/// Port of the server.
const PORT: u16 = 7000;
/// Maximum duration of the start of a measurement, which does not count.
const SETTLING: Span = Span::from_secs(2);
/// Descriptors of a process other than those of the load.
const MARGIN: usize = 100;
/// Time after which gateways have returned free memory.
const LATER: Span = Span::from_secs(5);

/// One of the measured systems.
#[derive(Clone, Copy, Debug)]
enum System<'a> {
    Network(Carrier<'a>),
    /// QUIC from memory to memory ([`reference`]).
    Reference,
}

/// Two splicing proxies, one in place of each gateway.
fn splice_proxy() -> OtherSystem {
    let proxy = |listen: &str, target: &str| {
        format!("exec {{lab}} bench end splice {{{listen}}}:{PORT} {{{target}}}:{PORT}")
    };
    OtherSystem {
        name: "splice-proxy".to_owned(),
        hub: proxy("hub", "server"),
        terminal: proxy("terminal_lan", "hub"),
        clients: Clients::Forwarded,
        files: BTreeMap::new(),
    }
}

/// Runs `cases` of `bench` with every system in turn.
fn run(
    bench: &'static str,
    config: &LoadConfig,
    cases: &[String],
    length: Span,
    mut measure: impl FnMut(&str, System<'_>) -> Result<Figures, LabError>,
    note: &mut dyn FnMut(&str),
) -> Result<BenchReport, LabError> {
    let machine = Machine::here();
    // Each connection has a descriptor at the client and one at the server.
    ends::raise_descriptors(config.connections + MARGIN)?;
    let cases = chosen("case", cases, &config.only)?;
    let splice = splice_proxy();
    let mut systems = vec![
        ("kernel-tcp", System::Network(Carrier::Kernel)),
        (splice.name.as_str(), System::Network(Carrier::Other(&splice))),
    ];
    for other in &config.others {
        systems.push((&other.name, System::Network(Carrier::Other(other))));
    }
    if cfg!(feature = "quinn") && bench == "gateway" {
        systems.push(("quinn", System::Reference));
    }
    systems.push((MAIN, System::Network(Carrier::Gateways)));
    let names: Vec<String> = systems.iter().map(|(name, _)| (*name).to_owned()).collect();
    let names = chosen("system", &names, &config.systems)?;
    systems.retain(|(name, _)| names.iter().any(|chosen| chosen == name));
    let measured = interleave(
        config.runs,
        &cases,
        &systems,
        |number, system| measure(&cases[number], system),
        note,
    );
    let (series, notes) = measured?;
    Ok(BenchReport {
        bench,
        machine,
        debug_build: cfg!(debug_assertions),
        runs: config.runs,
        seconds: length.as_secs_f64(),
        results: series.results(MAIN),
        notes,
    })
}

/// A network with the server of the load.
struct Loaded {
    // Dropped before its host.
    _server: Program,
    network: DirectNetwork,
}

impl Loaded {
    fn start(
        config: &LoadConfig,
        carrier: Carrier<'_>,
        connections: usize,
    ) -> Result<Self, LabError> {
        let direct = DirectConfig { carrier, rate: config.rate, connections };
        let serve = |net: &Satellite, address: SocketAddr| {
            let command = ends::command(&["serve", &address.to_string()])?;
            Ok(Program::start(Some(&net.server), command, "")?)
        };
        let probe = |reach| exchange(reach, HEADER).map(drop);
        let (network, server) = DirectNetwork::new(direct, PORT, serve, probe)?;
        Ok(Self { _server: server, network })
    }
}

/// An error of the load's clients.
fn failed(what: &str) -> impl Fn(io::Error) -> LabError + '_ {
    move |error| LabError::Request(format!("{what}: {error}"))
}

fn wait(span: Span) {
    let clock = Clock::new();
    clock.sleep_until(clock.now() + span);
}
