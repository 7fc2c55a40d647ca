//! Other interpretations of what the paper leaves open, one at a time.

use super::scenarios::entry;
use super::{Seen, key, shown};
use crate::experiments::mhatre_rosenberg::{READINGS, TABLE, THREE};
use crate::experiments::publication::page;
use crate::experiments::{Section, Table};
use sim::multi_access::{Interpretation, Scenario};

page!(PAGE = "mhatre-rosenberg/readings");

/// The values shown: heading, name and decimals.
const SHOWN: [(&str, &str, usize); 4] = [
    ("objects", "objects", 0),
    ("mean response, s", "mean_s", 2),
    ("longest response, s", "longest_s", 1),
    ("downlink, bytes an object", "down_bytes", 0),
];

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let names = THREE.map(|scenario| scenario.name());
    let table = |(place, (what, value, digits)): (usize, (&str, &str, usize))| {
        let head = ["reading"].into_iter().chain(names).map(str::to_owned).collect();
        let mut rows = vec![base(seen, value, digits)];
        rows.extend(Interpretation::ALL.map(|reading| row(seen, reading, value, digits)));
        let table = PAGE.table("readings", rows);
        let title = format!("{} {what}", table.title);
        Table { id: format!("readings-{}", place + 1), title, head, ..table }
    };
    let tables = SHOWN.into_iter().enumerate().map(table).collect();
    Section { tables, ..PAGE.section_with(&values(seen)) }
}

/// Returns the ranges that no interpretation exceeds.
fn values(seen: &Seen<'_>) -> Vec<(&'static str, String)> {
    let value = |scenario: Scenario, reading: Interpretation, name: &str| {
        seen.results.summary(READINGS, &key(scenario, reading.name()), name).mean
    };
    let range = |scenario: Scenario, name: &str| {
        let all = Interpretation::ALL.into_iter().filter(|reading| reading.concerns(scenario));
        let all = all.filter(|&reading| reading != Interpretation::OpenLoop);
        all.map(|reading| value(scenario, reading, name))
            .fold((f64::MAX, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)))
    };
    let longest = THREE.map(|scenario| range(scenario, "longest_s").1);
    let bytes = THREE.map(|scenario| range(scenario, "down_bytes"));
    let least = bytes.iter().map(|range| range.0).fold(f64::MAX, f64::min);
    let most = bytes.iter().map(|range| range.1).fold(0.0, f64::max);
    let whole = |value: f64| format!("{value:.0}");
    vec![
        ("longest_1", format!("{:.1}", longest[0])),
        ("longest_2", format!("{:.1}", longest[1])),
        ("longest_3", format!("{:.1}", longest[2])),
        ("least", whole(least)),
        ("most", whole(most)),
        ("bytes_1", whole(published(0))),
        ("bytes_2", whole(published(1))),
        ("bytes_3", whole(published(2))),
        ("parts", [0, 1, 2].map(|place| whole(published(place) * 50.0 / 80.0)).join(", ")),
        ("segments", whole(4_096.0 + 8.0 * 40.0)),
    ]
}

/// Returns the octets of the downlink per object in table I.
fn published(place: usize) -> f64 {
    let number = |value: &str| entry(value, place).value();
    number("down_kbps") * 1e3 / 8.0 * 80.0 / number("objects")
}

fn base(seen: &Seen<'_>, value: &str, digits: usize) -> Vec<String> {
    let first = core::iter::once("as in the set-up".to_owned());
    first
        .chain(THREE.map(|s| shown(seen.results.summary(TABLE, s.name(), value), digits)))
        .collect()
}

fn row(seen: &Seen<'_>, reading: Interpretation, value: &str, digits: usize) -> Vec<String> {
    let cells = THREE.map(|scenario| match reading.concerns(scenario) {
        true => {
            let key = key(scenario, reading.name());
            shown(seen.results.summary(READINGS, &key, value), digits)
        }
        false => "–".to_owned(),
    });
    core::iter::once(reading.name().to_owned()).chain(cells).collect()
}
