//! Performance of transports over an emulated link, compared with its bounds.
//!
//! Scenarios run one after another, each in its own network: the processors are part of the
//! measurement. The result is JSON. Nothing here is a test, because a result that depends on the
//! machine's load must not fail a build.

mod codec;
pub mod control;
pub mod emulator;
pub mod ends;
mod figures;
mod load;
mod measure;
pub mod multi_access;
pub mod plans;
pub mod radio;
mod scale;
mod scenarios;
pub mod sim;
pub mod tcp;
pub mod transfer;

pub use codec::{CodecConfig, codec};
pub use figures::{BenchReport, Figure, Machine, Median};
pub use load::{LoadConfig, connect, gateway, idle};
pub(crate) use measure::return_bits;
pub use scale::{ScaleConfig, scale};
pub use scenarios::{SCENARIOS, Scenario, bound};

use crate::LabError;
use crate::live::{Counters, Way};
use figures::{Figures, MAIN, interleave};
use scenarios::{
    Check, FULL_RATE, MATCHES, PAGE_ROUND_TRIPS, RECOVERY, RETURN, ROUND_TRIPS, SHARE,
};
use serde::Serialize;
use std::collections::BTreeMap;
use units::Span;

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct BenchConfig {
    /// Names of scenarios or parts of them; empty for all.
    pub only: Vec<String>,
    /// The transports to measure.
    pub ways: Vec<Way>,
    /// Duration of bulk transfers from their first octet.
    pub window: Span,
    /// Runs of each scenario with each transport; the results are the medians.
    pub runs: u32,
    /// How often single requests and pages are repeated.
    pub repetitions: usize,
    /// Seed of the links' random processes.
    pub seed: u64,
}

impl Default for BenchConfig {
    /// All scenarios, over 60 s, with ten requests and three pages.
    fn default() -> Self {
        Self {
            only: Vec::new(),
            ways: Way::ALL.into_iter().chain([Way::Unconfigured]).collect(),
            window: Span::from_secs(60),
            runs: 1,
            repetitions: 10,
            seed: 1,
        }
    }
}

impl BenchConfig {
    /// Returns shorter runs with less accurate results.
    pub fn quick(self) -> Self {
        Self { window: Span::from_secs(20), repetitions: 4, ..self }
    }

    /// Returns the selected scenarios.
    ///
    /// # Errors
    /// If a name matches no scenario.
    pub fn scenarios(&self) -> Result<Vec<&'static Scenario>, LabError> {
        for name in &self.only {
            if !SCENARIOS.iter().any(|scenario| scenario.name.contains(name.as_str())) {
                let known: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
                return Err(LabError::Request(format!(
                    "scenario: found {name:?}, expected (a part of) one of {}",
                    known.join(", ")
                )));
            }
        }
        // A complete name selects only that scenario.
        let means = |name: &String, scenario: &Scenario| {
            let whole = SCENARIOS.iter().any(|other| other.name == name);
            if whole { scenario.name == name } else { scenario.name.contains(name.as_str()) }
        };
        let wanted = |scenario: &&Scenario| {
            self.only.is_empty() || self.only.iter().any(|name| means(name, scenario))
        };
        Ok(SCENARIOS.iter().filter(wanted).collect())
    }
}

/// Results of the benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Duration of bulk transfers in seconds.
    pub window_seconds: f64,
    /// Seed of the links' random processes.
    pub seed: u64,
    /// The machine that ran it.
    pub machine: Machine,
    /// The medians of all runs.
    pub results: Vec<Figure>,
    /// Each scenario with each transport, in the order of time.
    pub runs: Vec<Run>,
}

/// One scenario with one transport.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Name of the scenario.
    pub scenario: &'static str,
    /// Description of the scenario.
    pub about: &'static str,
    /// Link description.
    pub link: String,
    /// The transport.
    pub way: Way,
    /// Metrics; names end in the unit.
    pub figures: BTreeMap<String, f64>,
    /// Comparisons with bounds, if there are any for the transport.
    pub checks: Vec<Verdict>,
    /// Whether the emulator kept its schedule; otherwise the metrics are unreliable.
    pub emulator_kept_up: bool,
    /// Counters of the gateways, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateways: Option<Counters>,
    /// Errors and remarks.
    pub notes: Vec<String>,
}

/// A metric compared with its bound.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Name of the metric.
    pub figure: &'static str,
    /// Measured value, if there is one.
    pub value: Option<f64>,
    /// Lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Whether the bound is met.
    pub met: bool,
}

impl Verdict {
    fn of(check: &Check, figures: &BTreeMap<String, f64>) -> Self {
        let value = figures.get(check.figure()).copied();
        let (at_least, at_most) = match *check {
            Check::AtLeast(_, bound) => (Some(bound), None),
            Check::AtMost(_, bound) => (None, Some(bound)),
        };
        let met = value.is_some_and(|value| {
            at_least.is_none_or(|bound| value >= bound)
                && at_most.is_none_or(|bound| value <= bound)
        });
        Self { figure: check.figure(), value, at_least, at_most, met }
    }
}

/// Runs the benchmark; calls `tell` with the result of each run.
///
/// # Errors
/// If a name matches no scenario, or no network can be created. Other errors of a run are part of
/// the report.
pub fn link(config: &BenchConfig, tell: &mut dyn FnMut(&Run)) -> Result<Report, LabError> {
    let machine = Machine::here();
    let scenarios = config.scenarios()?;
    let names: Vec<String> = scenarios.iter().map(|scenario| scenario.name.to_owned()).collect();
    let ways: Vec<(&str, Way)> = config.ways.iter().map(|way| (way.name(), *way)).collect();
    let mut runs = Vec::new();
    let measure = |number: usize, way| {
        let run = run(scenarios[number], way, config)?;
        tell(&run);
        let mut figures = Figures::default();
        run.figures.iter().for_each(|(name, value)| figures.add(name, unit(name), *value));
        runs.push(run);
        Ok(figures)
    };
    let (series, _) = interleave(config.runs, &names, &ways, measure, &mut |_| {})?;
    Ok(Report {
        window_seconds: config.window.as_secs_f64(),
        seed: config.seed,
        machine,
        results: series.results(MAIN),
        runs,
    })
}

impl Report {
    /// Returns the figures that have goals, and those of downloads, as a table in Markdown.
    pub fn markdown(&self) -> String {
        figures::markdown(&self.results, &TABLE)
    }
}

/// Figures of the table in Markdown.
const TABLE: [&str; 7] =
    [SHARE, RETURN, FULL_RATE, ROUND_TRIPS, PAGE_ROUND_TRIPS, RECOVERY, MATCHES];

/// Returns the unit of a metric, the last part of its name.
fn unit(figure: &str) -> &'static str {
    match figure {
        name if name.ends_with("bits_per_second") => "bit/s",
        name if name.ends_with("seconds") => "s",
        name if name.contains("round_trips") => "round trips",
        _ => "1",
    }
}

fn run(scenario: &'static Scenario, way: Way, config: &BenchConfig) -> Result<Run, LabError> {
    let link = scenario.link()?;
    let mut run = Run {
        scenario: scenario.name,
        about: scenario.about,
        link: scenario.words.to_owned(),
        way,
        figures: BTreeMap::new(),
        checks: Vec::new(),
        emulator_kept_up: false,
        gateways: None,
        notes: Vec::new(),
    };
    match measure::scenario(scenario, &link, way, config, &mut run) {
        Ok(()) => {}
        // Without namespaces nothing can be measured.
        Err(error @ LabError::Testbed(_)) => return Err(error),
        Err(error) => {
            // The traffic of a failed system has no meaning.
            if matches!(error, LabError::System { .. }) {
                run.figures.clear();
            }
            run.notes.push(error.to_string());
        }
    }
    // Of a scenario without a configured rate the bounds are those of such gateways.
    let check = |check: &Check| match way {
        Way::Unconfigured if scenario.keys.is_none() => {
            Verdict::of(&check.unconfigured(), &run.figures)
        }
        _ => Verdict::of(check, &run.figures),
    };
    if matches!(way, Way::Bentpipe | Way::Unconfigured) {
        run.checks = scenario.checks.iter().map(check).collect();
    }
    Ok(run)
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<16} {:<9}", self.scenario, self.way)?;
        for (name, value) in &self.figures {
            write!(f, " {name}={value:.4}")?;
        }
        for check in &self.checks {
            let word = if check.met { "met" } else { "MISSED" };
            let bound = check.at_least.or(check.at_most).unwrap_or_default();
            let relation = if check.at_least.is_some() { ">=" } else { "<=" };
            write!(f, " [{} {relation} {bound:.4}: {word}]", check.figure)?;
        }
        if !self.emulator_kept_up {
            write!(f, " (the emulator did not keep up)")?;
        }
        for note in &self.notes {
            write!(f, " ({note})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_selected_by_parts_of_their_names() {
        let config = BenchConfig { only: vec!["page".to_owned()], ..BenchConfig::default() };
        let names: Vec<&str> =
            config.scenarios().unwrap().iter().map(|scenario| scenario.name).collect();
        assert_eq!(names, ["page-six", "page-pipelined"]);
        let config = BenchConfig { only: vec!["clean".to_owned()], ..BenchConfig::default() };
        assert_eq!(config.scenarios().unwrap().len(), 1);
        let config = BenchConfig { only: vec!["moon".to_owned()], ..BenchConfig::default() };
        let error = config.scenarios().unwrap_err().to_string();
        assert!(error.starts_with("scenario: found \"moon\""), "{error}");
        assert_eq!(BenchConfig::default().scenarios().unwrap().len(), SCENARIOS.len());
    }

    #[test]
    fn a_missing_metric_does_not_meet_its_bound() {
        let figures = BTreeMap::from([("share".to_owned(), 0.97), ("bits".to_owned(), 5.0)]);
        let met = |check: Check| Verdict::of(&check, &figures).met;
        assert!(met(Check::AtLeast("share", 0.96)));
        assert!(!met(Check::AtLeast("share", 0.98)));
        assert!(met(Check::AtMost("bits", 5.0)));
        assert!(!met(Check::AtMost("bits", 4.0)));
        assert!(!met(Check::AtMost("missing", 4.0)));
    }
}
