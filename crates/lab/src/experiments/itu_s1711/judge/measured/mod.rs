//! Annex 3, section 2, and annex 1's figures: measurements with and without gateways.

mod single;
mod three;
mod two;

use super::super::SENT;
use super::super::bench::{
    BURSTS, EIGHT_KBYTES, Errors, FIGURE_5, INTERNET_LOSS, MANY, OTHER_ROUND_TRIPS, OTHER_WINDOWS,
    RATES, RATIOS, SESSIONS, SPACES, Space, Trial, VSAT, WINDOWS, Way, figure_5, internet, many,
    other_host, other_space, test_a, test_b, unrounded, usual_hosts, with_udp, without_lines,
};
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Cell, Results, Section, Series, Summary, Table};

fn kbps(results: &Results, trial: Trial) -> Summary {
    results.summary(SENT, &trial.key(), "kbps")
}

/// Returns the ratio of two means less one, in percent.
fn over(results: &Results, first: Trial, second: Trial) -> Summary {
    let [first, second] = [first, second].map(|trial| results.values(SENT, &trial.key(), "kbps"));
    relative_gain(&first, &second).scaled(100.0)
}

/// Returns the UDP goodput on a link of `kbps`: iperf's 1,470 octets with 28 of headers.
fn udp(kbps: f64) -> f64 {
    kbps * 1_470.0 / 1_498.0
}

/// Returns the section on one connection: figures 5, 10, 19 and 20, and the 70 % rule.
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
        figures: vec![
            single::PAGE.figure(
                "figures-10-19-20",
                pairs.map(|(way, round_trip)| by_rate(way, round_trip)).into(),
            ),
            single::PAGE.figure("figure-5", errors.into()),
        ],
        tables: vec![eight_kbytes(results)],
        cells: single::PAGE.judge(single::CLAIMS, results),
        ..single::PAGE.section()
    }
}

/// Returns the table of one connection with possible windows of 8 kbytes.
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
    single::PAGE.table("figure-10-windows", EIGHT_KBYTES.map(row))
}

/// Returns the section on two segments: tables 5 to 12 and figures 13 to 17.
pub(super) fn two_segments(results: &Results) -> Section {
    let mut figures = Vec::new();
    for (id, sessions) in ["figure-13", "figure-14", "figure-15"].into_iter().zip(SESSIONS) {
        let line = |way: Way| {
            let at = |rate| {
                (rate as f64, kbps(results, test_b(way, sessions, rate, Errors::Ratio(1e-8))))
            };
            Series::new(way.name(), VSAT.map(at))
        };
        let series = [Way::Two, Way::Plain].map(line).into();
        figures.push(two::PAGE.figure(id, series));
    }
    let noisy = [1e-7, 1e-6].into_iter().flat_map(|ratio| {
        [Way::Two, Way::Plain].map(|way| {
            let at =
                |rate| (rate as f64, kbps(results, test_b(way, 2, rate, Errors::Ratio(ratio))));
            Series::new(format!("{}, {ratio:e}", way.name()), VSAT.map(at))
        })
    });
    figures.push(two::PAGE.figure("figure-16", noisy.collect()));
    let bursts = [Way::Two, Way::Plain].map(|way| {
        let at = |packets: u32| {
            let errors = Errors::Bursts(1e-6, packets);
            (f64::from(packets), kbps(results, test_b(way, 1, 1_536, errors)))
        };
        Series::new(way.name(), BURSTS.map(at))
    });
    figures.push(two::PAGE.figure("figure-17", bursts.into()));
    let mut cells = two::PAGE.judge(two::CLAIMS, results);
    let single = entries(results).into_iter().chain(table_13(results));
    cells.splice(SHARES.len()..SHARES.len(), single);
    Section { figures, tables: vec![other_hosts(results)], cells, ..two::PAGE.section() }
}

/// Tables whose values are percentages of the UDP throughput: identifier, flows and link rate in
/// kbit/s.
const SHARES: [(&str, u32, u64); 5] = [
    ("table-8", 1, 384),
    ("table-9", 1, 1_536),
    ("table-10", 1, 2_048),
    ("table-11", 4, 1_536),
    ("table-12", 3, 2_048),
];

/// Returns the simulated percentage.
fn share(results: &Results, (_, flows, rate): (&str, u32, u64)) -> Summary {
    kbps(results, test_a(flows, rate)).scaled(100.0 / udp(rate as f64))
}

/// Returns the cells of the entries of tables 8 to 12: stations of one rate, or sums of a station's
/// flows.
fn entries(results: &Results) -> Vec<Cell> {
    let of_table = |(id, flows, rate): (&str, u32, u64)| {
        let claim = two::PAGE.claim(&format!("{id}-entries"));
        let ours = kbps(results, test_a(flows, rate));
        let entries = claim.values::<Vec<f64>>().into_iter().zip(1..);
        let table = id.replace('-', " ");
        let cell =
            |(published, number)| claim.cell(format!("{table}: entry {number}"), published, ours);
        entries.map(cell).collect::<Vec<Cell>>()
    };
    SHARES.into_iter().flat_map(of_table).collect()
}

/// Returns the cells of table 13: TCP and UDP from VSAT-C and VSAT-D.
fn table_13(results: &Results) -> Vec<Cell> {
    let tcp = kbps(results, with_udp());
    let udp = results.summary(SENT, &with_udp().key(), "udp_kbps");
    let both = Summary { mean: tcp.mean + udp.mean, ..tcp };
    let rows = [("tcp", "TCP", tcp), ("udp", "UDP", udp), ("together", "together", both)];
    let cells = rows.into_iter().flat_map(|(id, what, ours)| {
        let claim = two::PAGE.claim(&format!("table-13-{id}"));
        let stations = ["C", "D"].into_iter().zip(claim.values::<[f64; 2]>());
        stations.map(move |(from, published)| {
            claim.cell(format!("table 13, VSAT-{from}: {what}"), published, ours)
        })
    });
    cells.collect()
}

/// Returns the table of one session without a gateway, by unspecified properties of the host.
fn other_hosts(results: &Results) -> Table {
    let row = |window: u64| {
        let at = |round_trip| format!("{:.0}", kbps(results, other_host(window, round_trip)).mean);
        let mut row = vec![window.to_string()];
        row.extend(OTHER_ROUND_TRIPS.map(at));
        row
    };
    two::PAGE.table("figure-13-hosts", OTHER_WINDOWS.map(row))
}

/// Returns the table of what limits a connection to 128 kbit/s.
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
    three::PAGE
        .table("figure-22-lines", vec![row("none", "31", RATIOS[0]), row("1e-5", "10", RATIOS[2])])
}

/// Returns the table of protocols between the gateways.
fn other_spaces(results: &Results) -> Table {
    let row = |space: Space| {
        let mbps = |ratio| format!("{:.1}", kbps(results, other_space(space, ratio)).mean / 1e3);
        vec![space.words(), mbps(RATIOS[0]), mbps(RATIOS[2])]
    };
    three::PAGE.table("figure-24-space", SPACES.map(row))
}

/// Returns the section on three segments: figures 21 to 25.
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
        figures.push(three::PAGE.figure(id, series));
    }
    let lossy = |loss: f64| (loss * 100.0, kbps(results, internet(loss)).scaled(1e-3));
    figures.push(
        three::PAGE
            .figure("figure-25", vec![Series::new("three segments", INTERNET_LOSS.map(lossy))]),
    );
    Section {
        figures,
        tables: vec![other_lines(results), other_spaces(results)],
        cells: three::PAGE.judge(three::CLAIMS, results),
        ..three::PAGE.section()
    }
}
