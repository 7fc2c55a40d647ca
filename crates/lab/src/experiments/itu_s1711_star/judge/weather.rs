//! The months' outages.

use super::{Seen, paper, shown};
use crate::experiments::itu_s1711_star::WEATHER;
use crate::experiments::itu_s1711_star::weather::{LENGTHS, USUAL};
use crate::experiments::statistics::Summary;
use crate::experiments::{Cell, Expected, Published, Section, Table};
use units::Span;

pub(super) fn section(seen: &Seen<'_>) -> Section {
    Section {
        title: "Weather".into(),
        text: vec![
            "The year's unavailability as outages of the outbound: users wait, and go on. An outage \
             is run beside the same users in fair weather, and what they did not fetch for it is \
             counted in seconds of fair weather; between outages a month is fair. An outage costs \
             users less than it lasts, since some think meanwhile, and whoever waits is found again \
             by the next POLL."
                .into(),
        ],
        tables: vec![table(seen)],
        cells: paper::RAIN.iter().map(|expected| month(seen, expected)).collect(),
        ..Section::default()
    }
}

fn value(seen: &Seen<'_>, length: Span, name: &str) -> Summary {
    seen.results.summary(WEATHER, &length.as_secs_f64().to_string(), name)
}

fn month(seen: &Seen<'_>, expected: &Expected) -> Cell {
    let Published::Number { value: available, .. } = expected.published else {
        unreachable!("availability is a number")
    };
    let away = 100.0 - available;
    let cost = value(seen, USUAL, "cost_s").scaled(away / USUAL.as_secs_f64());
    let kept = Summary { mean: 100.0 - cost.mean, ..cost };
    let lost = value(seen, USUAL, "lost").mean;
    expected.number(
        kept,
        format!(
            "objects that were fetched, of those in fair weather; outages of two minutes, as many as \
             the month's unavailability makes; {lost:.0} connections were lost"
        ),
    )
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
    let head = [
        "outage, s",
        "costs, s of fair weather",
        "users who waited at its end, %",
        "their objects came after it, mean, s",
        "longest, s",
    ];
    Table {
        id: "outages".into(),
        title: "What an outage costs, by its length".into(),
        head: head.map(str::to_owned).into(),
        rows: LENGTHS.map(row).into(),
    }
}
