//! Numbers of annex 3 that the document derives from its own numbers: averages, ratios and sums. No
//! point is run for these cells; they show which printed numbers are consistent.

use super::super::equations::{CELL_PAYLOAD, aal5, throughput};
use crate::experiments::publication::{Measure, number, page};
use crate::experiments::{Results, Section, Summary};

page!(PAGE = "itu-s1711/arithmetic");

/// Tables 5 to 10 in kbit/s, rows by receiver.
const TABLE_5: [f64; 12] =
    [365.0, 365.0, 365.0, 345.0, 365.0, 365.0, 346.0, 365.0, 365.0, 346.0, 365.0, 365.0];
const TABLE_7: [f64; 2] = [1_946.0, 1_949.0];
const TABLE_8: [f64; 12] =
    [359.0, 359.0, 359.0, 327.8, 358.5, 358.3, 328.0, 348.3, 357.8, 328.0, 358.5, 348.3];
const TABLE_10: [f64; 2] = [1_888.3, 1_891.8];
/// Tables 11 and 12: each flow from VSAT-C and VSAT-D in kbit/s.
const TABLE_11: [[f64; 4]; 2] = [[360.0, 358.0, 345.0, 345.0], [338.0, 337.0, 329.0, 329.0]];
const TABLE_12: [[f64; 3]; 2] = [[759.0, 597.0, 562.0], [680.0, 565.0, 657.0]];

fn exact(ours: f64) -> Summary {
    Summary::exact(ours)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sum of the flows of each station.
fn sums<const N: usize>(table: [[f64; N]; 2]) -> [f64; 2] {
    table.map(|flows| flows.iter().sum())
}

pub(super) fn section(results: &Results) -> Section {
    Section { cells: PAGE.judge(CLAIMS, results), ..PAGE.section() }
}

const CLAIMS: &[(&str, Measure)] = &[
    number("table-5-average", |_| exact(mean(&TABLE_5))),
    number("table-7-average", |_| exact(mean(&TABLE_7))),
    number("table-8-average", |_| exact(mean(&TABLE_8))),
    number("table-10-average", |_| exact(mean(&TABLE_10))),
    number("table-11-average", |_| exact(mean(&sums(TABLE_11)))),
    number("table-12-average", |_| exact(mean(&sums(TABLE_12)))),
    number("table-11-total-c", |_| exact(sums(TABLE_11)[0])),
    number("table-11-total-d", |_| exact(sums(TABLE_11)[1])),
    number("table-12-total-c", |_| exact(sums(TABLE_12)[0])),
    number("table-12-total-d", |_| exact(sums(TABLE_12)[1])),
    number("table-5-share", |_| exact(mean(&TABLE_5) / 384.0 * 100.0)),
    number("table-6-share", |_| exact(1_463.0 / 1_536.0 * 100.0)),
    number("table-7-share", |_| exact(mean(&TABLE_7) / 2_048.0 * 100.0)),
    number("table-8-share", |_| exact(mean(&TABLE_8) / mean(&TABLE_5) * 100.0)),
    number("table-9-share", |_| exact(1_397.5 / 1_463.0 * 100.0)),
    number("table-10-share", |_| exact(mean(&TABLE_10) / mean(&TABLE_7) * 100.0)),
    number("table-11-share", |_| exact(mean(&sums(TABLE_11)) / 1_463.0 * 100.0)),
    number("table-12-share", |_| exact(mean(&sums(TABLE_12)) / mean(&TABLE_7) * 100.0)),
    number("8-kbytes-over-200-ms", |_| exact(throughput(8_000.0, 0.2) / 125.0)),
    number("8-kbytes-over-700-ms", |_| exact(throughput(8_000.0, 0.7) / 125.0)),
    number("connections-of-128-kbit-s-that-fill-45-mbit-s", |_| exact(45_000.0 / 128.0)),
    number("packet-loss-of-1500-bytes-at-1e-5", |_| {
        exact(100.0 * (1.0 - (1.0f64 - 1e-5).powi(12_000)))
    }),
    number("padding-of-a-full-segment", |_| exact(aal5(9_100).padding as f64)),
    number("bytes-of-its-cells", |_| exact(aal5(9_100).cells as f64)),
    number("share-of-it-that-is-payload", |_| exact(9_100.0 / aal5(9_100).cells as f64)),
    number("what-tcp-can-have-of-oc-3", |_| {
        exact(CELL_PAYLOAD * 9_100.0 / aal5(9_100).cells as f64)
    }),
    number("window-that-fills-135-mbit-s-over-540-ms", |_| {
        exact((135e6 * 0.54 / 8.0 / 1_430.0f64).round())
    }),
    number("queue-that-slow-start-needs", |_| exact(135e6 * 0.54 / 8.0 / 1_430.0 / 2.0)),
    number("ftp-without-the-satellite", |_| exact(118.32 / 135.0 * 100.0)),
];
