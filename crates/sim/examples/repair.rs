//! Measures what repair symbols change, under virtual time: short exchanges and downloads on a
//! geostationary link (600 ms, 10 Mbit/s down, 1 Mbit/s up).
//!
//! `cargo run -p sim --example repair --release -- [EXCHANGES] [SHARE] [FILTER]`: how many exchanges
//! (1,000), and the share of the rate for repair symbols in percent (10). `x lossless` is the 99th
//! percentile as a multiple of that without loss and without repair. Rows whose name contains the
//! filter are measured.

use sim::scenario::{Setting, bulk, exchanges};
use units::Span;

const ERRORS: [(&str, &str); 5] = [
    ("no loss", ""),
    ("0.1 %", "both loss 0.1%"),
    ("1 %", "both loss 1%"),
    ("2 %", "both loss 2%"),
    ("BER 1e-5", "both ber 1e-5"),
];

fn main() {
    let mut args = std::env::args().skip(1);
    let count = args.next().and_then(|word| word.parse().ok()).unwrap_or(1_000);
    let share = args.next().and_then(|word| word.parse().ok()).unwrap_or(10);
    let filter = args.next().unwrap_or_default();
    println!(
        "{:24} {:>6} {:>8} {:>8} {:>10} {:>12} {:>12} {:>8} {:>9}",
        "",
        "repair",
        "median s",
        "p99 s",
        "x lossless",
        "down kbit/s",
        "up kbit/s",
        "symbols",
        "recovered"
    );
    for (size, response) in [("4 KB", 4_000), ("100 KB", 100_000)] {
        let mut lossless = None;
        for (errors, words) in ERRORS {
            let name = format!("{size}, {errors}");
            if !name.contains(&filter) && lossless.is_some() {
                continue;
            }
            for percent in [None, Some(share)] {
                let setting = Setting::new("geo", words).repairing(percent);
                let seen = exchanges(&setting, count, response);
                let [median, p99] = [500, 990].map(|rank| seen.quantile(rank).as_secs_f64());
                let factor = p99 / *lossless.get_or_insert(p99);
                let repair = percent.map_or("off".into(), |percent| format!("{percent} %"));
                let [down, up] = seen.rates_bps.map(|bps| bps / 1e3);
                let [symbols, recovered] = seen.repairs;
                println!(
                    "{name:24} {repair:>6} {median:8.3} {p99:8.3} {factor:10.3} {down:12.1} \
                     {up:12.2} {symbols:8} {recovered:9}"
                );
            }
        }
    }
    println!("\n{:24} {:>6} {:>12} {:>12}", "download of 120 s", "repair", "kbit/s", "up kbit/s");
    for (errors, words) in ERRORS {
        for percent in [None, Some(share)] {
            if !errors.contains(&filter) {
                continue;
            }
            let setting = Setting::new("geo", words).repairing(percent);
            let seen = bulk(&setting, Span::from_secs(120), 1, false);
            let repair = percent.map_or("off".into(), |percent| format!("{percent} %"));
            let (down, up) = (seen.goodput_bps / 1e3, seen.return_bps / 1e3);
            println!("{errors:24} {repair:>6} {down:12.1} {up:12.2}");
        }
    }
}
