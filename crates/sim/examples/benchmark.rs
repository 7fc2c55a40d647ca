//! Runs the benchmark scenarios for profilers: `benchmark [flows | BYTES]`.

fn main() {
    let word = std::env::args().nth(1);
    let done = match word.as_deref() {
        Some("flows") => sim::scenario::benchmark::flows(1),
        Some(word) => sim::scenario::benchmark::transfer(1, word.parse().unwrap_or(100_000_000)),
        None => sim::scenario::benchmark::transfer(1, 100_000_000),
    };
    println!("{done:?}");
}
