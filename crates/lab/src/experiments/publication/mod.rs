//! Publications as data files, compared with results.
//!
//! ```text
//!   papers/ID/paper.toml ── summary, set-up ─────────────────────▶ top of the result page
//!   papers/ID/PART.toml ── title, text, claims, headings ──▶ Page ─▶ a section of it
//!   judge/part.rs ── what was measured, by a claim's id ────┘
//! ```
//!
//! A data file states published values, criteria and explanations. The code computes the measured
//! values only. [`Claim`] documents the keys.

mod claim;
mod found;

pub(super) use claim::{Claim, Tolerance};
pub(super) use found::{Found, Side};

use super::{
    Axis, Cell, Evidence, Figure, Results, Section, Series, SetUp, Summary, Table, Verdict,
};
use serde::Deserialize;

/// Declares a static for `papers/ID/paper.toml`, the data file of a whole publication.
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

/// Declares a static for `papers/ID/PART.toml`, the data file of one section, which is named
/// without extension.
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

/// Summary and set-up of a publication's result page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paper {
    #[serde(default)]
    summary: Vec<String>,
    #[serde(default)]
    set_up: Vec<Line>,
}

/// A row of the set-up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    /// The publication's value; empty if it states none.
    #[serde(default)]
    published: String,
    /// The value used here; as published if omitted. A name in braces is replaced by a value that
    /// the code provides.
    ours: Option<String>,
    #[serde(default)]
    why: String,
    /// Whether the value was fitted to the published results.
    #[serde(default)]
    fitted: bool,
}

impl Paper {
    /// Parses a data file.
    ///
    /// # Panics
    /// If it is malformed: the file is part of the program.
    pub(super) fn parse(id: &str, text: &str) -> Self {
        toml::from_str(text).unwrap_or_else(|error| panic!("papers/{id}/paper.toml: {error}"))
    }

    /// Returns the summary with `values` substituted for their names in braces.
    pub(super) fn summary(&self, values: &[(&str, String)]) -> Vec<String> {
        self.summary.iter().map(|text| filled(text, values)).collect()
    }

    /// Returns the set-up with `values` substituted for their names in braces.
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

/// A section of a result page: text and claims.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    title: String,
    #[serde(default)]
    text: Vec<String>,
    /// What the verdicts of its claims rest on, except for those that state it themselves.
    evidence: Option<Evidence>,
    /// The tolerance of its numbers, except for those that state it themselves.
    tolerance: Option<Tolerance>,
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
    /// The logarithmic axes: `x`, `y` or `xy`.
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

/// Computes the measured value of a claim.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measure {
    /// A number, in the claim's unit.
    Number(fn(&Results) -> Summary),
    /// The finding about a statement.
    That(fn(&Results) -> Found),
}

/// Returns the measure of a number, by the claim's id.
pub(super) const fn number(
    id: &'static str,
    ours: fn(&Results) -> Summary,
) -> (&'static str, Measure) {
    (id, Measure::Number(ours))
}

/// Returns the measure of a statement, by the claim's id.
pub(super) const fn that(
    id: &'static str,
    found: fn(&Results) -> Found,
) -> (&'static str, Measure) {
    (id, Measure::That(found))
}

impl Page {
    /// Parses a data file.
    ///
    /// # Panics
    /// If it is malformed: the file is part of the program.
    pub(super) fn parse(name: &str, text: &str) -> Self {
        let read = toml::from_str::<toml::Table>(text).map(completed);
        let mut page: Self = (read.and_then(toml::Table::try_into))
            .unwrap_or_else(|error| panic!("papers/{name}.toml: {error}"));
        for claim in &mut page.claims {
            claim.evidence = claim.evidence.or(page.evidence);
            claim.tolerance = claim.tolerance.take().or_else(|| page.tolerance.clone());
        }
        page
    }

    /// Returns the section with title and text.
    pub(super) fn section(&self) -> Section {
        self.section_with(&[])
    }

    /// Returns the section with `values` substituted for their names in braces.
    pub(super) fn section_with(&self, values: &[(&str, String)]) -> Section {
        let text = self.text.iter().map(|text| filled(text, values)).collect();
        Section { title: self.title.clone(), text, ..Section::default() }
    }

    /// Returns the figure called `id` with these series.
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

    /// Returns the table called `id` with these rows.
    pub(super) fn table(&self, id: &str, rows: impl IntoIterator<Item = Vec<String>>) -> Table {
        let found = self.named(id, &self.tables, |table| &table.id);
        Table {
            id: id.to_owned(),
            title: found.title.clone(),
            head: found.head.clone(),
            rows: rows.into_iter().collect(),
        }
    }

    /// Returns the claim called `id`.
    pub(super) fn claim(&self, id: &str) -> &Claim {
        self.named(id, &self.claims, |claim| &claim.id)
    }

    /// Returns all claims, in the order of the page.
    pub(super) fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// Evaluates each claim, except those of several numbers. Claims that nothing can be compared
    /// with need no measure.
    ///
    /// # Panics
    /// If a claim has no measure.
    pub(super) fn judge(&self, measures: &[(&str, Measure)], results: &Results) -> Vec<Cell> {
        let single = self.claims.iter().filter(|claim| !claim.has_values());
        single.map(|claim| self.judge_one(claim, measures, results)).collect()
    }

    /// Evaluates the claims whose points were all run live, from `live` and from `twin`, the
    /// simulated results of the same programs.
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

/// Adds to each claim with `like` the keys of the claim of that id, except those that it has itself.
fn completed(mut page: toml::Table) -> toml::Table {
    let claims = page.get_mut("claim").and_then(toml::Value::as_array_mut);
    let Some(claims) = claims else { return page };
    for place in 0..claims.len() {
        let (before, after) = claims.split_at_mut(place);
        let Some(claim) = after[0].as_table_mut() else { continue };
        let Some(like) = claim.remove("like") else { continue };
        let base = before.iter().find(|other| other.get("id") == Some(&like));
        let base = base.and_then(toml::Value::as_table);
        for (key, value) in base.unwrap_or_else(|| panic!("{like}: no claim before has this id")) {
            claim.entry(key).or_insert_with(|| value.clone());
        }
    }
    page
}

/// Removes the interval of a value that was computed or run once.
fn bare(number: Summary) -> Summary {
    if number.n > 1 { number } else { Summary { half: f64::INFINITY, ..number } }
}

/// Substitutes values for their names in braces.
fn filled(text: &str, values: &[(&str, String)]) -> String {
    values
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

#[cfg(test)]
mod tests;
