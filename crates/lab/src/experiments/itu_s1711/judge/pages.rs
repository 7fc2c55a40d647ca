//! Table 22 and figure 53: web pages with three variants of HTTP.

use super::super::PAGES;
use super::super::pages::{Fetch, Variant, WAYS};
use crate::experiments::publication::{Claim, Found, Measure, page, that};
use crate::experiments::{Cell, Figure, Results, Section, Series, Summary, Table};
use sim::traffic::{Http, S1711_PAGES};

page!(PAGE = "itu-s1711/pages");

/// Returns a column of table 22, indexed by page as table 21 and by variant as `WAYS`.
fn published(column: &str) -> [[f64; 3]; 5] {
    PAGE.claim(column).values()
}

fn fetch(page: usize, way: usize, variant: Variant) -> Fetch {
    Fetch { page: S1711_PAGES[page], way: WAYS[way], variant }
}

fn of(results: &Results, fetch: Fetch, name: &str) -> Summary {
    results.summary(PAGES, &fetch.key(), name)
}

fn taken(results: &Results, page: usize, way: usize, name: &str) -> Summary {
    of(results, fetch(page, way, Variant::Taken), name)
}

pub(super) fn section(results: &Results) -> Section {
    let [time, packets, connections] =
        ["time", "packets", "connections"].map(|column| (PAGE.claim(column), published(column)));
    let mut cells: Vec<Cell> = Vec::new();
    for (page, of_page) in S1711_PAGES.into_iter().enumerate() {
        for way in 0..3 {
            let name = |what| format!("{}, {}: {what}", of_page.name, WAYS[way].0);
            let ours = |name| taken(results, page, way, name);
            let cell = |(claim, table): &(&Claim, [[f64; 3]; 5]), what, value| {
                claim.cell(name(what), table[page][way], ours(value))
            };
            cells.push(cell(&time, "time", "seconds"));
            cells.push(cell(&packets, "packets", "packets"));
            cells.push(match WAYS[way].1 {
                // The simulation takes these from the table.
                Http::PerElement { .. } => {
                    connections.0.no_cell(name("connections"), connections.1[page][way])
                }
                Http::Serial | Http::Pipelined | Http::KeepAlive { .. } => {
                    cell(&connections, "connections", "connections")
                }
            });
        }
    }
    cells.extend(throughputs());
    cells.extend(PAGE.judge(CLAIMS, results));
    Section {
        figures: vec![sequence(results)],
        tables: vec![others(results, "time", "seconds"), others(results, "packets", "packets")],
        cells,
        ..PAGE.section()
    }
}

/// Returns the cells of the table's last column: the page's bytes over the published time.
fn throughputs() -> Vec<Cell> {
    let (claim, printed, times) =
        (PAGE.claim("throughput"), published("throughput"), published("time"));
    let mut cells = Vec::new();
    for (page, of_page) in S1711_PAGES.into_iter().enumerate() {
        for (way, (named, _)) in WAYS.into_iter().enumerate().take(3) {
            let ours = Summary::exact(of_page.bytes as f64 / times[page][way]);
            let name = format!("{}, {named}: throughput", of_page.name);
            cells.push(claim.cell(name, printed[page][way], ours));
        }
    }
    cells
}

/// Returns figure 53: the completion time of each element of RBLAB.
fn sequence(results: &Results) -> Figure {
    let line = |way: usize| {
        let values = results.of(PAGES, &fetch(4, way, Variant::Taken).key());
        let done = values[0].series("done_s");
        Series::dots(WAYS[way].0, (1..).zip(done).map(|(number, &at)| (at, f64::from(number))))
    };
    PAGE.figure("figure-53", [0, 1, 2].map(line).into())
}

fn others(results: &Results, column: &str, name: &str) -> Table {
    let digits = if name == "seconds" { 2 } else { 0 };
    let table = published(column);
    let mut rows = Vec::new();
    for (page, of_page) in S1711_PAGES.into_iter().enumerate() {
        for (way, (named, _)) in WAYS.into_iter().enumerate() {
            let value =
                |variant| format!("{:.digits$}", of(results, fetch(page, way, variant), name).mean);
            let printed = table[page].get(way);
            let printed = printed.map_or("–".to_owned(), |value| format!("{value:.digits$}"));
            let mut row = vec![format!("{}, {named}", of_page.name), printed];
            row.extend(Variant::ALL.map(value));
            rows.push(row);
        }
    }
    let head = ["page and way", "published"].into_iter();
    let head = head.chain(Variant::ALL.map(Variant::name)).map(str::to_owned).collect();
    Table { head, ..PAGE.table(&format!("table-22-{name}"), rows) }
}

/// Returns how much less time the second variant takes than the first, in percent, for each page.
fn less(results: &Results, first: usize, second: usize) -> [Summary; 5] {
    [0, 1, 2, 3, 4].map(|page| {
        let key = |way| fetch(page, way, Variant::Taken).key();
        let less = |first: f64, second: f64| 100.0 * (1.0 - second / first);
        results.paired(PAGES, &key(first), &key(second), "seconds", less)
    })
}

fn all_less(results: &Results, first: usize, second: usize) -> Found {
    let all = less(results, first, second);
    let words = all.map(|less| format!("{:.0}", less.mean)).join(", ");
    let found = Found::new(format!("{words} % less"));
    all.into_iter().fold(found, |found, less| found.above(less, 0.0))
}

const CLAIMS: &[(&str, Measure)] = &[
    that("pipelining-is-the-best", |results| all_less(results, 0, 2)),
    that("pipelining-is-better-than-one-after-the-other", |results| all_less(results, 1, 2)),
    that("http-1_0-is-faster-than-serial-http-1_1", |results| all_less(results, 1, 0)),
    that("http-1_0-makes-more-packets", |results| {
        let mut found = Found::new("");
        let mut words = Vec::new();
        for page in 0..5 {
            let packets = [0, 1, 2].map(|way| taken(results, page, way, "packets"));
            let most = packets[1].mean.max(packets[2].mean);
            words.push(format!("{:.0} over {most:.0}", packets[0].mean));
            found = found.above(packets[0], most);
        }
        found.in_words(words.join(", "))
    }),
    that("without-pipelining-a-round-trip-for-each-element", |results| {
        let trips = taken(results, 4, 1, "seconds").scaled(1.0 / 0.54);
        Found::new(format!("{:.1} round trips", trips.mean)).between(trips, 8.1, 9.9)
    }),
];
