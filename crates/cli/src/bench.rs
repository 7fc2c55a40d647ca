//! `bentpipe bench`.

use crate::{Outcome, values};
use clap::Subcommand;
use lab::bench::emulator::{CASES, Options};
use lab::bench::{self, BenchConfig, emulator};
use lab::live::Way;
use std::path::PathBuf;
use units::Span;

/// Measure, and print JSON
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Link(Link),
    Emulator(Emulator),
}

/// What plain TCP and the gateways reach over emulated links
///
/// Prints JSON on standard output, and a line for each run on standard error. Measuring
/// everything takes about three quarters of an hour; --only and --quick take less.
#[derive(clap::Args)]
struct Link {
    /// Only scenarios whose name contains this; may be given more than once
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// The ways to measure: cubic, bbr, bentpipe
    #[arg(long, value_name = "WAY", value_delimiter = ',', default_value = "cubic,bbr,bentpipe")]
    ways: Vec<Way>,
    /// How long bulk transfers are measured, from their first byte
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    seconds: Option<Span>,
    /// A third of the time, and accordingly rougher figures
    #[arg(long)]
    quick: bool,
    /// The seed of everything random on the links
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the JSON here instead
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
    /// List the scenarios and stop
    #[arg(long)]
    list: bool,
}

/// Whether the emulator does what the link says, and when
///
/// An independent capture is held against the channel under virtual time. Prints JSON on
/// standard output.
#[derive(clap::Args)]
struct Emulator {
    /// How often to run each load; the report has the medians
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: u32,
    /// How long to load the link each time
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds, default_value = "5")]
    seconds: Span,
    /// Write the JSON here instead
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    match arguments.what {
        What::Link(link) => run_link(link),
        What::Emulator(arguments) => run_emulator(&arguments),
    }
}

fn run_emulator(arguments: &Emulator) -> Outcome {
    values::reserve(&arguments.json)?;
    testbed::permission::acquire().map_err(|error| error.to_string())?;
    let options = Options { repeats: arguments.repeats, length: arguments.seconds };
    let report = emulator::run(CASES, &options, |line| eprintln!("{line}"))
        .map_err(|error| error.to_string())?;
    values::write_json(&arguments.json, &report)
}

fn run_link(link: Link) -> Outcome {
    let Link { only, ways, seconds, quick, seed, json, list } = link;
    let mut config = BenchConfig { only, ways, seed, ..BenchConfig::default() };
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
    values::write_json(&json, &report)
}
