//! Common parts of the benchmarks: runs of several systems in turn, the medians of their results,
//! and the JSON.
//!
//! Runs are interleaved by run, case and system, so that other load of the machine and its
//! temperature affect all systems alike.

use crate::LabError;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The machine on which a benchmark ran.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The kernel's release.
    pub kernel: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// Mean number of runnable tasks in the minute before; other load makes results worse.
    pub load_before: Option<f64>,
}

impl Machine {
    /// Returns a description of this machine.
    pub fn here() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            load_before: read("/proc/loadavg").split(' ').next().and_then(|n| n.parse().ok()),
        }
    }
}

/// Returns the median of `values`, the mean of the middle two if their number is even; `None`
/// without values.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(f64::midpoint(values[low], values[high]))
}

/// Returns the value below which the part `quantile` of `sorted` values is; `None` without values.
pub(crate) fn quantile(sorted: &[f64], quantile: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((quantile * last as f64).round() as usize).copied()
}

/// A figure of one system over all runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Median {
    /// The median of the runs.
    pub value: f64,
    /// The maximum of the runs less the minimum.
    pub spread: f64,
}

impl Median {
    fn of(values: &[f64]) -> Option<Self> {
        let (low, high) =
            values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
                (low.min(value), high.max(value))
            });
        Some(Self { value: median(values.to_vec())?, spread: high - low })
    }
}

/// A metric, and its values of other systems.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// `case/figure`.
    pub name: String,
    /// The median of the runs; null if this system does not have the metric.
    pub value: Option<f64>,
    /// The unit of value and spread.
    pub unit: &'static str,
    /// The maximum of the runs less the minimum.
    pub spread: Option<f64>,
    /// The other systems, by name.
    pub against: BTreeMap<String, Median>,
}

/// Returns the figures whose names end in one of `wanted` as a table in Markdown, with a column for each
/// system.
pub(crate) fn markdown(results: &[Figure], wanted: &[&str]) -> String {
    let is_wanted = |figure: &&Figure| {
        figure.name.split_once('/').is_some_and(|(_, name)| wanted.contains(&name))
    };
    let rows: Vec<&Figure> = results.iter().filter(is_wanted).collect();
    let others: BTreeSet<&String> = rows.iter().flat_map(|row| row.against.keys()).collect();
    let head = others.iter().map(|name| name.as_str()).chain([MAIN]).collect::<Vec<_>>();
    let mut table = format!("| figure | unit | {} |\n|---|---|", head.join(" | "));
    head.iter().for_each(|_| table.push_str("---|"));
    for row in rows {
        let others = others.iter().map(|name| row.against.get(*name).map(|median| median.value));
        let cells: Vec<String> = others.chain([row.value]).map(cell).collect();
        table.push_str(&format!("\n| {} | {} | {} |", row.name, row.unit, cells.join(" | ")));
    }
    table + "\n"
}

/// Returns a value with three significant digits.
fn cell(value: Option<f64>) -> String {
    let Some(value) = value else { return "–".to_owned() };
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// The figures of one measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures(pub(crate) Vec<(String, &'static str, f64)>);

impl Figures {
    /// Adds a figure.
    pub(crate) fn add(&mut self, name: impl Into<String>, unit: &'static str, value: f64) {
        self.0.push((name.into(), unit, value));
    }
}

/// The figures of all runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    /// Names and units, in the order of their first appearance.
    names: Vec<(String, &'static str)>,
    values: BTreeMap<(String, String), Vec<f64>>,
}

impl Series {
    /// Adds the metrics of one measurement of `system`, with `case` and a slash before their names.
    pub(crate) fn add(&mut self, system: &str, case: &str, figures: Figures) {
        for (name, unit, value) in figures.0 {
            let name = format!("{case}/{name}");
            if !self.names.iter().any(|(known, _)| *known == name) {
                self.names.push((name.clone(), unit));
            }
            self.values.entry((name, system.to_owned())).or_default().push(value);
        }
    }

    /// Returns the median of each metric of `main`, and those of all other systems.
    pub(crate) fn results(&self, main: &str) -> Vec<Figure> {
        let figure = |(name, unit): &(String, &'static str)| {
            let of_name = self.values.iter().filter(|((figure, _), _)| figure == name);
            let mut against: BTreeMap<String, Median> = of_name
                .filter_map(|((_, system), values)| Some((system.clone(), Median::of(values)?)))
                .collect();
            let own = against.remove(main);
            Figure {
                name: name.clone(),
                value: own.map(|own| own.value),
                unit,
                spread: own.map(|own| own.spread),
                against,
            }
        };
        self.names.iter().map(figure).collect()
    }
}

/// Output of a benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// The benchmark.
    pub bench: &'static str,
    /// Where it was measured.
    pub machine: Machine,
    /// Whether the gateways were compiled without optimization; such results do not apply to a
    /// release.
    pub debug_build: bool,
    /// Runs of each system.
    pub runs: u32,
    /// Duration of each measurement in seconds, if it is fixed.
    pub seconds: f64,
    /// The figures.
    pub results: Vec<Figure>,
    /// Measurements that were not possible, and the reason.
    pub notes: Vec<String>,
}

impl BenchReport {
    /// Returns the rates and the processor time as a table in Markdown.
    pub fn markdown(&self) -> String {
        markdown(&self.results, &["rate", "cpu-both", "cpu-machine"])
    }
}

/// The measured system, with which all others are compared.
pub(crate) const MAIN: &str = "bentpipe";

/// Measures each case with each system `runs` times, in turn. `note` is called with a line for each
/// measurement.
///
/// The first error of a measurement of [`MAIN`], or of building a network. Errors of other systems
/// are part of the returned notes.
pub(crate) fn interleave<S: Copy>(
    runs: u32,
    cases: &[String],
    systems: &[(&str, S)],
    mut measure: impl FnMut(usize, S) -> Result<Figures, LabError>,
    note: &mut dyn FnMut(&str),
) -> Result<(Series, Vec<String>), LabError> {
    let (mut series, mut notes) = (Series::default(), Vec::new());
    for run in 1..=runs {
        for (number, case) in cases.iter().enumerate() {
            for &(name, system) in systems {
                let start = format!("run {run} of {runs}: {case}, {name}");
                match measure(number, system) {
                    Ok(figures) => {
                        note(&format!("{start}:{}", words(&figures)));
                        series.add(name, case, figures);
                    }
                    Err(error @ LabError::Testbed(_)) => return Err(error),
                    Err(error) if name == MAIN => return Err(error),
                    Err(error) => {
                        note(&format!("{start}: {error}"));
                        notes.push(format!("{case}, {name}: {error}"));
                    }
                }
            }
        }
    }
    Ok((series, notes))
}

fn words(figures: &Figures) -> String {
    let figure = |(name, unit, value): &(String, &str, f64)| format!(" {name} {value:.4} {unit}");
    figures.0.iter().map(figure).collect::<Vec<_>>().join(",")
}

/// Returns those of `names`, each of which is a `what`, that are in `only` or contain one of it that is
/// not a complete name; all of them if `only` is empty.
///
/// # Errors
/// If one of `only` matches no name.
pub(crate) fn chosen(
    what: &str,
    names: &[String],
    only: &[String],
) -> Result<Vec<String>, LabError> {
    if let Some(name) = only.iter().find(|part| !names.iter().any(|name| name.contains(*part))) {
        let expected = names.join(", ");
        return Err(LabError::Request(format!(
            "{what}: found {name:?}, expected (a part of) one of {expected}"
        )));
    }
    let means = |part: &String, name: &String| {
        if names.contains(part) { name == part } else { name.contains(part) }
    };
    let wanted = |name: &&String| only.is_empty() || only.iter().any(|part| means(part, name));
    Ok(names.iter().filter(wanted).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(value: f64) -> Figures {
        Figures(vec![("rate".to_owned(), "Gbit/s", value)])
    }

    #[test]
    fn tables_have_a_column_for_each_system() {
        let mut series = Series::default();
        series.add("kernel-tcp", "upload-1", figures(31.44));
        series.add(MAIN, "upload-1", figures(0.123_45));
        series.add(MAIN, "upload-1", Figures(vec![("memory".to_owned(), "MB", 4.0)]));
        series.add("quinn", "upload-10", figures(1_234.5));
        let expected = "| figure | unit | kernel-tcp | quinn | bentpipe |\n|---|---|---|---|---|\n\
            | upload-1/rate | Gbit/s | 31.4 | – | 0.123 |\n\
            | upload-10/rate | Gbit/s | – | 1234 | – |\n";
        assert_eq!(markdown(&series.results(MAIN), &["rate"]), expected);
    }

    #[test]
    fn systems_take_turns_and_their_medians_are_compared() {
        let cases = ["a".to_owned(), "b".to_owned()];
        let mut order = Vec::new();
        let mut value = 0.0;
        let systems = [("other", 'o'), (MAIN, 'm')];
        let measured = interleave(
            3,
            &cases,
            &systems,
            |case, system| {
                order.push((case, system));
                value += 1.0;
                if (case, system) == (1, 'o') {
                    return Err(LabError::Request("no".to_owned()));
                }
                Ok(figures(value))
            },
            &mut |_| {},
        );
        let (series, notes) = measured.unwrap();
        assert_eq!(order[..5], [(0, 'o'), (0, 'm'), (1, 'o'), (1, 'm'), (0, 'o')]);
        assert_eq!(notes.len(), 3);
        let results = series.results(MAIN);
        assert_eq!((results[0].name.as_str(), results[0].value), ("a/rate", Some(6.0)));
        assert_eq!(results[0].against["other"], Median { value: 5.0, spread: 8.0 });
        assert_eq!(results[0].spread, Some(8.0));
        assert!(results[1].against.is_empty());
    }

    #[test]
    fn an_error_of_the_measured_system_ends_the_benchmark() {
        let cases = ["a".to_owned()];
        let failing = |_, ()| Err(LabError::Request("no".to_owned()));
        assert!(interleave(1, &cases, &[(MAIN, ())], failing, &mut |_| {}).is_err());
    }

    #[test]
    fn cases_are_chosen_by_parts_of_their_names() {
        let cases = ["download-1", "download-10", "upload-1"].map(str::to_owned);
        assert_eq!(chosen("case", &cases, &["up".to_owned()]).unwrap(), ["upload-1"]);
        assert_eq!(chosen("case", &cases, &["download-1".to_owned()]).unwrap(), ["download-1"]);
        assert_eq!(chosen("case", &cases, &[]).unwrap().len(), 3);
        assert!(chosen("case", &cases, &["x".to_owned()]).is_err());
    }

    #[test]
    fn an_even_number_of_runs_has_the_mean_of_the_middle_two() {
        assert_eq!(median(vec![4.0, 1.0, 2.0, 8.0]), Some(3.0));
        assert_eq!(median(Vec::new()), None);
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 0.99), Some(3.0));
    }
}
