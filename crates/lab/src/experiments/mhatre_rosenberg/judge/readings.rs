//! What the paper leaves open, read otherwise, one thing at a time.

use super::expected::TABLE_I;
use super::{Seen, key, shown};
use crate::experiments::mhatre_rosenberg::{READINGS, TABLE, THREE};
use crate::experiments::{Published, Section, Table};
use sim::multi_access::{Reading, Scenario};

/// What is shown of each, with its digits.
const SHOWN: [(&str, &str, usize); 4] = [
    ("objects", "objects", 0),
    ("mean response, s", "mean_s", 2),
    ("longest response, s", "longest_s", 1),
    ("downlink, bytes an object", "down_bytes", 0),
];

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let title = "What the paper leaves open, read otherwise, one thing at a time".to_owned();
    let names = THREE.map(|scenario| scenario.name());
    let table = |(place, (what, value, digits)): (usize, (&str, &str, usize))| {
        let head = ["reading"].into_iter().chain(names).map(str::to_owned).collect();
        let mut rows = vec![base(seen, value, digits)];
        rows.extend(Reading::ALL.map(|reading| row(seen, reading, value, digits)));
        Table {
            id: format!("readings-{}", place + 1),
            title: format!("Readings: {what}"),
            head,
            rows,
        }
    };
    let text = vec![text(seen)];
    let tables = SHOWN.into_iter().enumerate().map(table).collect();
    Section { title, text, tables, ..Section::default() }
}

/// What none of them explains.
fn text(seen: &Seen<'_>) -> String {
    let value = |scenario: Scenario, reading: Reading, name: &str| {
        seen.results.summary(READINGS, &key(scenario, reading.name()), name).mean
    };
    let range = |scenario: Scenario, name: &str| {
        let all = Reading::ALL.into_iter().filter(|reading| reading.concerns(scenario));
        let all = all.filter(|&reading| reading != Reading::OpenLoop);
        all.map(|reading| value(scenario, reading, name))
            .fold((f64::MAX, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)))
    };
    let longest = THREE.map(|scenario| range(scenario, "longest_s").1);
    let bytes = THREE.map(|scenario| range(scenario, "down_bytes"));
    let least = bytes.iter().map(|range| range.0).fold(f64::MAX, f64::min);
    let most = bytes.iter().map(|range| range.1).fold(0.0, f64::max);
    let times = [0, 1, 2].map(|place| 4_096.0 / published(place) * 80.0);
    let [shortest, longest_time] =
        [f64::min, f64::max].map(|pick| times.into_iter().reduce(pick).unwrap_or(0.0));
    format!(
        "In a closed loop the longest responses come to {:.1}, {:.1} and {:.1} s at most in the three \
         scenarios, whatever is read otherwise, and an object costs the downlink {least:.0} to \
         {most:.0} bytes of IP. The paper's {:.0}, {:.0} and {:.0} bytes, the same in all three within \
         one in a hundred, are no framing either: cells of ATM around segments of 536 bytes would \
         make 5.5 kB of an object of 4 kB, MPEG packets 6.0, and both less around longer segments. \
         Averages over {shortest:.0} to {longest_time:.0} s in place of 80 would be the objects' 4,096 \
         bytes alone, in all three; but the uplink's rates are those over 80 s.",
        longest[0],
        longest[1],
        longest[2],
        published(0),
        published(1),
        published(2),
    )
}

/// Bytes of the downlink for each object of table I.
fn published(place: usize) -> f64 {
    let number = |row: &str| {
        let row = TABLE_I.iter().find(|one| one.value == row).expect("a row of that name");
        match row.cells[place].published {
            Published::Number { value, .. } => value,
            Published::Claim(_) => f64::NAN,
        }
    };
    number("down_kbps") * 1e3 / 8.0 * 80.0 / number("objects")
}

fn base(seen: &Seen<'_>, value: &str, digits: usize) -> Vec<String> {
    let first = core::iter::once("as in the set-up".to_owned());
    first
        .chain(THREE.map(|s| shown(seen.results.summary(TABLE, s.name(), value), digits)))
        .collect()
}

fn row(seen: &Seen<'_>, reading: Reading, value: &str, digits: usize) -> Vec<String> {
    let cells = THREE.map(|scenario| match reading.concerns(scenario) {
        true => {
            let key = key(scenario, reading.name());
            shown(seen.results.summary(READINGS, &key, value), digits)
        }
        false => "–".to_owned(),
    });
    core::iter::once(reading.name().to_owned()).chain(cells).collect()
}
