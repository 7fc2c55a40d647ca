//! What an experiment came to: set-up, cells, figures, tables and the words between them.

use super::cell::{Cell, Measured, Verdict};
use super::figure::Figure;
use serde::{Deserialize, Serialize};

/// What an entry makes of its results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What stands at the top, for who reads no further. Each is a paragraph.
    pub summary: Vec<String>,
    /// Pictures that show the whole, at the top as well.
    #[serde(default)]
    pub pictures: Vec<Picture>,
    /// The set-up.
    pub set_up: Vec<SetUp>,
    /// The parts of the report, in order.
    pub sections: Vec<Section>,
}

/// A picture that is no plot of lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// The file's name without ending.
    pub id: String,
    /// What it is, for who cannot see it.
    pub title: String,
    /// The picture.
    pub svg: String,
    /// What to know about it.
    pub note: String,
}

/// One line of the set-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetUp {
    /// What it is about.
    pub name: String,
    /// What the publication says; empty when it says nothing.
    pub published: String,
    /// What we take.
    pub ours: String,
    /// Why, where the publication leaves it open.
    pub why: String,
    /// Whether ours was fitted to the published results.
    pub fitted: bool,
}

/// A part of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// Its paragraphs.
    pub text: Vec<String>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Its cells.
    pub cells: Vec<Cell>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The file's name without ending.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Names of the columns.
    pub head: Vec<String>,
    /// The rows; as many texts as the head has.
    pub rows: Vec<Vec<String>>,
}

/// What live runs add to an outcome.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Cells as they are with the simulator's model of the same programs, and as they are live.
    /// Their names and places are those of the outcome's cells, or of
    /// `sections`'.
    pub cells: Vec<(Cell, Cell)>,
    /// Parts of the report about live runs alone.
    pub sections: Vec<Section>,
}

impl Outcome {
    /// Puts what was measured live beside the cells.
    pub(super) fn put_beside(&mut self, beside: Beside) {
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

    /// Cells that were measured live, and those of them that agree with the simulated.
    pub fn vouched(&self) -> [usize; 2] {
        let live = || self.cells().filter_map(|cell| cell.live.as_ref());
        [live().count(), live().filter(|live| live.agrees).count()]
    }

    /// All cells, in the order of the report.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.sections.iter().flat_map(|section| &section.cells)
    }

    /// How many cells have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cells().filter(|cell| cell.verdict == verdict).count()
    }

    /// How many values of the set-up were fitted.
    pub fn fitted(&self) -> usize {
        self.set_up.iter().filter(|line| line.fitted).count()
    }
}
