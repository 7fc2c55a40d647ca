//! Measures the guaranteed figures of the controller `steady` and prints them beside their bounds.
//! `cargo run -p sim --example steady --release`, with seeds as arguments (default 1); `trace
//! SECONDS WORDS` prints the variables of one session over time.

use satlink::LinkConfig;
use sim::scenario::controllers::{self, RateControl};
use sim::scenario::single_session::SingleSession;
use units::{BitRate, Instant, Span};
use xstp::session::SessionConfig;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "trace") {
        trace(&words[1..]);
        return;
    }
    let seeds: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    for seed in if seeds.is_empty() { vec![1] } else { seeds } {
        println!("seed {seed}");
        transfers(seed);
        downloads(seed);
        troubles(seed);
    }
}

fn link(words: &str) -> LinkConfig {
    let mut link = satlink::profiles::by_name("geo").expect("a profile");
    satlink::words::apply_link(&mut link, words).expect("right words");
    link
}

fn back() -> SessionConfig {
    SessionConfig::gateway(BitRate::from_mbps(1))
}

fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}

fn known(rate: BitRate) -> SessionConfig {
    SessionConfig { initial_rate: Some(rate), ..SessionConfig::gateway_auto() }
}

fn ceiling(rate: BitRate) -> SessionConfig {
    SessionConfig { max_rate: Some(rate), ..SessionConfig::gateway_auto() }
}

const FAST: &str = "forward rate 250mbit limit 1bdp return rate 3mbit";

fn transfers(seed: u64) {
    let rate = BitRate::from_mbps(250);
    let cases = [
        ("100 MB, 250/3 Mbit/s, cold", "", SessionConfig::gateway_auto(), 5.2),
        ("100 MB, 250/3 Mbit/s, remembered", "", known(rate), 4.3),
        ("100 MB, 250/3 Mbit/s, configured", "", ceiling(rate), 4.3),
        (
            "100 MB, 250/3 Mbit/s, cold, 1 % loss",
            "both loss 1%",
            SessionConfig::gateway_auto(),
            6.3,
        ),
        ("100 MB, 250/3 Mbit/s, remembered, 1 % loss", "both loss 1%", known(rate), 5.4),
        ("100 MB, 250/3 Mbit/s, configured, 1 % loss", "both loss 1%", ceiling(rate), 5.4),
    ];
    for (what, words, config, bound) in cases {
        let link = link(&format!("{FAST} {words}"));
        let mut single_session = SingleSession::new(&link, seed, &config, &back(), 100_000_000);
        let took = single_session.time_for(100_000_000, Span::from_secs(120));
        let took = took.map_or(f64::INFINITY, Span::as_secs_f64);
        let verdict = if took <= bound { "ok  " } else { "MISS" };
        println!("{verdict} {what:50} {took:8.3} s  <= {bound}");
    }
}

fn downloads(seed: u64) {
    for (what, words, bound) in [
        ("10 Mbit/s", "", 0.95),
        ("10 Mbit/s, 1 % loss", "both loss 1%", 0.95),
        ("10 Mbit/s, 5 % loss", "both loss 5%", 0.9),
        ("10 Mbit/s, 20 % loss", "both loss 20%", 0.85),
        ("10 Mbit/s, queue of 0.25", "limit 0.25bdp", 0.95),
        ("10 Mbit/s, queue of 4", "limit 4bdp", 0.95),
        ("10 Mbit/s, queue of 0.25, 1 % loss", "limit 0.25bdp both loss 1%", 0.95),
        ("10 Mbit/s, jitter back", "return delay 300ms 100ms", 0.95),
        ("10 Mbit/s, jitter forward", "forward delay 300ms 20ms", 0.9),
        ("50 Mbit/s, 50 ms", "both delay 25ms rate 50mbit limit 1bdp", 0.95),
        ("64 kbit/s", "forward rate 64kbit limit 4bdp", 0.9),
    ] {
        let config = SessionConfig::gateway_auto();
        let mut single_session = SingleSession::new(&link(words), seed, &config, &back(), 1 << 40);
        let moments = single_session.series(at(61), Span::from_millis(100));
        let start = Instant::ZERO + Span::from_millis(600);
        let share = single_session.utilization(start, start + Span::from_secs(60));
        let queue: f64 =
            moments.iter().map(|m| m.queue.as_secs_f64()).sum::<f64>() / moments.len() as f64;
        let verdict = if share >= bound { "ok  " } else { "MISS" };
        let back = single_session.return_bps(start, at(60)) / 1e3;
        println!(
            "{verdict} {what:50} {share:8.3} share >= {bound}   queue {:.0} ms, back {back:.1} kbit/s",
            queue * 1e3
        );
    }
}

/// Link changes and cross traffic: cases of the comparison of controllers.
fn troubles(seed: u64) {
    for (part, bound) in
        [("blackout", 0.93), ("handoff", 0.93), ("fade", 0.85), ("compete", 0.5), ("own", 0.95)]
    {
        for case in controllers::all().iter().filter(|case| case.key().starts_with(part)) {
            let seen = controllers::measure(case, RateControl::Steady, seed, 0);
            let verdict = if seen.value >= bound { "ok  " } else { "MISS" };
            let (value, queue) = (seen.value, seen.queue_s * 1e3);
            println!(
                "{verdict} {:50} {value:8.3}       >= {bound}   queue {queue:.0} ms",
                case.key()
            );
        }
    }
}

fn trace(words: &[String]) {
    let secs: u64 = words[0].parse().expect("seconds");
    let config = match words.get(2).and_then(|word| word.parse().ok()) {
        Some(mbps) => known(BitRate::from_kbps(mbps)),
        None => SessionConfig::gateway_auto(),
    };
    let mut single_session = SingleSession::new(&link(&words[1]), 1, &config, &back(), 1 << 40);
    // Then pairs: seconds, and the link description from then on.
    for pair in words.get(3..).unwrap_or_default().chunks_exact(2) {
        let when: f64 = pair[0].parse().expect("seconds");
        let words = format!("{} {}", words[1], pair[1]);
        single_session.change_at(Instant::ZERO + Span::from_secs_f64(when), link(&words));
    }
    for moment in single_session.series(at(secs), Span::from_millis(100)) {
        let sender = moment.sender;
        println!(
            "{:7.2} {:10} rate {:9.3} goodput {:9.3} queue {:7.1} seen {:7.1} again {} srtt {:?}",
            moment.at.as_secs_f64(),
            sender.mode,
            sender.rate.map_or(0.0, |rate| rate.as_bps() as f64 / 1e6),
            moment.goodput_bps / 1e6,
            moment.queue.as_secs_f64() * 1e3,
            sender.queuing_delay.map_or(0.0, |queue| queue.as_secs_f64() * 1e3),
            sender.retransmit_queue,
            sender.srtt,
        );
    }
}
