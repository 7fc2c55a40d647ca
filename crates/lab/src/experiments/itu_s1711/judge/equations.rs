//! Annex 1: equations 1 to 3, tables 1 and 2.

use super::super::equations::{LENGTHS, ORBITS, RATES, slow_start, throughput};
use crate::experiments::publication::{Found, Numbers, Sentence, judge, that};
use crate::experiments::{Cell, Criterion, Results, Section, Summary, Table, Verdict};

/// Published, kbyte/s, as `ORBITS` stand.
const TABLE_1: [f64; 4] = [3_200.0, 320.0, 110.0, 120.0];
/// Published, s, as `ORBITS` and `RATES` stand.
const TABLE_2: [[f64; 3]; 4] =
    [[0.05, 0.11, 0.19], [1.14, 1.80, 2.59], [4.36, 6.35, 8.73], [3.67, 5.40, 7.45]];
/// The largest window without scaling, bytes.
const WINDOW: f64 = 65_535.0;
/// Which of `LENGTHS` is taken: the third, 1 kbyte.
const TAKEN: f64 = LENGTHS[2].1;

const BY_EQUATION_1: Numbers = Numbers {
    place: "annex 1, table 1",
    unit: "kbyte/s",
    criterion: Criterion::Within(0.1),
    why: ["equation 1, with 65,535 bytes", ""],
};

const BY_EQUATION_2: Numbers = Numbers {
    place: "annex 1, table 2",
    unit: "s",
    criterion: Criterion::Within(0.1),
    why: [
        "equation 2 with packets of 1 kbyte. The table says 1 kbit, which would give 5.21 s in \
         place of 3.67 for GSO and 1 Mbit/s",
        "",
    ],
};

fn table_2(length: f64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for ((orbit, round_trip), row) in ORBITS.into_iter().zip(TABLE_2) {
        for ((rate, bits), published) in RATES.into_iter().zip(row) {
            let ours = Summary::exact(slow_start(round_trip, bits, length, 2.0));
            cells.push(BY_EQUATION_2.cell(format!("{orbit}, {rate}"), published, ours));
        }
    }
    cells
}

/// The section.
pub(super) fn section(results: &Results) -> Section {
    let table_1 = ORBITS.into_iter().zip(TABLE_1).map(|((orbit, round_trip), published)| {
        let ours = Summary::exact(throughput(WINDOW, round_trip) / 1e3);
        BY_EQUATION_1.cell(format!("{orbit}: most throughput of 64 kbytes"), published, ours)
    });
    let mut cells: Vec<Cell> = table_1.collect();
    cells.extend(table_2(TAKEN));
    cells.extend(judge(SENTENCES, results));
    Section {
        title: "Limits of TCP (annex 1, equations 1 to 3, tables 1 and 2)".into(),
        text: vec![
            "These follow from the equations; whether TCP keeps to them is simulated where the \
             figures are."
                .into(),
        ],
        tables: vec![lengths()],
        cells,
        ..Section::default()
    }
}

fn lengths() -> Table {
    let row = |(name, length): (&str, f64)| {
        let agree = table_2(length).iter().filter(|cell| cell.verdict == Verdict::Agrees).count();
        let gso = |growth| format!("{:.2}", slow_start(0.52, 1e6, length, growth));
        vec![name.to_owned(), format!("{agree} of 12"), gso(2.0), gso(1.5)]
    };
    Table {
        id: "table-2-lengths".into(),
        title: "Length of a packet, and how many cells of table 2 agree with it".into(),
        head: ["length", "cells that agree", "GSO, 1 Mbit/s, s", "the same by equation 3, s"]
            .map(str::to_owned)
            .into(),
        rows: LENGTHS.map(row).into(),
    }
}

const SENTENCES: &[Sentence] = &[
    that(
        "table 2 is for packets of 1 kbit",
        "annex 1, section 3.2",
        ("the table is for packets of 1 kbit", "more than half of its cells follow with that"),
        |_| {
            let agree = |length| {
                table_2(length).iter().filter(|cell| cell.verdict == Verdict::Agrees).count()
            };
            let found = agree(LENGTHS[0].1);
            Found::new(format!("{found} of 12; {} with 1 kbyte", agree(TAKEN)))
                .above(Summary::exact(found as f64), 6.0)
        },
        ["", "a slip: the numbers are those of 1 kbyte"],
    ),
    that(
        "delayed acknowledgements lengthen slow start",
        "annex 1, section 3.2, equation 3",
        (
            "with delayed acknowledgements slow start takes longer",
            "equation 3 gives more than equation 2 for each orbit and rate",
        ),
        |_| {
            let ratios = ORBITS.into_iter().flat_map(|(_, round_trip)| {
                RATES.map(|(_, rate)| {
                    slow_start(round_trip, rate, TAKEN, 1.5)
                        / slow_start(round_trip, rate, TAKEN, 2.0)
                })
            });
            let ratios: Vec<f64> = ratios.collect();
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let most = ratios.iter().copied().fold(0.0, f64::max);
            Found::new(format!("{least:.2} to {most:.2} times as long"))
                .above(Summary::exact(least), 1.0)
        },
        ["the window grows by half in a round trip instead of doubling", ""],
    ),
    that(
        "64 kbytes do not fill a satellite channel",
        "annex 1, section 3.1",
        (
            "the largest window without scaling cannot fill some satellite channels",
            "over GSO it is below 2 Mbit/s",
        ),
        |_| {
            let rate = throughput(WINDOW, 0.52) * 8.0 / 1e6;
            Found::new(format!("{rate:.2} Mbit/s")).below(Summary::exact(rate), 2.0)
        },
        ["equation 1", ""],
    ),
    that(
        "gateways matter above 256 kbit/s",
        "annex 2, section 3.3",
        (
            "splitting is worth it where links are faster than 256 kbit/s",
            "the windows that hosts of the time had unless told otherwise, 16 and 17.5 kbytes, \
             over GSO's 520 ms come to 256 kbit/s within 10 %",
        ),
        |_| {
            let [unix, windows] =
                [16_384.0, 17_520.0].map(|window| throughput(window, 0.52) / 125.0);
            Found::new(format!("{unix:.0} and {windows:.0} kbit/s"))
                .between(Summary::exact(unix), 230.4, 281.6)
                .between(Summary::exact(windows), 230.4, 281.6)
        },
        [
            "below that rate such a host fills the link by itself. The document gives no reason; \
             this one is ours",
            "",
        ],
    ),
];
