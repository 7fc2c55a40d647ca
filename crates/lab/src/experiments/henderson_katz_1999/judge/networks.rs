//! Table III: commercial networks, and the grids over what the paper does not state of them.

use super::super::networks::{self, Channel, DIRECPC, RICOCHET, WAYS, WITH_RED};
use super::super::{CHANNELS, NETWORKS};
use crate::experiments::publication::{Found, Measure, number, page, that};
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Results, Section, Summary, TOLERANCE, Table};

page!(PAGE = "henderson-katz-1999/networks");

/// What the tables show of a channel: index of the transport, and name of the value.
const SHOWN: [(usize, &str); 5] =
    [(0, "kbps"), (1, "kbps"), (0, "reverse_kbps"), (1, "reverse_kbps"), (0, "queue_s")];
/// Rows of a grid that are shown.
const NEAREST: usize = 8;

fn network(results: &Results, channel: Channel, way: usize, name: &str) -> Summary {
    results.summary(NETWORKS, &channel.key(WAYS[way].0), name)
}

/// A combination of a grid with the values of [`SHOWN`].
struct Row {
    channel: Channel,
    values: [f64; 5],
}

impl Row {
    fn of(results: &Results, channel: Channel) -> Self {
        let value = |(way, name): (usize, &str)| {
            results.summary(CHANNELS, &channel.key(WAYS[way].0), name).mean
        };
        Self { channel, values: SHOWN.map(value) }
    }

    /// Returns the larger relative distance from the published forward numbers.
    fn error(&self, published: [f64; 4]) -> f64 {
        (0..2).map(|way| (self.values[way] / published[way] - 1.0).abs()).fold(0.0, f64::max)
    }

    /// Returns true if the return channel of transport `way` has the published number.
    fn returns(&self, published: [f64; 4], way: usize) -> bool {
        (self.values[2 + way] / published[2 + way] - 1.0).abs() <= TOLERANCE
    }
}

/// Returns a grid from the combination nearest to the published forward numbers to the farthest.
fn grid(results: &Results, channels: Vec<Channel>, published: [f64; 4]) -> Vec<Row> {
    let mut rows: Vec<Row> = channels.into_iter().map(|one| Row::of(results, one)).collect();
    rows.sort_by(|a, b| a.error(published).total_cmp(&b.error(published)));
    rows
}

fn published(network: &str) -> [f64; 4] {
    ["forward-stp", "forward-tcp", "in-return-stp", "in-return-tcp"]
        .map(|what| PAGE.claim(&format!("{network}-{what}")).value())
}

fn table(id: &str, rows: &[Row], published: [f64; 4]) -> Table {
    let line = |row: &Row| {
        let mut line = vec![row.channel.words()];
        line.extend(row.values.map(|value| format!("{value:.2}")));
        line.push(format!("{:.0} %", row.error(published) * 100.0));
        line
    };
    let mut first = vec!["published".to_owned()];
    first.extend(published.map(|value| value.to_string()));
    first.extend([String::new(), String::new()]);
    PAGE.table(id, std::iter::once(first).chain(rows.iter().take(NEAREST).map(line)))
}

/// Table III.
pub(super) fn section(results: &Results) -> Section {
    let taken = |channel: Channel| {
        let value = |(way, name)| format!("{:.2}", network(results, channel, way, name).mean);
        let mut row = vec![channel.name.to_owned(), channel.words()];
        row.extend(SHOWN.map(value));
        row
    };
    let [satellite, radio] = ["direcpc", "ricochet"].map(published);
    let of_satellite = grid(results, networks::grid_of_direcpc(), satellite);
    let of_radio = grid(results, networks::grid_of_ricochet(), radio);
    let near = |rows: &[Row], published| {
        rows.iter().filter(|row| row.error(published) <= TOLERANCE).count()
    };
    let near = [near(&of_satellite, satellite), near(&of_radio, radio)];
    let (near_satellite, near_radio) = (&of_satellite[..near[0]], &of_radio[..near[1]]);
    let both = near_satellite.iter().filter(|row| (0..2).all(|way| row.returns(satellite, way)));
    let better = near_radio.iter().filter(|row| row.values[0] > row.values[1]).count();
    let stats: Vec<&Row> = near_radio.iter().filter(|row| row.returns(radio, 0)).collect();
    let deepest = |rows: &mut dyn Iterator<Item = &Row>| {
        format!("{:.1}", rows.map(|row| row.values[4]).fold(0.0, f64::max))
    };
    let values = [
        ("satellites", of_satellite.len().to_string()),
        ("near-satellites", near[0].to_string()),
        ("both", both.count().to_string()),
        ("nearest", of_satellite[0].channel.words()),
        ("radios", of_radio.len().to_string()),
        ("near-radios", near[1].to_string()),
        ("better", better.to_string()),
        ("stats", stats.len().to_string()),
        ("stats-queue", deepest(&mut stats.iter().copied())),
        ("deepest", deepest(&mut of_radio.iter())),
    ];
    Section {
        tables: vec![
            PAGE.table("table-3-channels", networks::all().map(taken)),
            table("table-3-direcpc", &of_satellite, satellite),
            table("table-3-ricochet", &of_radio, radio),
        ],
        cells: PAGE.judge(CLAIMS, results),
        ..PAGE.section_with(&values)
    }
}

const CLAIMS: &[(&str, Measure)] = &[
    number("direcpc-forward-stp", |results| network(results, DIRECPC, 0, "kbps")),
    number("direcpc-forward-tcp", |results| network(results, DIRECPC, 1, "kbps")),
    number("direcpc-in-return-stp", |results| network(results, DIRECPC, 0, "reverse_kbps")),
    number("direcpc-in-return-tcp", |results| network(results, DIRECPC, 1, "reverse_kbps")),
    number("ricochet-forward-stp", |results| network(results, RICOCHET, 0, "kbps")),
    number("ricochet-forward-tcp", |results| network(results, RICOCHET, 1, "kbps")),
    number("ricochet-in-return-stp", |results| network(results, RICOCHET, 0, "reverse_kbps")),
    number("ricochet-in-return-tcp", |results| network(results, RICOCHET, 1, "reverse_kbps")),
    that("direcpc-stp-is-better-both-ways", |results| {
        let keys = [0, 1].map(|way| DIRECPC.key(WAYS[way].0));
        let of = |name| {
            relative_gain(
                &results.values(NETWORKS, &keys[0], name),
                &results.values(NETWORKS, &keys[1], name),
            )
            .scaled(100.0)
        };
        let [forward, back] = ["kbps", "reverse_kbps"].map(of);
        Found::new(format!("{:+.0} % forward, {:+.0} % in return", forward.mean, back.mean))
            .above(forward, 0.0)
            .below(back, -50.0)
    }),
    that("ricochet-stp-is-better", |results| {
        let keys = [0, 1].map(|way| RICOCHET.key(WAYS[way].0));
        let change = relative_gain(
            &results.values(NETWORKS, &keys[0], "kbps"),
            &results.values(NETWORKS, &keys[1], "kbps"),
        )
        .scaled(100.0);
        Found::new(format!("{:+.1} %", change.mean)).above(change, 0.0)
    }),
    number("queues-of-15-s", |results| network(results, RICOCHET, 0, "queue_s")),
    that("red-would-help-there", |results| {
        let keys = [WITH_RED, RICOCHET].map(|channel| channel.key(WAYS[0].0));
        let of = |name| {
            relative_gain(
                &results.values(NETWORKS, &keys[0], name),
                &results.values(NETWORKS, &keys[1], name),
            )
            .scaled(100.0)
        };
        let [kbps, queue] = ["kbps", "queue_s"].map(of);
        Found::new(format!("queue {:+.0} %, throughput {:+.0} %", queue.mean, kbps.mean))
            .above(kbps, -20.0)
            .below(queue, -50.0)
    }),
];
