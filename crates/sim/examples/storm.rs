//! Runs storms: `cargo run -p sim --release --example storm -- SUBJECT FIRST COUNT`, where the
//! subject is `sessions`, `connections`, `links`, `gateways` or `fairness`. Prints each seed with a
//! violation, and totals. (`bentpipe lab fuzz` does the same on all processors.)

use sim::storm::{Subject, Tally, describe, run};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let subject = Subject::ALL.into_iter().find(|one| words.iter().any(|word| word == one.name()));
    let subject = subject.unwrap_or(Subject::Gateways);
    let mut numbers = words.iter().filter_map(|word| word.parse::<u64>().ok());
    let (first, count) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(100));
    let (mut tally, mut broken) = (Tally::default(), 0);
    for seed in first..first + count {
        match std::panic::catch_unwind(|| run(subject, seed)) {
            Err(_) => {
                broken += 1;
                println!("seed {seed}: panicked\n  {}", describe(subject, seed));
            }
            Ok(Ok(report)) => tally.add(&report),
            Ok(Err(damage)) => {
                broken += 1;
                println!("seed {seed}: {damage}\n  {}", describe(subject, seed));
            }
        }
    }
    println!("{tally}\n{count} storms, {broken} with a violation");
    std::process::exit(i32::from(broken > 0));
}
