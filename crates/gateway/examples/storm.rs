//! Runs whole gateways through storms: `cargo run --release -p gateway --features simulation
//! --example storm -- FIRST COUNT [DEFECT]`. Prints the seeds in which something did not hold, and a
//! summary; with the name of a seeded defect, gateways have it. With `contests` instead of
//! a defect, only the contests among the seeds are run; with `defects`, it prints in how many of the
//! storms each of the seeded defects is found; with `watch`, it prints what gateways show of their
//! peers four times a second, and what they log.

use gateway::simulation::{self, DEFECTS, Report, Violation};
use std::process::ExitCode;
use units::Span;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse::<u64>().ok());
    let (first, count) = (number(0).unwrap_or(0), number(1).unwrap_or(100));
    let last = words.get(2).map(String::as_str);
    let defect = DEFECTS.into_iter().find(|defect| last == Some(&format!("{defect:?}")));
    if last == Some("defects") {
        return print_defects(first, count);
    }
    let run = |seed: u64| match (defect, last) {
        (Some(defect), _) => simulation::with_defect(defect, || simulation::run(seed)),
        (None, Some("watch")) => watch(seed),
        (None, _) => simulation::run(seed),
    };
    let (mut broken, mut connections, mut complete, mut bytes, mut rounds) = (0, 0, 0, 0, 0);
    let mut empty_rounds = 0;
    let seeds = first..first.saturating_add(count);
    let contests_only = last == Some("contests");
    let seeds = seeds.filter(|seed| !contests_only || simulation::is_contest(*seed));
    let mut storms = 0;
    for seed in seeds {
        storms += 1;
        match std::panic::catch_unwind(|| run(seed)) {
            Ok(Ok(report)) => {
                connections += report.connections;
                complete += report.complete;
                bytes += report.bytes;
                rounds += report.rounds;
                empty_rounds = empty_rounds.max(report.empty_rounds);
            }
            Ok(Err(violation)) => {
                broken += 1;
                println!("{violation}");
            }
            Err(_) => {
                broken += 1;
                println!("seed {seed}: a panic; {}", simulation::describe(seed));
            }
        }
    }
    println!(
        "{storms} storms, {broken} with a violation; {connections} connections, {complete} complete, \
         {bytes} bytes, {rounds} rounds, at most {empty_rounds} in a row with nothing to do"
    );
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints in how many storms something does not hold when gateways have each of the defects; fails
/// if one of them is found in none.
fn print_defects(first: u64, count: u64) -> ExitCode {
    let mut all_found = true;
    // A defect may be found by an assertion.
    std::panic::set_hook(Box::new(|_| ()));
    for defect in DEFECTS {
        let finds = |seed: &u64| {
            let run = || simulation::with_defect(defect, || simulation::run(*seed));
            !matches!(std::panic::catch_unwind(run), Ok(Ok(_)))
        };
        let found: Vec<u64> = (first..first.saturating_add(count)).filter(finds).collect();
        println!("{defect:?}: in {} of {count}, first in {:?}", found.len(), found.first());
        all_found &= !found.is_empty();
    }
    if all_found { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn watch(seed: u64) -> Result<Report, Violation> {
    tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).without_time().init();
    simulation::watch(seed, Span::from_millis(250), |now, node, status| {
        println!("{now:?} {node} {status}");
    })
}
