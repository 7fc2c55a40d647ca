//! Findings about a published statement.

use crate::experiments::Summary;
use crate::experiments::cell::Compared;
pub(in super::super) use crate::experiments::cell::Side;

/// A finding about a statement: a set of comparisons, each with its bound. The statement agrees if
/// all comparisons hold significantly; if they hold for the means alone, it differs, and the
/// explanation says so.
#[derive(Debug)]
pub(in super::super) struct Found {
    /// The finding in words.
    pub(in super::super) ours: String,
    /// Whether the criterion holds for the means, apart from the comparisons.
    pub(in super::super) holds: bool,
    /// The numbers, each with its required side of a bound.
    pub(in super::super) compared: Vec<(Summary, Side, f64)>,
    /// Mean of the compared numbers in percent, and its required side of zero. If given, this mean
    /// must be significant instead of each comparison.
    pub(in super::super) mean: Option<(Summary, Side)>,
    /// The number that the words state, if it is a single one.
    pub(in super::super) by: Option<Summary>,
}

impl Found {
    /// Returns a finding in words without comparisons.
    pub(in super::super) fn new(ours: impl Into<String>) -> Self {
        Self { ours: ours.into(), holds: true, compared: Vec::new(), mean: None, by: None }
    }

    /// Returns the finding that each of several numbers is on its side of its bound.
    pub(in super::super) fn all(
        ours: impl Into<String>,
        numbers: impl IntoIterator<Item = (Summary, Side, f64)>,
    ) -> Self {
        let all = numbers.into_iter();
        all.fold(Self::new(ours), |found, (number, side, bound)| found.and(number, side, bound))
    }

    /// Replaces the words.
    #[must_use]
    pub(in super::super) fn in_words(self, ours: impl Into<String>) -> Self {
        Self { ours: ours.into(), ..self }
    }

    /// Requires `number` to be above `bound`.
    #[must_use]
    pub(in super::super) fn above(self, number: Summary, bound: f64) -> Self {
        self.and(number, Side::Above, bound)
    }

    /// Requires `number` to be below `bound`.
    #[must_use]
    pub(in super::super) fn below(self, number: Summary, bound: f64) -> Self {
        self.and(number, Side::Below, bound)
    }

    /// Requires `number` to be between `least` and `most`.
    #[must_use]
    pub(in super::super) fn between(self, number: Summary, least: f64, most: f64) -> Self {
        let mut found = self.above(number, least);
        found.compared.push((number, Side::Below, most));
        found
    }

    fn and(mut self, number: Summary, side: Side, bound: f64) -> Self {
        // Of several numbers, none represents the others.
        self.by = self.compared.is_empty().then_some(number);
        self.compared.push((number, side, bound));
        self
    }

    /// Returns the distance of each number beyond its bound, which is positive where the comparison
    /// holds.
    fn margins(&self) -> impl Iterator<Item = Summary> {
        self.compared.iter().map(|&(number, side, bound)| side.margin(number, bound))
    }

    pub(super) fn holds(&self) -> bool {
        // With a mean, `holds` states at how many points the comparison must hold.
        let each = || self.margins().all(|margin| margin.mean > 0.0);
        self.holds && (self.mean.is_some() || each())
    }

    pub(super) fn is_beyond_chance(&self) -> bool {
        match self.mean {
            Some((mean, side)) => is_clear(&side.margin(mean, 0.0)),
            None => self.margins().all(|margin| is_clear(&margin)),
        }
    }

    pub(super) fn into_words(self) -> String {
        let is_chance = self.holds() && !self.is_beyond_chance();
        let alone = self.margins().filter(is_clear).count();
        let mut words = self.ours;
        if let Some((mean, _)) = self.mean {
            let of = self.compared.len();
            words += &format!("; mean {:+.1} %, beyond chance alone at {alone} of {of}", mean.mean);
        }
        if is_chance {
            words += "; within chance";
        }
        words
    }

    pub(super) fn number(&self) -> Option<Summary> {
        self.by.map(super::bare)
    }

    /// Returns the numbers as a cell stores them, except for those that JSON cannot: a ratio to
    /// nothing, for example.
    pub(super) fn compared(&self) -> Vec<Compared> {
        let one = |&(number, side, bound): &(Summary, Side, f64)| {
            let ci95 = super::bare(number).interval();
            Compared { value: number.mean, ci95, side, bound }
        };
        let finite = |(number, _, bound): &&(Summary, Side, f64)| (number.mean + bound).is_finite();
        self.compared.iter().filter(finite).map(one).collect()
    }
}

/// Returns true if a margin is significant. A single replication has no interval: only its mean
/// counts.
fn is_clear(margin: &Summary) -> bool {
    margin.mean > margin.interval().map_or(0.0, |_| margin.half)
}

impl Side {
    /// Returns the distance of `number` beyond `bound`.
    pub(in super::super) fn margin(self, number: Summary, bound: f64) -> Summary {
        match self {
            Self::Above => Summary { mean: number.mean - bound, ..number },
            Self::Below => Summary { mean: bound - number.mean, ..number },
        }
    }

    /// Returns how many numbers are on this side of zero.
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
