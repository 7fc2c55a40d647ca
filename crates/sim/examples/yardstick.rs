//! One long transfer, for profilers: `yardstick [BYTES]`.

fn main() {
    let bytes = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(100_000_000);
    println!("{:?}", sim::scenario::yardstick::transfer(1, bytes));
}
