//! `bentpipe-lab proof`.

use crate::{Outcome, values};
use lab::proof::{ALL, ProofConfig, choose, prove, write};
use std::fmt::Write;
use std::path::PathBuf;

/// Do something bad to real gateways, and find out what is lost
///
/// Each proof builds a network in namespaces of its own, puts a load on two gateways, every byte
/// of which is compared, and does what its name says. Prints a line for each and writes all of
/// it to proofs.json. A promise that is broken is named, and the exit code is 1. `list` instead
/// of a name lists them.
///
/// With the environment variable `BENTPIPE_GATEWAY` the gateways are those of another program, for
/// example of an earlier release.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Which, by name; all of them when none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The short form of each
    #[arg(long)]
    quick: bool,
    /// Connections of the soak; 100000 when not given, 3000 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    connections: Option<u64>,
    /// The seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Where proofs.json goes
    #[arg(long, value_name = "DIR", default_value = super::OUT)]
    out: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    if arguments.names == ["list"] {
        let mut text = String::new();
        for entry in ALL {
            let _ = writeln!(text, "{:<17} {}", entry.name, entry.about);
        }
        return values::print(&text);
    }
    let Arguments { quick, connections, seed, .. } = *arguments;
    let config = ProofConfig { quick, connections, seed };
    let entries = choose(&arguments.names).map_err(|error| error.to_string())?;
    // Before anything starts: a process with threads cannot enter a user namespace.
    testbed::permission::acquire().map_err(|error| error.to_string())?;
    let mut verdicts = Vec::new();
    for entry in entries {
        let verdict = prove(entry, &config);
        values::print(&format!("{}\n", verdict.line()))?;
        verdicts.push(verdict);
        // What is known is written, whatever becomes of the next one.
        let path = arguments.out.join("proofs.json");
        write(&verdicts, &path).map_err(|error| error.to_string())?;
    }
    match verdicts.iter().filter(|verdict| !verdict.passed()).count() {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} proofs failed", verdicts.len())),
    }
}
