//! The results of a scenario as files.

use super::expect::Judged;
use super::{Scenario, expect, figures, record};
use crate::LabError;
use crate::experiments::statistics::{Summary, shown};
use crate::experiments::{Options, Values, Verdict, scenario_code};
use crate::files;
use crate::schema::{self, Field, Kind, Package, Resource};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// All jobs are done.
    Whole {
        /// Folder of the results.
        folder: PathBuf,
        /// The summary.
        text: String,
        /// Whether all criteria are met.
        met: bool,
    },
    /// A shard is done; jobs of other shards are missing.
    Part {
        /// Name of the scenario.
        name: String,
        /// Number of jobs that are done.
        done: usize,
        /// Total number of jobs.
        jobs: usize,
    },
}

/// `run.json`: what the results depend on.
#[derive(Serialize)]
struct Run<'a> {
    scenario: &'a str,
    version: &'static str,
    /// Hash of the code that the values depend on.
    code: String,
    seed: u64,
    replications: usize,
    points: usize,
    set: &'a [String],
}

/// Writes all files of the results.
pub(super) fn write(
    scenario: &Scenario,
    values: &[Vec<Values>],
    options: &Options,
) -> Result<Report, LabError> {
    let folder = options.out.join(&scenario.name);
    let put = |name: &str, text: &str| files::write_whole(&folder.join(name), text.as_bytes());
    let judged = expect::judge(scenario, values);
    put("scenario.toml", &scenario.text)?;
    put("runs.csv", &runs(scenario, values))?;
    put("cells.csv", &cells(scenario, values))?;
    put("expect.csv", &expectations(&judged))?;
    let run = Run {
        scenario: &scenario.name,
        version: env!("CARGO_PKG_VERSION"),
        code: scenario_code(),
        seed: options.seed,
        replications: values.first().map_or(0, Vec::len),
        points: scenario.points.len(),
        set: &options.set,
    };
    let run = serde_json::to_string_pretty(&run)
        .map_err(|error| LabError::Request(format!("run.json: {error}")))?;
    put("run.json", &(run + "\n"))?;
    let text = summary(scenario, values, &judged);
    put("summary.md", &text)?;
    figures::write(scenario, values, &folder)?;
    let series = record::write(scenario, options, &folder)?;
    let package = package(scenario, series);
    put(schema::FILE, &package.json()?)?;
    let met = judged.iter().all(|one| one.verdict == Verdict::Agrees);
    Ok(Report::Whole { folder, text, met })
}

/// The columns of the measures: names with their units.
fn measures(scenario: &Scenario) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for point in &scenario.points {
        for (name, unit) in point.case.measures() {
            if !all.iter().any(|(known, _)| *known == name) {
                let head = if unit.is_empty() { name.clone() } else { format!("{name} ({unit})") };
                all.push((name, head));
            }
        }
    }
    all
}

/// The schema of all tables; `series` are those of the time series.
fn package(scenario: &Scenario, series: Vec<Resource>) -> Package {
    let (integer, number, text) = (Kind::Integer, Kind::Number, Kind::String);
    let point = Field::new("point", integer, "The point of the sweep, from 1");
    let keys = scenario.keys.iter().enumerate().map(|(place, key)| {
        let values = scenario.points.iter().map(|point| point.values[place].as_str());
        Field::of_values(key, values, "A key of the scenario")
    });
    let mut runs = vec![point];
    runs.extend(keys);
    let mut cells = runs.clone();
    runs.push(Field::new("replication", integer, "From 0; its number selects the random numbers"));
    cells.push(Field::new("replications", integer, "Number of runs"));
    for (_, head) in measures(scenario) {
        runs.push(Field::new(&head, number, "Value of one run"));
        cells.push(Field::new(&head, number, "Mean over the replications that have a value"));
        for (end, about) in [
            ("ci95_low", "Lower end of the 95 % interval of the mean"),
            ("ci95_high", "Upper end of the 95 % interval of the mean"),
        ] {
            cells.push(Field::new(&format!("{head} {end}"), number, about));
        }
    }
    let expect = EXPECT.map(|(name, about)| {
        let is_number = ["ours", "ci95_low", "ci95_high"].contains(&name);
        Field::new(name, if is_number { number } else { text }, about)
    });
    let mut resources = vec![
        Resource::csv("runs.csv", runs),
        Resource::csv("cells.csv", cells),
        Resource::csv("expect.csv", expect.to_vec()),
    ];
    resources.extend(series);
    let title = &scenario.points[0].case.title;
    Package::new(&scenario.name, if title.is_empty() { &scenario.name } else { title }, resources)
}

/// Columns of `expect.csv`.
const EXPECT: [(&str, &str); 8] = [
    ("name", "Name of the criterion"),
    ("point", "Swept keys with their values"),
    ("criterion", "What is expected of which measure"),
    ("ours", "The mean, in the unit of the measure, or the ratio of two means"),
    ("ci95_low", "Lower end of its 95 % interval"),
    ("ci95_high", "Upper end of its 95 % interval"),
    ("verdict", "agrees or differs"),
    ("reason", "Why it differs"),
];

/// One row for each replication of each point.
fn runs(scenario: &Scenario, values: &[Vec<Values>]) -> String {
    let measures = measures(scenario);
    let mut head = vec!["point".to_owned()];
    head.extend(scenario.keys.iter().cloned());
    head.push("replication".to_owned());
    head.extend(measures.iter().map(|(_, head)| head.clone()));
    let mut rows = Vec::new();
    for (place, (point, runs)) in scenario.points.iter().zip(values).enumerate() {
        for (replication, run) in runs.iter().enumerate() {
            let mut row = vec![(place + 1).to_string()];
            row.extend(point.values.iter().cloned());
            row.push(replication.to_string());
            let value = |name: &String| run.find(name).map_or(String::new(), |one| one.to_string());
            row.extend(measures.iter().map(|(name, _)| value(name)));
            rows.push(row);
        }
    }
    files::csv(&head, rows)
}

/// One row for each point: mean and 95 % interval of each measure over the replications that have a
/// value.
fn cells(scenario: &Scenario, values: &[Vec<Values>]) -> String {
    let measures = measures(scenario);
    let mut head = vec!["point".to_owned()];
    head.extend(scenario.keys.iter().cloned());
    head.push("replications".to_owned());
    for (_, name) in &measures {
        head.extend([name.clone(), format!("{name} ci95_low"), format!("{name} ci95_high")]);
    }
    let rows = scenario.points.iter().zip(values).enumerate().map(|(place, (point, runs))| {
        let mut row = vec![(place + 1).to_string()];
        row.extend(point.values.iter().cloned());
        row.push(runs.len().to_string());
        for (name, _) in &measures {
            let seen: Vec<f64> = runs.iter().filter_map(|run| run.find(name)).collect();
            if seen.is_empty() {
                row.extend([String::new(), String::new(), String::new()]);
                continue;
            }
            let summary = Summary::of(&seen);
            row.push(summary.mean.to_string());
            let ends = summary.interval().map(|ends| ends.map(|end| end.to_string()));
            row.extend(ends.unwrap_or_default());
        }
        row
    });
    files::csv(&head, rows)
}

fn expectations(judged: &[Judged]) -> String {
    let rows = judged.iter().map(|one| {
        let mean = one.summary.map_or(String::new(), |summary| summary.mean.to_string());
        let ends = one.summary.and_then(|summary| summary.interval());
        let [low, high] = ends.map(|ends| ends.map(|end| end.to_string())).unwrap_or_default();
        vec![
            one.name.clone(),
            one.point.clone(),
            one.criterion.clone(),
            mean,
            low,
            high,
            one.verdict.name().to_owned(),
            one.reason.clone(),
        ]
    });
    files::csv(&EXPECT.map(|(name, _)| name.to_owned()), rows)
}

/// The measures with their intervals, and the criteria, as Markdown.
fn summary(scenario: &Scenario, values: &[Vec<Values>], judged: &[Judged]) -> String {
    let title = &scenario.points[0].case.title;
    let replications = values.first().map_or(0, Vec::len);
    let mut text = format!("# {}\n\n", if title.is_empty() { &scenario.name } else { title });
    let points = scenario.points.len();
    let _ = writeln!(
        text,
        "{points} point{}, {replications} replication{} each; mean ± half of the 95 % interval.\n",
        plural(points),
        plural(replications)
    );
    let measures: Vec<(String, String)> = measures(scenario)
        .into_iter()
        .filter(|(name, _)| values.iter().flatten().any(|run| run.find(name).is_some()))
        .collect();
    let heads = scenario.keys.iter().chain(measures.iter().map(|(_, head)| head));
    let heads: Vec<&str> = heads.map(String::as_str).collect();
    let _ = writeln!(text, "| {} |", heads.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(heads.len()));
    for (point, runs) in scenario.points.iter().zip(values) {
        let cell = |(name, _): &(String, String)| {
            let seen: Vec<f64> = runs.iter().filter_map(|run| run.find(name)).collect();
            match seen.len() {
                0 => "–".to_owned(),
                some if some < runs.len() => {
                    format!("{} ({some} runs)", digits(Summary::of(&seen)))
                }
                _ => digits(Summary::of(&seen)),
            }
        };
        let row: Vec<String> =
            point.values.iter().cloned().chain(measures.iter().map(cell)).collect();
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    if !judged.is_empty() {
        let met = judged.iter().filter(|one| one.verdict == Verdict::Agrees).count();
        let _ = writeln!(text, "\n{met} of {} criteria are met.\n", judged.len());
        for one in judged {
            let verdict = if one.verdict == Verdict::Agrees { "met" } else { "NOT MET" };
            let reason =
                if one.reason.is_empty() { String::new() } else { format!(": {}", one.reason) };
            let point =
                if one.point.is_empty() { String::new() } else { format!(" at {}", one.point) };
            let _ = writeln!(
                text,
                "* {verdict}: {}{point}: {} (found {}){reason}",
                one.name, one.criterion, one.ours
            );
        }
    }
    text
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A summary with three significant digits of its mean.
fn digits(summary: Summary) -> String {
    if summary.mean == 0.0 && summary.half == 0.0 {
        return "0".to_owned();
    }
    let size = summary.mean.abs().max(1e-9).log10().floor() as i32;
    shown(summary, (2 - size).clamp(0, 4) as usize)
}
