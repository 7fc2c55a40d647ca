//! The tests live, with the kernel's TCP over the emulator.
//!
//! ```text
//!   client ── terminal ══ emulator ══ hub ── server
//!   buffer and window     2,048 kbit/s      initial window by route,
//!   by socket             250 ms            buffer by sysctl, reno
//! ```
//!
//! A current kernel differs from a TCP of 1999: it counts octets instead of acknowledgements and
//! acknowledges the first segments immediately. Live cells are therefore compared with the
//! simulator's model of the same kernel ([`TODAY`]).

use super::super::{CrossTraffic, Draw, Live, Point, Results, Section, Setting, Values};
use super::bench::{FLOWS, MEDIUM, SECONDS, TAKEN, TODAY, Test, test, tests};
use super::judge::{sentences, tables};
use super::{LATER, TESTS, later, taken};
use crate::LabError;
use crate::experiments::publication::page;
use crate::live::{Hosts, HostsConfig, Way, bytes_by, whole};
use testbed::traffic::{Limits, ReceiveBuffer, Transfer};
use units::{RngStream, Span};

/// Tables III to VIII, and several connections.
pub(super) static LIVE: Live = Live {
    about: "tables III to VIII and several connections with the kernel's reno over the emulator \
            (four minutes)",
    at_once: 4,
    plan,
    judge,
};

page!(PAGE = "marchese-2001/live");

/// Time limit of a transfer.
const PATIENCE: Span = Span::from_secs(400);
const LIMITS: Limits = Limits { after_first_byte: PATIENCE, overall: PATIENCE };

fn plan(_: &Setting) -> Vec<Point> {
    let mut tests = tests();
    // The longest tests start first, so that the others run in parallel.
    tests.sort_by_key(|test| std::cmp::Reverse((test.bytes / test.buffer, test.bytes)));
    let one = |test| {
        let run = move |draw: &Draw| transfer(test, draw).map_err(|error| error.to_string());
        Point::new(TESTS, taken(test), 1, run)
    };
    let mut points: Vec<Point> = tests.into_iter().map(one).collect();
    points.extend(FLOWS.map(|flows| {
        let run = move |draw: &Draw| several(flows, draw).map_err(|error| error.to_string());
        Point::new(LATER, later(TODAY.name, flows), 1, run)
    }));
    points
}

/// Creates the network of a test.
fn hosts(test: Test, seed: u64) -> Result<Hosts, LabError> {
    let buffer = test.buffer * 1_024;
    let bytes = u32::try_from(buffer).unwrap_or(u32::MAX);
    let window = u32::try_from(buffer * TODAY.share / 100).unwrap_or(u32::MAX);
    Hosts::new(&HostsConfig {
        link: TODAY.link(),
        way: Way::Cubic,
        initial_window: Some(test.window),
        send_buffer: Some(buffer),
        receive: Some(ReceiveBuffer { bytes, window }),
        seed,
    })
}

/// Runs one transfer. Its duration is counted as [`super::bench::Bench::run`] does at the sender;
/// at the receiver it is as long from the opening to the last octet.
fn transfer(test: Test, draw: &Draw) -> Result<Values, LabError> {
    let hosts = hosts(test, draw.seed)?;
    let done = hosts.download((1, TODAY.bytes(test)), LIMITS);
    let counted = hosts.close(1..=1)?;
    let opened = whole(&done)?;
    Ok(Values::new()
        .with("seconds", done.ended.saturating_sub(opened).as_secs_f64())
        .with_series("kbytes_per_s", averages(&done, opened))
        .with("retransmissions", counted.retransmissions as f64)
        .with("overflowed", counted.dropped as f64))
}

/// Returns the average throughput from the start to each of [`SECONDS`] in kbyte/s; zero after the
/// end.
fn averages(done: &Transfer, opened: Span) -> Vec<f64> {
    let average = |seconds: u64| {
        let at = opened + Span::from_secs(seconds);
        let bytes = bytes_by(done, at);
        if at > done.ended { 0.0 } else { bytes as f64 / seconds as f64 / 1e3 }
    };
    SECONDS.into_iter().map(average).collect()
}

/// Runs several transfers that start within one second, as [`super::bench::Bench::several`].
fn several(flows: u32, draw: &Draw) -> Result<Values, LabError> {
    let test = test(MEDIUM, 6, 320);
    let hosts = hosts(test, draw.seed)?;
    let mut rng = RngStream::new(draw.seed, draw.run, "marchese-2001: starts");
    let starts: Vec<Span> =
        (0..flows).map(|_| Span::from_nanos((rng.uniform() * 1e9) as u64)).collect();
    let (_, all) = hosts.download_all(&starts, TODAY.bytes(test), LIMITS);
    let counted = hosts.close(1..=u64::from(flows))?;
    all.iter().try_for_each(|one| whole(one).map(drop))?;
    let ends = all.iter().map(|one| one.started + one.ended);
    let (first, last) = (all.iter().map(|one| one.started).min(), ends.max());
    let took = first.zip(last).map_or(Span::ZERO, |(first, last)| last.since(first));
    let bits = 8.0 * f64::from(flows) * TODAY.bytes(test) as f64;
    Ok(Values::new()
        .with("kbps", bits / took.as_secs_f64().max(1e-9) / 1e3)
        .with("retransmissions", counted.retransmissions as f64)
        .with("overflowed", counted.dropped as f64))
}

fn judge(_: &Setting, simulated: &Results, live: &Results) -> CrossTraffic {
    let mut twin = Results::default();
    for test in tests() {
        twin.insert(TESTS, &taken(test), simulated.of(TESTS, &TODAY.key(test)).to_vec());
    }
    let both = tables::cells(&twin, TAKEN.name).into_iter().zip(tables::cells(live, TAKEN.name));
    let mut cells: Vec<_> = both.collect();
    cells.extend(sentences::PAGE.beside(sentences::CLAIMS, &twin, live));
    CrossTraffic { cells, sections: vec![together(simulated, live)] }
}

/// Returns the section on several connections, simulated and live.
fn together(simulated: &Results, live: &Results) -> Section {
    let row = |flows: u32| {
        let key = later(TODAY.name, flows);
        let of = |results: &Results, name| results.summary(LATER, &key, name).mean;
        let [ours, measured] = [simulated, live].map(|results| of(results, "kbps"));
        let lost = [simulated, live].map(|results| format!("{:.0}", of(results, "overflowed")));
        let [ours_lost, lost] = lost;
        let beside = format!("{:+.1} %", 100.0 * (measured / ours - 1.0));
        let (ours, measured) = (format!("{ours:.0}"), format!("{measured:.0}"));
        vec![flows.to_string(), ours, measured, beside, ours_lost, lost]
    };
    Section { tables: vec![PAGE.table("several-live", FLOWS.map(row))], ..PAGE.section() }
}
