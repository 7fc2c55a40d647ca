//! Annex 1: equations 1 to 3, tables 1 and 2.

use super::super::equations::{LENGTHS, ORBITS, RATES, slow_start, throughput};
use crate::experiments::publication::{Found, Measure, page, that};
use crate::experiments::{Cell, Results, Section, Summary, Table, Verdict};

/// The largest window without scaling in octets.
const WINDOW: f64 = 65_535.0;
/// The packet length used here: 1 kbyte.
const TAKEN: f64 = LENGTHS[2].1;

fn table_2(length: f64) -> Vec<Cell> {
    let mut cells = Vec::new();
    let table = PAGE.claim("table-2");
    for ((orbit, round_trip), row) in ORBITS.into_iter().zip(table.values::<[[f64; 3]; 4]>()) {
        for ((rate, bits), published) in RATES.into_iter().zip(row) {
            let ours = Summary::exact(slow_start(round_trip, bits, length, 2.0));
            cells.push(table.cell(format!("{orbit}, {rate}"), published, ours));
        }
    }
    cells
}

pub(super) fn section(results: &Results) -> Section {
    let table = PAGE.claim("table-1");
    let table_1 = ORBITS.into_iter().zip(table.values::<[f64; 4]>()).map(
        |((orbit, round_trip), published)| {
            let ours = Summary::exact(throughput(WINDOW, round_trip) / 1e3);
            table.cell(format!("{orbit}: most throughput of 64 kbytes"), published, ours)
        },
    );
    let mut cells: Vec<Cell> = table_1.collect();
    cells.extend(table_2(TAKEN));
    cells.extend(PAGE.judge(CLAIMS, results));
    Section { tables: vec![lengths()], cells, ..PAGE.section() }
}

fn lengths() -> Table {
    let row = |(name, length): (&str, f64)| {
        let agree = table_2(length).iter().filter(|cell| cell.verdict == Verdict::Agrees).count();
        let gso = |growth| format!("{:.2}", slow_start(0.52, 1e6, length, growth));
        vec![name.to_owned(), format!("{agree} of 12"), gso(2.0), gso(1.5)]
    };
    PAGE.table("table-2-lengths", LENGTHS.map(row))
}

page!(PAGE = "itu-s1711/equations");

const CLAIMS: &[(&str, Measure)] = &[
    that("table-2-is-for-packets-of-1-kbit", |_| {
        let agree =
            |length| table_2(length).iter().filter(|cell| cell.verdict == Verdict::Agrees).count();
        let found = agree(LENGTHS[0].1);
        Found::new(format!("{found} of 12; {} with 1 kbyte", agree(TAKEN)))
            .above(Summary::exact(found as f64), 6.0)
    }),
    that("delayed-acknowledgements-lengthen-slow-start", |_| {
        let ratios = ORBITS.into_iter().flat_map(|(_, round_trip)| {
            RATES.map(|(_, rate)| {
                slow_start(round_trip, rate, TAKEN, 1.5) / slow_start(round_trip, rate, TAKEN, 2.0)
            })
        });
        let ratios: Vec<f64> = ratios.collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        Found::new(format!("{least:.2} to {most:.2} times as long"))
            .above(Summary::exact(least), 1.0)
    }),
    that("64-kbytes-do-not-fill-a-satellite-channel", |_| {
        let rate = throughput(WINDOW, 0.52) * 8.0 / 1e6;
        Found::new(format!("{rate:.2} Mbit/s")).below(Summary::exact(rate), 2.0)
    }),
    that("gateways-matter-above-256-kbit-s", |_| {
        let [unix, windows] = [16_384.0, 17_520.0].map(|window| throughput(window, 0.52) / 125.0);
        Found::new(format!("{unix:.0} and {windows:.0} kbit/s"))
            .between(Summary::exact(unix), 230.4, 281.6)
            .between(Summary::exact(windows), 230.4, 281.6)
    }),
];
