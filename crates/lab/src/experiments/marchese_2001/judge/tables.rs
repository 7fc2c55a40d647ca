//! Tables III to VIII.

use super::super::TESTS;
use super::super::bench::{LARGE, MEDIUM, SMALL, Test, test};
use super::sentences::PAGE;
use crate::experiments::publication::Tolerance;
use crate::experiments::{Cell, Evidence, Results, Summary};
use serde::Deserialize;

/// Identifiers of the tables. Each is a claim with rows of initial window, buffer in kbytes,
/// published seconds and, except for the reference, published gain in percent.
const TABLES: [&str; 6] =
    ["table-iii", "table-iv", "table-v", "table-vi", "table-vii", "table-viii"];

/// File and reference of a table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    file: File,
    /// Reference of the gains: initial window and buffer.
    reference: (u32, u64),
    /// Rows whose times the reading of the paper was chosen by.
    #[serde(default)]
    fitted: Vec<(u32, u64)>,
    /// Tolerance of the gains, if it is not that of all numbers.
    gains: Option<Tolerance>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum File {
    Small,
    Medium,
    Large,
}

impl File {
    fn bytes(&self) -> u64 {
        match self {
            Self::Small => SMALL,
            Self::Medium => MEDIUM,
            Self::Large => LARGE,
        }
    }
}

/// Returns the duration of a test with the parameters called `bench`, in seconds.
pub(super) fn seconds(results: &Results, bench: &str, test: Test) -> f64 {
    let key = format!("{bench}/{}/{}/{}", test.bytes, test.window, test.buffer);
    results.summary(TESTS, &key, "seconds").mean
}

/// Returns all cells of the tables, times and gains, with the parameters called `bench`.
pub(in super::super) fn cells(results: &Results, bench: &str) -> Vec<Cell> {
    let mut cells = Vec::new();
    for table in TABLES.map(|id| PAGE.claim(id)) {
        let About { file, reference, fitted, gains } =
            table.test().expect("a file and a reference");
        let of = |window, buffer| seconds(results, bench, test(file.bytes(), window, buffer));
        let reference = of(reference.0, reference.1);
        for row in table.values::<Vec<Vec<f64>>>() {
            let (window, buffer) = (row[0] as u32, row[1] as u64);
            let ours = of(window, buffer);
            let name = format!("{}: window {window}, {buffer} kbytes", table.place());
            let time = table.cell(format!("{name}: time"), row[2], Summary::of(&[ours]));
            let evidence = match fitted.contains(&(window, buffer)) {
                true => Evidence::Fitted,
                false => time.evidence,
            };
            cells.push(Cell { evidence, ..time });
            if let Some(&gain) = row.get(3) {
                let ours = Summary::of(&[(100.0 * (1.0 - ours / reference)).max(0.0)]);
                let cell = table.cell_within(format!("{name}: gain"), gain, gains.as_ref(), ours);
                cells.push(Cell { unit: "%".to_owned(), ..cell });
            }
        }
    }
    cells
}
