//! Measures what repair symbols change, under virtual time: short exchanges, pages and downloads on
//! a geostationary link (600 ms, 10 Mbit/s down, 1 Mbit/s up).
//!
//! `cargo run -p sim --example repair --release -- [EXCHANGES] [SHARE] [FILTER]`: how many exchanges
//! (1,000), and the share of the rate for repair symbols in percent (10). `x lossless` is the 99th
//! percentile as a multiple of that without loss and without repair. Rows whose name contains the
//! filter are measured.

use sim::scenario::{Setting, bulk, exchanges, page};
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
    print_pages(share, &filter);
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

/// Prints the duration of ITU-R S.1711's page of 30 objects on six connections, in a session that
/// begins with the page: 40 seeds.
fn print_pages(share: u32, filter: &str) {
    const SEEDS: u64 = 40;
    println!("\n{:24} {:>6} {:>8} {:>8} {:>10}", "page", "repair", "mean s", "p90 s", "x lossless");
    let mut lossless = None;
    for (errors, words) in ERRORS {
        if !errors.contains(filter) && lossless.is_some() {
            continue;
        }
        for percent in [None, Some(share)] {
            let setting = Setting::new("geo", words).repairing(percent);
            let took = (1..=SEEDS).map(|seed| page(&setting.clone().with_seed(seed), 6).took);
            let mut took: Vec<f64> = took.map(Span::as_secs_f64).collect();
            took.sort_by(f64::total_cmp);
            let mean = took.iter().sum::<f64>() / took.len() as f64;
            let factor = mean / *lossless.get_or_insert(mean);
            let p90 = took[took.len() * 9 / 10];
            let repair = percent.map_or("off".into(), |percent| format!("{percent} %"));
            println!("{errors:24} {repair:>6} {mean:8.3} {p90:8.3} {factor:10.3}");
        }
    }
}
