//! Runs gateways through storms: `cargo run -p sim --release --example storm -- FIRST COUNT`.
//! A seed that breaks a promise is printed with what it broke.

use sim::scenario::storm;

fn main() {
    let mut words = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let (first, count) = (words.next().unwrap_or(0), words.next().unwrap_or(100));
    let mut broken = 0;
    for seed in first..first + count {
        match storm(seed) {
            Ok(_) => {}
            Err(damage) => {
                broken += 1;
                println!("seed {seed}: {damage}");
            }
        }
    }
    println!("{count} storms, {broken} broke a promise");
    std::process::exit(i32::from(broken > 0));
}
