//! What was found about a statement.

use crate::experiments::Summary;
use serde::Deserialize;

/// What was found about a statement: a set of comparisons, each with its bound. The statement
/// agrees when all hold for the means and beyond chance; what holds for the means alone differs,
/// and says so.
#[derive(Debug)]
pub(in super::super) struct Found {
    /// The same in words.
    pub(in super::super) ours: String,
    /// Whether the criterion holds for the means, besides what the comparisons say.
    pub(in super::super) holds: bool,
    /// How far beyond its bound each comparison is; above zero where it holds.
    pub(in super::super) margins: Vec<Summary>,
    /// The mean of the comparisons in percent, and the side that it must be on. Where it is given,
    /// it must be beyond chance in place of each of them.
    pub(in super::super) mean: Option<(Summary, Side)>,
    /// The number that the words stand on, where it is one.
    pub(in super::super) by: Option<Summary>,
}

/// On which side of a bound a number must be.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in super::super) enum Side {
    Above,
    Below,
}

impl Found {
    /// What was found, in words; nothing is compared yet.
    pub(in super::super) fn new(ours: impl Into<String>) -> Self {
        Self { ours: ours.into(), holds: true, margins: Vec::new(), mean: None, by: None }
    }

    /// That each of several numbers lies on this side of its bound.
    pub(in super::super) fn all(
        ours: impl Into<String>,
        numbers: impl IntoIterator<Item = (Summary, Side, f64)>,
    ) -> Self {
        let all = numbers.into_iter();
        all.fold(Self::new(ours), |found, (number, side, bound)| found.and(number, side, bound))
    }

    /// The same in these words.
    #[must_use]
    pub(in super::super) fn in_words(self, ours: impl Into<String>) -> Self {
        Self { ours: ours.into(), ..self }
    }

    /// And `number` must be above `bound`.
    #[must_use]
    pub(in super::super) fn above(self, number: Summary, bound: f64) -> Self {
        self.and(number, Side::Above, bound)
    }

    /// And `number` must be below `bound`.
    #[must_use]
    pub(in super::super) fn below(self, number: Summary, bound: f64) -> Self {
        self.and(number, Side::Below, bound)
    }

    /// And `number` must lie between these.
    #[must_use]
    pub(in super::super) fn between(self, number: Summary, least: f64, most: f64) -> Self {
        let mut found = self.above(number, least);
        found.margins.push(Side::Below.margin(number, most));
        found
    }

    fn and(mut self, number: Summary, side: Side, bound: f64) -> Self {
        // Of several numbers none stands for the others.
        self.by = self.margins.is_empty().then_some(number);
        self.margins.push(side.margin(number, bound));
        self
    }

    pub(super) fn holds(&self) -> bool {
        // Where the mean counts, `holds` says at how many points it must be so.
        let each = || self.margins.iter().all(|margin| margin.mean > 0.0);
        self.holds && (self.mean.is_some() || each())
    }

    pub(super) fn is_beyond_chance(&self) -> bool {
        match self.mean {
            Some((mean, side)) => is_clear(&side.margin(mean, 0.0)),
            None => self.margins.iter().all(is_clear),
        }
    }

    pub(super) fn into_words(self) -> String {
        let is_chance = self.holds() && !self.is_beyond_chance();
        let mut words = self.ours;
        if let Some((mean, _)) = self.mean {
            let alone = self.margins.iter().filter(|margin| is_clear(margin)).count();
            let of = self.margins.len();
            words += &format!("; mean {:+.1} %, beyond chance alone at {alone} of {of}", mean.mean);
        }
        if is_chance {
            words += "; within chance";
        }
        words
    }

    /// The number that the words stand on.
    pub(super) fn number(&self) -> Option<Summary> {
        self.by.map(super::bare)
    }
}

/// Whether a margin is beyond chance. A single replication has no interval; then the mean alone
/// counts.
fn is_clear(margin: &Summary) -> bool {
    margin.mean > margin.interval().map_or(0.0, |_| margin.half)
}

impl Side {
    /// How far a number is beyond `bound`.
    pub(in super::super) fn margin(self, number: Summary, bound: f64) -> Summary {
        match self {
            Self::Above => Summary { mean: number.mean - bound, ..number },
            Self::Below => Summary { mean: bound - number.mean, ..number },
        }
    }

    /// How many are on this side of zero.
    pub(in super::super) fn count(self, compared: &[Summary]) -> usize {
        compared.iter().filter(|&&one| self.margin(one, 0.0).mean > 0.0).count()
    }

    pub(in super::super) fn word(self) -> &'static str {
        match self {
            Self::Above => "above",
            Self::Below => "below",
        }
    }
}
