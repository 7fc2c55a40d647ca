//! Memory and descriptors after a large number of connections.
//!
//! Two idle phases are compared, each after a load. A gateway that has just started has not yet
//! touched all pages of its program or allocated the buffers that it keeps. A warm-up of the same
//! load does so; a further increase after the soak is a leak.

use super::load::{Load, LoadConfig};
use super::network::{Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, sleep_ms};
use crate::LabError;
use crate::live::Usage;
use rt::Clock;

/// Connections of a full run, and of its warm-up.
const FULL: (u64, u64) = (100_000, 5_000);
/// Connections of a quick run, and of its warm-up.
const QUICK: (u64, u64) = (3_000, 1_500);
/// Accepted increase of memory.
const ABOVE: f64 = 1.05;

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let (usual, warm_up) = if config.quick { QUICK } else { FULL };
    let connections = config.connections.unwrap_or(usual);
    let setup = Setup {
        link: "delay 5ms rate 150mbit limit 2bdp",
        rates: "rate_up = \"150mbit\"\nrate_down = \"150mbit\"\nround_trip = \"10ms\"",
        ..Setup::new(config.seed)
    };
    let mut network = TestNetwork::new(&setup)?;
    // A gateway detects within ten seconds that it is idle, and releases free memory.
    let rest = if config.quick { 12_000 } else { 30_000 };
    let mut load = LoadConfig { workers: 64, long: 400, ..LoadConfig::new(config.seed) };

    load.most = Some(warm_up);
    let warm = watched(&mut network, load, &mut |_| {})?;
    verdict.demand(warm.wrong + warm.truncated + warm.hung == 0, "nothing is lost in the warm-up");
    sleep_ms(rest);
    let before = usages(&mut network)?;

    load.first = warm_up + 1;
    load.most = Some(connections);
    let clock = Clock::new();
    let from = clock.now();
    let mut highest = [Usage::default(); 2];
    let tally = watched(&mut network, load, &mut |now: [Usage; 2]| {
        for (highest, now) in highest.iter_mut().zip(now) {
            highest.resident = highest.resident.max(now.resident);
            highest.descriptors = highest.descriptors.max(now.descriptors);
        }
    })?;
    let seconds = clock.now().since(from).as_secs_f64();
    verdict.figure("connections_per_s", tally.started as f64 / seconds);
    verdict.demand(tally.reset + tally.refused == 0, "no connection is reset or refused");
    verdict.evaluate(tally);
    sleep_ms(rest);
    let after = usages(&mut network)?;
    for (at, side) in Side::BOTH.into_iter().enumerate() {
        compare(side, before[at], highest[at], after[at], verdict);
    }
    network.check()
}

fn usages(network: &mut TestNetwork) -> Result<[Usage; 2], LabError> {
    Ok([network.usage(Side::Terminal)?, network.usage(Side::Hub)?])
}

/// Runs a load to its end and samples both gateways each second.
fn watched(
    network: &mut TestNetwork,
    config: LoadConfig,
    look: &mut dyn FnMut([Usage; 2]),
) -> Result<super::load::Tally, LabError> {
    let load = Load::start(network, config);
    let mut reported = 0;
    while !load.is_done() {
        sleep_ms(1_000);
        network.check()?;
        look(usages(network)?);
        let so_far = load.so_far().started;
        if so_far / 5_000 > reported {
            reported = so_far / 5_000;
            eprintln!("soak: {so_far} connections");
        }
    }
    Ok(load.finish(network))
}

fn compare(side: Side, before: Usage, highest: Usage, after: Usage, verdict: &mut Verdict) {
    const MB: f64 = 1e6;
    let name = side.name();
    let mut figure = |what: &str, value: f64| verdict.figure(&format!("{name}_{what}"), value);
    figure("rss_before_mb", before.resident as f64 / MB);
    figure("rss_highest_mb", highest.resident as f64 / MB);
    figure("rss_after_mb", after.resident as f64 / MB);
    figure("pss_before_mb", before.proportional as f64 / MB);
    figure("pss_after_mb", after.proportional as f64 / MB);
    figure("anonymous_before_mb", before.anonymous as f64 / MB);
    figure("anonymous_after_mb", after.anonymous as f64 / MB);
    figure("descriptors_before", before.descriptors as f64);
    figure("descriptors_highest", highest.descriptors as f64);
    figure("descriptors_after", after.descriptors as f64);
    figure("cpu_s", after.cpu - before.cpu);
    let share = after.resident as f64 / before.resident as f64;
    figure("rss_after_over_before", share);
    verdict.demand(
        share <= ABOVE,
        &format!("memory of the {name} is within 5 % of what it was before"),
    );
    verdict.demand(
        after.descriptors == before.descriptors,
        &format!("descriptors of the {name} are as many as before"),
    );
}
