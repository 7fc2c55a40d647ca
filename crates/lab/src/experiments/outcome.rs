//! Evaluated results: set-up, cells, figures, tables and text.

use super::cell::{Cell, Evidence, Kind, Measured, Verdict};
use super::figure::Figure;
use serde::{Deserialize, Serialize};

/// The evaluated results of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Summary paragraphs at the top of the page.
    pub summary: Vec<String>,
    /// Pictures after the summary.
    #[serde(default)]
    pub pictures: Vec<Picture>,
    /// Parameters.
    pub set_up: Vec<SetUp>,
    /// Sections of the report, in order.
    pub sections: Vec<Section>,
}

/// A picture that is not a line plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// File name without extension.
    pub id: String,
    /// Alternative text.
    pub title: String,
    /// The picture as SVG.
    pub svg: String,
    /// Caption.
    pub note: String,
}

/// One row of the table of parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetUp {
    /// Name of the parameter.
    pub name: String,
    /// The publication's value; empty if it states none.
    pub published: String,
    /// The value used here.
    pub ours: String,
    /// Reason for the value where the publication leaves it open.
    pub why: String,
    /// Whether the value was fitted to the published results.
    pub fitted: bool,
}

/// A section of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Paragraphs.
    pub text: Vec<String>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Cells.
    pub cells: Vec<Cell>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// File name without extension.
    pub id: String,
    /// Caption.
    pub title: String,
    /// Column names.
    pub head: Vec<String>,
    /// Rows, each of as many entries as the head.
    pub rows: Vec<Vec<String>>,
}

/// Results of live runs, for comparison with an outcome.
#[derive(Clone, Debug, Default)]
pub struct CrossTraffic {
    /// Cells computed from the simulator's model of the same programs, and from the live runs.
    /// Their names and places are those of cells of the outcome or of `sections`.
    pub cells: Vec<(Cell, Cell)>,
    /// Sections about the live runs alone.
    pub sections: Vec<Section>,
}

impl Outcome {
    /// Adds the live results to the cells.
    pub(super) fn put_beside(&mut self, beside: CrossTraffic) {
        self.sections.extend(beside.sections);
        for (simulated, live) in &beside.cells {
            let same = |cell: &&mut Cell| cell.name == live.name && cell.place == live.place;
            let mut cells = self.sections.iter_mut().flat_map(|section| &mut section.cells);
            let cell = cells.find(same);
            debug_assert!(cell.is_some(), "no cell {} of {}", live.name, live.place);
            if let Some(cell) = cell {
                cell.live = Some(Measured::new(simulated, live));
            }
        }
    }

    /// Returns the number of cells measured live, and of those that agree with the simulation.
    pub fn vouched(&self) -> [usize; 2] {
        let live = || self.cells().filter_map(|cell| cell.live.as_ref());
        [live().count(), live().filter(|live| live.agrees).count()]
    }

    /// Returns all cells, in the order of the report.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.sections.iter().flat_map(|section| &section.cells)
    }

    /// Returns the counts of cells in words: first those that are simulated or live, then the
    /// others.
    pub fn headline(&self) -> String {
        let count = |evidence, kind: Option<Kind>| {
            let cells = self.cells().filter(|cell| cell.evidence == evidence);
            agreement(cells.filter(|cell| kind == Some(cell.kind) || kind.is_none()))
        };
        let mut text = String::new();
        for evidence in Evidence::ALL.into_iter().filter(|evidence| evidence.is_headline()) {
            let [agree, of] = count(evidence, None);
            let [numbers, all] = count(evidence, Some(Kind::Number));
            if of > 0 {
                text += &format!(
                    "{}: {agree} of {of} cells agree, {numbers} of {all} numbers and {} of {} \
                     statements. ",
                    evidence.name(),
                    agree - numbers,
                    of - all
                );
            }
        }
        let apart = Evidence::ALL.into_iter().filter_map(|evidence| {
            let [agree, of] = count(evidence, None);
            let shown = of > 0 && !evidence.is_headline();
            shown.then(|| format!("{} {agree} of {of}", evidence.name()))
        });
        let apart: Vec<String> = apart.collect();
        if !apart.is_empty() {
            text += &format!("Counted apart: {}. ", apart.join(", "));
        }
        format!("{text}Not comparable: {}.", self.count(Verdict::NotComparable))
    }

    /// Returns the number of cells with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cells().filter(|cell| cell.verdict == verdict).count()
    }

    /// Returns the number of fitted parameters.
    pub fn fitted(&self) -> usize {
        self.set_up.iter().filter(|line| line.fitted).count()
    }
}

/// Returns how many of these cells agree, and how many were compared.
pub(super) fn agreement<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> [usize; 2] {
    cells.into_iter().fold([0, 0], |[agree, of], cell| match cell.verdict {
        Verdict::Agrees => [agree + 1, of + 1],
        Verdict::Differs => [agree, of + 1],
        Verdict::NotComparable => [agree, of],
    })
}
