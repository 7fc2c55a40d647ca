//! A claim of a publication, and its comparison with measured values.

use super::{Found, bare};
use crate::experiments::cell::{Answer, Evidence, TOLERANCE, is_near};
use crate::experiments::{Cell, Kind, Summary, Verdict};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A published number or statement, as its data file states it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Claim {
    /// Identifier by which the code provides the measured value.
    pub(super) id: String,
    /// Short name; omitted if `values` have names of their own.
    #[serde(default)]
    name: String,
    /// Section, page, figure or table.
    place: String,
    /// The statement, in our words.
    statement: Option<String>,
    /// The published number, in `unit`.
    value: Option<f64>,
    /// The published numbers of a table, in arrays as deep as the table has dimensions.
    values: Option<toml::Value>,
    #[serde(default)]
    unit: String,
    /// The criterion for a statement, in words.
    criterion: Option<String>,
    /// The tolerance for a number, if it is not the one for all numbers, or not that of the page.
    pub(super) tolerance: Option<Tolerance>,
    /// What the verdict rests on, if it is not that of the page.
    pub(super) evidence: Option<Evidence>,
    /// Explanation for either verdict.
    reason: Option<String>,
    /// Explanation of agreement.
    #[serde(default)]
    agrees: String,
    /// Explanation of a difference.
    #[serde(default)]
    differs: String,
    /// Explanation if the means agree, but not significantly.
    chance: Option<String>,
    /// Reason why nothing can be compared with the claim.
    not_comparable: Option<String>,
    /// The criterion in terms of the publication's own code.
    test: Option<toml::Value>,
}

/// Accepted distance of a measured number from the published one, where it is not a tenth of it:
/// the larger of the two parts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Tolerance {
    /// The part that is a fraction of the published number.
    #[serde(default)]
    within: f64,
    /// The part in the number's unit.
    #[serde(default)]
    absolute: f64,
    /// The reason for another tolerance than that of all numbers.
    because: String,
}

const CHANCE: &str = "the means are as published, but the interval reaches to the other side: \
                      chance alone could make such a difference";

/// Explanation of a verdict that did not occur when explanations were written.
const UNEXPLAINED: &str = "no reason is known; it was otherwise when reasons were written";

impl Claim {
    /// Returns the identifier.
    pub(in super::super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the place in the publication.
    pub(in super::super) fn place(&self) -> &str {
        &self.place
    }

    /// Returns true for a table of numbers, each of which is a cell.
    pub(super) fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// Returns true if measured values can be compared with the claim.
    pub(in super::super) fn is_comparable(&self) -> bool {
        self.not_comparable.is_none()
    }

    /// Returns the published number.
    ///
    /// # Panics
    /// If the claim is a statement.
    pub(in super::super) fn value(&self) -> f64 {
        self.value.unwrap_or_else(|| panic!("{}: no number was published", self.id))
    }

    /// Returns the published numbers of a table.
    ///
    /// # Panics
    /// If they have another shape.
    pub(in super::super) fn values<T: DeserializeOwned>(&self) -> T {
        let values = self.values.clone().unwrap_or_else(|| panic!("{}: no table", self.id));
        values.try_into().unwrap_or_else(|error| panic!("{}: {error}", self.id))
    }

    /// Returns the criterion in terms of the publication's own code.
    ///
    /// # Panics
    /// If it is malformed.
    pub(in super::super) fn test<T: DeserializeOwned>(&self) -> Option<T> {
        let test = self.test.clone()?;
        Some(test.try_into().unwrap_or_else(|error| panic!("{}: {error}", self.id)))
    }

    /// Compares `ours` with the published number.
    ///
    /// # Panics
    /// If the claim is a statement.
    pub(in super::super) fn number(&self, ours: Summary) -> Cell {
        self.numeric(self.name.clone(), self.value(), self.tolerance.as_ref(), ours)
    }

    /// Compares `ours` with one of a table's numbers.
    pub(in super::super) fn cell(
        &self,
        name: impl Into<String>,
        published: f64,
        ours: Summary,
    ) -> Cell {
        self.numeric(name.into(), published, self.tolerance.as_ref(), bare(ours))
    }

    /// Compares `ours` with one of a table's numbers under another tolerance.
    pub(in super::super) fn cell_within(
        &self,
        name: impl Into<String>,
        published: f64,
        tolerance: Option<&Tolerance>,
        ours: Summary,
    ) -> Cell {
        self.numeric(name.into(), published, tolerance, bare(ours))
    }

    fn numeric(
        &self,
        name: String,
        value: f64,
        tolerance: Option<&Tolerance>,
        ours: Summary,
    ) -> Cell {
        let slack = tolerance.map_or(TOLERANCE * value.abs(), |tolerance| tolerance.slack(value));
        // A single replication has no interval: only the tolerance counts.
        let half = ours.interval().map_or(0.0, |_| ours.half);
        Cell {
            name,
            kind: Kind::Number,
            published: Answer::Number(value),
            ours: Answer::Number(ours.mean),
            ci95: ours.interval(),
            criterion: tolerance.map_or_else(|| Tolerance::USUAL.to_owned(), Tolerance::words),
            ..self.blank(is_near(ours.mean - value, slack, half))
        }
    }

    /// Compares a finding with the published statement.
    pub(in super::super) fn found(&self, found: Found) -> Cell {
        let (holds, beyond) = (found.holds(), found.is_beyond_chance());
        let (by, compared) = (found.number(), found.compared());
        let cell = self.holds(holds && beyond, found.into_words(), by);
        let cell = Cell { compared, ..cell };
        if holds && !beyond {
            let reason = self.chance.as_deref().unwrap_or(CHANCE).to_owned();
            return Cell { reason, ..cell };
        }
        cell
    }

    /// Returns the cell of a statement that holds or not; `by` is the number that decides it, if
    /// there is one.
    pub(in super::super) fn holds(
        &self,
        holds: bool,
        ours: impl Into<String>,
        by: Option<Summary>,
    ) -> Cell {
        let ci95 = by.and_then(|summary| summary.interval());
        Cell { ours: Answer::Words(ours.into()), ci95, ..self.blank(holds) }
    }

    /// Returns the cell of a claim that nothing can be compared with.
    pub(in super::super) fn not_comparable(&self) -> Cell {
        let reason = self.not_comparable.clone().unwrap_or_default();
        Cell { verdict: Verdict::NotComparable, reason, ..self.blank(false) }
    }

    /// Returns the cell of one of a table's numbers that nothing can be compared with.
    pub(in super::super) fn no_cell(&self, name: impl Into<String>, published: f64) -> Cell {
        Cell {
            name: name.into(),
            published: Answer::Number(published),
            criterion: Tolerance::USUAL.to_owned(),
            ..self.not_comparable()
        }
    }

    /// Returns the cell of the claim without a measured value.
    fn blank(&self, agrees: bool) -> Cell {
        const NEVER: &str = "there is nothing to hold it against";
        let published = match (&self.statement, self.value) {
            (Some(statement), _) => Answer::Words(statement.clone()),
            (None, value) => Answer::Number(value.unwrap_or_default()),
        };
        Cell {
            name: self.name.clone(),
            kind: if self.statement.is_some() { Kind::Claim } else { Kind::Number },
            evidence: self.evidence.unwrap_or(Evidence::Simulated),
            place: self.place.clone(),
            published,
            ours: Answer::Words("–".to_owned()),
            ci95: None,
            unit: self.unit.clone(),
            criterion: self.criterion.clone().unwrap_or_else(|| NEVER.to_owned()),
            verdict: if agrees { Verdict::Agrees } else { Verdict::Differs },
            reason: self.why(agrees),
            compared: Vec::new(),
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
    /// The criterion of a number with the tolerance of all numbers.
    const USUAL: &str = "within 10 %";

    /// Returns the accepted distance from the published `value`, in its unit.
    fn slack(&self, value: f64) -> f64 {
        (self.within * value.abs()).max(self.absolute)
    }

    fn words(&self) -> String {
        let rounded = |value: f64| (value * 1e6).round() / 1e6;
        let much = match (self.within, self.absolute) {
            (0.0, 0.0) => "exactly the published number".to_owned(),
            (0.0, distance) => format!("within {}", rounded(distance)),
            (fraction, 0.0) => format!("within {} %", rounded(fraction * 100.0)),
            (fraction, distance) => {
                format!("within {} % or {}", rounded(fraction * 100.0), rounded(distance))
            }
        };
        format!("{much}: {}", self.because)
    }
}
