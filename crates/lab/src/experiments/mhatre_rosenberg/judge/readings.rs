//! What the paper leaves open, read otherwise, one thing at a time.

use super::{Seen, key, shown};
use crate::experiments::mhatre_rosenberg::{READINGS, TABLE, THREE};
use crate::experiments::{Section, Table};
use sim::multi_access::Reading;

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut rows = vec![base(seen)];
    rows.extend(Reading::ALL.map(|reading| row(seen, reading)));
    let names = THREE.map(|scenario| scenario.name());
    let head: Vec<String> = core::iter::once("reading".to_owned())
        .chain(names.iter().map(|name| format!("{name}: objects")))
        .chain(names.iter().map(|name| format!("{name}: mean response, s")))
        .collect();
    let title = "What the paper leaves open, read otherwise, one thing at a time".to_owned();
    let table = Table { id: "readings".into(), title: title.clone(), head, rows };
    Section { title, tables: vec![table], ..Section::default() }
}

fn base(seen: &Seen<'_>) -> Vec<String> {
    let cell = |name: &str, digits| {
        THREE.map(|s| shown(seen.results.summary(TABLE, s.name(), name), digits))
    };
    let first = core::iter::once("as in the set-up".to_owned());
    first.chain(cell("objects", 0)).chain(cell("mean_s", 2)).collect()
}

fn row(seen: &Seen<'_>, reading: Reading) -> Vec<String> {
    let cell = |name: &str, digits| {
        THREE.map(|scenario| match reading.concerns(scenario) {
            true => {
                let key = key(scenario, reading.name());
                shown(seen.results.summary(READINGS, &key, name), digits)
            }
            false => "–".to_owned(),
        })
    };
    let first = core::iter::once(reading.name().to_owned());
    first.chain(cell("objects", 0)).chain(cell("mean_s", 2)).collect()
}
