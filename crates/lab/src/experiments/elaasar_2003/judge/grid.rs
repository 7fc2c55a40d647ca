//! The cells of section 6 under all combinations of the parameters that the paper does not state.

use super::super::grid::{self, Combination};
use super::seen::Seen;
use super::{conclusion, connectivity, corruption, handoff};
use crate::csv;
use crate::experiments::cell::Answer;
use crate::experiments::publication::page;
use crate::experiments::{Cell, Evidence, Section, Table, Verdict};

page!(PAGE = "elaasar-2003/grid");

/// The stored tables: what a run with `grid=1` wrote.
const STORED: [&str; 2] = [
    include_str!("../../../../papers/elaasar-2003/grid-cells.csv"),
    include_str!("../../../../papers/elaasar-2003/grid-combinations.csv"),
];

fn cells(seen: &Seen<'_>) -> Vec<Cell> {
    let sections = [corruption::section, handoff::section, connectivity::section];
    let mut all: Vec<Cell> = sections.into_iter().flat_map(|of| of(seen).cells).collect();
    all.extend(conclusion::section(seen).cells);
    all.retain(|cell| cell.evidence == Evidence::Simulated);
    all
}

fn agrees(cell: &Cell) -> bool {
    cell.verdict == Verdict::Agrees
}

/// Adds the section of the grid, and to each differing cell of `sections` what the grid says of it.
pub(super) fn add(seen: &Seen<'_>, sections: &mut Vec<Section>) {
    let [mut of_cells, mut of_combinations] = STORED.map(csv::parse);
    if grid::is_run(seen.setting) {
        [of_cells, of_combinations] = run(seen);
    } else {
        of_cells.remove(0);
        of_combinations.remove(0);
    }
    for cell in sections.iter_mut().flat_map(|section| &mut section.cells) {
        let row = of_cells.iter().find(|row| row[0] == cell.name);
        if let Some(row) = row.filter(|_| cell.verdict == Verdict::Differs) {
            let values = if row[2].is_empty() { String::new() } else { format!(", {}", row[2]) };
            cell.reason += &format!(". In the grid it agrees in {} combinations{values}", row[1]);
        }
    }
    let best = of_combinations.first().map(|row| row.join(", ")).unwrap_or_default();
    let tables: Vec<Table> =
        vec![PAGE.table("grid-cells", of_cells), PAGE.table("grid-combinations", of_combinations)];
    sections.push(Section { tables, ..PAGE.section_with(&[("best", best)]) });
}

/// Returns the rows of both tables from the runs of the grid.
fn run(seen: &Seen<'_>) -> [Vec<Vec<String>>; 2] {
    let chosen = cells(seen);
    let all: Vec<(Combination, Vec<Cell>)> = Combination::all()
        .into_iter()
        .map(|combination| {
            let results = combination.results(seen.setting, seen.results);
            let setting = combination.setting(seen.setting);
            (combination, cells(&Seen::new(&setting, &results)))
        })
        .collect();
    let row = |(place, cell): (usize, &Cell)| {
        let of: Vec<&Cell> = all.iter().map(|(_, cells)| &cells[place]).collect();
        let many = of.iter().filter(|cell| agrees(cell)).count();
        let numbers = of.iter().filter_map(|cell| match cell.ours {
            Answer::Number(value) => Some(value),
            Answer::Words(_) => None,
        });
        let (least, most) = numbers
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let range = if least > most {
            String::new()
        } else {
            format!("with {least:.1} to {most:.1} {}", cell.unit)
        };
        let mut row = vec![cell.name.clone(), format!("{many} of {}", all.len()), range];
        // How often by each value of each parameter.
        for axis in 0..4 {
            let mut values: Vec<String> = Vec::new();
            for (combination, _) in &all {
                let value = combination.words()[axis].clone();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            let count = |value: &String| {
                let with = all
                    .iter()
                    .filter(|(one, cells)| one.words()[axis] == *value && agrees(&cells[place]));
                format!("{value}: {}", with.count())
            };
            row.push(values.iter().map(count).collect::<Vec<_>>().join(", "));
        }
        row
    };
    let differing = chosen.iter().enumerate().filter(|(_, cell)| !agrees(cell));
    let of_cells = differing.map(row).collect();
    let mut scored: Vec<(usize, Vec<String>)> = all
        .iter()
        .map(|(combination, cells)| {
            let half = |odd: usize| {
                let agree = cells.iter().enumerate().filter(|(_, cell)| agrees(cell));
                agree.filter(|(place, _)| place % 2 == odd).count()
            };
            let [first, second] = [0, 1].map(half);
            let of = |odd: usize| (0..cells.len()).filter(|place| place % 2 == odd).count();
            let mut row = combination.words().to_vec();
            row.extend([format!("{first} of {}", of(0)), format!("{second} of {}", of(1))]);
            (first, row)
        })
        .collect();
    scored.sort_by_key(|(first, _)| std::cmp::Reverse(*first));
    [of_cells, scored.into_iter().map(|(_, row)| row).collect()]
}
