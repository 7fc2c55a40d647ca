//! Table I: latency of web replies, computed from TCP's round trips.

use super::super::ANALYSIS;
use super::super::latency::{self, Model, ORBITS, SEGMENTS, TAKEN, Way, column};
use crate::experiments::publication::{Found, Measure, number, page, that};
use crate::experiments::{Cell, Results, Section, Summary, Table, Verdict};

page!(PAGE = "henderson-katz-1999/reckoned");

const STATISTICS: [&str; 3] = ["least", "median", "mean"];

fn exact(results: &Results, model: &str, name: &str) -> [f64; 3] {
    let values = results.of(ANALYSIS, model)[0].series(name).to_vec();
    [values[0], values[1], values[2]]
}

fn mean(results: &Results, orbit: usize, segment: u64, way: usize) -> f64 {
    exact(results, TAKEN.name, &column(ORBITS[orbit].0, segment, Way::ALL[way]))[2]
}

/// Returns the fraction of the mean latency that option 1, 2 or 3 saves in all four columns, in
/// percent.
fn saved(results: &Results, way: usize) -> [f64; 4] {
    [(0, 1_500), (0, 500), (1, 1_500), (1, 500)].map(|(orbit, segment)| {
        100.0 * (1.0 - mean(results, orbit, segment, way) / mean(results, orbit, segment, 0))
    })
}

fn cells_of(results: &Results, model: &str) -> Vec<Cell> {
    let table = PAGE.claim("table-1");
    // Indexed as `ORBITS`, `SEGMENTS`, `Way::ALL` and `STATISTICS`.
    let published: [[[[f64; 3]; 4]; 2]; 2] = table.values();
    let mut cells = Vec::new();
    for (o, (orbit, _)) in ORBITS.into_iter().enumerate() {
        for (s, segment) in SEGMENTS.into_iter().enumerate() {
            for (w, way) in Way::ALL.into_iter().enumerate() {
                let found = exact(results, model, &column(orbit, segment, way));
                for (index, statistic) in STATISTICS.into_iter().enumerate() {
                    let name = format!("{orbit}, {segment} bytes, {}: {statistic}", way.name());
                    let ours = Summary::exact(found[index]);
                    cells.push(table.cell(name, published[o][s][w][index], ours));
                }
            }
        }
    }
    cells
}

/// Returns the cells, and the agreement of alternative models.
pub(super) fn section(results: &Results) -> Section {
    let mut cells = cells_of(results, TAKEN.name);
    cells.extend(PAGE.judge(CLAIMS, results));
    Section { tables: vec![alternatives(results)], cells, ..PAGE.section() }
}

fn alternatives(results: &Results) -> Table {
    let row = |model: &Model| {
        let cells = cells_of(results, model.name);
        let agree = cells.iter().filter(|cell| cell.verdict == Verdict::Agrees).count();
        let way = |way| {
            let name = column("GEO", 1_500, way);
            format!("{:.2}", exact(results, model.name, &name)[2])
        };
        let [plain, .., both] = Way::ALL.map(way);
        vec![model.about.to_owned(), format!("{agree} of {}", cells.len()), plain, both]
    };
    let models = std::iter::once(&TAKEN).chain(&latency::OTHERS);
    PAGE.table("table-1-rules", models.map(row))
}

fn percents(values: [f64; 4]) -> String {
    let [a, b, c, d] = values;
    format!("GEO {a:.0} and {b:.0} %, LEO {c:.0} and {d:.0} % (1500 and 500 bytes)")
}

fn bursts(bytes: u64, first: u64) -> u64 {
    TAKEN.bursts(bytes.div_ceil(1_460), first)
}

const CLAIMS: &[(&str, Measure)] = &[
    number("a-reply-of-three-segments-geo", |_| {
        Summary::exact(TAKEN.latency(Way::ALL[0], 3, 1_460, 0.6))
    }),
    that("three-segments-what-each-option-saves", |_| {
        let trips = [1, 2, 3].map(|way| TAKEN.latency(Way::ALL[way], 3, 1_460, 0.6) / 0.6);
        let [transactions, large, both] = trips.map(Summary::exact);
        Found::new(format!("{:.1}, {:.1} and {:.1} round trips", trips[0], trips[1], trips[2]))
            .between(transactions, 1.9, 2.1)
            .between(large, 1.9, 2.1)
            .between(both, 0.9, 1.1)
    }),
    that("two-round-trips-at-least", |results| {
        let least = exact(results, TAKEN.name, &column("GEO", 1_500, Way::ALL[0]))[0] / 0.6;
        Found::new(format!("{least:.2}")).between(Summary::exact(least), 1.99, 2.01)
    }),
    that("replies-of-up-to-4-380-bytes-with-4kss", |_| {
        let large = bursts(4_380, 4) as f64;
        let small = [1_500, 4_380].map(|bytes| bursts(bytes, 1) as f64);
        Found::new(format!("{large} burst, instead of {} or {}", small[0], small[1]))
            .below(Summary::exact(large), 1.5)
            .between(Summary::exact(small[1]), 1.5, 3.5)
    }),
    that("many-pages-are-smaller-than-that", |_| {
        let bytes = sim::traffic::mah::quantile(sim::traffic::mah::Size::PrimaryReply, 0.5);
        Found::new(format!("half are up to {bytes} bytes"))
            .below(Summary::exact(bytes as f64), 4_380.0)
    }),
    that("replies-left-out", |results| {
        let of = |segment| {
            results.summary(ANALYSIS, TAKEN.name, &format!("left out/{segment}")).scaled(100.0)
        };
        let [large, small] = SEGMENTS.map(of);
        Found::new(format!("{:.2} % of 1500 bytes, {:.2} % of 500", large.mean, small.mean))
            .between(large, 1.8, 4.4)
            .between(small, 1.8, 4.4)
    }),
    that("one-option-alone-helps-a-little", |results| {
        let [transactions, large, both] = [1, 2, 3].map(|way| saved(results, way));
        let ours = format!("T/TCP: {}; 4KSS: {}", percents(transactions), percents(large));
        let alone = transactions.iter().chain(&large);
        alone.zip(both.iter().chain(&both)).fold(Found::new(ours), |found, (one, both)| {
            found.between(Summary::exact(*one), 0.0, *both)
        })
    }),
    number("both-options-together", |results| {
        Summary::exact(saved(results, 3).iter().sum::<f64>() / 4.0)
    }),
    that("geo-and-leo-alike", |results| {
        let [a, b, c, d] = saved(results, 3);
        Found::new(percents([a, b, c, d])).between(Summary::exact(a - c), -10.0, 10.0).between(
            Summary::exact(b - d),
            -10.0,
            10.0,
        )
    }),
    that("for-leo-it-is-hardly-noticed", |results| {
        let of =
            |orbit, segment| mean(results, orbit, segment, 0) - mean(results, orbit, segment, 3);
        let seconds = [of(0, 1_500), of(0, 500), of(1, 1_500), of(1, 500)];
        let [a, b, c, d] = seconds.map(Summary::exact);
        Found::new(format!(
            "saved s: GEO {:.2} and {:.2}, LEO {:.2} and {:.2}",
            a.mean, b.mean, c.mean, d.mean
        ))
        .above(a, 0.5)
        .above(b, 0.5)
        .below(c, 0.3)
        .below(d, 0.3)
    }),
    that("both-are-much-better-than-either", |results| {
        let [transactions, large, both] = [1, 2, 3].map(|way| saved(results, way));
        let found = Found::new(format!("both: {}", percents(both)));
        (0..2).fold(found, |found, column| {
            let best = transactions[column].max(large[column]);
            found
                .above(Summary::exact(both[column]), 50.0)
                .above(Summary::exact(both[column] - best), 15.0)
        })
    }),
];
