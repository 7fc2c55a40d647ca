//! Writes JSON, CSV, plots, result pages and the report.

mod html;
mod markdown;

use super::ALL;
use super::cell::{Answer, Cell, Measured, Verdict};
use super::judged::Judged;
use super::outcome::{Outcome, agreement};
use crate::LabError;
use crate::files;
use crate::schema::{self, Package, Resource};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The evaluated results of an entry.
const OUTCOME: &str = "outcome.json";
/// The HTML report.
const REPORT: &str = "report.html";
/// The cells that agree, by kind and by section.
const OVERVIEW: &str = "overview.md";
/// All cells of all entries as JSON.
const RESULTS: &str = "results.json";

/// Writes the evaluated results of an entry into its folder: `outcome.json`, `cells.csv`,
/// `cells.md`, each figure and table, and the schema of the tables.
pub(super) fn write_entry(out: &Path, judged: &Judged) -> Result<(), LabError> {
    let folder = out.join(&judged.id);
    let names: Vec<&str> = files_of(&judged.outcome).collect();
    debug_assert_eq!(twice(&names), None, "two files of {} have one name", judged.id);
    let plot_failed = |error: crate::plot::PlotError| LabError::Plot(error.to_string());
    let mut tables = vec![("cells.csv".to_owned(), cells(judged))];
    for picture in &judged.outcome.pictures {
        let path = folder.join(format!("{}.svg", picture.id));
        files::write_whole(&path, picture.svg.as_bytes())?;
    }
    for section in &judged.outcome.sections {
        for figure in &section.figures {
            let at = |ending: &str| folder.join(format!("{}.{ending}", figure.id));
            files::write_whole(&at("svg"), figure.svg().map_err(plot_failed)?.as_bytes())?;
            files::write_whole(&at("png"), &figure.png().map_err(plot_failed)?)?;
            tables.push((format!("{}.csv", figure.id), figure.csv()));
        }
        for table in &section.tables {
            let text = files::csv(&table.head, table.rows.iter().cloned());
            tables.push((format!("{}.csv", table.id), text));
        }
    }
    let mut resources = Vec::new();
    for (name, text) in &tables {
        files::write_whole(&folder.join(name), text.as_bytes())?;
        resources.push(Resource::read(name, text));
    }
    let package = Package::new(&judged.id, &judged.title, resources);
    files::write_whole(&folder.join(schema::FILE), package.json()?.as_bytes())?;
    files::write_whole(&folder.join("cells.md"), markdown::page(judged).as_bytes())?;
    files::write_whole(&folder.join(OUTCOME), json(judged)?.as_bytes())
}

/// Returns the file names, without extension, of pictures, figures and tables.
fn files_of(outcome: &Outcome) -> impl Iterator<Item = &str> {
    let pictures = outcome.pictures.iter().map(|picture| picture.id.as_str());
    let sections = outcome.sections.iter();
    pictures.chain(sections.flat_map(|section| {
        let figures = section.figures.iter().map(|figure| figure.id.as_str());
        figures.chain(section.tables.iter().map(|table| table.id.as_str()))
    }))
}

/// Returns the first name that occurs twice.
fn twice<'a>(names: &[&'a str]) -> Option<&'a str> {
    names
        .iter()
        .enumerate()
        .find(|(place, name)| names[..*place].contains(name))
        .map(|(_, name)| *name)
}

/// Writes `report.html`, `results.json` and `overview.md` from the entries' evaluated results.
pub(super) fn write_report(out: &Path) -> Result<PathBuf, LabError> {
    let mut judged = Vec::new();
    for folder in if out.exists() { files::folders(out)? } else { Vec::new() } {
        let path = folder.join(OUTCOME);
        if path.exists() {
            let one: Judged = serde_json::from_str(&files::read(&path)?).map_err(|error| {
                let path = path.display();
                LabError::Request(format!("{path}: {error}; `lab run` writes it anew"))
            })?;
            judged.push(one);
        }
    }
    judged.sort_by_key(|one| ALL.iter().position(|entry| entry.id == one.id));
    if judged.is_empty() {
        let out = out.display();
        return Err(LabError::Request(format!("{out}: found no results; `lab run` makes them")));
    }
    let results = Document { experiments: judged.iter().map(Experiment::of).collect() };
    files::write_whole(&out.join(RESULTS), json(&results)?.as_bytes())?;
    files::write_whole(&out.join(OVERVIEW), markdown::overview(&judged).as_bytes())?;
    let report = out.join(REPORT);
    files::write_whole(&report, html::page(&judged)?.as_bytes())?;
    Ok(report)
}

/// `results.json`.
#[derive(Serialize)]
struct Document<'a> {
    experiments: Vec<Experiment<'a>>,
}

#[derive(Serialize)]
struct Experiment<'a> {
    id: &'a str,
    title: &'a str,
    source: &'a str,
    command: &'a str,
    replications: u32,
    agrees: usize,
    differs: usize,
    not_comparable: usize,
    /// The headline: simulated and live cells that agree, of those that were compared.
    headline: [usize; 2],
    live: usize,
    live_agrees: usize,
    fitted: Vec<&'a str>,
    cells: Vec<&'a Cell>,
}

impl<'a> Experiment<'a> {
    fn of(judged: &'a Judged) -> Self {
        let outcome = &judged.outcome;
        let fitted = outcome.set_up.iter().filter(|line| line.fitted);
        let [live, live_agrees] = outcome.vouched();
        Self {
            id: &judged.id,
            title: &judged.title,
            source: &judged.source,
            command: &judged.command,
            replications: judged.replications,
            agrees: outcome.count(Verdict::Agrees),
            differs: outcome.count(Verdict::Differs),
            not_comparable: outcome.count(Verdict::NotComparable),
            headline: agreement(outcome.cells().filter(|cell| cell.evidence.is_headline())),
            live,
            live_agrees,
            fitted: fitted.map(|line| line.name.as_str()).collect(),
            cells: outcome.cells().collect(),
        }
    }
}

fn json(value: &impl Serialize) -> Result<String, LabError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| LabError::Request(format!("a result has no JSON: {error}")))?;
    Ok(text + "\n")
}

fn cells(judged: &Judged) -> String {
    let head = [
        "name",
        "kind",
        "evidence",
        "place",
        "published",
        "ours",
        "unit",
        "ci95_low",
        "ci95_high",
        "verdict",
        "criterion",
        "reason",
        "live",
        "live_verdict",
        "live_simulated",
        "live_agrees",
    ];
    let kind = |cell: &Cell| match cell.kind {
        super::Kind::Number => "number",
        super::Kind::Claim => "claim",
    };
    let rows = judged.outcome.cells().map(|cell| {
        let bound = |side: usize| cell.ci95.map_or_else(String::new, |ends| ends[side].to_string());
        let live =
            |what: fn(&Measured) -> String| cell.live.as_ref().map_or_else(String::new, what);
        vec![
            cell.name.clone(),
            kind(cell).to_owned(),
            cell.evidence.name().to_owned(),
            cell.place.clone(),
            plain(&cell.published),
            plain(&cell.ours),
            cell.unit.clone(),
            bound(0),
            bound(1),
            cell.verdict.name().to_owned(),
            cell.criterion.clone(),
            cell.reason.clone(),
            live(|live| plain(&live.value)),
            live(|live| live.verdict.name().to_owned()),
            live(|live| plain(&live.simulated)),
            live(|live| live.agrees.to_string()),
        ]
    });
    files::csv(&head.map(str::to_owned), rows)
}

fn plain(answer: &Answer) -> String {
    match answer {
        Answer::Number(value) => value.to_string(),
        Answer::Words(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_figures_need_distinct_names() {
        assert_eq!(twice(&["several", "queues", "several"]), Some("several"));
        assert_eq!(twice(&["several", "queues"]), None);
    }

    #[test]
    fn csv_quotes_commas_and_quotes() {
        let word = |text: &str| text.to_owned();
        let text = files::csv(&[word("a"), word("b")], [vec![word("1,5"), word("say \"no\"")]]);
        assert_eq!(text, "a,b\n\"1,5\",\"say \"\"no\"\"\"\n");
    }
}
