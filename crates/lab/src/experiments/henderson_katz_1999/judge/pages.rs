//! Claims of section V.B about whole pages.

use super::super::PAGES;
use super::super::latency::{ORBITS, SEGMENTS};
use super::super::pages::{PIPELINED, Pages, SERIAL, STRIPED, TCP, TRANSACTIONS, WAYS};
use crate::experiments::publication::{Found, Measure, page, that};
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Results, Section, Summary};

page!(PAGE = "henderson-katz-1999/pages");

/// Returns the pages of the claims: GEO, segments of 1,500 octets.
fn geo(way: usize) -> Pages {
    Pages { way, round_trip: ORBITS[0].1, segment: SEGMENTS[0] }
}

/// Returns by how much the first way has more than the second, in percent.
fn over(results: &Results, first: usize, second: usize, name: &str) -> Summary {
    let [first, second] = [first, second].map(|way| results.values(PAGES, &geo(way).key(), name));
    relative_gain(&first, &second).scaled(100.0)
}

pub(super) fn section(results: &Results) -> Section {
    let row = |way: usize| {
        let cells = ORBITS.into_iter().flat_map(|(_, round_trip)| {
            SEGMENTS.map(|segment| {
                let key = Pages { way, round_trip, segment }.key();
                let of = |name| results.summary(PAGES, &key, name);
                let (time, packets) = (of("page_s"), of("packets"));
                format!("{:.2} ± {:.2}; {:.0}", time.mean, time.half, packets.mean)
            })
        });
        std::iter::once(WAYS[way].0.to_owned()).chain(cells).collect()
    };
    Section {
        tables: vec![PAGE.table("pages", (0..WAYS.len()).map(row))],
        cells: PAGE.judge(CLAIMS, results),
        ..PAGE.section()
    }
}

const CLAIMS: &[(&str, Measure)] = &[
    that("t-tcp-and-several-connections", |results| {
        let [piped, serial] =
            [PIPELINED, SERIAL].map(|way| over(results, TRANSACTIONS, way, "page_s"));
        let words = format!("{:+.0} % pipelined, {:+.0} % without", piped.mean, serial.mean);
        Found::new(words).below(piped, 0.0).below(serial, 0.0)
    }),
    that("p-http-is-more-bit-efficient", |results| {
        let packets = over(results, PIPELINED, TCP, "packets");
        Found::new(format!("{:+.0} % packets", packets.mean)).below(packets, -25.0)
    }),
    that("striping", |results| {
        let time = over(results, STRIPED, SERIAL, "page_s");
        Found::new(format!("{:+.0} %", time.mean)).below(time, 0.0)
    }),
];
