//! Numbers of annex 3 that the document makes of its own numbers: averages, shares and sums.
//!
//! Nothing is run for these cells. They show which printed numbers can be relied on.

use super::super::equations::{CELL_PAYLOAD, aal5, throughput};
use crate::experiments::publication::{Numbers, Sentence, judge, number};
use crate::experiments::{Cell, Criterion, Results, Section, Summary};

/// Tables 5 and 8, kbit/s, rows by receiver.
const TABLE_5: [f64; 12] =
    [365.0, 365.0, 365.0, 345.0, 365.0, 365.0, 346.0, 365.0, 365.0, 346.0, 365.0, 365.0];
const TABLE_7: [f64; 2] = [1_946.0, 1_949.0];
const TABLE_8: [f64; 12] =
    [359.0, 359.0, 359.0, 327.8, 358.5, 358.3, 328.0, 348.3, 357.8, 328.0, 358.5, 348.3];
const TABLE_10: [f64; 2] = [1_888.3, 1_891.8];
/// Tables 11 and 12: each flow from VSAT-C and VSAT-D.
const TABLE_11: [[f64; 4]; 2] = [[360.0, 358.0, 345.0, 345.0], [338.0, 337.0, 329.0, 329.0]];
const TABLE_12: [[f64; 3]; 2] = [[759.0, 597.0, 562.0], [680.0, 565.0, 657.0]];

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn sums<const N: usize>(table: [[f64; N]; 2]) -> [f64; 2] {
    table.map(|flows| flows.iter().sum())
}

const fn rate(place: &'static str, why: [&'static str; 2]) -> Numbers {
    Numbers { place, unit: "kbit/s", criterion: Criterion::Within(0.001), why }
}

const fn share(place: &'static str, why: [&'static str; 2]) -> Numbers {
    Numbers { place, unit: "%", criterion: Criterion::Absolute(0.1), why }
}

const FOLLOWS: [&str; 2] = ["follows from the table's entries", ""];
const OF_UDP: [&str; 2] = ["of the throughput that UDP had, not of the link's rate", ""];
const SLIP: [&str; 2] = ["", "a slip: the same 95.5 % stands at table 9, where it follows"];

/// The section.
pub(super) fn section(results: &Results) -> Section {
    let [udp, tcp] = [mean(&TABLE_5), mean(&TABLE_8)];
    let (fast_udp, fast_tcp) = (mean(&TABLE_7), mean(&TABLE_10));
    let (four, three) = (sums(TABLE_11), sums(TABLE_12));
    let averages = [
        ("table 5", 360.2, udp),
        ("table 7", 1_947.5, fast_udp),
        ("table 8", 349.2, tcp),
        ("table 10", 1_890.1, fast_tcp),
        ("table 11", 1_370.5, mean(&four)),
        ("table 12", 1_910.0, mean(&three)),
    ];
    let mut cells: Vec<Cell> = averages
        .into_iter()
        .map(|(place, published, ours)| {
            rate(place, FOLLOWS).cell(format!("{place}: average"), published, Summary::exact(ours))
        })
        .collect();
    let totals = [
        ("table 11", "C", 1_408.0, four[0]),
        ("table 11", "D", 1_333.0, four[1]),
        ("table 12", "C", 1_918.0, three[0]),
        ("table 12", "D", 1_902.0, three[1]),
    ];
    cells.extend(totals.map(|(place, from, published, ours)| {
        let name = format!("{place}: total from VSAT-{from}");
        rate(place, FOLLOWS).cell(name, published, Summary::exact(ours))
    }));
    let shares = [
        ("table 5", FOLLOWS, 93.8, udp / 384.0),
        ("table 6", FOLLOWS, 95.2, 1_463.0 / 1_536.0),
        ("table 7", FOLLOWS, 95.1, fast_udp / 2_048.0),
        ("table 8", OF_UDP, 96.9, tcp / udp),
        ("table 9", OF_UDP, 95.5, 1_397.5 / 1_463.0),
        ("table 10", OF_UDP, 97.1, fast_tcp / fast_udp),
        ("table 11", SLIP, 95.5, mean(&four) / 1_463.0),
        ("table 12", OF_UDP, 98.1, mean(&three) / fast_udp),
    ];
    cells.extend(shares.map(|(place, why, published, ours)| {
        let ours = Summary::exact(ours * 100.0);
        share(place, why).cell(format!("{place}: share"), published, ours)
    }));
    cells.extend(judge(SENTENCES, results));
    Section {
        title: "What the document makes of its own numbers (annex 3)".into(),
        text: vec![
            "Averages, shares and sums, made again from the numbers that they are made of. \
             Nothing is run for these."
                .into(),
        ],
        cells,
        ..Section::default()
    }
}

const SENTENCES: &[Sentence] = &[
    number(
        "8 kbytes over 200 ms",
        "annex 3, section 2.1.3",
        (320.0, "kbit/s", Criterion::Within(0.03)),
        |_| Summary::exact(throughput(8_000.0, 0.2) / 125.0),
        ["equation 1 with 8,000 bytes", ""],
    ),
    number(
        "8 kbytes over 700 ms",
        "annex 3, section 2.1.3",
        (91.0, "kbit/s", Criterion::Within(0.03)),
        |_| Summary::exact(throughput(8_000.0, 0.7) / 125.0),
        ["equation 1 with 8,000 bytes", ""],
    ),
    number(
        "connections of 128 kbit/s that fill 45 Mbit/s",
        "annex 3, section 2.3.3.3",
        (350.0, "", Criterion::Within(0.01)),
        |_| Summary::exact(45_000.0 / 128.0),
        ["351.6, rounded", ""],
    ),
    number(
        "packet loss of 1500 bytes at 1e-5",
        "annex 3, section 2.3.3.4",
        (10.0, "%", Criterion::Absolute(2.0)),
        |_| Summary::exact(100.0 * (1.0 - (1.0f64 - 1e-5).powi(12_000))),
        ["11.3 %, called 10", ""],
    ),
    number(
        "padding of a full segment",
        "annex 3, section 3.2",
        (20.0, "byte", Criterion::Absolute(0.0)),
        |_| Summary::exact(aal5(9_100).padding as f64),
        ["cells of 48 bytes", ""],
    ),
    number(
        "bytes of its cells",
        "annex 3, section 3.2",
        (9_224.0, "byte", Criterion::Absolute(0.0)),
        |_| Summary::exact(aal5(9_100).cells as f64),
        ["", "a slip: the sum is 9,216, a multiple of 48 as it must be"],
    ),
    number(
        "share of it that is payload",
        "annex 3, section 3.2",
        (0.986, "", Criterion::Absolute(0.001_5)),
        |_| Summary::exact(9_100.0 / aal5(9_100).cells as f64),
        ["0.987 with the right sum; 0.986 is what 9,224 gives, cut and not rounded", ""],
    ),
    number(
        "what TCP can have of OC-3",
        "annex 3, section 3.2",
        (133.05, "Mbit/s", Criterion::Within(0.01)),
        |_| Summary::exact(CELL_PAYLOAD * 9_100.0 / aal5(9_100).cells as f64),
        ["133.2 with the right sum", ""],
    ),
    number(
        "window that fills 135 Mbit/s over 540 ms",
        "annex 3, section 3.3.1",
        (6_374.0, "packet", Criterion::Absolute(0.5)),
        |_| Summary::exact((135e6 * 0.54 / 8.0 / 1_430.0f64).round()),
        ["", "a slip: the formula that is printed gives 6,372"],
    ),
    number(
        "queue that slow start needs",
        "annex 3, section 3.3.1",
        (3_187.0, "packet", Criterion::Within(0.001)),
        |_| Summary::exact(135e6 * 0.54 / 8.0 / 1_430.0 / 2.0),
        ["half of the window, because it is sent at twice the rate that the queue drains at", ""],
    ),
    number(
        "FTP without the satellite",
        "annex 3, section 5.2",
        (87.5, "%", Criterion::Absolute(0.3)),
        |_| Summary::exact(118.32 / 135.0 * 100.0),
        [
            "118.32 Mbit/s of the 135 that the cells' payloads have; of the 133.05 that section \
             3.2 allows TCP it is 88.9 %",
            "",
        ],
    ),
];
