//! The measured column of table I, table II, and low-rate return channels.

use super::super::WEB;
use super::super::latency::{ORBITS, SEGMENTS, Way};
use super::super::web::{self, Web};
use crate::experiments::publication::{Claim, Found, Measure, page, that};
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Cell, Results, Section, Summary, Table};

page!(PAGE = "henderson-katz-1999/replies");

/// Returns the measured column in seconds, indexed as `ORBITS`, `SEGMENTS` and `Way::ALL`.
fn measured() -> [[[f64; 4]; 2]; 2] {
    PAGE.claim("table-1").values()
}

fn of(results: &Results, web: Web, name: &str) -> Summary {
    results.summary(WEB, &web.key(), name)
}

fn of_table_2(index: usize) -> Web {
    let ways = [web::Way::Tcp(Way::ALL[0]), web::Way::Tcp(Way::ALL[1]), web::Way::Stp];
    web::table_2(ways[index])
}

/// Returns the section of measured web replies.
pub(super) fn replies(results: &Results) -> Section {
    let mut cells = Vec::new();
    for ((orbit, round_trip), rows) in ORBITS.into_iter().zip(measured()) {
        for (segment, row) in SEGMENTS.into_iter().zip(rows) {
            for (way, published) in Way::ALL.into_iter().zip(row) {
                let ours = of(results, web::table_1(way, round_trip, segment), "latency_s");
                let name = format!("{orbit}, {segment} bytes, {}: measured mean", way.name());
                cells.push(PAGE.claim("table-1").cell(name, published, ours));
            }
        }
    }
    cells.extend(table_2(results));
    cells.extend(PAGE.judge(CLAIMS, results));
    Section { tables: vec![culled(results)], cells, ..PAGE.section() }
}

/// Returns the measured column with and without the largest replies.
fn culled(results: &Results) -> Table {
    let mut rows = Vec::new();
    for ((orbit, round_trip), column) in ORBITS.into_iter().zip(measured()) {
        for (segment, row) in SEGMENTS.into_iter().zip(column) {
            for (way, published) in Way::ALL.into_iter().zip(row) {
                let all = of(results, web::table_1(way, round_trip, segment), "latency_s");
                let culled = web::table_1_culled(way, round_trip, segment);
                let drawn = web::table_1_drawn(way, round_trip, segment);
                let [culled, drawn] = [culled, drawn].map(|web| of(results, web, "latency_s"));
                rows.push(vec![
                    format!("{orbit}, {segment} bytes, {}", way.name()),
                    format!("{published}"),
                    format!("{:.2}", all.mean),
                    format!("{:.2}", culled.mean),
                    format!("{:.2}", drawn.mean),
                ]);
            }
        }
    }
    PAGE.table("table-1-measured", rows)
}

fn table_2(results: &Results) -> Vec<Cell> {
    let names = ["TCP", "T/TCP", "STP"];
    let [latency, packets] = ["latency", "packets"].map(|id| PAGE.claim(id));
    let published: [[f64; 3]; 2] = [latency, packets].map(Claim::values);
    let mut cells = Vec::new();
    for (index, name) in names.into_iter().enumerate() {
        let web = of_table_2(index);
        let ours = of(results, web, "latency_s");
        cells.push(latency.cell(format!("{name}: latency"), published[0][index], ours));
        let ours = of(results, web, "packets");
        cells.push(packets.cell(format!("{name}: packets"), published[1][index], ours));
    }
    cells
}

fn better(results: &Results, first: Web, second: Web, name: &str) -> Summary {
    let [first, second] = [first, second].map(|web| results.values(WEB, &web.key(), name));
    relative_gain(&first, &second).scaled(100.0)
}

const CLAIMS: &[(&str, Measure)] = &[
    that("stp-between-tcp-and-t-tcp-latency", |results| {
        let [tcp, transactions] =
            [0, 1].map(|other| better(results, of_table_2(2), of_table_2(other), "latency_s"));
        Found::new(format!("{:+.0} % over TCP, {:+.0} % over T/TCP", tcp.mean, transactions.mean))
            .below(tcp, 0.0)
            .between(transactions, 0.0, 25.0)
    }),
    that("stp-between-tcp-and-t-tcp-packets", |results| {
        let [tcp, transactions] =
            [0, 1].map(|other| better(results, of_table_2(2), of_table_2(other), "packets"));
        Found::new(format!("{:+.0} % over TCP, {:+.0} % over T/TCP", tcp.mean, transactions.mean))
            .below(tcp, 0.0)
            .above(transactions, 0.0)
    }),
    that("a-return-channel-of-1-kbit-s", |results| {
        let [stp, tcp] = [web::Way::Stp, web::Way::Tcp(Way::ALL[0])].map(web::narrow);
        let change = better(results, stp, tcp, "latency_s");
        let [stp, tcp] = [stp, tcp].map(|web| of(results, web, "latency_s").mean);
        Found::new(format!("{stp:.1} s with STP, {tcp:.1} s with TCP")).below(change, -50.0)
    }),
];
