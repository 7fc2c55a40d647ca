//! Two links used at once: the sum of their rates, short requests beside a download, and the loss of
//! either link.
//!
//! ```text
//!   client ── terminal ══ geo: 10 Mbit/s, 600 ms ══ hub ── server
//!                      ══ leo:  5 Mbit/s,  50 ms ══
//! ```

use super::load::{Load, LoadConfig};
use super::long::Long;
use super::network::{Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, sleep_ms};
use crate::LabError;
use gateway::{PrivateKey, SystemEntropy};
use rt::Clock;
use std::fs;
use testbed::Satellite;
use testbed::traffic::{self, Way};
use units::Span;

/// Octets of a short response.
const RESPONSE: usize = 4_096;
/// Octets of its request.
const REQUEST: usize = 64;
const PATIENCE: Span = Span::from_secs(10);
/// Seed of the download.
const SEED: u64 = 9_200_001;

/// Two links. The second one has the shorter round trip.
struct Case {
    name: &'static str,
    /// Descriptions for the emulators.
    links: [&'static str; 2],
    /// Keys of each path at the terminal.
    rates: [&'static str; 2],
    /// MTU of the second link.
    mtu: u32,
    /// Rates, Mbit/s.
    mbps: [f64; 2],
}

const GEO_LEO: Case = Case {
    name: "geo_leo",
    links: ["delay 300ms rate 10mbit limit 1bdp", "delay 25ms rate 5mbit limit 2bdp"],
    rates: [
        "rate_up = \"10mbit\"\nrate_down = \"10mbit\"\nround_trip = \"600ms\"",
        "rate_up = \"5mbit\"\nrate_down = \"5mbit\"\nround_trip = \"50ms\"",
    ],
    mtu: 1500,
    mbps: [10.0, 5.0],
};

/// Links of similar delay, with jitter and another MTU, and rates that are not configured.
const LTE_LEO: Case = Case {
    name: "lte_leo",
    links: ["delay 40ms 8ms rate 20mbit limit 2bdp", "delay 10ms rate 20mbit limit 2bdp"],
    rates: ["round_trip = \"80ms\"", "round_trip = \"50ms\""],
    mtu: 1400,
    mbps: [20.0, 20.0],
};

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    if config.quick {
        return both(config, &GEO_LEO, verdict).map(drop);
    }
    for (case, least) in [(&GEO_LEO, Some(0.93)), (&LTE_LEO, None)] {
        let mut requests = Vec::new();
        for (number, path) in ["first", "second"].into_iter().enumerate() {
            let [share, idle, busy] = alone(config, case, number)?;
            verdict.figure(&format!("{}_{path}_alone_share", case.name), share);
            verdict.figure(&format!("{}_{path}_alone_request_s", case.name), idle);
            verdict.figure(&format!("{}_{path}_alone_request_beside_download_s", case.name), busy);
            requests.push(busy);
        }
        let [share, busy] = both(config, case, verdict)?;
        if let Some(least) = least {
            let text = format!("a download has {least} of the sum of the rates");
            verdict.demand(share >= least, &text);
            verdict.demand(
                busy < (requests[0] + requests[1]) / 2.0,
                "short requests beside a download take the link with the shorter round trip",
            );
        }
    }
    Ok(())
}

/// Measures one link alone: the download's share of its rate, and the median time of a short
/// request without and beside it.
fn alone(config: &ProofConfig, case: &Case, number: usize) -> Result<[f64; 3], LabError> {
    let (link, rates) = (case.links[number], case.rates[number]);
    let mut network = TestNetwork::new(&Setup { link, rates, ..Setup::new(config.seed) })?;
    sleep_ms(2_000);
    let idle = request(&network, 20)?;
    let long = Long::start(&network, SEED);
    sleep_ms(15_000);
    let share = long.rate(20_000) / case.mbps[number];
    let busy = request(&network, 20)?;
    network.check()?;
    Ok([share, idle, busy])
}

/// Starts the gateways with bonded paths.
fn bonded(config: &ProofConfig, case: &Case) -> Result<TestNetwork, LabError> {
    let key = PrivateKey::generate(&mut SystemEntropy);
    let [first, second] = case.rates;
    let setup = Setup {
        link: case.links[0],
        // The paths of the terminal use different links.
        rates: "",
        second: Some((case.links[1], case.mtu)),
        terminal_tables: format!(
            "[[path]]\nname = \"one\"\n{first}\n\
             [[path]]\nname = \"two\"\ninterface = \"{}\"\nprivate_key = \"{}\"\n{second}\n",
            Satellite::SECOND_LINK,
            key.to_text()
        ),
        hub_tables: format!(
            "[[terminal]]\nname = \"site/two\"\npublic_key = \"{}\"\n",
            key.public()
        ),
        ..Setup::new(config.seed)
    };
    let mut network = TestNetwork::without_gateways(&setup)?;
    network.reconfigure(Side::Terminal, "[link]\n", "[link]\nbond = true\n");
    network.start_both()?;
    Ok(network)
}

/// Measures both links at once; returns the download's share of the sum of the rates, and the
/// median time of a short request beside it.
fn both(config: &ProofConfig, case: &Case, verdict: &mut Verdict) -> Result<[f64; 2], LabError> {
    let name = case.name;
    let (quick, sum) = (config.quick, case.mbps[0] + case.mbps[1]);
    let mut network = bonded(config, case)?;
    sleep_ms(2_000);
    let idle = request(&network, if quick { 3 } else { 20 })?;
    let before = carried(&network);
    let long = Long::start(&network, SEED);
    sleep_ms(if quick { 4_000 } else { 15_000 });
    let share = long.rate(if quick { 1_000 } else { 20_000 }) / sum;
    let busy = request(&network, if quick { 3 } else { 40 })?;
    let paths: Vec<u64> = carried(&network).iter().zip(before).map(|(now, b)| now - b).collect();
    let used = paths.iter().all(|bytes| *bytes > 100_000);
    verdict.demand(used, &format!("both links carry the download ({name})"));
    if !used {
        Side::BOTH.iter().for_each(|side| verdict.note(network.said(*side)));
    }
    verdict.figure(&format!("{name}_share"), share);
    verdict.figure(&format!("{name}_request_s"), idle);
    verdict.figure(&format!("{name}_request_beside_download_s"), busy);

    let load = Load::start(&network, LoadConfig { workers: 4, ..LoadConfig::new(config.seed) });
    let length = Span::from_millis(if quick { 4_000 } else { 15_000 });
    for (what, pulled) in [("first", 0), ("second", 1), ("second_interface", 2)] {
        match pulled {
            0 => network.outage(length)?,
            1 => network.second_outage(length)?,
            _ => network.net.set_second(false)?,
        }
        let (pause, bytes) = pause(&long, length);
        if pulled == 2 {
            network.net.set_second(true)?;
        }
        verdict.figure(&format!("{name}_{what}_pulled_longest_pause_s"), pause);
        verdict.demand(
            bytes > 0 && pause < length.as_secs_f64(),
            &format!("a running download goes on while the link is away ({name}, {what})"),
        );
        sleep_ms(if quick { 3_000 } else { 15_000 });
        if !quick {
            let share = long.rate(10_000) / sum;
            verdict.figure(&format!("{name}_share_with_load_after_{what}"), share);
        }
        network.check()?;
    }
    long.finish(verdict)?;
    let tally = load.finish(&network);
    verdict.demand(tally.reset == 0, &format!("no connection is lost ({name})"));
    verdict.evaluate(tally);
    network.check()?;
    Ok([share, busy])
}

/// Returns the longest time without an octet for the download within `length`, in seconds, and the
/// octets that it has received meanwhile.
fn pause(long: &Long, length: Span) -> (f64, u64) {
    let clock = Clock::new();
    let (from, first) = (clock.now(), long.bytes());
    let (mut last, mut at, mut longest) = (first, from, Span::ZERO);
    while clock.now().since(from) < length {
        sleep_ms(2);
        let (now, bytes) = (clock.now(), long.bytes());
        if bytes > last {
            (last, at) = (bytes, now);
        }
        longest = longest.max(now.since(at));
    }
    (longest.as_secs_f64(), last - first)
}

/// Returns the median time of so many short requests, in seconds.
fn request(network: &TestNetwork, count: usize) -> Result<f64, LabError> {
    let server = network.server();
    let mut times = Vec::new();
    for _ in 0..count {
        let sizes = (REQUEST, RESPONSE);
        let exchange =
            network.net.client.run(|| traffic::ask(Way::Direct, server, sizes, PATIENCE));
        let failed = || LabError::Proof(format!("a request failed: {:?}", exchange.error));
        times.push(exchange.took.ok_or_else(failed)?.as_secs_f64());
        sleep_ms(200);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[count / 2])
}

/// Returns the octets that the hub has sent on each link.
fn carried(network: &TestNetwork) -> [u64; 2] {
    let table = network.net.hub.run(|| fs::read_to_string("/proc/thread-self/net/dev"));
    let table = table.unwrap_or_default();
    ["sat", Satellite::SECOND_LINK].map(|interface| {
        let lines = table.lines().filter_map(|line| line.split_once(':'));
        let mut own = lines.filter(|(name, _)| name.trim() == interface);
        let sent = own.next().and_then(|(_, numbers)| numbers.split_whitespace().nth(8));
        sent.and_then(|sent| sent.parse().ok()).unwrap_or(0)
    })
}
