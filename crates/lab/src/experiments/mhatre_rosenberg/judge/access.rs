//! Other access schemes for the same link.

use super::{Seen, shown};
use crate::experiments::mhatre_rosenberg::ACCESS;
use crate::experiments::mhatre_rosenberg::access::{Access, LOADS};
use crate::experiments::publication::page;
use crate::experiments::statistics::{Summary, relative_gain};
use crate::experiments::{Cell, Figure, Section, Series};

page!(PAGE = "mhatre-rosenberg/access");

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let delay = figure(seen, "access-delay", "delay_s");
    let carried = figure(seen, "access-carried", "carried");
    Section {
        figures: vec![delay, carried],
        cells: vec![aloha(seen), pure_demand(seen)],
        ..PAGE.section()
    }
}

fn key(access: Access, load: f64) -> String {
    format!("{load}/{}", access.name())
}

fn figure(seen: &Seen<'_>, id: &str, name: &str) -> Figure {
    let line = |access: Access| {
        let value = |load: f64, name| seen.results.summary(ACCESS, &key(access, load), name);
        // Delays of the few packets that an overloaded channel delivers are meaningless.
        let whole = |load: &f64| name == "carried" || value(*load, "carried").mean > 0.9 * load;
        let loads = LOADS.into_iter().filter(whole);
        Series::new(access.name(), loads.map(|load| (load, value(load, name))))
    };
    PAGE.figure(id, Access::ALL.map(line).into())
}

/// Returns the ratio of a value under two schemes, paired by run.
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
    PAGE.claim("aloha").holds(
        parts.iter().all(|part| part.clearly_below(0.5)),
        format!("{} of it", words.join(", ")),
        parts.last().copied(),
    )
}

fn pure_demand(seen: &Seen<'_>) -> Cell {
    let part = part(seen, [Access::AskedOnly, Access::AskedAndFree], 0.1, "delay_s");
    PAGE.claim("pure-demand").holds(
        part.clearly_above(2.0),
        format!("{} times", shown(part, 2)),
        Some(part),
    )
}
