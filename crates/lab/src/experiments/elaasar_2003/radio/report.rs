//! The sections on packet radio, in order.

use super::stacks::sweeps;
use super::{Results, cells, figures, tables};
use crate::experiments::Section;
use crate::experiments::publication::page;

page!(pub(super) RESULTS = "elaasar-2003/radio");
page!(pub(super) NUMBERS = "elaasar-2003/radio-numbers");
page!(pub(super) PARAMETERS = "elaasar-2003/radio-parameters");
page!(pub(super) COMPRESSION_PAGE = "elaasar-2003/radio-compression");

pub(super) fn sections(results: &Results) -> Vec<Section> {
    vec![results_of(results), numbers(), explanations(results), compression(results)]
}

fn results_of(results: &Results) -> Section {
    let mut cells = cells::numbers(results);
    cells.extend(cells::claims(results));
    Section {
        figures: vec![
            figures::latency_by_size(results),
            figures::throughput_by_size(results, 0),
            figures::throughput_by_size(results, 1),
        ],
        tables: vec![tables::stacks(results), tables::inside(results)],
        cells,
        ..RESULTS.section()
    }
}

fn numbers() -> Section {
    Section { tables: vec![tables::accounting(), tables::decomposition()], ..NUMBERS.section() }
}

fn explanations(results: &Results) -> Section {
    let sweeps = sweeps().iter().enumerate();
    let tables = sweeps.map(|(index, sweep)| tables::sweep(index + 1, sweep, results));
    Section { tables: tables.collect(), ..PARAMETERS.section() }
}

fn compression(results: &Results) -> Section {
    Section {
        figures: vec![figures::gain(results)],
        tables: vec![tables::compression(results)],
        cells: vec![cells::compression(results)],
        ..COMPRESSION_PAGE.section()
    }
}
