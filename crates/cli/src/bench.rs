//! `bentpipe bench`.

use crate::{Outcome, values};
use clap::Subcommand;
use lab::bench::{self, BenchConfig};
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

pub(crate) fn run(arguments: Arguments) -> Outcome {
    match arguments.what {
        What::Link(link) => run_link(link),
    }
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
        for scenario in scenarios {
            println!("{:<16} {}", scenario.name, scenario.about);
        }
        return Ok(());
    }
    testbed::permission::acquire().map_err(|error| error.to_string())?;
    let report =
        bench::link(&config, &mut |run| eprintln!("{run}")).map_err(|error| error.to_string())?;
    values::write_json(&json, &report)
}
