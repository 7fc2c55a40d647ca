//! The outages of the months.

use super::{Seen, shown};
use crate::experiments::itu_s1711_star::WEATHER;
use crate::experiments::itu_s1711_star::weather::{LENGTHS, USUAL};
use crate::experiments::publication::{Claim, page};
use crate::experiments::statistics::Summary;
use crate::experiments::{Cell, Section, Table};
use units::Span;

page!(PAGE = "itu-s1711-star/weather");

pub(super) fn section(seen: &Seen<'_>) -> Section {
    Section {
        tables: vec![table(seen)],
        cells: PAGE.claims().iter().map(|claim| month(seen, claim)).collect(),
        ..PAGE.section()
    }
}

fn value(seen: &Seen<'_>, length: Span, name: &str) -> Summary {
    seen.results.summary(WEATHER, &length.as_secs_f64().to_string(), name)
}

/// Returns the cell of a month: the fraction of objects that users fetch with outages of its total
/// unavailability.
fn month(seen: &Seen<'_>, claim: &Claim) -> Cell {
    let away = 100.0 - claim.value();
    let cost = value(seen, USUAL, "cost_s").scaled(away / USUAL.as_secs_f64());
    let cell = claim.number(Summary { mean: 100.0 - cost.mean, ..cost });
    let lost = value(seen, USUAL, "lost").mean;
    Cell { reason: cell.reason.replace("{lost}", &format!("{lost:.0}")), ..cell }
}

fn table(seen: &Seen<'_>) -> Table {
    let row = |length: Span| {
        vec![
            length.as_secs_f64().to_string(),
            shown(value(seen, length, "cost_s"), 1),
            shown(value(seen, length, "waiting").scaled(100.0), 0),
            shown(value(seen, length, "back_mean_s"), 2),
            shown(value(seen, length, "back_longest_s"), 2),
        ]
    };
    PAGE.table("outages", LENGTHS.map(row))
}
