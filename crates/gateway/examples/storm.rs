//! Runs whole gateways through storms: `cargo run --release -p gateway --features simulation
//! --example storm -- FIRST COUNT`. Prints the seeds that broke a promise, and what became of all.

use gateway::simulation;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let (first, count) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(100));
    let (mut broken, mut connections, mut complete, mut bytes, mut rounds) = (0, 0, 0, 0, 0);
    for seed in first..first.saturating_add(count) {
        let outcome = std::panic::catch_unwind(|| simulation::run(seed));
        match outcome {
            Ok(Ok(report)) => {
                connections += report.connections;
                complete += report.complete;
                bytes += report.bytes;
                rounds += report.rounds;
            }
            Ok(Err(damage)) => {
                broken += 1;
                println!("{damage}");
            }
            Err(_) => {
                broken += 1;
                println!("seed {seed}: a panic; {}", simulation::describe(seed));
            }
        }
    }
    println!(
        "{count} storms, {broken} broke a promise; {connections} connections, {complete} complete, \
         {bytes} bytes, {rounds} rounds"
    );
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
