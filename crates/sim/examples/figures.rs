//! Measures the guaranteed figures under virtual time and prints them beside their bounds.
//!
//! `cargo run -p sim --example figures --release`, with seeds as arguments (default 1).

use sim::scenario::{Setting, bulk, full_rate_after, outage, page, request};
use sim::traffic::Exchange;
use units::Span;

const MINUTE: Span = Span::from_secs(60);

/// One figure and its bound.
struct Row {
    what: &'static str,
    found: f64,
    bound: Bound,
    unit: &'static str,
    note: String,
}

enum Bound {
    AtLeast(f64),
    Below(f64),
}

impl Row {
    fn holds(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.found >= bound,
            Bound::Below(bound) => self.found < bound,
        }
    }

    fn print(&self) {
        let bound = match self.bound {
            Bound::AtLeast(bound) => format!(">= {bound}"),
            Bound::Below(bound) => format!("< {bound}"),
        };
        let verdict = if self.holds() { "ok  " } else { "MISS" };
        let Self { what, found, unit, note, .. } = self;
        println!("{verdict} {what:58} {found:9.3} {unit:7} {bound:9} {note}");
    }
}

fn main() {
    let given: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let seeds = if given.is_empty() { vec![1] } else { given };
    let mut missed = 0;
    for seed in seeds {
        println!("seed {seed}: geostationary, 600 ms, return 1 Mbit/s, queues of one product");
        let rows = [downloads, hard_downloads, exchanges, outages]
            .map(|part| part(seed))
            .into_iter()
            .flatten()
            .collect::<Vec<_>>();
        rows.iter().for_each(Row::print);
        missed += rows.iter().filter(|row| !row.holds()).count();
    }
    println!("{missed} missed");
}

fn setting(words: &str, seed: u64) -> Setting {
    Setting::new("geo", words).with_seed(seed)
}

/// Goodput and return-link rate of plain downloads.
fn downloads(seed: u64) -> Vec<Row> {
    let cases = [
        ("10 Mbit/s", "", 0.98, 4.0, 1),
        ("10 Mbit/s, 20 connections", "", 0.98, 4.0, 20),
        ("10 Mbit/s, loss 1 %", "loss 1%", 0.98, 10.0, 1),
        ("10 Mbit/s, bit error ratio 1e-5", "ber 1e-5", 0.96, 40.0, 1),
        ("50 Mbit/s", "forward rate 50mbit", 0.98, 4.0, 1),
        ("50 Mbit/s, loss 1 %", "forward rate 50mbit both loss 1%", 0.97, 20.0, 1),
    ];
    let mut rows = Vec::new();
    for (what, words, share, back, connections) in cases {
        let seen = bulk(&setting(words, seed), MINUTE, connections, false);
        rows.push(Row {
            what,
            found: seen.share,
            bound: Bound::AtLeast(share),
            unit: "share",
            note: format!(
                "{:.3} Mbit/s, queue {} at most {}",
                seen.goodput_bps / 1e6,
                seen.standing_queue,
                seen.fullest_queue
            ),
        });
        rows.push(Row {
            what: "  return channel",
            found: seen.return_bps / 1e3,
            bound: Bound::Below(back),
            unit: "kbit/s",
            note: String::new(),
        });
    }
    for (what, words) in [
        ("10 Mbit/s, no rate configured", ""),
        ("10 Mbit/s, no rate configured, timing errors of 0.5 ms", "forward delay 300ms 500us"),
        ("10 Mbit/s, loss 1 %, no rate configured", "loss 1%"),
    ] {
        let setting = setting(words, seed).auto();
        let row = |what, found, bound, unit| Row { what, found, bound, unit, note: String::new() };
        let share = bulk(&setting, MINUTE, 1, false).share;
        rows.push(row(what, share, Bound::AtLeast(0.95), "share"));
        let after = full_rate_after(&setting, MINUTE).unwrap_or(f64::INFINITY);
        rows.push(row("  full rate after", after, Bound::Below(4.0), "trips"));
    }
    rows
}

/// Downloads whose conditions differ from the configuration.
fn hard_downloads(seed: u64) -> Vec<Row> {
    let clean = bulk(&setting("", seed), MINUTE, 1, false).share;
    let jitter = "return delay 300ms 100ms";
    let cases = [
        ("an upload fills the return channel", setting("", seed), true, 0.90),
        (
            "configured 20 % too high",
            setting("", seed).with_configured_percent(120),
            false,
            0.8 * clean,
        ),
        (
            "configured 20 % too low",
            setting("", seed).with_configured_percent(80),
            false,
            0.8 * clean - 0.001,
        ),
        ("100 ms of jitter on the return link", setting(jitter, seed), false, 0.98 * clean),
    ];
    let row = |(what, setting, upload, share): (_, Setting, _, f64)| {
        let seen = bulk(&setting, MINUTE, 1, upload);
        let note = format!(
            "queue {} at most {}, {} dropped; back {:.1} kbit/s, upload {:.0} kbit/s",
            seen.standing_queue,
            seen.fullest_queue,
            seen.queue_drops,
            seen.return_bps / 1e3,
            seen.upload_bps / 1e3
        );
        let bound = Bound::AtLeast((share * 1e3).round() / 1e3);
        Row { what, found: seen.share, bound, unit: "share", note }
    };
    cases.into_iter().map(row).collect()
}

/// Requests and pages, in round trips.
fn exchanges(seed: u64) -> Vec<Row> {
    let setting = setting("", seed);
    let trip = setting.round_trip().as_secs_f64();
    let both = Exchange { request: 4096, response: 4096 };
    let row = |what, took: Span, bound| Row {
        what,
        found: took.as_secs_f64() / trip,
        bound: Bound::Below(bound),
        unit: "trips",
        note: format!("{took}"),
    };
    let mut rows = vec![
        row("request and response of 4 KB, connect included", request(&setting, both, false), 1.15),
        row("  while a download fills the link", request(&setting, both, true), 1.3),
    ];
    for (what, connections, bound) in
        [("page on six connections", 6, 6.3), ("page pipelined on one connection", 1, 2.4)]
    {
        let seen = page(&setting, connections);
        // The first bound excludes transmission time.
        let net = if connections == 1 { seen.took } else { seen.took - seen.transmission };
        rows.push(row(what, net, bound));
    }
    rows
}

/// An outage of 10 s.
fn outages(seed: u64) -> Vec<Row> {
    let cases = [("10 s outage, back at full rate", ""), ("  with loss of 1 %", "loss 1%")];
    let row = |(what, words): (_, &str)| {
        let seen = outage(&setting(words, seed), Span::from_secs(10));
        let note = format!("{} connections lost, complete: {}", seen.lost, seen.complete);
        let kept = seen.lost == 0 && seen.complete;
        let found = if kept { seen.recovered_after } else { f64::INFINITY };
        Row { what, found, bound: Bound::Below(1.6), unit: "trips", note }
    };
    cases.into_iter().map(row).collect()
}
