//! Other ways of sharing the same link.

use super::expected::{ALOHA, PURE_DEMAND};
use super::{Seen, shown};
use crate::experiments::mhatre_rosenberg::ACCESS;
use crate::experiments::mhatre_rosenberg::access::{Access, LOADS};
use crate::experiments::statistics::{Summary, relative_gain};
use crate::experiments::{Axis, Cell, Figure, Section, Series};

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let delay = figure(
        seen,
        ("access-delay", "delay_s", "mean delay (s)"),
        "Mean delay of a packet of two cells, by the way of sharing",
        "Shown while nine in ten packets come through. Aloha is fastest while hardly anybody sends. \
         Where slots are free nobody waits for a grant. Random carriers beside dedicated ones keep \
         short packets fast as long as they are few.",
    );
    let carried = figure(
        seen,
        ("access-carried", "carried", "carried (share of the slots)"),
        "What gets through in time",
        "",
    );
    Section {
        title: "Other ways of sharing".into(),
        text: vec![
            "Twenty terminals, packets of two cells at random, 100 kbit/s in all; ten circuits of \
             10 kbit/s, or 40 kbit/s of random carriers beside 60 kbit/s of dedicated ones."
                .into(),
        ],
        figures: vec![delay, carried],
        cells: vec![aloha(seen), pure_demand(seen)],
        ..Section::default()
    }
}

fn key(access: Access, load: f64) -> String {
    format!("{load}/{}", access.name())
}

fn figure(
    seen: &Seen<'_>,
    (id, name, unit): (&str, &str, &str),
    title: &str,
    note: &str,
) -> Figure {
    let line = |access: Access| {
        let value = |load: f64, name| seen.results.summary(ACCESS, &key(access, load), name);
        // Delays of the few that come through an overloaded channel say nothing.
        let whole = |load: &f64| name == "carried" || value(*load, "carried").mean > 0.9 * load;
        let loads = LOADS.into_iter().filter(whole);
        Series::new(access.name(), loads.map(|load| (load, value(load, name))))
    };
    Figure {
        id: id.into(),
        title: title.into(),
        x: Axis::log("offered (share of the slots)"),
        y: Axis::log(unit),
        series: Access::ALL.map(line).into(),
        note: note.into(),
    }
}

/// What one has of the other, in pairs of runs.
fn part(seen: &Seen<'_>, pair: [Access; 2], load: f64, name: &str) -> Summary {
    let [first, second] = pair.map(|access| seen.results.values(ACCESS, &key(access, load), name));
    let gain = relative_gain(&first, &second);
    Summary { mean: gain.mean + 1.0, ..gain }
}

fn aloha(seen: &Seen<'_>) -> Cell {
    let loads = LOADS.into_iter().filter(|&load| load >= 0.4);
    let parts: Vec<Summary> = loads
        .map(|load| part(seen, [Access::Aloha, Access::AskedAndFree], load, "carried"))
        .collect();
    let words: Vec<String> = parts.iter().map(|part| shown(*part, 2)).collect();
    ALOHA.claim(
        parts.iter().all(|part| part.clearly_below(0.5)),
        format!("{} of it", words.join(", ")),
        parts.last().copied(),
        "both cells of a packet must come through, and what collided comes again",
    )
}

fn pure_demand(seen: &Seen<'_>) -> Cell {
    let part = part(seen, [Access::AskedOnly, Access::AskedAndFree], 0.1, "delay_s");
    PURE_DEMAND.claim(
        part.clearly_above(2.0),
        format!("{} times", shown(part, 2)),
        Some(part),
        "a grant loop before the way up",
    )
}
