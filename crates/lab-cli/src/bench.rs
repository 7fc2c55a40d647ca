//! `bentpipe-lab bench`.

mod load;
pub(crate) mod radio;

use crate::{Outcome, values};
use clap::Subcommand;
use lab::bench::control::{ControlConfig, control};
use lab::bench::emulator::{CASES, Options};
use lab::bench::multi_access::{self, MultiAccessConfig};
use lab::bench::plans::{self, PlansConfig};
use lab::bench::transfer::{self, Interruption, System, TransferConfig};
use lab::bench::{self, BenchConfig, emulator, sim, tcp};
use lab::live::Way;
use std::path::{Path, PathBuf};
use std::process::Command;
use units::{BitRate, Span};

/// Measure, and print JSON
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench link --quick")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Link(Link),
    Gateway(load::Gateway),
    Connect(load::Connect),
    Idle(load::Idle),
    Scale(load::Scale),
    Codec(load::Codec),
    Control(Control),
    Emulator(Emulator),
    MultiAccess(MultiAccess),
    Plans(Plans),
    Sim(Sim),
    Tcp(Tcp),
    Transfer(Transfer),
    Radio(radio::Radio),
    #[command(hide = true, subcommand)]
    End(load::End),
}

/// Goodput and response times of plain TCP and the gateways over emulated links
///
/// Prints JSON on standard output, and a line for each run on standard error. Measuring
/// all scenarios takes about three quarters of an hour; --only and --quick reduce it.
#[derive(clap::Args)]
#[command(
    after_help = "Example: bentpipe bench link --ways bentpipe,bbr --only loss-1 --json loss.json"
)]
struct Link {
    /// Only scenarios whose name contains this; may be given more than once
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// The transports to measure: cubic, bbr, single, bentpipe; unconfigured is bentpipe without a
    /// configured rate, tls and tls-cubic bentpipe with its link over TLS
    #[arg(
        long,
        value_name = "WAY",
        value_delimiter = ',',
        default_value = "cubic,bbr,single,bentpipe,unconfigured"
    )]
    ways: Vec<Way>,
    /// A command file with other systems to measure, besides --ways
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// How often to run each scenario; `results` has the medians
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// How long bulk transfers are measured, from their first byte
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    seconds: Option<Span>,
    /// A third of the time, with less accurate results
    #[arg(long)]
    quick: bool,
    /// Seed of the links' random processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the JSON to this file
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
    /// Print the figures with goals as a table in Markdown; JSON only to the file of --json
    #[arg(long)]
    markdown: bool,
    /// List the scenarios and stop
    #[arg(long)]
    list: bool,
}

/// Congestion controllers on the impairments of satellite links
///
/// Runs the cases of the simulated comparison (the lab's entry `controllers`) over emulated links:
/// gateways with each controller, and the kernel's cubic and bbr without gateways. Several runs are
/// parallel; all of them take about half an hour.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench control --only handoff --json live.json")]
struct Control {
    /// Only cases whose name, study/point, contains this; may be given more than once
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// The controllers to measure: fixed, newreno, probing, steady, cubic, bbr
    #[arg(long, value_name = "WAY", value_delimiter = ',')]
    ways: Vec<String>,
    /// Number of parallel runs
    #[arg(long, value_name = "N", default_value_t = 6)]
    parallel: usize,
    /// A third of the time, with less accurate results
    #[arg(long)]
    quick: bool,
    /// Seed of the links' random processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the JSON to this file
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
}

/// Accuracy of the emulator in packets and time
///
/// Compares an independent capture with the link model under virtual time. Prints JSON on standard
/// output.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench emulator --repeats 1")]
struct Emulator {
    /// Number of runs of each load; the report has the medians
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: u32,
    /// Duration of the load in each run
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds, default_value = "5")]
    seconds: Span,
    /// Write the JSON to this file
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
}

/// Twenty gateways that share a return link by bandwidth on demand, compared with the simulation
///
/// Runs the published star of Mhatre and Rosenberg, scenarios 2 and 3, with real gateways and HTTP
/// over the emulated star, and in the simulator with the same parameters. Prints JSON on standard
/// output, and a comparison on standard error. Takes twice the number of runs times their duration.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench multi-access --runs 1")]
struct MultiAccess {
    /// Duration of each run
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds, default_value = "80")]
    seconds: Span,
    /// Live runs of each scenario
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// The gateways' congestion controller: newreno as in published STP, or steady, fixed, probing
    #[arg(long, value_name = "NAME", default_value = "newreno", value_parser = ["newreno", "steady", "fixed", "probing"])]
    controller: String,
    /// Simulated runs of each scenario
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1000))]
    simulated: u32,
    /// Seed of all random processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the JSON to this file
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
}

/// Sharing of a hub's link among many terminals
///
/// Starts a gateway process for each terminal, the emulator on the loopback interface, and
/// downloads at all terminals. Measures the fairness within a plan, the effect of a flooding
/// terminal on the others, and the response time of urgent requests. Prints JSON on standard
/// output, and the results on standard error.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench plans --terminals 60 --mbps 20 --seconds 20")]
struct Plans {
    /// Number of terminals
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(4..=1000))]
    terminals: u32,
    /// Downloads of each terminal
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    connections: u32,
    /// The forward link, Mbit/s; the return link has a fifth
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1000))]
    mbps: u64,
    /// Duration of each measurement
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds, default_value = "30")]
    seconds: Span,
    /// Seed of the link's random processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the JSON to this file
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
}

/// Processor time and memory of simulated runs, compared with ns-2 if it is installed
///
/// Prints JSON on standard output, and a summary on standard error.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench sim")]
struct Sim {
    /// Number of runs of each case; the report has the medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,
    /// Write the JSON to this file
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
    /// One run in this process: ours or ns2, and the case
    #[arg(long, hide = true, num_args = 2)]
    child: Option<Vec<String>>,
}

/// Transfer times of the simulator's TCP models, compared with the kernel's
///
/// Runs the same transfer over an emulated link with the kernel's reno, cubic and bbr, and over a
/// simulated one. Prints JSON on standard output, and a line for each on standard error.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench tcp --only cubic --repeats 5")]
struct Tcp {
    /// Only transfers whose name contains this; may be given more than once
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Number of runs with the kernel; the report has the medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,
    /// Write the JSON to this file
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
}

/// A folder over a link with three interruptions: `bentpipe send` beside rsync over ssh and scp
///
/// The TCP of rsync and scp has bbr as congestion control. Prints JSON on standard output, and a
/// line for each system on standard error. Needs ssh, rsync, and root.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench transfer --size 200MB --patience 3")]
struct Transfer {
    /// Link description
    #[arg(long, value_name = "LINK", default_value = "delay 300ms rate 50mbit loss 1%")]
    link: String,
    /// Size of the folder
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = values::size)]
    size: u64,
    /// The systems to measure
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "bentpipe,rsync,scp")]
    systems: Vec<System>,
    /// Kill the sender three times instead of three outages of 10 s
    #[arg(long)]
    kill: bool,
    /// Maximum time, as a multiple of the shortest possible
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=100))]
    patience: u32,
    /// Seed of the link's random processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the JSON to this file
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
}

fn run_transfer(arguments: Transfer) -> Outcome {
    let Transfer { link, size, systems, kill, patience, seed, json } = arguments;
    values::reserve(&json)?;
    testbed::permission::acquire().map_err(|error| error.to_string())?;
    let interruption = if kill { Interruption::Kill } else { Interruption::Outage };
    let config = TransferConfig { link, octets: size, systems, interruption, patience, seed };
    let report = transfer::run(&config, |run| eprintln!("{run}")).map_err(|e| e.to_string())?;
    values::write_json(&json, &report)
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    match arguments.what {
        What::Link(link) => run_link(link),
        What::Gateway(arguments) => load::run_gateway(arguments),
        What::Connect(arguments) => load::run_connect(arguments),
        What::Idle(arguments) => load::run_idle(arguments),
        What::Scale(arguments) => load::run_scale(&arguments),
        What::Codec(arguments) => load::run_codec(arguments),
        What::End(end) => load::run_end(&end),
        What::Control(control) => run_control(control),
        What::Emulator(arguments) => run_emulator(&arguments),
        What::MultiAccess(arguments) => run_multi_access(&arguments),
        What::Plans(arguments) => run_plans(&arguments),
        What::Sim(arguments) => run_sim(&arguments),
        What::Tcp(arguments) => run_tcp(&arguments),
        What::Transfer(arguments) => run_transfer(arguments),
        What::Radio(arguments) => radio::run(arguments),
    }
}

fn run_sim(arguments: &Sim) -> Outcome {
    if let Some([side, case]) = arguments.child.as_deref() {
        return values::write_json(Path::new("-"), &sim::child(side, case)?);
    }
    values::reserve(&arguments.json)?;
    let own = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let child = |what: &[&str]| {
        let mut command = Command::new(&own);
        command.args(["bench", "sim", "--child"]).args(what);
        command
    };
    let report = sim::run(arguments.repeats, child, |line| eprintln!("{line}"))?;
    eprint!("{}", sim::text(&report));
    values::write_json(&arguments.json, &report)
}

fn run_tcp(arguments: &Tcp) -> Outcome {
    values::reserve(&arguments.json)?;
    testbed::permission::acquire().map_err(|error| error.to_string())?;
    let report = tcp::run(&arguments.only, arguments.repeats, |line| eprintln!("{line}"))
        .map_err(|error| error.to_string())?;
    values::write_json(&arguments.json, &report)
}

fn run_emulator(arguments: &Emulator) -> Outcome {
    values::reserve(&arguments.json)?;
    testbed::permission::acquire().map_err(|error| error.to_string())?;
    let options = Options { repeats: arguments.repeats, length: arguments.seconds };
    let report = emulator::run(CASES, &options, |line| eprintln!("{line}"))
        .map_err(|error| error.to_string())?;
    values::write_json(&arguments.json, &report)
}

fn run_multi_access(arguments: &MultiAccess) -> Outcome {
    values::reserve(&arguments.json)?;
    testbed::permission::acquire().map_err(|error| error.to_string())?;
    let config = MultiAccessConfig {
        length: arguments.seconds,
        runs: arguments.runs as usize,
        simulated: arguments.simulated as usize,
        controller: arguments.controller.clone(),
        seed: arguments.seed,
    };
    let report = multi_access::run(&config, |line| eprintln!("{line}"))
        .map_err(|error| error.to_string())?;
    values::write_json(&arguments.json, &report)
}

fn run_plans(arguments: &Plans) -> Outcome {
    values::reserve(&arguments.json)?;
    let config = PlansConfig {
        terminals: arguments.terminals as usize,
        connections: arguments.connections as usize,
        rate: BitRate::from_mbps(arguments.mbps),
        length: arguments.seconds,
        seed: arguments.seed,
    };
    let report =
        plans::run(&config, |line| eprintln!("{line}")).map_err(|error| error.to_string())?;
    values::write_json(&arguments.json, &report)
}

fn run_control(arguments: Control) -> Outcome {
    let Control { only, ways, parallel, quick, seed, json } = arguments;
    values::reserve(&json)?;
    testbed::permission::acquire().map_err(|error| error.to_string())?;
    let config = ControlConfig { only, ways, parallel, quick, seed };
    let report = control(&config, &|run| eprintln!("{run}")).map_err(|error| error.to_string())?;
    values::write_json(&json, &report)
}

fn run_link(link: Link) -> Outcome {
    let Link { only, mut ways, against, runs, seconds, quick, seed, json, markdown, list } = link;
    for system in load::others(against.as_deref())? {
        // Ways are copied everywhere; the few of a command file stay as long as the program.
        ways.push(Way::Other(Box::leak(Box::new(system))));
    }
    let mut config = BenchConfig { only, ways, runs, seed, ..BenchConfig::default() };
    if quick {
        config = config.quick();
    }
    if let Some(window) = seconds {
        config.window = window;
    }
    let scenarios = config.scenarios().map_err(|error| error.to_string())?;
    if list {
        return scenarios.iter().try_for_each(|scenario| {
            values::print(&format!("{:<16} {}\n", scenario.name, scenario.about))
        });
    }
    values::reserve(&json)?;
    testbed::permission::acquire().map_err(|error| error.to_string())?;
    let report =
        bench::link(&config, &mut |run| eprintln!("{run}")).map_err(|error| error.to_string())?;
    values::write_report(&json, &report, markdown.then(|| report.markdown()))
}
