//! What simulators are timed with, for profilers: `yardstick [flows | BYTES]`.

fn main() {
    let word = std::env::args().nth(1);
    let done = match word.as_deref() {
        Some("flows") => sim::scenario::yardstick::flows(1),
        Some(word) => sim::scenario::yardstick::transfer(1, word.parse().unwrap_or(100_000_000)),
        None => sim::scenario::yardstick::transfer(1, 100_000_000),
    };
    println!("{done:?}");
}
