//! Annex 3, section 2, and annex 1's figures: what was measured with and without gateways.

mod single;
mod three;
mod two;

use super::super::SENT;
use super::super::bench::{
    BURSTS, EIGHT_KBYTES, Errors, FIGURE_5, INTERNET_LOSS, MANY, OTHER_ROUND_TRIPS, OTHER_WINDOWS,
    RATES, RATIOS, SESSIONS, SPACES, Space, Trial, VSAT, WINDOWS, Way, figure_5, internet, many,
    other_host, other_space, test_a, test_b, unrounded, usual_hosts, with_udp, without_lines,
};
use crate::experiments::publication::{Numbers, judge};
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Axis, Cell, Criterion, Figure, Results, Section, Series, Summary, Table};

const TENTH: Criterion = Criterion::Within(0.1);

fn kbps(results: &Results, trial: Trial) -> Summary {
    results.summary(SENT, &trial.key(), "kbps")
}

/// First over second, less one, in percent.
fn over(results: &Results, first: Trial, second: Trial) -> Summary {
    let [first, second] = [first, second].map(|trial| results.values(SENT, &trial.key(), "kbps"));
    relative_gain(&first, &second).scaled(100.0)
}

fn figure(id: &str, title: String, x: Axis, y: &str, series: Vec<Series>) -> Figure {
    Figure { id: id.into(), title, x, y: Axis::linear(y), series, note: String::new() }
}

/// The same where lines are orders of magnitude apart.
fn with_log_y(figure: Figure) -> Figure {
    Figure { y: Axis::log(figure.y.label), ..figure }
}

/// What UDP has of a link of `kbps`: iperf's 1,470 bytes with 28 of headers.
fn udp(kbps: f64) -> f64 {
    kbps * 1_470.0 / 1_498.0
}

/// One connection: figures 5, 10, 19 and 20, and the 70 % rule.
pub(super) fn one_connection(results: &Results) -> Section {
    let by_rate = |way: Way, round_trip: u64| {
        let at = |rate| {
            (rate as f64 / 1e3, kbps(results, Trial::one(way, rate, round_trip)).scaled(1e-3))
        };
        Series::new(format!("{}, {round_trip} ms", way.name()), RATES.map(at))
    };
    let pairs = [(Way::Plain, 200), (Way::Plain, 700), (Way::Three, 200), (Way::Three, 700)];
    let errors = WINDOWS.map(|window| {
        let at = |ratio| (ratio, kbps(results, figure_5(window, ratio)).scaled(1e-3));
        Series::new(format!("{window} bytes"), FIGURE_5.map(at))
    });
    Section {
        title: "One connection (figures 5, 10, 19 and 20; the 70 % rule)".into(),
        text: vec![
            "Hosts with windows of 8 kbytes, from end to end, and through two gateways with XSTP \
             at the satellite's rate between them."
                .into(),
        ],
        figures: vec![
            with_log_y(figure(
                "figures-10-19-20",
                "One connection by the link's rate (figures 10, 19 and 20)".into(),
                Axis::log("link (Mbit/s)"),
                "throughput (Mbit/s)",
                pairs.map(|(way, round_trip)| by_rate(way, round_trip)).into(),
            )),
            with_log_y(figure(
                "figure-5",
                "One TCP by errors and window, 10 Mbit/s and 520 ms (figure 5)".into(),
                Axis::log("bit error ratio"),
                "throughput (Mbit/s)",
                errors.into(),
            )),
        ],
        tables: vec![eight_kbytes(results)],
        cells: judge(single::SENTENCES, results),
    }
}

/// One connection with what 8 kbytes may be.
fn eight_kbytes(results: &Results) -> Table {
    let row = |window: u64| {
        let at = |round_trip| format!("{:.1}", kbps(results, unrounded(window, round_trip)).mean);
        let by_equation =
            |round_trip: u64| format!("{:.1}", (window * 8) as f64 / round_trip as f64);
        let mut row = vec![window.to_string()];
        for round_trip in [200, 700] {
            row.extend([by_equation(round_trip), at(round_trip)]);
        }
        row
    };
    let head =
        ["window, bytes", "200 ms: equation 1", "simulated", "700 ms: equation 1", "simulated"];
    Table {
        id: "figure-10-windows".into(),
        title: "One connection without a gateway, kbit/s; 320 and 91 are published".into(),
        head: head.map(str::to_owned).into(),
        rows: EIGHT_KBYTES.map(row).into(),
    }
}

/// Two segments: tables 5 to 12 and figures 13 to 17.
pub(super) fn two_segments(results: &Results) -> Section {
    let mut figures = Vec::new();
    for (id, sessions) in ["figure-13", "figure-14", "figure-15"].into_iter().zip(SESSIONS) {
        let line = |way: Way| {
            let at = |rate| {
                (rate as f64, kbps(results, test_b(way, sessions, rate, Errors::Ratio(1e-8))))
            };
            Series::new(way.name(), VSAT.map(at))
        };
        let title = match sessions {
            1 => format!("One session, 1e-8 ({})", id.replace('-', " ")),
            more => format!("{more} sessions at once, 1e-8 ({})", id.replace('-', " ")),
        };
        let series = [Way::Two, Way::Plain].map(line).into();
        figures.push(figure(
            id,
            title,
            Axis::linear("link (kbit/s)"),
            "throughput of all (kbit/s)",
            series,
        ));
    }
    let noisy = [1e-7, 1e-6].into_iter().flat_map(|ratio| {
        [Way::Two, Way::Plain].map(|way| {
            let at =
                |rate| (rate as f64, kbps(results, test_b(way, 2, rate, Errors::Ratio(ratio))));
            Series::new(format!("{}, {ratio:e}", way.name()), VSAT.map(at))
        })
    });
    figures.push(figure(
        "figure-16",
        "Two sessions under errors (figure 16)".into(),
        Axis::linear("link (kbit/s)"),
        "throughput of all (kbit/s)",
        noisy.collect(),
    ));
    let bursts = [Way::Two, Way::Plain].map(|way| {
        let at = |packets: u32| {
            let errors = Errors::Bursts(1e-6, packets);
            (f64::from(packets), kbps(results, test_b(way, 1, 1_536, errors)))
        };
        Series::new(way.name(), BURSTS.map(at))
    });
    figures.push(figure(
        "figure-17",
        "One session, as many packets lost as at 1e-6 but in bursts (figure 17)".into(),
        Axis::log("packets in a burst"),
        "throughput (kbit/s)",
        bursts.into(),
    ));
    let mut cells = shares(results);
    cells.extend(judge(two::SENTENCES, results));
    Section {
        title: "Two segments (tables 8 to 12, figures 13 to 17)".into(),
        text: vec![
            "A gateway before the satellite, TCP on both sides of it. Shares are of what UDP has \
             on the same link, as in the document's tables."
                .into(),
        ],
        figures,
        tables: vec![other_hosts(results)],
        cells,
    }
}

/// Shares of UDP's throughput: place, flows, link, published.
const SHARES: [(&str, u32, u64, f64); 5] = [
    ("table 8", 1, 384, 96.9),
    ("table 9", 1, 1_536, 95.5),
    ("table 10", 1, 2_048, 97.1),
    ("table 11", 4, 1_536, 93.7),
    ("table 12", 3, 2_048, 98.1),
];

fn shares(results: &Results) -> Vec<Cell> {
    let cell = |(place, flows, rate, published)| {
        let numbers = Numbers {
            place,
            unit: "%",
            criterion: Criterion::Within(0.1),
            why: ["headers, and what the start costs", "the line is not full"],
        };
        let ours = kbps(results, test_a(flows, rate)).scaled(100.0 / udp(rate as f64));
        numbers.cell(format!("{place}: {flows} at {rate} kbit/s, share of UDP"), published, ours)
    };
    let mut cells: Vec<Cell> = SHARES.map(cell).into();
    cells.extend(table_13(results));
    cells
}

/// Table 13: TCP and UDP from VSAT-C and VSAT-D, kbit/s.
const TABLE_13: [(&str, f64, f64); 2] = [("C", 1_241.0, 687.0), ("D", 1_102.0, 841.0)];

fn table_13(results: &Results) -> Vec<Cell> {
    let tcp = kbps(results, with_udp());
    let udp = results.summary(SENT, &with_udp().key(), "udp_kbps");
    let both = Summary { mean: tcp.mean + udp.mean, ..tcp };
    let [first, second] = TABLE_13.map(|(_, tcp, udp)| [tcp, udp, tcp + udp]);
    let mut cells = Vec::new();
    for (from, of_tcp, of_udp) in TABLE_13 {
        let name = |what| format!("table 13, VSAT-{from}: {what}");
        let rows =
            [("TCP", of_tcp, tcp), ("UDP", of_udp, udp), ("together", of_tcp + of_udp, both)];
        for (row, (what, published, ours)) in rows.into_iter().enumerate() {
            // Two stations of one kind measured the same: how far they are apart is the spread.
            let spread = (first[row] - second[row]).abs();
            let numbers = Numbers {
                place: "table 13",
                unit: "kbit/s",
                criterion: Criterion::Absolute(spread.max(published / 10.0)),
                why: [
                    "UDP has its 40 % and TCP what is left; within what the two stations, which \
                     are alike, differ by, or 10 %",
                    "UDP has its 40 % and TCP what is left",
                ],
            };
            cells.push(numbers.cell(name(what), published, ours));
        }
    }
    cells
}

/// One session without a gateway, by what is not given of the host.
fn other_hosts(results: &Results) -> Table {
    let row = |window: u64| {
        let at = |round_trip| format!("{:.0}", kbps(results, other_host(window, round_trip)).mean);
        let mut row = vec![window.to_string()];
        row.extend(OTHER_ROUND_TRIPS.map(at));
        row
    };
    Table {
        id: "figure-13-hosts".into(),
        title: "One session without a gateway at 1,536 kbit/s, kbit/s; 200 are published".into(),
        head: ["window, bytes", "500 ms", "700 ms"].map(str::to_owned).into(),
        rows: OTHER_WINDOWS.map(row).into(),
    }
}

/// What holds a connection to 128 kbit/s.
fn other_lines(results: &Results) -> Table {
    let mbps = |trial| format!("{:.1}", kbps(results, trial).mean / 1e3);
    let row = |name: &str, published: &str, ratio: f64| {
        vec![
            name.to_owned(),
            published.to_owned(),
            mbps(many(Way::Plain, 350, 700, ratio)),
            mbps(usual_hosts(ratio)),
            mbps(without_lines(ratio)),
        ]
    };
    Table {
        id: "figure-22-lines".into(),
        title: "350 connections over 700 ms without gateways, Mbit/s".into(),
        head: [
            "errors",
            "published",
            "each on a line of 128 kbit/s",
            "the same hosts with SACK and acknowledgements after 200 ms",
            "held by windows alone",
        ]
        .map(str::to_owned)
        .into(),
        rows: vec![row("none", "31", RATIOS[0]), row("1e-5", "10", RATIOS[2])],
    }
}

/// What the gateways' own protocol may be.
fn other_spaces(results: &Results) -> Table {
    let row = |space: Space| {
        let mbps = |ratio| format!("{:.1}", kbps(results, other_space(space, ratio)).mean / 1e3);
        vec![space.words(), mbps(RATIOS[0]), mbps(RATIOS[2])]
    };
    Table {
        id: "figure-24-space".into(),
        title: "350 connections over 700 ms through gateways, Mbit/s; 33 are published at 1e-5"
            .into(),
        head: ["between the gateways", "no errors", "1e-5"].map(str::to_owned).into(),
        rows: SPACES.map(row).into(),
    }
}

/// Three segments: figures 21 to 25.
pub(super) fn three_segments(results: &Results) -> Section {
    let mut figures = Vec::new();
    let all = [
        ("figure-21", Way::Plain, 200),
        ("figure-22", Way::Plain, 700),
        ("figure-23", Way::Three, 200),
        ("figure-24", Way::Three, 700),
    ];
    for (id, way, round_trip) in all {
        let line = |ratio: f64| {
            let at = |flows: u32| {
                (f64::from(flows), kbps(results, many(way, flows, round_trip, ratio)).scaled(1e-3))
            };
            let name = if ratio == 0.0 { "no errors".to_owned() } else { format!("{ratio:e}") };
            Series::new(name, MANY.map(at))
        };
        let mut series: Vec<Series> = RATIOS.map(line).into();
        let limit = |flows: u32| (f64::from(flows), f64::from(flows) * 0.128);
        series.push(Series::dashed("128 kbit/s each", MANY.map(limit)));
        let title = format!(
            "Connections of 128 kbit/s, {round_trip} ms, {} ({})",
            way.name(),
            id.replace('-', " ")
        );
        figures.push(figure(
            id,
            title,
            Axis::linear("connections"),
            "throughput of all (Mbit/s)",
            series,
        ));
    }
    let lossy = |loss: f64| (loss * 100.0, kbps(results, internet(loss)).scaled(1e-3));
    figures.push(figure(
        "figure-25",
        "150 connections through gateways, packets lost in the Internet (figure 25)".into(),
        Axis::linear("packets lost in the Internet (%)"),
        "throughput of all (Mbit/s)",
        vec![Series::new("three segments", INTERNET_LOSS.map(lossy))],
    ));
    Section {
        title: "Three segments (figures 21 to 25)".into(),
        text: vec![
            "Many connections of 128 kbit/s over 45 Mbit/s, from end to end and through gateways \
             on both sides of the satellite."
                .into(),
        ],
        figures,
        tables: vec![other_lines(results), other_spaces(results)],
        cells: judge(three::SENTENCES, results),
    }
}
