//! Cells: published results with the simulated and live results and the verdict.

use serde::{Deserialize, Serialize};

/// Whether a cell is a number or a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A number.
    Number,
    /// A statement that is true or false.
    Claim,
}

/// What the verdict of a cell rests on. Only [`Evidence::Simulated`] and [`Evidence::Live`] count
/// in headlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// A simulation whose parameters were chosen without the published value.
    Simulated,
    /// A run with the kernel's TCP and the gateway program.
    Live,
    /// A formula, or numbers that the publication derives from its own.
    Arithmetic,
    /// A simulation or computation with a parameter chosen with the published value in view.
    Fitted,
    /// The published value is part of the set-up.
    Restated,
    /// A goal of this project, not of the publication.
    OwnGoal,
}

impl Evidence {
    /// All kinds; the first two count in headlines.
    pub const ALL: [Self; 6] = [
        Self::Simulated,
        Self::Live,
        Self::Arithmetic,
        Self::Fitted,
        Self::Restated,
        Self::OwnGoal,
    ];

    /// Returns true if cells of this kind count in headlines.
    pub fn is_headline(self) -> bool {
        matches!(self, Self::Simulated | Self::Live)
    }

    /// Returns the kind in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Live => "live",
            Self::Arithmetic => "arithmetic",
            Self::Fitted => "fitted",
            Self::Restated => "restated",
            Self::OwnGoal => "own goal",
        }
    }
}

/// Required side of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The number must be above the bound.
    Above,
    /// The number must be below the bound.
    Below,
}

/// A number that a statement's criterion compares with a bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The measured number.
    pub value: f64,
    /// Its 95 % confidence interval, if there is one.
    pub ci95: Option<[f64; 2]>,
    /// Required side of the bound.
    pub side: Side,
    /// The bound.
    pub bound: f64,
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The measured value agrees with the published one by the claim's criterion.
    Agrees,
    /// It does not.
    Differs,
    /// Nothing that is measured here can be compared with the claim.
    NotComparable,
}

impl Verdict {
    /// Returns the verdict in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::NotComparable => "not comparable",
        }
    }
}

/// A published result with the measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Short name.
    pub name: String,
    /// Number or statement.
    pub kind: Kind,
    /// What the verdict rests on.
    pub evidence: Evidence,
    /// Section, page, figure or table of the publication.
    pub place: String,
    /// The published number, or the statement in our words.
    pub published: Answer,
    /// The measured number, or what was found about the statement.
    pub ours: Answer,
    /// 95 % confidence interval of the number in `ours`, if there is one.
    pub ci95: Option<[f64; 2]>,
    /// Unit of the numbers.
    pub unit: String,
    /// The condition for agreement, written down before the comparison.
    pub criterion: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Explanation of the verdict.
    pub reason: String,
    /// The numbers that a statement's criterion compares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<Compared>,
    /// The same claim measured with the kernel's TCP and the gateway program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Measured>,
}

/// A cell measured live: with the kernel's TCP and the gateway program over the emulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The measured value, in the cell's unit.
    pub value: Answer,
    /// Its 95 % confidence interval, if there is one.
    pub ci95: Option<[f64; 2]>,
    /// The verdict of the live value.
    pub verdict: Verdict,
    /// The simulated value for the same programs. It differs from `ours` where `ours` models a TCP
    /// of the publication's time.
    pub simulated: Answer,
    /// Whether each live number agrees with its simulated counterpart within the tolerance.
    pub agrees: bool,
}

/// Accepted relative difference of two numbers without intervals.
pub(crate) const TOLERANCE: f64 = 0.1;

/// Returns true if two numbers differ by at most `slack` and `half`, the half-width of the 95 %
/// confidence interval of their difference, of which at most half of `slack` counts: a wide
/// interval never doubles the tolerance.
pub(crate) fn is_near(difference: f64, slack: f64, half: f64) -> bool {
    difference.abs() <= slack + half.min(slack / 2.0)
}

impl Measured {
    /// Compares `live` with `simulated`, the same cell computed from different results: its number,
    /// or each number that its criterion compares. Without a number the verdicts have to be the same.
    pub(super) fn new(simulated: &Cell, live: &Cell) -> Self {
        let half = |ends: Option<[f64; 2]>| ends.map_or(0.0, |[low, high]| (high - low) / 2.0);
        let near = |(ours, measured): ((f64, f64), (f64, f64))| {
            is_near(measured.0 - ours.0, TOLERANCE * ours.0.abs(), ours.1 + measured.1)
        };
        let numbers = |cell: &Cell| match cell.ours {
            Answer::Number(ours) => vec![(ours, half(cell.ci95))],
            Answer::Words(_) => {
                cell.compared.iter().map(|one| (one.value, half(one.ci95))).collect()
            }
        };
        let (ours, measured) = (numbers(simulated), numbers(live));
        let agrees = match ours.len() {
            0 if measured.is_empty() => simulated.verdict == live.verdict,
            count => count == measured.len() && ours.into_iter().zip(measured).all(near),
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

/// A number or words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// A number, in the cell's unit.
    Number(f64),
    /// Words.
    Words(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(mean: f64, half: f64) -> Cell {
        Cell {
            name: "gain".to_owned(),
            kind: Kind::Number,
            evidence: Evidence::Simulated,
            place: "section 6.1".to_owned(),
            published: Answer::Number(44.0),
            ours: Answer::Number(mean),
            ci95: Some([mean - half, mean + half]),
            unit: "%".to_owned(),
            criterion: String::new(),
            verdict: Verdict::Agrees,
            reason: String::new(),
            compared: Vec::new(),
            live: None,
        }
    }

    fn agrees(simulated: &Cell, live: &Cell) -> bool {
        Measured::new(simulated, live).agrees
    }

    #[test]
    fn an_interval_never_doubles_the_tolerance() {
        let near = |live: f64, half: f64| agrees(&number(40.0, half), &number(live, half));
        assert!(near(43.9, 0.0) && !near(44.1, 0.0));
        assert!(near(45.9, 1.0) && !near(46.1, 1.0));
        assert!(near(45.9, 30.0) && !near(46.1, 30.0));
    }

    #[test]
    fn live_statements_are_compared_by_their_numbers() {
        let claim = |values: [f64; 2]| {
            let one = |value| Compared { value, ci95: None, side: Side::Above, bound: 0.5 };
            let ours = Answer::Words("packets lost".to_owned());
            Cell { kind: Kind::Claim, ours, compared: values.map(one).into(), ..number(0.0, 0.0) }
        };
        assert!(agrees(&claim([9.0, 32.0]), &claim([9.5, 31.0])));
        assert!(
            !agrees(&claim([9.0, 32.0]), &claim([87.0, 32.0])),
            "the same verdict is not enough"
        );
        let words = |verdict| Cell { compared: Vec::new(), verdict, ..claim([9.0, 32.0]) };
        assert!(agrees(&words(Verdict::Agrees), &words(Verdict::Agrees)));
        assert!(
            !agrees(&words(Verdict::Agrees), &words(Verdict::Differs)),
            "nothing else to compare"
        );
    }

    #[test]
    fn json_has_the_documented_fields() {
        let claim = Cell {
            kind: Kind::Claim,
            published: Answer::Words("on is better".to_owned()),
            ci95: None,
            verdict: Verdict::NotComparable,
            ..number(1.0, 0.0)
        };
        let text = serde_json::to_string(&claim).unwrap();
        for part in [
            r#""kind":"claim""#,
            r#""evidence":"simulated""#,
            r#""verdict":"not_comparable""#,
            r#""published":"on is better""#,
            r#""ci95":null"#,
        ] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
        assert_eq!(serde_json::from_str::<Cell>(&text).unwrap(), claim);
    }
}
