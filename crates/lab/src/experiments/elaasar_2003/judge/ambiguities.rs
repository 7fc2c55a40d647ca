//! What other readings of the paper would have given.

use super::super::conditions::{CONNECTED_5, CONNECTED_10, CORRUPTION_10, Condition, HANDOFF_1};
use super::super::tried_at;
use super::super::variants::{self, Variant};
use super::figures::pm;
use super::seen::{OVERHEAD, Seen, THROUGHPUT};
use super::words;
use crate::experiments::{Axis, Figure, Section, Series, Table};

/// Tables and a figure of the other readings.
pub(super) fn section(seen: &Seen<'_>) -> Section {
    Section {
        title: "What the paper leaves open, varied".into(),
        text: words::AMBIGUITIES.map(str::to_owned).into(),
        figures: vec![
            figure(seen, THROUGHPUT, "throughput", "Gain in throughput in other readings"),
            figure(seen, OVERHEAD, "overhead", "Change of overhead in other readings"),
        ],
        tables: vec![
            table(seen, THROUGHPUT, "throughput", "Gain in throughput, ON over OFF in %"),
            table(seen, OVERHEAD, "overhead", "Change of overhead, ON over OFF in %"),
        ],
        cells: Vec::new(),
    }
}

fn places(seen: &Seen<'_>) -> Vec<(Condition, u32)> {
    tried_at(seen.setting.quick).collect()
}

fn table(seen: &Seen<'_>, name: &str, file: &str, title: &str) -> Table {
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
    Table {
        id: format!("ambiguities-{file}-table"),
        title: format!("{title}; ± half of the 95 % interval"),
        head,
        rows: variants::all().map(row).collect(),
    }
}

/// One line for each test: the mean gain over its points, by reading.
fn figure(seen: &Seen<'_>, name: &str, file: &str, title: &str) -> Figure {
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
    Figure {
        id: format!("ambiguities-{file}"),
        title: title.to_owned(),
        x: Axis::linear("reading (numbered below)"),
        y: Axis::linear("mean of ON over OFF (%)"),
        series: [CORRUPTION_10, HANDOFF_1, CONNECTED_5, CONNECTED_10].map(line).into(),
        note: names.join("; ") + ".",
    }
}
