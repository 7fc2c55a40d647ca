//! Two result folders side by side.

use crate::LabError;
use crate::csv::Table;
use crate::experiments::statistics::{Summary, shown};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Values of one point: by measure, by replication.
type Measured = BTreeMap<String, BTreeMap<String, f64>>;

/// The runs of a folder.
struct Runs {
    keys: Vec<String>,
    measures: Vec<String>,
    /// By the values of the keys.
    points: Vec<(Vec<String>, Measured)>,
}

impl Runs {
    fn read(folder: &Path) -> Result<Self, LabError> {
        let path = folder.join("runs.csv");
        let table = Table::read(&path)?;
        let Some(split) = table.column("replication").filter(|split| *split > 0) else {
            let path = path.display();
            let message =
                format!("{path}:1: found no column replication, expected runs of a scenario");
            return Err(LabError::Request(message));
        };
        let mut points: Vec<(Vec<String>, Measured)> = Vec::new();
        for row in &table.rows {
            let values = row[1..split].to_vec();
            let place = points.iter().position(|(known, _)| *known == values);
            let place = place.unwrap_or_else(|| {
                points.push((values, Measured::new()));
                points.len() - 1
            });
            for (name, field) in table.head.iter().zip(row).skip(split + 1) {
                if let Ok(value) = field.parse() {
                    let by_run = points[place].1.entry(name.clone()).or_default();
                    by_run.insert(row[split].clone(), value);
                }
            }
        }
        let (keys, measures) = (table.head[1..split].to_vec(), table.head[split + 1..].to_vec());
        Ok(Self { keys, measures, points })
    }
}

/// Compares the results of a scenario in two folders: the measures of points that both have.
/// Replications of one number are compared in pairs, since they have the same random numbers.
///
/// # Errors
/// If a folder has no runs, or the two have different swept keys.
pub fn compare(first: &Path, second: &Path) -> Result<String, LabError> {
    let (one, other) = (Runs::read(first)?, Runs::read(second)?);
    if one.keys != other.keys {
        let (found, expected) = (other.keys.join(", "), one.keys.join(", "));
        let second = second.display();
        let message = format!("{second}: found the swept keys {found:?}, expected {expected:?}");
        return Err(LabError::Request(message));
    }
    let mut text = format!("A: {}\nB: {}\n\n", first.display(), second.display());
    let _ = writeln!(text, "| point | measure | A | B | B − A | change | verdict |");
    let _ = writeln!(text, "|---|---|---|---|---|---|---|");
    let (mut compared, mut differ, mut missing) = (0, Vec::new(), 0);
    for (values, measured) in &one.points {
        let Some((_, against)) = other.points.iter().find(|(known, _)| known == values) else {
            missing += 1;
            continue;
        };
        let pairs = one.keys.iter().zip(values).map(|(key, value)| format!("{key}={value}"));
        let point = pairs.collect::<Vec<_>>().join(" ");
        for name in one.measures.iter() {
            let (Some(a), Some(b)) = (measured.get(name), against.get(name)) else { continue };
            let difference = Difference::of(a, b);
            compared += 1;
            if difference.verdict == "differs" {
                differ.push(format!("{name}{}{point}", if point.is_empty() { "" } else { " at " }));
            }
            let _ = writeln!(text, "{}", difference.row(&point, name));
        }
    }
    let only = other
        .points
        .iter()
        .filter(|(values, _)| !one.points.iter().any(|(known, _)| known == values));
    let only = only.count();
    let _ = writeln!(text, "\n{} of {compared} differ.", differ.len());
    for name in &differ {
        let _ = writeln!(text, "* {name}");
    }
    if missing + only > 0 {
        let _ = writeln!(text, "{missing} points are only in A, {only} only in B.");
    }
    Ok(text)
}

/// One measure at one point in both folders.
struct Difference {
    a: Summary,
    b: Summary,
    change: Summary,
    verdict: &'static str,
}

impl Difference {
    fn of(a: &BTreeMap<String, f64>, b: &BTreeMap<String, f64>) -> Self {
        let all = |runs: &BTreeMap<String, f64>| runs.values().copied().collect::<Vec<f64>>();
        let (first, second) = (Summary::of(&all(a)), Summary::of(&all(b)));
        let change = if a.keys().eq(b.keys()) {
            Summary::of(&a.iter().map(|(run, value)| b[run] - value).collect::<Vec<f64>>())
        } else {
            let half = first.half.hypot(second.half);
            let (n, mean) = (first.n.min(second.n), second.mean - first.mean);
            Summary { n, mean, deviation: first.deviation.hypot(second.deviation), half }
        };
        let verdict = match change.interval() {
            _ if a == b => "equal",
            None => "no interval",
            Some([low, high]) if low <= 0.0 && high >= 0.0 => "within chance",
            Some(_) => "differs",
        };
        Self { a: first, b: second, change, verdict }
    }

    fn row(&self, point: &str, name: &str) -> String {
        let relative = match self.a.mean {
            0.0 => "–".to_owned(),
            mean => format!("{:+.1} %", self.change.mean / mean * 100.0),
        };
        let size = self.a.mean.abs().max(self.b.mean.abs()).max(1e-9).log10().floor() as i32;
        let digits = (3 - size).clamp(0, 6) as usize;
        let [a, b, change] = [self.a, self.b, self.change].map(|one| shown(one, digits));
        format!("| {point} | {name} | {a} | {b} | {change} | {relative} | {} |", self.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(values: &[f64]) -> BTreeMap<String, f64> {
        values.iter().enumerate().map(|(run, value)| (run.to_string(), *value)).collect()
    }

    #[test]
    fn verdicts_follow_the_interval_of_paired_differences() {
        let a = runs(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Difference::of(&a, &a).verdict, "equal");
        // Each is larger by nearly the same, though the intervals of the means overlap.
        let shifted = runs(&[1.1, 2.12, 3.1, 4.09]);
        let seen = Difference::of(&a, &shifted);
        assert_eq!(seen.verdict, "differs");
        assert!((seen.change.mean - 0.1025).abs() < 1e-9);
        let noisy = runs(&[1.5, 1.6, 3.4, 3.9]);
        assert_eq!(Difference::of(&a, &noisy).verdict, "within chance");
        // Without pairs the intervals of both count.
        let more = runs(&[1.1, 2.1, 3.1, 4.1, 2.6]);
        assert_eq!(Difference::of(&a, &more).verdict, "within chance");
        assert_eq!(Difference::of(&runs(&[1.0]), &runs(&[2.0])).verdict, "no interval");
    }
}
