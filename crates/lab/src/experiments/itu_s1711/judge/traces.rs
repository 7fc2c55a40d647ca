//! Figures that show one connection over time: 4, 31, 33, 47 and 48.

use super::super::TRACES;
use super::super::traces::Trace;
use crate::experiments::publication::{Found, Sentence, judge, that};
use crate::experiments::{Axis, Figure, Results, Section, Series, Summary};

/// A value of a trace by time.
fn series(results: &Results, trace: Trace, name: &str) -> Vec<(f64, f64)> {
    let values = &results.of(TRACES, trace.key())[0];
    let points = values.series("at_s").iter().copied();
    points.zip(values.series(name).iter().copied()).collect()
}

fn at(points: &[(f64, f64)], second: f64) -> f64 {
    points.iter().find(|(at, _)| *at >= second).map_or(0.0, |(_, value)| *value)
}

/// When the first timeout is seen.
fn timeout(results: &Results, trace: Trace) -> f64 {
    let timeouts = series(results, trace, "timeouts");
    timeouts.iter().find(|(_, count)| *count > 0.0).map_or(0.0, |(at, _)| *at)
}

fn figure(id: &str, title: &str, y: &str, series: Vec<Series>) -> Figure {
    Figure {
        id: id.into(),
        title: title.into(),
        x: Axis::linear("time (s)"),
        y: Axis::linear(y),
        series,
        note: String::new(),
    }
}

/// Figure 4.
pub(super) fn window(results: &Results) -> Section {
    let window = series(results, Trace::Window, "window");
    Section {
        title: "The window over time (figure 4)".into(),
        text: vec![
            "Reno as annex 1 describes it, with clocks of 500 ms and a largest window of 64 \
             kbytes, over 10 Mbit/s and 520 ms. After ten seconds the link is down for 0.6 s, so \
             that a whole window is lost."
                .into(),
        ],
        figures: vec![figure(
            "figure-4",
            "The congestion window of one TCP (figure 4)",
            "window (segments)",
            vec![Series::line("window", window)],
        )],
        cells: judge(WINDOW, results),
        ..Section::default()
    }
}

/// Figures 31, 33, 47 and 48.
pub(super) fn files(results: &Results) -> Section {
    let of = |trace, name| series(results, trace, name);
    Section {
        title: "Connections over time (figures 31, 33, 47 and 48)".into(),
        text: vec![
            "Behind 500 Mbit/s with a window of 6,374 packets, into a queue of 100 packets (figure \
             31) and into one without end (figure 33); and a file with a socket of 1 Mbyte that \
             loses 2 % of its packets for a round trip after 38 s (figures 47 and 48)."
                .into(),
        ],
        figures: vec![
            figure(
                "figures-31-33",
                "What is acknowledged, behind 500 Mbit/s (figures 31 and 33)",
                "acknowledged (kbytes)",
                vec![
                    Series::line("a queue of 100", of(Trace::Bursts, "acknowledged_kb")),
                    Series::line("a queue without end", of(Trace::Queue, "acknowledged_kb")),
                ],
            ),
            figure(
                "figure-47",
                "A file with a socket of 1 Mbyte (figure 47)",
                "acknowledged (kbytes)",
                vec![Series::line("acknowledged", of(Trace::File, "acknowledged_kb"))],
            ),
            figure(
                "figure-48",
                "Its congestion window (figure 48)",
                "window (segments)",
                vec![Series::line("window", of(Trace::File, "window"))],
            ),
        ],
        cells: judge(FILES, results),
        ..Section::default()
    }
}

const FIGURE_4: &str = "annex 1, section 3.2, figure 4";
const FIGURES_47: &str = "annex 3, section 5.2, figures 47 and 48";
/// The round trip of figure 4, s.
const TRIP: f64 = 0.52;

const WINDOW: &[Sentence] = &[
    that(
        "slow start doubles the window",
        FIGURE_4,
        (
            "in slow start the window grows by a segment with each acknowledgement",
            "from the second to the fifth round trip the window grows eightfold, within 10 %",
        ),
        |results| {
            let window = series(results, Trace::Window, "window");
            // The handshake takes the first round trip; acknowledgements are there at its end.
            let [first, last] = [2.5, 5.5].map(|trips| at(&window, trips * TRIP));
            Found::new(format!("{first:.0} to {last:.0} segments")).between(
                Summary::of(&[last / first]),
                7.2,
                8.8,
            )
        },
        ["twice as many in each round trip", ""],
    ),
    that(
        "a timeout sets the window to one segment",
        FIGURE_4,
        (
            "when the timer expires the window is one segment, and the threshold half of what it was",
            "right after the timeout, within a segment",
        ),
        |results| {
            let when = timeout(results, Trace::Window);
            let [window, threshold] =
                ["window", "threshold"].map(|name| series(results, Trace::Window, name));
            let (after, half) = (at(&window, when), at(&threshold, when));
            // What was under way: the receiver's window.
            let flight = 65_535.0 / 1_460.0;
            Found::new(format!("{after:.0}, and a threshold of {half:.1} of {flight:.1} segments"))
                .below(Summary::of(&[after]), 1.5)
                .between(Summary::of(&[half]), flight / 2.0 - 1.0, flight / 2.0 + 1.0)
        },
        ["RFC 2001's rules, as the text gives them", ""],
    ),
    that(
        "then slow start to the threshold, and a segment in a round trip",
        FIGURE_4,
        (
            "slow start goes to the threshold, and congestion avoidance on by a segment in a round trip",
            "ten round trips above the threshold add ten segments, within 10 %",
        ),
        |results| {
            let when = timeout(results, Trace::Window);
            let [window, threshold] =
                ["window", "threshold"].map(|name| series(results, Trace::Window, name));
            let half = at(&threshold, when);
            let above = window.iter().find(|(at, size)| *at > when && *size > half + 1.0);
            let (from, size) = above.copied().unwrap_or_default();
            let grown = at(&window, from + 10.0 * TRIP) - size;
            Found::new(format!("{grown:.1} segments")).between(Summary::of(&[grown]), 9.0, 11.0)
        },
        ["1/cwnd of a segment with each acknowledgement", ""],
    ),
    that(
        "time is lost waiting for the timer",
        "annex 1, section 3.3, figure 4",
        (
            "with a clock of 500 ms the connection loses time waiting for the timeout, while nothing is sent",
            "nothing new is acknowledged for longer than the link was down and a round trip",
        ),
        |results| {
            let sent = series(results, Trace::Window, "acknowledged_kb");
            let before = at(&sent, 9.9);
            let stood = sent.iter().filter(|(when, all)| *when > 9.9 && *all <= before + 66.0);
            let lost = stood.map(|(when, _)| *when).fold(0.0, f64::max) - 10.0;
            Found::new(format!("{lost:.1} s, of which the link was down for 0.6"))
                .above(Summary::of(&[lost]), 0.6 + TRIP)
        },
        ["the timer is at least a round trip and a step of the clock", ""],
    ),
];

const FILES: &[Sentence] = &[
    that(
        "slow start ends in losses within 8 s",
        "annex 3, section 3.3, figure 31",
        (
            "in the first 8 s there is slow start, then packets are lost in the router's queue",
            "the first loss is found within 8 s, and less than a tenth of the line is used after it",
        ),
        |results| {
            let threshold = series(results, Trace::Bursts, "threshold");
            let first = threshold.first().map_or(0.0, |(_, value)| *value);
            let fell = threshold.iter().find(|(_, value)| *value < first);
            let when = fell.map_or(60.0, |(at, _)| *at);
            let sent = series(results, Trace::Bursts, "acknowledged_kb");
            let mbps = (at(&sent, 59.9) - at(&sent, when)) * 8.0 / 1e3 / (59.9 - when);
            Found::new(format!("after {when:.1} s; {mbps:.1} Mbit/s from then on"))
                .below(Summary::of(&[when]), 8.0)
                .below(Summary::of(&[mbps]), 13.5)
        },
        [
            "a burst of some hundred packets overflows the queue",
            "ours repairs by SACK and goes on; theirs stood still until 27 s",
        ],
    ),
    that(
        "losses halve the window of the file",
        FIGURES_47,
        (
            "losses after 38 s reduce the window to half, and the throughput with it",
            "the window after them is at most 60 % of the one before",
        ),
        |results| {
            let window = series(results, Trace::File, "window");
            let flight = 1_500_000.0 / 1_460.0;
            let (before, after) = (at(&window, 37.9).min(flight), at(&window, 41.0));
            Found::new(format!("from {before:.0} to {after:.0} segments"))
                .below(Summary::of(&[after / before]), 0.6)
        },
        ["TCP takes losses for congestion", ""],
    ),
];
