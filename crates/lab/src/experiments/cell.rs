//! What was published, ours beside it, and the verdict.

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

#[cfg(test)]
mod tests {
    use super::*;

    fn number(mean: f64, half: f64) -> Cell {
        Cell {
            name: "gain".to_owned(),
            kind: Kind::Number,
            place: "section 6.1".to_owned(),
            published: Answer::Number(44.0),
            ours: Answer::Number(mean),
            ci95: Some([mean - half, mean + half]),
            unit: "%".to_owned(),
            criterion: String::new(),
            verdict: Verdict::Agrees,
            reason: String::new(),
            live: None,
        }
    }

    #[test]
    fn live_vouches_for_simulated_within_a_tenth_or_the_intervals() {
        let agrees = |ours: (f64, f64), live: (f64, f64)| {
            Measured::new(&number(ours.0, ours.1), &number(live.0, live.1)).agrees
        };
        assert!(agrees((40.0, 0.0), (43.9, 0.0)));
        assert!(!agrees((40.0, 0.0), (44.1, 0.0)));
        assert!(agrees((40.0, 3.0), (46.0, 4.0)));
        assert!(!agrees((40.0, 3.0), (46.0, 2.0)));
    }

    #[test]
    fn json_says_what_readers_expect() {
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
            r#""verdict":"not_comparable""#,
            r#""published":"on is better""#,
            r#""ci95":null"#,
        ] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
        assert_eq!(serde_json::from_str::<Cell>(&text).unwrap(), claim);
    }
}
