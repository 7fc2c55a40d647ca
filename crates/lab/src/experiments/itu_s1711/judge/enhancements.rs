//! Annex 2, table 3: a cell for each enhancement and impairment.

use super::super::MATRIX;
use super::super::enhancements::{Impairment, all, key};
use super::super::varied;
use crate::experiments::publication::{Claim, page};
use crate::experiments::statistics::{relative_gain, shown};
use crate::experiments::{Cell, Results, Section, Summary, Table};
use serde::Deserialize;

page!(PAGE = "itu-s1711/enhancements");

/// The statement of table 3 about an enhancement under an impairment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Says {
    Yes,
    No,
    Partly,
    Irrelevant,
}

use Says::{Irrelevant, No, Partly, Yes};

/// Gains below this count as none, percent.
const GAIN: f64 = 5.0;

impl Says {
    fn holds(self, gain: Summary) -> bool {
        let half = gain.interval().map_or(0.0, |_| gain.half);
        match self {
            Yes => gain.mean - half >= GAIN,
            No | Irrelevant => gain.mean + half < GAIN,
            Partly => gain.mean - half > 0.0,
        }
    }
}

/// Returns the gain of an enhancement in percent.
fn gain(results: &Results, name: &str, impairment: Impairment) -> Summary {
    between(results, [true, false].map(|with| key(name, with, impairment)))
}

/// Returns how much more the first of two points has, in percent of the second.
fn between(results: &Results, keys: [String; 2]) -> Summary {
    let [with, without] = keys.map(|key| results.values(MATRIX, &key, "score"));
    relative_gain(&with, &without).scaled(100.0)
}

fn claim(enhancement: &str, impairment: Impairment) -> (&'static Claim, Says) {
    let claim = PAGE.claim(&format!("{enhancement}: {}", impairment.name()));
    (claim, claim.test().expect("what the table says"))
}

/// Returns the enhancements with a row in table 3.
fn published() -> impl Iterator<Item = &'static str> {
    PAGE.claims().iter().filter_map(|claim| claim.id().strip_suffix(": latency"))
}

fn cell(results: &Results, enhancement: &str, impairment: Impairment) -> Cell {
    let (claim, says) = claim(enhancement, impairment);
    let gain = gain(results, enhancement, impairment);
    claim.holds(says.holds(gain), format!("{:+.1} %", gain.mean), Some(gain))
}

pub(super) fn section(results: &Results) -> Section {
    let columns = [Impairment::Latency, Impairment::Product, Impairment::Errors];
    let cells = published().flat_map(|name| columns.map(|column| cell(results, name, column)));
    Section {
        tables: vec![table(results), reasons(results)],
        cells: cells.collect(),
        ..PAGE.section()
    }
}

/// Returns the grids behind the entries that differ.
fn reasons(results: &Results) -> Table {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for one in varied::all() {
        let gain = between(results, [true, false].map(|with| one.key(with)));
        let [first, second] = &one.what;
        let text = format!("{second}: {} %", shown(gain, 1));
        let head = [format!("{}: {}", one.name, one.impairment.name()), first.clone()];
        match rows.last_mut().filter(|row| row[..2] == head) {
            Some(row) => row[2] = format!("{}; {text}", row[2]),
            None => rows.push([&head[..], &[text]].concat()),
        }
    }
    PAGE.table("table-3-reasons", rows)
}

fn table(results: &Results) -> Table {
    let rows = all().into_iter().map(|enhancement| {
        let name = enhancement.name;
        let mut words = vec![name.to_owned()];
        for (column, impairment) in Impairment::ALL.into_iter().enumerate() {
            let is_published = column < 3 && published().any(|other| other == name);
            let says = match is_published.then(|| claim(name, impairment).1) {
                None => "",
                Some(Yes) => "yes: ",
                Some(No) => "no: ",
                Some(Partly) => "partly: ",
                Some(Irrelevant) => "not relevant: ",
            };
            words.push(format!("{says}{} %", shown(gain(results, name, impairment), 0)));
        }
        words
    });
    let head = ["enhancement"].into_iter().chain(Impairment::ALL.map(Impairment::name));
    Table { head: head.map(str::to_owned).collect(), ..PAGE.table("table-3", rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_measured() {
        let all = all();
        assert_eq!(published().count(), 11);
        for row in published() {
            assert!(all.iter().any(|one| one.name == row), "{row}");
        }
        let half = |mean, half| Summary { n: 10, mean, deviation: 1.0, half };
        assert!(Yes.holds(half(9.0, 3.0)) && !Yes.holds(half(7.0, 3.0)));
        assert!(No.holds(half(1.0, 3.0)) && !No.holds(half(3.0, 3.0)));
        assert!(Partly.holds(half(1.0, 0.5)) && !Partly.holds(half(0.4, 0.5)));
    }
}
