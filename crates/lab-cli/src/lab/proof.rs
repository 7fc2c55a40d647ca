//! `bentpipe-lab proof`.

use crate::{Outcome, values};
use lab::proof::{ALL, ProofConfig, choose, prove, write};
use std::fmt::Write;
use std::path::PathBuf;

/// Inject faults into real gateways, and check their guarantees
///
/// Each system test creates a network in its own namespaces, puts a load with verified content on
/// two gateways, and injects the fault that its name states. Prints a line for each test and writes
/// all results to proofs.json. Violated guarantees are named, and the exit code is 1. `list`
/// instead of a name lists the tests.
///
/// The environment variable `BENTPIPE_GATEWAY` selects another gateway program, for example an
/// earlier release.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe lab proof list")]
pub(crate) struct Arguments {
    /// Names of tests; default: all
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Shorter tests
    #[arg(long)]
    quick: bool,
    /// Connections of the soak test; default: 100000, or 3000 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    connections: Option<u64>,
    /// Seed of all random streams
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Folder of proofs.json
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
    // Called first, because a process with threads cannot enter a user namespace.
    testbed::permission::acquire().map_err(|error| error.to_string())?;
    let mut verdicts = Vec::new();
    for entry in entries {
        let verdict = prove(entry, &config);
        values::print(&format!("{}\n", verdict.line()))?;
        verdicts.push(verdict);
        // Results are written after each test, in case the next one fails.
        let path = arguments.out.join("proofs.json");
        write(&verdicts, &path).map_err(|error| error.to_string())?;
    }
    match verdicts.iter().filter(|verdict| !verdict.passed()).count() {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} proofs failed", verdicts.len())),
    }
}
