//! Measures how a download recovers from outages, under virtual time.
//!
//! `cargo run -p sim --example outages --release`. Each row is a link, the gateways' configuration of
//! its rate, and an outage; the columns are the times from the end of the outage to (a) the first
//! packet at the terminal, (b) the first byte that the client receives in order, and (c) the start
//! of the first second at 80 % of the achievable goodput. Arguments select rows: a row is measured
//! if its name contains each of them.

use satlink::Direction;
use sim::scenario::{Setting, recovery};
use units::Span;

fn main() {
    let filters: Vec<String> = std::env::args().skip(1).collect();
    println!("{:44} {:>8} {:>8} {:>8}", "600 ms", "(a) s", "(b) s", "(c) s");
    let mut latest: f64 = 0.0;
    for (name, setting, length, direction) in cases() {
        if !filters.iter().all(|filter| name.contains(filter.as_str())) {
            continue;
        }
        let seen = recovery(&setting, length, direction);
        let seconds = |time: Option<Span>| time.map_or(f64::INFINITY, Span::as_secs_f64);
        let [heard, in_order, full] = [seen.heard, seen.in_order, seen.full_second].map(seconds);
        println!("{name:44} {heard:8.2} {in_order:8.2} {full:8.2}");
        latest = latest.max(full);
    }
    println!("latest full second: {latest:.2} s");
}

fn cases() -> Vec<(String, Setting, Span, Option<Direction>)> {
    let mut cases = Vec::new();
    for rate in [10, 50] {
        for loss in ["", " loss 1%"] {
            let words = format!("forward rate {rate}mbit both{loss}");
            let words = if loss.is_empty() { format!("forward rate {rate}mbit") } else { words };
            let configured = Setting::new("geo", &words);
            for (configuration, setting) in
                [("rate configured", configured.clone()), ("no rate configured", configured.auto())]
            {
                for direction in [None, Some(Direction::Forward), Some(Direction::Return)] {
                    let direction_name = match direction {
                        None => "both",
                        Some(Direction::Forward) => "forward",
                        Some(Direction::Return) => "return",
                    };
                    for seconds in [1, 2, 5, 10, 30, 60] {
                        let name = format!(
                            "{rate} Mbit/s{loss}, {configuration}, {direction_name} {seconds} s"
                        );
                        let length = Span::from_secs(seconds);
                        cases.push((name, setting.clone(), length, direction));
                    }
                }
            }
        }
    }
    cases
}
