//! XSTP's probing on and off over the links of Elaasar et al. 2003: gains in throughput and
//! overhead.
//!
//! `cargo run -p sim --example probing --release -- [RUNS]`

use satlink::{LinkConfig, profiles};
use sim::transfer::{Transfer, TransferConfig, transfer};
use units::Span;
use xstp::session::SessionConfig;

fn main() {
    let runs = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(5);
    let second = Span::from_secs(1);
    for drop in [0, 5, 10, 20, 30, 40, 50] {
        let link = profiles::elaasar_corruption(second * 10, f64::from(drop) / 100.0);
        row(&format!("corruption 10 s {drop} %"), &link, runs);
    }
    for rate in [1, 5, 10, 15] {
        row(
            &format!("hand-off 0.5 s {rate} %"),
            &profiles::elaasar_handoff(second / 2, rate.into()),
            runs,
        );
    }
    for rate in [1, 5, 10, 15] {
        row(
            &format!("hand-off 1 s {rate} %"),
            &profiles::elaasar_handoff(second, rate.into()),
            runs,
        );
    }
    for rate in [1, 5, 10, 20, 30] {
        row(
            &format!("connected 5 s {rate} %"),
            &profiles::elaasar_connectivity(second * 5, rate.into()),
            runs,
        );
    }
}

fn session(on: bool) -> SessionConfig {
    let mut config = SessionConfig::xstp_2003();
    if !on {
        config.probing = None;
    }
    config
}

fn row(name: &str, link: &LinkConfig, runs: u64) {
    let mut throughput = [0.0; 2];
    let mut overhead = [0.0; 2];
    let mut again = [0.0; 2];
    let mut last = None;
    for (index, on) in [false, true].into_iter().enumerate() {
        for run in 0..runs {
            let seen = once(link, on, run);
            throughput[index] += seen.throughput_bps() / 1e3 / runs as f64;
            overhead[index] +=
                seen.overhead().total() as f64 / seen.size as f64 * 100.0 / runs as f64;
            again[index] +=
                seen.overhead().retransmission as f64 / seen.size as f64 * 100.0 / runs as f64;
            last = Some(seen);
        }
    }
    let gain = (throughput[1] / throughput[0] - 1.0) * 100.0;
    let p = last.expect("a run").source.probing;
    println!(
        "{name:24} off {:8.1} on {:8.1} kbit/s {gain:+6.1} %   overhead {:6.2} {:6.2} % ({:+5.1} %) again {:5.2} {:5.2}   E {} S {} U {} premature {} link {} cong {} slow {} {:.1}s of {:.1}",
        throughput[0],
        throughput[1],
        overhead[0],
        overhead[1],
        (overhead[1] / overhead[0] - 1.0) * 100.0,
        again[0],
        again[1],
        p.early_timeouts,
        p.begun_by_stat,
        p.begun_by_ustat,
        p.premature,
        p.recovered,
        p.congested,
        p.slow_starts,
        p.time.as_secs_f64(),
        last_took(&p, throughput[1]),
    );
}

fn last_took(_: &xstp::session::ProbingStatistics, throughput: f64) -> f64 {
    80_000.0 / throughput
}

fn once(link: &LinkConfig, on: bool, run: u64) -> Transfer {
    let config = TransferConfig {
        source: session(on),
        sink: session(false),
        link: link.clone(),
        size: 10_000_000,
        chunk: 1_000,
        header: 20,
        seed: 1,
        run,
        limit: Span::from_secs(1_000_000),
    };
    transfer(&config).unwrap_or_else(|error| panic!("run {run}: {error}"))
}
