//! Runs whole gateways through storms: `cargo run --release -p gateway --features simulation
//! --example storm -- FIRST COUNT`. Prints the seeds in which something did not hold, and a summary.

use gateway::simulation;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let (first, count) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(100));
    let (mut broken, mut connections, mut complete, mut bytes, mut rounds) = (0, 0, 0, 0, 0);
    let mut empty_rounds = 0;
    for seed in first..first.saturating_add(count) {
        let outcome = std::panic::catch_unwind(|| simulation::run(seed));
        match outcome {
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
        "{count} storms, {broken} with a violation; {connections} connections, {complete} complete, \
         {bytes} bytes, {rounds} rounds, at most {empty_rounds} empty ones in 100 ms"
    );
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
