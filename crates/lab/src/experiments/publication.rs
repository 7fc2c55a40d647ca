//! Sentences and tables of publications as data, held against results.
//!
//! A statement is a set of comparisons ([`Found`]), each with its bound; it agrees when all hold
//! for the means and beyond chance. What holds for the means alone differs, and says so.

use super::{Cell, Criterion, Expected, Published, Results, Summary, Verdict};

/// A sentence, and what becomes of it.
#[derive(Debug)]
pub(super) struct Sentence {
    /// A short name.
    pub(super) name: &'static str,
    /// Where it stands.
    pub(super) place: &'static str,
    /// What it says.
    pub(super) says: Says,
    /// Why it agrees, and why it would not.
    pub(super) why: [&'static str; 2],
}

/// What a sentence says.
#[derive(Debug)]
pub(super) enum Says {
    /// A number of this unit, how far ours may be beside it, and ours.
    Number(f64, &'static str, Criterion, fn(&Results) -> Summary),
    /// A statement in our words, when ours agrees in words, and the same as comparisons.
    That(&'static str, &'static str, fn(&Results) -> Found),
    /// A statement that nothing can be held against.
    Nothing(&'static str),
}

/// What was found about a statement.
#[derive(Debug)]
pub(super) struct Found {
    ours: String,
    /// How far beyond its bound each comparison is; above zero where it holds.
    margins: Vec<Summary>,
    numbers: Vec<Summary>,
}

const CHANCE: &str = "the means are as published, but the interval reaches to the other side: \
                      chance alone could make such a difference";

/// For a verdict that had not come up when reasons were written: another seed, another code.
const UNEXPLAINED: &str = "no reason is known; it was otherwise when reasons were written";

impl Found {
    /// What was found, in words; nothing is compared yet.
    pub(super) fn new(ours: impl Into<String>) -> Self {
        Self { ours: ours.into(), margins: Vec::new(), numbers: Vec::new() }
    }

    /// The same in these words.
    #[must_use]
    pub(super) fn in_words(self, ours: impl Into<String>) -> Self {
        Self { ours: ours.into(), ..self }
    }

    /// And `number` must be above `bound`.
    #[must_use]
    pub(super) fn above(mut self, number: Summary, bound: f64) -> Self {
        self.margins.push(Summary { mean: number.mean - bound, ..number });
        self.numbers.push(number);
        self
    }

    /// And `number` must be below `bound`.
    #[must_use]
    pub(super) fn below(mut self, number: Summary, bound: f64) -> Self {
        self.margins.push(Summary { mean: bound - number.mean, ..number });
        self.numbers.push(number);
        self
    }

    /// And `number` must lie between these.
    #[must_use]
    pub(super) fn between(self, number: Summary, least: f64, most: f64) -> Self {
        let mut found = self.above(number, least).below(number, most);
        found.numbers.pop();
        found
    }

    fn cell(self, expected: &Expected, why: [&'static str; 2]) -> Cell {
        let holds = self.margins.iter().all(|margin| margin.mean > 0.0);
        // A single replication has no interval; then the mean alone counts.
        let clear = |margin: &Summary| margin.mean > margin.interval().map_or(0.0, |_| margin.half);
        let beyond = self.margins.iter().all(clear);
        let reason = match (holds, beyond) {
            (true, true) => why[0],
            (true, false) => CHANCE,
            (false, _) => why[1],
        };
        let reason = if reason.is_empty() { UNEXPLAINED } else { reason };
        let by = if let [one] = self.numbers.as_slice() { Some(bare(*one)) } else { None };
        let mut ours = self.ours;
        if holds && !beyond {
            ours += "; within chance";
        }
        expected.claim(holds && beyond, ours, by, reason)
    }
}

/// A sentence with a number.
pub(super) const fn number(
    name: &'static str,
    place: &'static str,
    (value, unit, criterion): (f64, &'static str, Criterion),
    ours: fn(&Results) -> Summary,
    why: [&'static str; 2],
) -> Sentence {
    Sentence { name, place, says: Says::Number(value, unit, criterion, ours), why }
}

/// A sentence with a statement: what it says, and when ours agrees.
pub(super) const fn that(
    name: &'static str,
    place: &'static str,
    (statement, when): (&'static str, &'static str),
    found: fn(&Results) -> Found,
    why: [&'static str; 2],
) -> Sentence {
    Sentence { name, place, says: Says::That(statement, when, found), why }
}

/// A sentence that nothing can be held against, and why.
pub(super) const fn nothing(
    name: &'static str,
    place: &'static str,
    statement: &'static str,
    why: &'static str,
) -> Sentence {
    Sentence { name, place, says: Says::Nothing(statement), why: [why, why] }
}

impl Sentence {
    /// Holds results against the sentence.
    pub(super) fn judge(&self, results: &Results) -> Cell {
        let Self { name, place, why, .. } = *self;
        let expected = |published, criterion| Expected { name, place, published, criterion };
        match self.says {
            Says::Number(value, unit, criterion, ours) => {
                let expected = expected(Published::Number { value, unit }, criterion);
                explained(expected.number(bare(ours(results)), why[0]), why)
            }
            Says::That(statement, when, found) => {
                let expected = expected(Published::Claim(statement), Criterion::Holds(when));
                found(results).cell(&expected, why)
            }
            Says::Nothing(statement) => {
                let never = Criterion::Holds("there is nothing to hold it against");
                expected(Published::Claim(statement), never).not_comparable(why[1])
            }
        }
    }
}

/// Holds results against sentences.
pub(super) fn judge(sentences: &[Sentence], results: &Results) -> Vec<Cell> {
    sentences.iter().map(|sentence| sentence.judge(results)).collect()
}

/// Holds live results against those sentences whose points all were run live, each beside the
/// same sentence held against `twin`, the simulated results of the same programs.
pub(super) fn beside(sentences: &[Sentence], twin: &Results, live: &Results) -> Vec<(Cell, Cell)> {
    let both = |sentence: &Sentence| {
        let live = live.whole(|live| sentence.judge(live))?;
        (live.verdict != Verdict::NotComparable).then(|| (sentence.judge(twin), live))
    };
    sentences.iter().filter_map(both).collect()
}

/// A column or row of a published table: what its numbers are, and when ours agree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// Where it stands.
    pub(super) place: &'static str,
    /// The unit of its numbers.
    pub(super) unit: &'static str,
    /// When ours agree.
    pub(super) criterion: Criterion,
    /// Why they agree, and why one would not.
    pub(super) why: [&'static str; 2],
}

impl Numbers {
    /// One of its numbers, and ours.
    pub(super) fn cell(&self, name: impl Into<String>, value: f64, ours: Summary) -> Cell {
        let Self { place, unit, criterion, why } = *self;
        let published = Published::Number { value, unit };
        let expected = Expected { name: "", place, published, criterion };
        Cell { name: name.into(), ..explained(expected.number(bare(ours), why[0]), why) }
    }
}

/// A single value, reckoned or run once, has no interval.
fn bare(number: Summary) -> Summary {
    if number.n > 1 { number } else { Summary { half: f64::INFINITY, ..number } }
}

fn explained(mut cell: Cell, why: [&'static str; 2]) -> Cell {
    if cell.verdict == Verdict::Differs {
        cell.reason = why[1].to_owned();
    }
    if cell.reason.is_empty() {
        cell.reason = UNEXPLAINED.to_owned();
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(mean: f64, half: f64) -> Summary {
        Summary { n: 8, mean, deviation: 1.0, half }
    }

    fn verdict(found: fn(&Results) -> Found) -> (Verdict, String) {
        let sentence = that("a", "b", ("it is more", "above 1"), found, ["so", "not so"]);
        let cell = sentence.judge(&Results::default());
        (cell.verdict, cell.reason)
    }

    #[test]
    fn a_statement_must_hold_beyond_chance() {
        let found = verdict(|_| Found::new("2").above(seen(2.0, 0.5), 1.0));
        assert_eq!(found, (Verdict::Agrees, "so".to_owned()));
        let found = verdict(|_| Found::new("2").above(seen(2.0, 1.5), 1.0));
        assert_eq!(found, (Verdict::Differs, CHANCE.to_owned()));
        let found = verdict(|_| Found::new("2").below(seen(2.0, 0.1), 1.0));
        assert_eq!(found, (Verdict::Differs, "not so".to_owned()));
        let found = verdict(|_| Found::new("2").between(seen(2.0, f64::INFINITY), 1.0, 3.0));
        assert_eq!(found.0, Verdict::Agrees, "a single value has its mean alone");
        let found =
            verdict(|_| Found::new("").below(seen(0.0, 0.1), 1.0).above(seen(0.0, 0.1), 1.0));
        assert_eq!(found.0, Verdict::Differs, "all must hold");
    }

    #[test]
    fn only_what_was_run_live_is_held_against_sentences() {
        let sentences = [
            that(
                "a",
                "1",
                ("is more", "above 1"),
                |results| Found::new("").above(results.summary("s", "a", "x"), 1.0),
                ["so", "not so"],
            ),
            number(
                "b",
                "1",
                (2.0, "s", Criterion::Within(0.1)),
                |results| results.summary("s", "b", "x"),
                ["so", "not so"],
            ),
        ];
        let run = |values: &[(&str, f64)], mut results: Results| {
            for (key, value) in values {
                results.insert("s", key, vec![super::super::Values::new().with("x", *value)]);
            }
            results
        };
        let twin = run(&[("a", 2.0), ("b", 2.0)], Results::default());
        let live = run(&[("b", 3.0)], Results::partial());
        let found = beside(&sentences, &twin, &live);
        let verdicts: Vec<_> = found
            .iter()
            .map(|(twin, live)| (twin.name.as_str(), twin.verdict, live.verdict))
            .collect();
        assert_eq!(verdicts, [("b", Verdict::Agrees, Verdict::Differs)]);
    }

    #[test]
    fn a_number_that_differs_has_its_own_reason() {
        let numbers = Numbers {
            place: "table 1",
            unit: "s",
            criterion: Criterion::Within(0.1),
            why: ["so", "not so"],
        };
        let cell = numbers.cell("x", 10.0, Summary::exact(12.0));
        assert_eq!((cell.verdict, cell.reason.as_str()), (Verdict::Differs, "not so"));
        assert_eq!(numbers.cell("x", 10.0, Summary::exact(10.9)).reason, "so");
        let cell = nothing("a", "b", "it is nice", "a matter of taste").judge(&Results::default());
        assert_eq!(cell.verdict, Verdict::NotComparable);
    }
}
