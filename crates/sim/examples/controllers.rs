//! Prints the results of each rate control for each case.
//!
//! `cargo run -p sim --release --example controllers -- [PART OF A CASE'S NAME] [SEED]`

use sim::scenario::controllers::{RateControl, all, measure};

fn main() {
    let mut args = std::env::args().skip(1);
    let part = args.next().unwrap_or_default();
    let seed = args.next().and_then(|word| word.parse().ok()).unwrap_or(1);
    let names: Vec<String> =
        RateControl::ALL.iter().map(|way| format!("{:>9}", way.name())).collect();
    println!("{:20}{}", "", names.join(""));
    for case in all().iter().filter(|case| case.key().contains(&part)) {
        let seen = RateControl::ALL.map(|way| measure(case, way, seed, 0));
        let row = |what: &str, of: &dyn Fn(usize) -> f64| {
            let cells: Vec<String> =
                (0..seen.len()).map(|index| format!("{:9.3}", of(index))).collect();
            println!("{what:20}{}", cells.join(""));
        };
        row(&case.key(), &|way| seen[way].value);
        if !part.is_empty() {
            row("  queue, s", &|way| seen[way].queue_s);
            row("  return, kbit/s", &|way| seen[way].return_bps / 1e3);
            let at_speed = |way: usize| seen[way].at_speed.map_or(-1.0, |span| span.as_secs_f64());
            row("  at speed after, s", &at_speed);
        }
    }
}
