//! What the paper states, and what becomes of it.

pub(super) mod sentences;
pub(super) mod tables;

use super::bench::{FLOWS, MEDIUM, OTHERS, RECOVERIES, SECONDS, TAKEN, Test, test};
use super::{LATER, TESTS, later};
use crate::experiments::publication::judge as sentences_of;
use crate::experiments::{
    Axis, Figure, Outcome, Results, Section, Series, SetUp, Setting, Summary, Table, Verdict,
};

/// Judges all results.
pub(super) fn judge(_: &Setting, results: &Results) -> Outcome {
    let mut cells = tables::cells(results, TAKEN.name);
    cells.extend(sentences_of(sentences::SENTENCES, results));
    let published = Section {
        title: "Initial windows and buffers (section IV)".into(),
        text: vec![
            "One file at a time. The window is half of the buffer, as the paper measured it; what \
             it is over the round trip is the rate until the line is full, and before that slow \
             start doubles the window each round trip."
                .into(),
        ],
        figures: figures(results),
        cells,
        ..Section::default()
    };
    Outcome {
        summary: SUMMARY.map(str::to_owned).into(),
        set_up: set_up(),
        sections: vec![published, left_open(results), left_for_later(results)],
        ..Outcome::default()
    }
}

const SUMMARY: [&str; 3] = [
    "The paper's result stands: over a satellite the buffers decide how fast a long file goes, and \
     the initial window how long a short one takes; both together save seven tenths of the time of \
     2.8 Mbytes. Both are the defaults of today's systems, which scale windows and begin with ten \
     segments.",
    "Two values were fitted: that time is counted from the connection's opening, by the first row \
     of table III, and the router's queue, by the sentence about figure 5. What the paper leaves \
     open besides is varied, and does not change what is faster than what.",
    "A kernel of today opens its window by the bytes that are acknowledged and acknowledges the \
     first segments at once, so its short files are up to a third faster than the paper's with the \
     same initial window; from 128 kbytes of buffer on long ones take as long.",
];

fn set_up() -> Vec<SetUp> {
    let published = SetUp::published;
    let chosen = |name, published, ours: &str, why| SetUp::chosen(name, published, ours, why);
    vec![
        published("line", "2,048 kbit/s, about 250 ms each way, reliable"),
        published("TCP", "NewReno with SACK, slow start by one segment for each acknowledgement"),
        published("initial windows", "1 to 10 segments"),
        chosen(
            "files",
            "100 kbytes, 2.8 and 11 Mbytes",
            "102,400 bytes, 2.8 and 11 times 2^20",
            "kbytes of buffers are 1,024 bytes; then the rows of 64 kbytes in tables IV and V mean \
             a round trip of 505 ms, as given, and 529 with decimal ones",
        ),
        chosen(
            "windows",
            "measured to be 32 kbytes with a buffer of 64",
            "half of the buffer at the receiver, the whole at the sender",
            "what was measured, for the other buffers as well",
        ),
        chosen(
            "segments",
            "",
            "1,500 bytes with IP, timestamps among them: 1,448 of data",
            "Ethernet, and what Linux 2.2 did unless told otherwise",
        ),
        chosen(
            "acknowledgements",
            "after RFC 2581",
            "the first at once, then of every second segment, and after 50 ms",
            "as Linux 2.2 does: its delay is half of the last one and the time between segments, \
             which is tens of milliseconds within a burst; others are among the alternatives",
        ),
        SetUp::fitted(
            "the router's queue",
            "",
            "64 packets",
            "what routers with HDLC on serial lines up to 2,048 kbit/s then kept for one \
             conversation unless told otherwise; with it buffers over 384 kbytes overflow and 384 \
             do not, as published; so it is with 50 packets, and not with 40 or 75 (table of queues)",
        ),
        SetUp::fitted(
            "transmission time",
            "not defined",
            "from the connection's opening until the sender has the last acknowledgement",
            "the application at the sender measures it; with the round trip of the opening all \
             rows of table III are half a second longer (table of alternatives)",
        ),
        chosen(
            "throughput versus time",
            "not defined",
            "bytes so far over time so far",
            "2.8 Mbytes in 49 s at an even rate are 57 kbyte/s, where 26 are published after 5 s",
        ),
        chosen(
            "replications",
            "",
            "one",
            "there is no chance in a single transfer over a clean line",
        ),
    ]
}

fn key(bench: &str, test: Test) -> String {
    format!("{bench}/{}/{}/{}", test.bytes, test.window, test.buffer)
}

fn figures(results: &Results) -> Vec<Figure> {
    let line = |name: String, test: Test| {
        let averages = results.of(TESTS, &key(TAKEN.name, test))[0].series("kbytes_per_s");
        let points = SECONDS.iter().zip(averages).filter(|(_, average)| **average > 0.0);
        Series::new(name, points.map(|(&at, &average)| (at as f64, Summary::of(&[average]))))
    };
    let figure = |id: &str, title: &str, series, note: &str| Figure {
        id: id.into(),
        title: title.into(),
        x: Axis::linear("time (s)"),
        y: Axis::linear("throughput so far (kbyte/s)"),
        series,
        note: note.into(),
    };
    let published =
        Series::dots("published after 5 s", [26.0, 48.0, 35.0, 118.0].map(|y| (5.0, y)));
    let mut figure_6: Vec<Series> = [(1, 64), (6, 64), (1, 320), (6, 320)]
        .map(|(window, buffer)| {
            line(format!("window {window}, {buffer} kbytes"), test(MEDIUM, window, buffer))
        })
        .into();
    figure_6.push(published);
    let by_window = |window| line(format!("window {window}"), test(MEDIUM, window, 64));
    let by_buffer = |window| move |buffer| (window, buffer);
    let of = |(window, buffer)| line(format!("{buffer} kbytes"), test(MEDIUM, window, buffer));
    vec![
        figure(
            "figure-3",
            "Initial windows, 64 kbytes, 2.8 Mbytes (figure 3)",
            [1, 2, 4, 6].map(by_window).into(),
            "",
        ),
        figure(
            "figure-4",
            "Buffers, window 1, 2.8 Mbytes (figure 4)",
            [64, 128, 320, 640].map(by_buffer(1)).map(of).into(),
            "",
        ),
        figure(
            "figure-5",
            "Buffers, window 6, 2.8 Mbytes (figure 5)",
            [64, 128, 192, 256, 320, 384].map(by_buffer(6)).map(of).into(),
            "",
        ),
        figure("figure-6", "Windows and buffers, 2.8 Mbytes (figure 6)", figure_6, ""),
    ]
}

/// How many cells agree with each alternative, and where the router overflows.
fn left_open(results: &Results) -> Section {
    let benches = || std::iter::once(&TAKEN).chain(&OTHERS);
    let share = |cells: &[crate::experiments::Cell], place: &str| {
        let of: Vec<_> = cells.iter().filter(|cell| cell.place == place).collect();
        let agree = of.iter().filter(|cell| cell.verdict == Verdict::Agrees).count();
        format!("{agree} of {}", of.len())
    };
    let places = ["table III", "table IV", "table V", "table VI", "table VII", "table VIII"];
    let rows = benches().map(|bench| {
        let cells = tables::cells(results, bench.name);
        let agree = cells.iter().filter(|cell| cell.verdict == Verdict::Agrees).count();
        let mut row = vec![bench.about.to_owned(), format!("{agree} of {}", cells.len())];
        row.extend(places.map(|place| share(&cells, place)));
        row
    });
    let mut head = vec!["the bench".to_owned(), "cells of all tables".to_owned()];
    head.extend(places.map(str::to_owned));
    let alternatives = Table {
        id: "alternatives".into(),
        title: "What the paper leaves open, varied: cells that agree".into(),
        head,
        rows: rows.collect(),
    };
    let buffers = [256, 320, 384, 448, 512, 640];
    let queues = benches().filter(|bench| bench.name == "taken" || bench.name.starts_with("queue"));
    let rows = queues.map(|bench| {
        let at = |buffer| {
            let key = key(bench.name, test(MEDIUM, 6, buffer));
            let lost = results.summary(TESTS, &key, "overflowed").mean;
            let seconds = results.summary(TESTS, &key, "seconds").mean;
            format!("{lost:.0}; {seconds:.1} s")
        };
        let about =
            if bench.name == "taken" { "a router queue of 64 packets" } else { bench.about };
        let mut row = vec![about.to_owned()];
        row.extend(buffers.map(at));
        row
    });
    let mut head = vec!["the queue".to_owned()];
    head.extend(buffers.map(|buffer| format!("{buffer} kbytes")));
    let queues = Table {
        id: "queues".into(),
        title: "Packets that overflow, and the time, by queue and buffer (window 6, 2.8 Mbytes)"
            .into(),
        head,
        rows: rows.collect(),
    };
    Section {
        title: "What the paper leaves open, varied".into(),
        tables: vec![alternatives, queues],
        ..Section::default()
    }
}

/// Several connections, and other ways to repair losses.
fn left_for_later(results: &Results) -> Section {
    let line = |recovery: &str| {
        let at =
            |flows| (f64::from(flows), results.summary(LATER, &later(recovery, flows), "kbps"));
        Series::new(recovery, FLOWS.map(at))
    };
    let rows = RECOVERIES.iter().flat_map(|(recovery, _)| {
        FLOWS.map(|flows| {
            let of = |name| results.summary(LATER, &later(recovery, flows), name).mean;
            vec![
                (*recovery).to_owned(),
                flows.to_string(),
                format!("{:.0}", of("kbps")),
                format!("{:.0}", of("overflowed")),
                format!("{:.1}", of("timeouts")),
            ]
        })
    });
    Section {
        title: "What section V leaves for later: several connections, other recoveries".into(),
        text: vec![
            "2.8 Mbytes on each of several connections, begun within a second, with a window of 6 \
             and 320 kbytes: kbit/s of all together until the last byte of the last. Nothing was \
             published about these."
                .into(),
        ],
        figures: vec![Figure {
            id: "several".into(),
            title: "Several connections at once, by how they repair losses".into(),
            x: Axis::linear("connections"),
            y: Axis::linear("throughput of all (kbit/s)"),
            series: RECOVERIES.iter().map(|(recovery, _)| line(recovery)).collect(),
            note: "From two connections on their windows do not fit into line and queue together."
                .into(),
        }],
        tables: vec![Table {
            id: "several-losses".into(),
            title: "Several connections, and what they lost".into(),
            head: ["recovery", "connections", "kbit/s", "packets lost", "timeouts"]
                .map(str::to_owned)
                .into(),
            rows: rows.collect(),
        }],
        ..Section::default()
    }
}
