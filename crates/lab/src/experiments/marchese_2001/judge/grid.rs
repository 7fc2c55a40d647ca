//! The cells of the tables under all combinations of what the paper leaves open.

use super::super::bench::{Bench, grid};
use super::{LEFT_OPEN, tables};
use crate::experiments::{Cell, Evidence, Results, Table, Verdict};

/// The combinations, each with the cells of the tables.
pub(super) struct Grid(Vec<(&'static Bench, Vec<Cell>)>);

/// Combinations that the table shows.
const SHOWN: usize = 8;

fn agrees(cell: &Cell) -> bool {
    cell.verdict == Verdict::Agrees
}

impl Grid {
    pub(super) fn new(results: &Results) -> Self {
        let cells = |bench: &Bench| tables::cells(results, &bench.combination().join(", "));
        Self(grid().iter().map(|bench| (bench, cells(bench))).collect())
    }

    /// Adds to the reason of each differing cell in how many combinations it agrees.
    pub(super) fn quote(&self, cells: &mut [Cell]) {
        let differing = cells.iter_mut().enumerate();
        for (place, cell) in differing.filter(|(_, cell)| cell.verdict == Verdict::Differs) {
            let many = self.0.iter().filter(|(_, cells)| agrees(&cells[place])).count();
            cell.reason += &format!(". In the grid it agrees in {many} of {}", self.0.len());
        }
    }

    /// Returns the combinations with the most agreeing cells in one half of the tables, every second
    /// cell that is not fitted, and how many agree of the other half.
    pub(super) fn table(&self) -> Table {
        let mut rows: Vec<(usize, Vec<String>)> = Vec::new();
        for (bench, cells) in &self.0 {
            let free = cells.iter().filter(|cell| cell.evidence == Evidence::Simulated);
            let mut halves = [(0, 0); 2];
            for (place, cell) in free.enumerate() {
                let half = &mut halves[place % 2];
                *half = (half.0 + usize::from(agrees(cell)), half.1 + 1);
            }
            let mut row = bench.combination().to_vec();
            row.extend(halves.map(|(agree, of)| format!("{agree} of {of}")));
            rows.push((halves[0].0, row));
        }
        rows.sort_by_key(|(agree, _)| std::cmp::Reverse(*agree));
        LEFT_OPEN.table("grid", rows.into_iter().take(SHOWN).map(|(_, row)| row))
    }
}
