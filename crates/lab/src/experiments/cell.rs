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
    /// Whether live and simulated values differ by at most 10 % or the sum of their interval
    /// halves, or have the same verdict if they are words.
    pub agrees: bool,
}

/// Accepted relative difference between live and simulated values.
pub(super) const BESIDE: f64 = 0.1;

impl Measured {
    /// Compares `live` with `simulated`, the same cell computed from different results.
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
    fn live_agrees_within_ten_percent_or_the_intervals() {
        let agrees = |ours: (f64, f64), live: (f64, f64)| {
            Measured::new(&number(ours.0, ours.1), &number(live.0, live.1)).agrees
        };
        assert!(agrees((40.0, 0.0), (43.9, 0.0)));
        assert!(!agrees((40.0, 0.0), (44.1, 0.0)));
        assert!(agrees((40.0, 3.0), (46.0, 4.0)));
        assert!(!agrees((40.0, 3.0), (46.0, 2.0)));
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
            r#""verdict":"not_comparable""#,
            r#""published":"on is better""#,
            r#""ci95":null"#,
        ] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
        assert_eq!(serde_json::from_str::<Cell>(&text).unwrap(), claim);
    }
}
