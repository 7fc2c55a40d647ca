//! Measures how long a new terminal needs to connect during a flood of Hellos from forged addresses
//! by attackers that know the hub's public key, for a given rate limit of Cookies in kbit/s.
//!
//! ```text
//! cargo run --release -p bentpipe-association --example flood -- 200
//! ```

#[path = "../tests/rig/mod.rs"]
mod rig;

use rig::at;
use rig::flood::{
    Flood, Sources, a_hundred, a_thousand, hellos, hub_with, made_up, one_address, ten_thousand,
};
use units::{BitRate, Span};

const FLOODS: [(&str, Sources); 5] = [
    ("made up", made_up),
    ("one address", one_address),
    ("100 addresses", a_hundred),
    ("1,000 addresses", a_thousand),
    ("10,000 addresses", ten_thousand),
];
/// Hellos per second.
const RATE: u64 = 50_000;

fn main() {
    let kbps = std::env::args().nth(1).and_then(|word| word.parse().ok()).expect("kbit/s");
    println!("| {kbps} kbit/s, flood from | first association after, s: median, most of five |");
    println!("|---|---|");
    for (name, sources) in FLOODS {
        let mut took: Vec<f64> = (1..=5).map(|seed| one(kbps, sources, seed)).collect();
        took.sort_by(f64::total_cmp);
        println!("| {name} | {:.1}, {:.1} |", took[2], took[4]);
    }
}

fn one(kbps: u64, sources: Sources, seed: u64) -> f64 {
    let mut flood = Flood::new(hub_with(BitRate::from_kbps(kbps), seed), sources, RATE, hellos());
    flood.until(at(30_000));
    flood.comes(Span::from_secs(3_600)).map_or(f64::INFINITY, Span::as_secs_f64)
}
