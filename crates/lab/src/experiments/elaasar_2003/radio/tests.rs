//! Consistency of plan, cells and tables.

use super::*;
use crate::experiments::Verdict;
use std::collections::BTreeSet;

/// Runs all points with two replications each.
fn results() -> Results {
    let setting =
        crate::experiments::Options { quick: true, ..crate::experiments::Options::new("") };
    let setting = setting.setting(&super::super::ENTRY).expect("the usual setting");
    let mut results = Results::default();
    for point in plan(&setting) {
        let run = |run| (point.simulate)(&Draw { seed: 1, run }).expect("valid settings");
        results.insert(point.study, &point.key, (0..2).map(run).collect());
    }
    results
}

#[test]
fn every_claim_has_a_cell_and_every_table_is_filled() {
    let sections = report::sections(&results());
    let cells: Vec<_> = sections.iter().flat_map(|section| &section.cells).collect();
    assert_eq!(cells.len(), 16 + 11 + 1);
    let names: BTreeSet<_> = cells.iter().map(|cell| &cell.name).collect();
    assert_eq!(names.len(), cells.len(), "each has its own name");
    for cell in &cells {
        assert_ne!(cell.verdict, Verdict::NotComparable);
        assert!(!cell.reason.is_empty(), "{}", cell.name);
    }
    for name in ["bytes of a file in a frame", "frames of a 10 KB file"] {
        let cell = cells.iter().find(|cell| cell.name == name).expect("a cell of that name");
        assert_eq!(cell.verdict, Verdict::Agrees, "{cell:?}");
    }
    for table in sections.iter().flat_map(|section| &section.tables) {
        assert!(!table.rows.is_empty());
        assert!(table.rows.iter().all(|row| row.len() == table.head.len()), "{}", table.id);
    }
}

#[test]
fn only_counting_whole_frames_leaves_equal_rests_at_both_rates() {
    let table = tables::accounting();
    let rest = |row: &[String]| {
        let number = |at: usize| row[at].parse::<f64>().expect("a number");
        (number(4) - number(5)).abs()
    };
    let same: Vec<usize> = (0..6).filter(|&row| rest(&table.rows[row]) < 0.05).collect();
    assert_eq!(same, [4], "the frame");
    assert!(rest(&table.rows[4]) < 0.005);
}

#[test]
fn saturation_throughput_of_the_channel() {
    // p = 129/256: success 0.663, frame 1.7 s of 0.3 + 1.7 and a third of a slot.
    assert!((cells::saturated() - 0.560).abs() < 0.005, "{}", cells::saturated());
}
