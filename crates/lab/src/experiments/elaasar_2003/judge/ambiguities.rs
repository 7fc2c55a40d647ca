//! Results under other interpretations of the paper.

use super::super::conditions::{CONNECTED_5, CONNECTED_10, CORRUPTION_10, Condition, HANDOFF_1};
use super::super::tried_at;
use super::super::variants::{self, Variant};
use super::seen::{OVERHEAD, Seen, THROUGHPUT};
use crate::experiments::publication::page;
use crate::experiments::statistics::pm;
use crate::experiments::{Figure, Section, Series, Table};

page!(PAGE = "elaasar-2003/ambiguities");

/// Returns the section: tables and figures of the other interpretations.
pub(super) fn section(seen: &Seen<'_>) -> Section {
    Section {
        figures: vec![
            figure(seen, THROUGHPUT, "ambiguities-throughput"),
            figure(seen, OVERHEAD, "ambiguities-overhead"),
        ],
        tables: vec![
            table(seen, THROUGHPUT, "ambiguities-throughput-table"),
            table(seen, OVERHEAD, "ambiguities-overhead-table"),
        ],
        ..PAGE.section()
    }
}

fn places(seen: &Seen<'_>) -> Vec<(Condition, u32)> {
    tried_at(seen.setting.quick).collect()
}

fn table(seen: &Seen<'_>, name: &str, id: &str) -> Table {
    let mut head = vec!["reading".to_owned()];
    head.extend(
        places(seen).iter().map(|(condition, percent)| {
            format!("{} {percent} %", condition.name().replace('-', " "))
        }),
    );
    let row = |variant: &Variant| {
        let mut row = vec![variant.about.to_owned()];
        row.extend(places(seen).iter().map(|&at| pm(seen.gain_in(variant, at, name), 0)));
        row
    };
    Table { head, ..PAGE.table(id, variants::all().map(row)) }
}

/// Returns a figure with one series per test: the mean gain over its points, by interpretation.
fn figure(seen: &Seen<'_>, name: &str, id: &str) -> Figure {
    let line = |condition: Condition| {
        let at: Vec<(Condition, u32)> =
            places(seen).into_iter().filter(|(tried, _)| *tried == condition).collect();
        let mean = |variant: &Variant| {
            at.iter().map(|&at| seen.gain_in(variant, at, name).mean).sum::<f64>()
                / at.len().max(1) as f64
        };
        let points = variants::all().enumerate();
        Series::dots(
            super::figures::words(condition),
            points.map(|(index, variant)| (index as f64, mean(variant))),
        )
    };
    let names: Vec<String> = variants::all()
        .enumerate()
        .map(|(index, variant)| format!("{index} {}", variant.about))
        .collect();
    let series = [CORRUPTION_10, HANDOFF_1, CONNECTED_5, CONNECTED_10].map(line).into();
    Figure { note: names.join("; ") + ".", ..PAGE.figure(id, series) }
}
