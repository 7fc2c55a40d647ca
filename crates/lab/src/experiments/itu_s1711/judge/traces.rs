//! Figures of one connection over time: 4, 31, 33, 47 and 48.

use super::super::TRACES;
use super::super::traces::Trace;
use crate::experiments::publication::{Found, Measure, page, that};
use crate::experiments::{Results, Section, Series, Summary};

/// Returns a value of a trace over time.
fn series(results: &Results, trace: Trace, name: &str) -> Vec<(f64, f64)> {
    let values = &results.of(TRACES, trace.key())[0];
    let points = values.series("at_s").iter().copied();
    points.zip(values.series(name).iter().copied()).collect()
}

fn at(points: &[(f64, f64)], second: f64) -> f64 {
    points.iter().find(|(at, _)| *at >= second).map_or(0.0, |(_, value)| *value)
}

/// Returns the time of the first timeout in seconds.
fn timeout(results: &Results, trace: Trace) -> f64 {
    let timeouts = series(results, trace, "timeouts");
    timeouts.iter().find(|(_, count)| *count > 0.0).map_or(0.0, |(at, _)| *at)
}

/// Figure 4.
pub(super) fn window(results: &Results) -> Section {
    let window = series(results, Trace::Window, "window");
    Section {
        figures: vec![WINDOW_PAGE.figure("figure-4", vec![Series::line("window", window)])],
        cells: WINDOW_PAGE.judge(WINDOW_CLAIMS, results),
        ..WINDOW_PAGE.section()
    }
}

/// Figures 31, 33, 47 and 48.
pub(super) fn files(results: &Results) -> Section {
    let of = |trace, name| series(results, trace, name);
    Section {
        figures: vec![
            FILES_PAGE.figure(
                "figures-31-33",
                vec![
                    Series::line("a queue of 100", of(Trace::Bursts, "acknowledged_kb")),
                    Series::line("a queue without end", of(Trace::Queue, "acknowledged_kb")),
                ],
            ),
            FILES_PAGE.figure(
                "figure-47",
                vec![Series::line("acknowledged", of(Trace::File, "acknowledged_kb"))],
            ),
            FILES_PAGE.figure("figure-48", vec![Series::line("window", of(Trace::File, "window"))]),
        ],
        cells: FILES_PAGE.judge(FILES_CLAIMS, results),
        ..FILES_PAGE.section()
    }
}

/// Round trip of figure 4 in seconds.
const TRIP: f64 = 0.52;

page!(WINDOW_PAGE = "itu-s1711/window");

const WINDOW_CLAIMS: &[(&str, Measure)] = &[
    that("slow-start-doubles-the-window", |results| {
        let window = series(results, Trace::Window, "window");
        // The handshake takes the first round trip; acknowledgements arrive at the end of a
        // round trip.
        let [first, last] = [2.5, 5.5].map(|trips| at(&window, trips * TRIP));
        Found::new(format!("{first:.0} to {last:.0} segments")).between(
            Summary::of(&[last / first]),
            7.2,
            8.8,
        )
    }),
    that("a-timeout-sets-the-window-to-one-segment", |results| {
        let when = timeout(results, Trace::Window);
        let [window, threshold] =
            ["window", "threshold"].map(|name| series(results, Trace::Window, name));
        let (after, half) = (at(&window, when), at(&threshold, when));
        // Outstanding data equals the receiver's window.
        let flight = 65_535.0 / 1_460.0;
        Found::new(format!("{after:.0}, and a threshold of {half:.1} of {flight:.1} segments"))
            .below(Summary::of(&[after]), 1.5)
            .between(Summary::of(&[half]), flight / 2.0 - 1.0, flight / 2.0 + 1.0)
    }),
    that("then-slow-start-to-the-threshold-and-a-segment-in-a-round-trip", |results| {
        let when = timeout(results, Trace::Window);
        let [window, threshold] =
            ["window", "threshold"].map(|name| series(results, Trace::Window, name));
        let half = at(&threshold, when);
        let above = window.iter().find(|(at, size)| *at > when && *size > half + 1.0);
        let (from, size) = above.copied().unwrap_or_default();
        let grown = at(&window, from + 10.0 * TRIP) - size;
        Found::new(format!("{grown:.1} segments")).between(Summary::of(&[grown]), 9.0, 11.0)
    }),
    that("time-is-lost-waiting-for-the-timer", |results| {
        let sent = series(results, Trace::Window, "acknowledged_kb");
        let before = at(&sent, 9.9);
        let stood = sent.iter().filter(|(when, all)| *when > 9.9 && *all <= before + 66.0);
        let lost = stood.map(|(when, _)| *when).fold(0.0, f64::max) - 10.0;
        Found::new(format!("{lost:.1} s, of which the link was down for 0.6"))
            .above(Summary::of(&[lost]), 0.6 + TRIP)
    }),
];

page!(FILES_PAGE = "itu-s1711/files");

const FILES_CLAIMS: &[(&str, Measure)] = &[
    that("slow-start-ends-in-losses-within-8-s", |results| {
        let threshold = series(results, Trace::Bursts, "threshold");
        let first = threshold.first().map_or(0.0, |(_, value)| *value);
        let fell = threshold.iter().find(|(_, value)| *value < first);
        let when = fell.map_or(60.0, |(at, _)| *at);
        let sent = series(results, Trace::Bursts, "acknowledged_kb");
        let mbps = (at(&sent, 59.9) - at(&sent, when)) * 8.0 / 1e3 / (59.9 - when);
        Found::new(format!("after {when:.1} s; {mbps:.1} Mbit/s from then on"))
            .below(Summary::of(&[when]), 8.0)
            .below(Summary::of(&[mbps]), 13.5)
    }),
    that("losses-halve-the-window-of-the-file", |results| {
        let window = series(results, Trace::File, "window");
        let flight = 1_500_000.0 / 1_460.0;
        let (before, after) = (at(&window, 37.9).min(flight), at(&window, 41.0));
        Found::new(format!("from {before:.0} to {after:.0} segments")).between(
            Summary::of(&[after / before]),
            0.45,
            0.55,
        )
    }),
];
