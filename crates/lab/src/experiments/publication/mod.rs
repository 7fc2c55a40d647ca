//! Publications as data files, held against results.
//!
//! ```text
//!   papers/ID/paper.toml ── summary, set-up ─────────────────────▶ top of the result page
//!   papers/ID/PART.toml ── title, text, claims, headings ──▶ Page ─▶ a section of it
//!   judge/part.rs ── what was measured, by a claim's id ────┘
//! ```
//!
//! A data file states what was published, when ours agrees, and why it does or does not. The code
//! states only how the measured value is made of the results. [`Claim`] describes the keys.

mod claim;
mod found;

pub(super) use claim::{Claim, Tolerance};
pub(super) use found::{Found, Side};

use super::{Axis, Cell, Figure, Results, Section, Series, SetUp, Summary, Table, Verdict};
use serde::Deserialize;

/// Declares the data file of a whole publication, `papers/ID/paper.toml`, as a static.
macro_rules! paper {
    ($visible:vis $name:ident = $id:literal) => {
        $visible static $name: std::sync::LazyLock<$crate::experiments::publication::Paper> =
            std::sync::LazyLock::new(|| {
                let text = include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"), "/papers/", $id, "/paper.toml"
                ));
                $crate::experiments::publication::Paper::parse($id, text)
            });
    };
}

/// Declares the data file of one section, `papers/ID/PART.toml`, as a static; it is named without
/// its ending.
macro_rules! page {
    ($visible:vis $name:ident = $part:literal) => {
        $visible static $name: std::sync::LazyLock<$crate::experiments::publication::Page> =
            std::sync::LazyLock::new(|| {
                let text = include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"), "/papers/", $part, ".toml"
                ));
                $crate::experiments::publication::Page::parse($part, text)
            });
    };
}

pub(super) use {page, paper};

/// What stands at the top of a publication's result page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paper {
    #[serde(default)]
    summary: Vec<String>,
    #[serde(default)]
    set_up: Vec<Line>,
}

/// A line of the set-up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    /// What the publication says; empty when it says nothing.
    #[serde(default)]
    published: String,
    /// What is taken here; as published where it is left out. A name in braces stands for a value
    /// that the code gives.
    ours: Option<String>,
    #[serde(default)]
    why: String,
    /// Whether ours was fitted to the published results.
    #[serde(default)]
    fitted: bool,
}

impl Paper {
    /// Reads the text of a data file.
    ///
    /// # Panics
    /// When it is malformed: the file is part of the program.
    pub(super) fn parse(id: &str, text: &str) -> Self {
        toml::from_str(text).unwrap_or_else(|error| panic!("papers/{id}/paper.toml: {error}"))
    }

    /// The paragraphs at the top, with `values` in place of their names in braces.
    pub(super) fn summary(&self, values: &[(&str, String)]) -> Vec<String> {
        self.summary.iter().map(|text| filled(text, values)).collect()
    }

    /// The lines of the set-up, with `values` in place of their names in braces.
    pub(super) fn set_up(&self, values: &[(&str, String)]) -> Vec<SetUp> {
        let line = |line: &Line| SetUp {
            name: line.name.clone(),
            published: line.published.clone(),
            ours: line.ours.as_ref().map_or("the same".to_owned(), |ours| filled(ours, values)),
            why: line.why.clone(),
            fitted: line.fitted,
        };
        self.set_up.iter().map(line).collect()
    }
}

/// A section of a result page: its words, and what was published.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    title: String,
    #[serde(default)]
    text: Vec<String>,
    #[serde(default, rename = "claim")]
    claims: Vec<Claim>,
    #[serde(default, rename = "figure")]
    figures: Vec<FigureHeading>,
    #[serde(default, rename = "table")]
    tables: Vec<TableHeading>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureHeading {
    id: String,
    title: String,
    x: String,
    y: String,
    /// Axes that are logarithmic.
    #[serde(default)]
    log: String,
    #[serde(default)]
    note: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableHeading {
    id: String,
    title: String,
    #[serde(default)]
    head: Vec<String>,
}

/// How the value of a claim is made of the results.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measure {
    /// A number, in the claim's unit.
    Number(fn(&Results) -> Summary),
    /// What was found about a statement.
    That(fn(&Results) -> Found),
}

impl Page {
    /// Reads the text of a data file.
    ///
    /// # Panics
    /// When it is malformed: the file is part of the program.
    pub(super) fn parse(name: &str, text: &str) -> Self {
        toml::from_str(text).unwrap_or_else(|error| panic!("papers/{name}.toml: {error}"))
    }

    /// The section with its title and text alone.
    pub(super) fn section(&self) -> Section {
        self.section_with(&[])
    }

    /// The same, with `values` in place of their names in braces.
    pub(super) fn section_with(&self, values: &[(&str, String)]) -> Section {
        let text = self.text.iter().map(|text| filled(text, values)).collect();
        Section { title: self.title.clone(), text, ..Section::default() }
    }

    /// The figure called `id`, with these lines.
    pub(super) fn figure(&self, id: &str, series: Vec<Series>) -> Figure {
        let found = self.named(id, &self.figures, |figure| &figure.id);
        let axis = |label: &String, name| match found.log.contains(name) {
            true => Axis::log(label),
            false => Axis::linear(label),
        };
        Figure {
            id: id.to_owned(),
            title: found.title.clone(),
            x: axis(&found.x, 'x'),
            y: axis(&found.y, 'y'),
            series,
            note: found.note.clone(),
        }
    }

    /// The table called `id`, with these rows.
    pub(super) fn table(&self, id: &str, rows: impl IntoIterator<Item = Vec<String>>) -> Table {
        let found = self.named(id, &self.tables, |table| &table.id);
        Table {
            id: id.to_owned(),
            title: found.title.clone(),
            head: found.head.clone(),
            rows: rows.into_iter().collect(),
        }
    }

    /// The claim called `id`.
    pub(super) fn claim(&self, id: &str) -> &Claim {
        self.named(id, &self.claims, |claim| &claim.id)
    }

    /// All claims, in the order of the page.
    pub(super) fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// Holds what was measured against each claim, but for those of several numbers. A claim
    /// that nothing can be held against needs no measure.
    ///
    /// # Panics
    /// When a claim has no measure.
    pub(super) fn judge(&self, measures: &[(&str, Measure)], results: &Results) -> Vec<Cell> {
        let single = self.claims.iter().filter(|claim| !claim.has_values());
        single.map(|claim| self.judge_one(claim, measures, results)).collect()
    }

    /// Holds live results against those claims whose points all were run live, each beside the
    /// same claim held against `twin`, the simulated results of the same programs.
    pub(super) fn beside(
        &self,
        measures: &[(&str, Measure)],
        twin: &Results,
        live: &Results,
    ) -> Vec<(Cell, Cell)> {
        let both = |claim: &Claim| {
            let live = live.whole(|live| self.judge_one(claim, measures, live))?;
            let is_comparable = live.verdict != Verdict::NotComparable;
            is_comparable.then(|| (self.judge_one(claim, measures, twin), live))
        };
        self.claims.iter().filter(|claim| !claim.has_values()).filter_map(both).collect()
    }

    fn judge_one(&self, claim: &Claim, measures: &[(&str, Measure)], results: &Results) -> Cell {
        if claim.is_comparable() {
            let measure = measures.iter().find(|(id, _)| *id == claim.id);
            let (_, measure) = measure
                .unwrap_or_else(|| panic!("{}: {}: no measure of the claim", self.title, claim.id));
            match measure {
                Measure::Number(ours) => claim.number(bare(ours(results))),
                Measure::That(found) => claim.found(found(results)),
            }
        } else {
            claim.not_comparable()
        }
    }

    fn named<'a, T>(&self, id: &str, all: &'a [T], name: fn(&T) -> &String) -> &'a T {
        let found = all.iter().find(|one| name(one) == id);
        found.unwrap_or_else(|| panic!("{}: nothing is called {id:?} there", self.title))
    }
}

/// A single value, reckoned or run once, has no interval.
fn bare(number: Summary) -> Summary {
    if number.n > 1 { number } else { Summary { half: f64::INFINITY, ..number } }
}

/// `text` with each name in braces replaced by its value.
fn filled(text: &str, values: &[(&str, String)]) -> String {
    values
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

#[cfg(test)]
mod tests;
