//! What was published, ours beside it, and the verdict.

use super::statistics::Summary;
use serde::{Deserialize, Serialize};

/// One published number or statement, written down before ours is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// A short name.
    pub name: &'static str,
    /// Where it stands: section, page, figure or table.
    pub place: &'static str,
    /// What was published.
    pub published: Published,
    /// When ours agrees.
    pub criterion: Criterion,
}

/// What was published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// A number.
    Number {
        /// It.
        value: f64,
        /// Its unit, `%` or `bit/s`.
        unit: &'static str,
    },
    /// A statement, in our words.
    Claim(&'static str),
}

/// When ours agrees with what was published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Criterion {
    /// The published number lies within this share of itself around our interval. The interval
    /// counts up to the same share on either side: a wide one must not agree with everything.
    Within(f64),
    /// The same with so much, in the number's unit.
    Absolute(f64),
    /// The statement holds for our results in this sense.
    Holds(&'static str),
}

/// Whether a cell is a number or a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A number.
    Number,
    /// A statement that is true or false.
    Claim,
}

/// What comes of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Ours is as published.
    Agrees,
    /// It is not.
    Differs,
    /// What was published cannot be held against anything.
    NotComparable,
}

impl Verdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::NotComparable => "not comparable",
        }
    }
}

/// A published result with ours beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// A short name.
    pub name: String,
    /// Number or claim.
    pub kind: Kind,
    /// Where it stands in the publication.
    pub place: String,
    /// The published number or, in our words, statement.
    pub published: Answer,
    /// What ours is.
    pub ours: Answer,
    /// The 95 % confidence interval of what `ours` states, where it is a number or stands on one.
    pub ci95: Option<[f64; 2]>,
    /// The unit of the numbers.
    pub unit: String,
    /// When ours agrees; stated before the comparison.
    pub criterion: String,
    /// What comes of it.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// The same, measured with real programs; where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Measured>,
}

/// A cell measured live: the kernel's TCP and the gateway's program over the emulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What was measured, in the cell's unit.
    pub value: Answer,
    /// Its 95 % confidence interval, where there is one.
    pub ci95: Option<[f64; 2]>,
    /// Whether that is what was published.
    pub verdict: Verdict,
    /// What the simulator has for the same programs: `ours`, unless it is a model of others
    /// (a TCP of the publication's time, which no kernel has any more).
    pub simulated: Answer,
    /// Whether live and simulated are within 10 % or each other's intervals, or say the same.
    pub agrees: bool,
}

/// How far live may be beside simulated.
pub(super) const BESIDE: f64 = 0.1;

impl Measured {
    /// `live` beside `simulated`, which are one cell made of different results.
    pub(super) fn new(simulated: &Cell, live: &Cell) -> Self {
        let agrees = match (&simulated.ours, &live.ours) {
            (Answer::Number(ours), Answer::Number(measured)) => {
                let half =
                    |ends: Option<[f64; 2]>| ends.map_or(0.0, |[low, high]| (high - low) / 2.0);
                let slack = (BESIDE * ours.abs()).max(half(simulated.ci95) + half(live.ci95));
                (measured - ours).abs() <= slack
            }
            _ => simulated.verdict == live.verdict,
        };
        Self {
            value: live.ours.clone(),
            ci95: live.ci95,
            verdict: live.verdict,
            simulated: simulated.ours.clone(),
            agrees,
        }
    }
}

/// A number, or words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// A number, in the cell's unit.
    Number(f64),
    /// Words.
    Words(String),
}

impl Expected {
    /// Holds `ours` against the published number.
    ///
    /// # Panics
    /// When a claim was published, or the criterion is not one for numbers.
    pub fn number(&self, ours: Summary, reason: impl Into<String>) -> Cell {
        let Published::Number { value, .. } = self.published else {
            panic!("{} is a claim", self.name)
        };
        let slack = match self.criterion {
            Criterion::Within(share) => share * value.abs(),
            Criterion::Absolute(much) => much,
            Criterion::Holds(_) => panic!("{} needs a tolerance", self.name),
        };
        // A single replication has no interval; then the tolerance alone decides.
        let half = ours.interval().map_or(0.0, |_| ours.half.min(slack));
        let agrees = (ours.mean - value).abs() <= half + slack;
        let verdict = if agrees { Verdict::Agrees } else { Verdict::Differs };
        let answer = Answer::Number(ours.mean);
        self.cell(answer, ours.interval(), verdict, reason.into())
    }

    /// Says whether the published statement holds for ours; `ci95` is the interval of the
    /// number that it stands on, where there is one.
    pub fn claim(
        &self,
        holds: bool,
        ours: impl Into<String>,
        ci95: Option<Summary>,
        reason: impl Into<String>,
    ) -> Cell {
        let verdict = if holds { Verdict::Agrees } else { Verdict::Differs };
        let interval = ci95.and_then(|summary| summary.interval());
        self.cell(Answer::Words(ours.into()), interval, verdict, reason.into())
    }

    /// Says that there is nothing to hold it against, and why.
    pub fn not_comparable(&self, reason: impl Into<String>) -> Cell {
        let ours = Answer::Words("–".to_owned());
        self.cell(ours, None, Verdict::NotComparable, reason.into())
    }

    fn cell(&self, ours: Answer, ci95: Option<[f64; 2]>, verdict: Verdict, reason: String) -> Cell {
        let (kind, published, unit) = match self.published {
            Published::Number { value, unit } => (Kind::Number, Answer::Number(value), unit),
            Published::Claim(text) => (Kind::Claim, Answer::Words(text.to_owned()), ""),
        };
        Cell {
            name: self.name.to_owned(),
            kind,
            place: self.place.to_owned(),
            published,
            ours,
            ci95,
            unit: unit.to_owned(),
            criterion: self.criterion.words(),
            verdict,
            reason,
            live: None,
        }
    }
}

impl Criterion {
    fn words(self) -> String {
        match self {
            Self::Within(share) => {
                let share = trim(share * 100.0);
                format!("the published number within {share} % of our interval, {COUNTED}")
            }
            Self::Absolute(much) => {
                format!("the published number within {} of our interval, {COUNTED}", trim(much))
            }
            Self::Holds(text) => text.to_owned(),
        }
    }
}

/// How much of an interval counts.
const COUNTED: &str = "of which as much counts on either side";

fn trim(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: Expected = Expected {
        name: "gain",
        place: "section 6.1",
        published: Published::Number { value: 44.0, unit: "%" },
        criterion: Criterion::Within(0.25),
    };

    #[test]
    fn a_number_agrees_within_tolerance_and_interval() {
        let ours = |mean, half| Summary { n: 20, mean, deviation: 1.0, half };
        assert_eq!(NUMBER.number(ours(33.0, 0.0), "").verdict, Verdict::Agrees);
        assert_eq!(NUMBER.number(ours(32.9, 0.0), "").verdict, Verdict::Differs);
        assert_eq!(NUMBER.number(ours(30.0, 3.0), "").verdict, Verdict::Agrees);
        assert_eq!(NUMBER.number(ours(58.1, 3.0), "").verdict, Verdict::Differs);
        assert_eq!(NUMBER.number(ours(24.0, 30.0), "").verdict, Verdict::Agrees);
        let wide = NUMBER.number(ours(20.0, 30.0), "");
        assert_eq!(wide.verdict, Verdict::Differs, "chance alone is no agreement");
        let single = NUMBER.number(ours(44.0, f64::INFINITY), "");
        assert_eq!((single.verdict, single.ci95), (Verdict::Agrees, None));
    }

    #[test]
    fn live_vouches_for_simulated_within_a_tenth_or_the_intervals() {
        let cell = |mean, half| NUMBER.number(Summary { n: 5, mean, deviation: 1.0, half }, "");
        let agrees = |ours: (f64, f64), live: (f64, f64)| {
            Measured::new(&cell(ours.0, ours.1), &cell(live.0, live.1)).agrees
        };
        assert!(agrees((40.0, 0.0), (43.9, 0.0)));
        assert!(!agrees((40.0, 0.0), (44.1, 0.0)));
        assert!(agrees((40.0, 3.0), (46.0, 4.0)));
        assert!(!agrees((40.0, 3.0), (46.0, 2.0)));
        let live = Measured::new(&cell(10.0, 0.0), &cell(44.0, 0.0));
        assert_eq!((live.verdict, live.agrees), (Verdict::Agrees, false));
    }

    #[test]
    fn json_says_what_readers_expect() {
        let claim = Expected {
            published: Published::Claim("on is better"),
            criterion: Criterion::Holds("at every point"),
            ..NUMBER
        };
        let cell = claim.claim(false, "not at 5 %", None, "the window is small there");
        let text = serde_json::to_string(&cell).unwrap();
        for part in [
            r#""kind":"claim""#,
            r#""verdict":"differs""#,
            r#""published":"on is better""#,
            r#""ci95":null"#,
        ] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
        let text = serde_json::to_string(&claim.not_comparable("a photograph")).unwrap();
        assert!(text.contains(r#""verdict":"not_comparable""#), "{text}");
        let back: Cell = serde_json::from_str(&text).unwrap();
        assert_eq!(back.kind, Kind::Claim);
    }
}
