//! Criteria of a scenario, by the rules for cells of published experiments.

use super::file::{Case, Expect, Tolerance};
use super::{CasePoint, Scenario};
use crate::LabError;
use crate::document::{Document, nearest};
use crate::experiments::statistics::{Summary, pm, relative_gain};
use crate::experiments::{TOLERANCE, Values, Verdict, is_near};
use std::collections::BTreeMap;

/// A criterion at one point.
pub(super) struct Judged {
    pub(super) name: String,
    pub(super) point: String,
    pub(super) criterion: String,
    /// What was found, in words.
    pub(super) ours: String,
    pub(super) summary: Option<Summary>,
    pub(super) verdict: Verdict,
    pub(super) reason: String,
}

/// Checks the criteria of a file whose swept keys are `keys`.
pub(super) fn check(case: &Case, keys: &[String], document: &Document<'_>) -> Result<(), LabError> {
    let measures = case.measures();
    for expect in &case.expect {
        let wrong = |found: &str, expected: &str| Err(document.wrong("expect", found, expected));
        let known = |known: &[&str], found: &str| {
            let near = nearest(found, known)
                .map_or(String::new(), |near| format!("; the nearest is {near}"));
            format!("one of {}{near}", known.join(", "))
        };
        if !measures.iter().any(|(name, _)| *name == expect.measure) {
            let names: Vec<&str> = measures.iter().map(|(name, _)| name.as_str()).collect();
            let found = format!("the measure \"{}\"", expect.measure);
            return wrong(&found, &known(&names, &expect.measure));
        }
        for key in expect.at.keys().chain(expect.versus.keys()) {
            if !keys.contains(key) {
                let names: Vec<&str> = keys.iter().map(String::as_str).collect();
                return wrong(&format!("the key \"{key}\""), &known(&names, key));
            }
        }
        let bounds = expect.above.is_some() || expect.below.is_some();
        if bounds == expect.value.is_some() {
            let expected = "either value, or above or below, or both of these";
            return wrong(&format!("{} with no or two criteria", expect.measure), expected);
        }
    }
    Ok(())
}

/// Judges all criteria at all their points.
pub(super) fn judge(scenario: &Scenario, values: &[Vec<Values>]) -> Vec<Judged> {
    let mut all = Vec::new();
    for expect in &scenario.points[0].case.expect {
        let mut any = false;
        for (place, point) in scenario.points.iter().enumerate() {
            if matches(scenario, point, &expect.at) {
                any = true;
                all.push(one(scenario, expect, place, values));
            }
        }
        if !any {
            all.push(expect.blank(String::new(), "no point has these values of `at`"));
        }
    }
    all
}

fn one(scenario: &Scenario, expect: &Expect, place: usize, values: &[Vec<Values>]) -> Judged {
    let point = scenario.label(place);
    let of = |place: usize| -> Option<Vec<f64>> {
        values[place].iter().map(|run| run.find(&expect.measure)).collect()
    };
    let Some(ours) = of(place) else {
        return expect.blank(point, "not every replication has a value");
    };
    let summary = if expect.versus.is_empty() {
        Summary::of(&ours)
    } else {
        let Some(other) = scenario.changed(place, &expect.versus) else {
            return expect.blank(point, "no point has these values of `versus`");
        };
        let Some(other) = of(other) else {
            return expect.blank(point, "not every replication of `versus` has a value");
        };
        let gain = relative_gain(&ours, &other);
        Summary { mean: gain.mean + 1.0, ..gain }
    };
    let (met, reason) = expect.holds(summary);
    let verdict = if met { Verdict::Agrees } else { Verdict::Differs };
    let (ours, reason) = (pm(summary, 4), reason.to_owned());
    Judged { ours, summary: Some(summary), verdict, reason, ..expect.blank(point, "") }
}

impl Expect {
    /// The result without a value.
    fn blank(&self, point: String, reason: &str) -> Judged {
        let name = if self.name.is_empty() { &self.measure } else { &self.name };
        Judged {
            name: name.clone(),
            point,
            criterion: self.criterion(),
            ours: "–".to_owned(),
            summary: None,
            verdict: Verdict::Differs,
            reason: reason.to_owned(),
        }
    }

    fn criterion(&self) -> String {
        let mut words = vec![self.measure.clone()];
        if !self.versus.is_empty() {
            let versus = self.versus.iter().map(|(key, value)| format!("{key}={}", plain(value)));
            words.push(format!("relative to {}", versus.collect::<Vec<_>>().join(" ")));
        }
        if let Some(value) = self.value {
            words.push(format!("{value} {}", tolerance_words(self.tolerance.as_ref())));
        }
        words.extend(self.above.map(|bound| format!("above {bound}")));
        words.extend(self.below.map(|bound| format!("below {bound}")));
        words.join(" ")
    }

    /// Whether the criterion is met, and why not.
    fn holds(&self, summary: Summary) -> (bool, &'static str) {
        const CHANCE: &str =
            "the mean is on the right side, but the interval reaches over the bound";
        let single = summary.interval().is_none();
        if let Some(value) = self.value {
            let slack = self.tolerance.as_ref().map_or(TOLERANCE * value.abs(), |tolerance| {
                (tolerance.within * value.abs()).max(tolerance.absolute)
            });
            let half = summary.interval().map_or(0.0, |_| summary.half);
            let near = is_near(summary.mean - value, slack, half);
            return (near, if near { "" } else { "outside of the tolerance" });
        }
        let above = self.above.is_none_or(|bound| summary.mean > bound);
        let below = self.below.is_none_or(|bound| summary.mean < bound);
        if !(above && below) {
            return (false, "the mean is on the other side");
        }
        let clear = self.above.is_none_or(|bound| summary.clearly_above(bound))
            && self.below.is_none_or(|bound| summary.clearly_below(bound));
        (single || clear, if single || clear { "" } else { CHANCE })
    }
}

fn tolerance_words(tolerance: Option<&Tolerance>) -> String {
    match tolerance {
        None => format!("within {} %", TOLERANCE * 100.0),
        Some(Tolerance { within, absolute, because }) => {
            let parts = [("%", within * 100.0), ("", *absolute)];
            let parts = parts.iter().filter(|part| part.1 > 0.0);
            let parts: Vec<String> =
                parts.map(|(unit, part)| format!("{part} {unit}").trim().to_owned()).collect();
            format!("within {} ({because})", parts.join(" or "))
        }
    }
}

impl Scenario {
    /// The swept keys of a point with their values.
    pub(super) fn label(&self, place: usize) -> String {
        let pairs = self.keys.iter().zip(&self.points[place].values);
        pairs.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    }

    /// The point that differs from another one by `changes`.
    fn changed(&self, place: usize, changes: &BTreeMap<String, toml::Value>) -> Option<usize> {
        let wanted: Vec<String> = (self.keys.iter().zip(&self.points[place].values))
            .map(|(key, value)| changes.get(key).map_or_else(|| value.clone(), plain))
            .collect();
        self.points.iter().position(|point| point.values == wanted)
    }
}

fn matches(scenario: &Scenario, point: &CasePoint, at: &BTreeMap<String, toml::Value>) -> bool {
    let mut pairs = scenario.keys.iter().zip(&point.values);
    pairs.all(|(key, value)| at.get(key).is_none_or(|wanted| plain(wanted) == *value))
}

/// A value as the labels of points have it.
fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect(text: &str) -> Expect {
        toml::from_str(&format!("measure = \"m\"\n{text}")).unwrap()
    }

    #[test]
    fn criteria_follow_the_rules_of_cells() {
        let tight = Summary::of(&[9.9, 10.0, 10.1]);
        let wide = Summary::of(&[8.0, 10.0, 12.0]);
        let one = Summary::of(&[10.0]);
        assert!(expect("above = 9").holds(tight).0);
        assert!(!expect("above = 9").holds(wide).0, "within chance");
        assert!(expect("above = 9").holds(one).0, "the mean alone counts");
        assert!(!expect("below = 9").holds(one).0);
        assert!(expect("value = 10.9").holds(tight).0, "within 10 %");
        assert!(!expect("value = 12.5").holds(tight).0);
        let because = "tolerance = { absolute = 3.0, because = \"rounded\" }";
        let loose = expect(&format!("value = 12.5\n{because}"));
        assert!(loose.holds(tight).0);
        assert_eq!(loose.criterion(), "m 12.5 within 3 (rounded)");
    }
}
