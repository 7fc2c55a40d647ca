//! One claim of a publication, and what becomes of it.

use super::{Found, bare};
use crate::experiments::cell::Answer;
use crate::experiments::{Cell, Kind, Summary, Verdict};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A number or a statement that was published, as its data file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Claim {
    /// The name by which the code gives its measured value.
    pub(super) id: String,
    /// A short name, for people; left out where `values` have names of their own.
    #[serde(default)]
    name: String,
    /// Where it stands: section, page, figure or table.
    place: String,
    /// The statement, in our words.
    statement: Option<String>,
    /// The published number, in `unit`.
    value: Option<f64>,
    /// A table's published numbers, in arrays as deep as the table has dimensions.
    values: Option<toml::Value>,
    #[serde(default)]
    unit: String,
    /// When ours agrees with a statement, in words.
    criterion: Option<String>,
    /// When ours agrees with a number: how far beside our interval it may be, as a fraction of
    /// the number.
    within: Option<f64>,
    /// The same in the number's unit.
    absolute: Option<f64>,
    /// What ours is. Files state it, and a misspelt kind is refused; nothing counts by it yet.
    #[expect(dead_code, reason = "a part of the format that the pages do not show")]
    #[serde(default)]
    evidence: Evidence,
    /// Why it comes out as it does, either way.
    reason: Option<String>,
    /// Why it agrees.
    #[serde(default)]
    agrees: String,
    /// Why it would not.
    #[serde(default)]
    differs: String,
    /// Why the means would agree within chance.
    chance: Option<String>,
    /// Why nothing can be held against it.
    not_comparable: Option<String>,
    /// When ours agrees, in the terms of the publication's own code.
    test: Option<toml::Value>,
}

/// What stands on our side of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Evidence {
    /// A simulation whose parameters were not chosen with the published value in view.
    #[default]
    Simulated,
    /// Real programs over the emulator.
    Live,
    /// A formula, or the document's own reckoning.
    Arithmetic,
    /// A simulation with a parameter that was chosen with the published value in view.
    Fitted,
    /// The set-up itself.
    Restated,
    /// A goal of this project and not of the publication.
    OwnGoal,
}

/// How far a published number may lie beside our interval. The interval counts up to the same
/// distance on either side: a wide one must not agree with everything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Tolerance {
    /// A fraction of the number.
    Within(f64),
    /// A distance in the number's unit.
    Absolute(f64),
}

const CHANCE: &str = "the means are as published, but the interval reaches to the other side: \
                      chance alone could make such a difference";

/// For a verdict that had not come up when reasons were written: another seed, another code.
const UNEXPLAINED: &str = "no reason is known; it was otherwise when reasons were written";

impl Claim {
    /// By which the code names it.
    pub(in super::super) fn id(&self) -> &str {
        &self.id
    }

    /// Where it stands.
    pub(in super::super) fn place(&self) -> &str {
        &self.place
    }

    /// Whether it is a table of numbers, each of which is a cell.
    pub(super) fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// Whether anything can be held against it.
    pub(in super::super) fn is_comparable(&self) -> bool {
        self.not_comparable.is_none()
    }

    /// The published number.
    ///
    /// # Panics
    /// When a statement was published.
    pub(in super::super) fn value(&self) -> f64 {
        self.value.unwrap_or_else(|| panic!("{}: no number was published", self.id))
    }

    /// The published numbers of a table.
    ///
    /// # Panics
    /// When they are not of this shape.
    pub(in super::super) fn values<T: DeserializeOwned>(&self) -> T {
        let values = self.values.clone().unwrap_or_else(|| panic!("{}: no table", self.id));
        values.try_into().unwrap_or_else(|error| panic!("{}: {error}", self.id))
    }

    /// When ours agrees, in the terms of the publication's own code.
    ///
    /// # Panics
    /// When that is malformed.
    pub(in super::super) fn test<T: DeserializeOwned>(&self) -> Option<T> {
        let test = self.test.clone()?;
        Some(test.try_into().unwrap_or_else(|error| panic!("{}: {error}", self.id)))
    }

    /// Holds `ours` against the published number.
    ///
    /// # Panics
    /// When a statement was published, or there is no tolerance.
    pub(in super::super) fn number(&self, ours: Summary) -> Cell {
        self.numeric(self.name.clone(), self.value(), self.tolerance(), ours)
    }

    /// Holds `ours` against a number that follows from what was published.
    pub(in super::super) fn number_beside(
        &self,
        value: f64,
        tolerance: Tolerance,
        ours: Summary,
    ) -> Cell {
        self.numeric(self.name.clone(), value, tolerance, ours)
    }

    /// Holds ours against one of a table's numbers.
    pub(in super::super) fn cell(
        &self,
        name: impl Into<String>,
        published: f64,
        ours: Summary,
    ) -> Cell {
        self.cell_within(name, published, self.tolerance(), ours)
    }

    /// The same with a tolerance of its own.
    pub(in super::super) fn cell_within(
        &self,
        name: impl Into<String>,
        published: f64,
        tolerance: Tolerance,
        ours: Summary,
    ) -> Cell {
        self.numeric(name.into(), published, tolerance, bare(ours))
    }

    fn tolerance(&self) -> Tolerance {
        match (self.within, self.absolute) {
            (Some(fraction), None) => Tolerance::Within(fraction),
            (None, Some(distance)) => Tolerance::Absolute(distance),
            both => panic!("{}: one tolerance is needed, found {both:?}", self.id),
        }
    }

    fn numeric(&self, name: String, value: f64, tolerance: Tolerance, ours: Summary) -> Cell {
        let slack = match tolerance {
            Tolerance::Within(fraction) => fraction * value.abs(),
            Tolerance::Absolute(distance) => distance,
        };
        // A single replication has no interval; then the tolerance alone decides.
        let half = ours.interval().map_or(0.0, |_| ours.half.min(slack));
        let agrees = (ours.mean - value).abs() <= half + slack;
        Cell {
            name,
            kind: Kind::Number,
            published: Answer::Number(value),
            ours: Answer::Number(ours.mean),
            ci95: ours.interval(),
            criterion: tolerance.words(),
            ..self.blank(agrees)
        }
    }

    /// Holds what was found against the published statement.
    pub(in super::super) fn found(&self, found: Found) -> Cell {
        let (holds, beyond, by) = (found.holds(), found.is_beyond_chance(), found.number());
        let cell = self.holds(holds && beyond, found.into_words(), by);
        if holds && !beyond {
            let reason = self.chance.as_deref().unwrap_or(CHANCE).to_owned();
            return Cell { reason, ..cell };
        }
        cell
    }

    /// Says whether the published statement holds for ours; `by` is the number that it stands on,
    /// where there is one.
    pub(in super::super) fn holds(
        &self,
        holds: bool,
        ours: impl Into<String>,
        by: Option<Summary>,
    ) -> Cell {
        let ci95 = by.and_then(|summary| summary.interval());
        Cell { ours: Answer::Words(ours.into()), ci95, ..self.blank(holds) }
    }

    /// Says that there is nothing to hold it against, and why.
    pub(in super::super) fn not_comparable(&self) -> Cell {
        let reason = self.not_comparable.clone().unwrap_or_default();
        Cell { verdict: Verdict::NotComparable, reason, ..self.blank(false) }
    }

    /// Says the same of one of a table's numbers.
    pub(in super::super) fn no_cell(&self, name: impl Into<String>, published: f64) -> Cell {
        Cell {
            name: name.into(),
            published: Answer::Number(published),
            criterion: self.tolerance().words(),
            ..self.not_comparable()
        }
    }

    /// A cell of a statement for which nothing was measured yet.
    fn blank(&self, agrees: bool) -> Cell {
        const NEVER: &str = "there is nothing to hold it against";
        let published = match (&self.statement, self.value) {
            (Some(statement), _) => Answer::Words(statement.clone()),
            (None, value) => Answer::Number(value.unwrap_or_default()),
        };
        Cell {
            name: self.name.clone(),
            kind: if self.statement.is_some() { Kind::Claim } else { Kind::Number },
            place: self.place.clone(),
            published,
            ours: Answer::Words("–".to_owned()),
            ci95: None,
            unit: self.unit.clone(),
            criterion: self.criterion.clone().unwrap_or_else(|| NEVER.to_owned()),
            verdict: if agrees { Verdict::Agrees } else { Verdict::Differs },
            reason: self.why(agrees),
            live: None,
        }
    }

    fn why(&self, agrees: bool) -> String {
        let either = if agrees { &self.agrees } else { &self.differs };
        match &self.reason {
            Some(reason) => reason.clone(),
            None if either.is_empty() => UNEXPLAINED.to_owned(),
            None => either.clone(),
        }
    }
}

impl Tolerance {
    fn words(self) -> String {
        let much = match self {
            Self::Within(fraction) => format!("{} %", rounded(fraction * 100.0)),
            Self::Absolute(distance) => rounded(distance).to_string(),
        };
        format!(
            "the published number within {much} of our interval, of which as much counts on \
             either side"
        )
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
