//! Figures of a sweep: a measure over a swept number.

use super::Scenario;
use super::file::Case;
use crate::LabError;
use crate::document::Document;
use crate::experiments::statistics::Summary;
use crate::experiments::{Axis, Figure, Series, Values};
use crate::files;
use std::path::Path;

/// Checks the names of `[plot]`.
pub(super) fn check(case: &Case, keys: &[String], document: &Document<'_>) -> Result<(), LabError> {
    let wrong = |path: &str, found: &str, known: Vec<&str>| {
        let expected = format!("one of {}", known.join(", "));
        Err(document.wrong(path, &format!("\"{found}\""), &expected))
    };
    if let Some(x) = case.plot.x.as_ref().filter(|x| !keys.contains(x)) {
        return wrong("plot.x", x, keys.iter().map(String::as_str).collect());
    }
    let measures = case.measures();
    for y in &case.plot.y {
        if !measures.iter().any(|(name, _)| name == y) {
            return wrong("plot.y", y, measures.iter().map(|(name, _)| name.as_str()).collect());
        }
    }
    Ok(())
}

/// Writes a figure for each measure of `[plot]`, if a swept key has numbers.
pub(super) fn write(
    scenario: &Scenario,
    values: &[Vec<Values>],
    folder: &Path,
) -> Result<(), LabError> {
    let first = &scenario.points[0].case;
    let all = |column: usize| scenario.points.iter().map(move |point| &point.values[column]);
    let is_number = |column: &usize| {
        let mut units = all(*column).map(|value| number(value).map(|found| found.1));
        let unit = units.next().flatten();
        unit.is_some() && units.all(|other| other == unit)
    };
    let column = match &first.plot.x {
        Some(x) => scenario.keys.iter().position(|key| key == x).filter(is_number),
        None => (0..scenario.keys.len()).find(is_number),
    };
    let Some(column) = column else { return Ok(()) };
    let measures = first.measures();
    let usual = || {
        let one = |(name, traffic): (&String, &super::file::Traffic)| {
            traffic.kind.measures().first().map(|measure| format!("{name}.{}", measure.0))
        };
        first.traffic.iter().filter_map(one).collect::<Vec<String>>()
    };
    let names = if first.plot.y.is_empty() { usual() } else { first.plot.y.clone() };
    for name in names {
        let unit = measures.iter().find(|(known, _)| *known == name).map_or("", |found| found.1);
        let label = if unit.is_empty() { name.clone() } else { format!("{name} ({unit})") };
        let unit = number(&scenario.points[0].values[column]).map_or("", |found| found.1);
        let key = &scenario.keys[column];
        let x = if unit.is_empty() { key.clone() } else { format!("{key} ({unit})") };
        let title = if first.title.is_empty() { &scenario.name } else { &first.title };
        let figure = Figure {
            id: name.clone(),
            title: title.clone(),
            x: if first.plot.log_x { Axis::log(x) } else { Axis::linear(x) },
            y: Axis::linear(label),
            series: lines(scenario, values, column, &name),
            note: String::new(),
        };
        draw(&figure, folder)?;
    }
    Ok(())
}

/// A line for each combination of the other keys' values.
fn lines(scenario: &Scenario, values: &[Vec<Values>], column: usize, name: &str) -> Vec<Series> {
    let mut found: Vec<(String, Vec<(f64, Summary)>)> = Vec::new();
    for (point, runs) in scenario.points.iter().zip(values) {
        let others = point.values.iter().enumerate().filter(|(place, _)| *place != column);
        let label = others.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ");
        let label = if label.is_empty() { name.to_owned() } else { label };
        let seen: Vec<f64> = runs.iter().filter_map(|run| run.find(name)).collect();
        let Some((x, _)) = number(&point.values[column]).filter(|_| !seen.is_empty()) else {
            continue;
        };
        let place = found.iter().position(|(known, _)| *known == label).unwrap_or_else(|| {
            found.push((label, Vec::new()));
            found.len() - 1
        });
        found[place].1.push((x, Summary::of(&seen)));
    }
    found.into_iter().map(|(label, points)| Series::new(label, points)).collect()
}

/// Writes a figure as SVG, PNG and CSV; one without points is left out.
pub(super) fn draw(figure: &Figure, folder: &Path) -> Result<(), LabError> {
    if figure.series.iter().all(|series| series.points.is_empty()) {
        return Ok(());
    }
    let failed = |error: crate::plot::PlotError| LabError::Plot(error.to_string());
    let at = |ending: &str| folder.join("figures").join(format!("{}.{ending}", figure.id));
    files::write_whole(&at("svg"), figure.svg().map_err(failed)?.as_bytes())?;
    files::write_whole(&at("png"), &figure.png().map_err(failed)?)?;
    files::write_whole(&at("csv"), figure.csv().as_bytes())
}

/// The number at the beginning of a value, and the rest: its unit.
fn number(value: &str) -> Option<(f64, &str)> {
    let end = value.find(|letter: char| !(letter.is_ascii_digit() || ".-".contains(letter)));
    let (digits, unit) = value.split_at(end.unwrap_or(value.len()));
    let unit = unit.trim();
    let single = unit.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '%');
    Some((digits.parse().ok()?, unit)).filter(|_| single)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(number("0.5%"), Some((0.5, "%")));
        assert_eq!(number("300ms"), Some((300.0, "ms")));
        assert_eq!(number("7"), Some((7.0, "")));
        assert_eq!(number("pair"), None);
        assert_eq!(number("20mbit loss 1%"), None);
    }
}
