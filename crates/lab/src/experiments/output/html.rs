//! The HTML report: one self-contained page.

use crate::LabError;
use crate::experiments::cell::{Answer, Cell, Measured, Verdict};
use crate::experiments::judged::Judged;
use crate::experiments::outcome::{Outcome, Section, SetUp, Table};
use std::fmt::Write;

/// Returns the page with `experiments`.
pub(super) fn page(experiments: &[Judged]) -> Result<String, LabError> {
    let mut page = String::new();
    page += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    page += "<title>bentpipe lab: published results, run again</title>\n<style>";
    page += include_str!("report.css");
    page += "</style>\n</head>\n<body>\n<main>\n";
    page += "<h1>Published results, run again</h1>\n";
    page += INTRODUCTION;
    page += &overview(experiments);
    page += &in_short(experiments);
    for judged in experiments {
        page += &experiment(judged)?;
    }
    page += "</main>\n</body>\n</html>\n";
    Ok(page)
}

const INTRODUCTION: &str = "<p class=\"lead\">Each published number or statement is a cell: what \
was published, what the comparison rests on, when ours agrees, what ours is with its 95&nbsp;% \
confidence interval over replications, and the verdict with its reason. Only simulated and live \
cells count in headlines. The protocol code is the code that the gateways run.</p>\n";

fn overview(experiments: &[Judged]) -> String {
    let mut text = String::from(
        "<table class=\"overview\"><thead><tr><th>experiment</th><th>cells that agree</th>\
         <th>live, as simulated</th><th>fitted values</th><th>runs</th></tr>\
         </thead><tbody>\n",
    );
    for judged in experiments {
        let outcome = &judged.outcome;
        let _ = writeln!(
            text,
            "<tr><td><a href=\"#{id}\"><b>{id}</b></a> {title}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td></tr>",
            outcome.headline(),
            vouched(outcome),
            outcome.fitted(),
            judged.jobs,
            id = escape(&judged.id),
            title = escape(&judged.title),
        );
    }
    text + "</tbody></table>\n"
}

/// Returns the first summary paragraph of each entry.
fn in_short(experiments: &[Judged]) -> String {
    let mut text = String::from("<section class=\"short\">\n<h2>In short</h2>\n");
    for judged in experiments {
        let Some(first) = judged.outcome.summary.first() else { continue };
        let (id, title) = (escape(&judged.id), escape(&judged.title));
        let first = escape(first);
        let _ = writeln!(text, "<p><a href=\"#{id}\"><b>{title}</b></a>. {first}</p>");
    }
    text + "</section>\n"
}

/// Returns how many of the cells measured live agree with the simulation.
fn vouched(outcome: &Outcome) -> String {
    match outcome.vouched() {
        [0, _] => "–".to_owned(),
        [live, agree] => format!("{agree} of {live}"),
    }
}

fn experiment(judged: &Judged) -> Result<String, LabError> {
    let Judged { id, title, source, about, command, replications, jobs, outcome, code } = judged;
    let mut text = format!("<article id=\"{}\">\n<h2>{}</h2>\n", escape(id), escape(title));
    let _ = writeln!(text, "<p class=\"source\">{}</p>\n<p>{}</p>", escape(source), escape(about));
    for paragraph in &outcome.summary {
        let _ = writeln!(text, "<p class=\"summary\">{}</p>", escape(paragraph));
    }
    for picture in &outcome.pictures {
        let (svg, note) = (inline(&picture.svg), escape(&picture.note));
        let _ = writeln!(text, "<figure>{svg}<figcaption>{note}</figcaption></figure>");
    }
    text += &bar(outcome);
    let _ = writeln!(
        text,
        "<p>Run it again: <code>{}</code> <span class=\"dim\">({replications} replications, {jobs} \
         runs, code {})</span></p>",
        escape(command),
        escape(code)
    );
    if judged.is_stale() {
        text += STALE;
    }
    text += &contents(judged);
    text += &differing(outcome);
    text += &set_up(id, &outcome.set_up);
    for (index, part) in outcome.sections.iter().enumerate() {
        text += &section(&format!("{id}-{index}"), part)?;
    }
    Ok(text + "</article>\n")
}

const STALE: &str = "<p class=\"summary\">Other code made these results than this program has: the \
command above makes them anew.</p>\n";

/// Returns a stacked bar of the verdict counts of simulated and live cells.
fn bar(outcome: &Outcome) -> String {
    let cells: Vec<_> = outcome.cells().filter(|cell| cell.evidence.is_headline()).collect();
    let mut text = String::from("<div class=\"bar\">");
    for verdict in [Verdict::Agrees, Verdict::Differs, Verdict::NotComparable] {
        let count = cells.iter().filter(|cell| cell.verdict == verdict).count();
        if count > 0 {
            let share = count as f64 * 100.0 / cells.len() as f64;
            let (class, name) = (class_of(verdict), verdict.name());
            let _ = write!(
                text,
                "<span class=\"{class}\" style=\"width:{share:.2}%\" title=\"{count} {name}\">\
                 {count} {name}</span>"
            );
        }
    }
    format!("{text}</div>\n<p>{}</p>\n", outcome.headline())
}

fn contents(judged: &Judged) -> String {
    let id = escape(&judged.id);
    let mut text = format!("<nav><a href=\"#{id}-set-up\">Set-up</a>");
    for (index, part) in judged.outcome.sections.iter().enumerate() {
        let _ = write!(text, " <a href=\"#{id}-{index}\">{}</a>", escape(&part.title));
    }
    text + "</nav>\n"
}

/// Returns the list of cells that differ.
fn differing(outcome: &Outcome) -> String {
    let mut cells = outcome.cells().filter(|cell| cell.verdict == Verdict::Differs).peekable();
    if cells.peek().is_none() {
        return String::new();
    }
    let mut text = String::from("<details><summary>What differs, and why</summary>\n<ul>\n");
    for cell in cells {
        let (name, place) = (escape(&cell.name), escape(&cell.place));
        let reason = escape(&cell.reason);
        let _ = writeln!(text, "<li><b>{name}</b> ({place}): {reason}</li>");
    }
    text + "</ul></details>\n"
}

fn set_up(id: &str, lines: &[SetUp]) -> String {
    let mut text = format!(
        "<h3 id=\"{}-set-up\">Set-up</h3>\n<table class=\"set-up\"><thead><tr><th></th>\
         <th>the publication says</th><th>ours</th><th>why</th></tr></thead><tbody>\n",
        escape(id)
    );
    for SetUp { name, published, ours, why, fitted } in lines {
        let published = if published.is_empty() { "nothing" } else { published.as_str() };
        let mark = if *fitted { " <span class=\"fitted\">fitted</span>" } else { "" };
        let _ = writeln!(
            text,
            "<tr><th>{}</th><td>{}</td><td>{}{mark}</td><td>{}</td></tr>",
            escape(name),
            escape(published),
            escape(ours),
            escape(why)
        );
    }
    text += "</tbody></table>\n";
    let fitted: Vec<&str> =
        lines.iter().filter(|line| line.fitted).map(|line| line.name.as_str()).collect();
    let words = match fitted.len() {
        0 => "No value was fitted to the published results.".to_owned(),
        count => format!("Fitted to the published results: {count} ({}).", fitted.join(", ")),
    };
    let _ = writeln!(text, "<p>{}</p>", escape(&words));
    text
}

fn section(id: &str, part: &Section) -> Result<String, LabError> {
    let mut text = format!("<section id=\"{}\">\n<h3>{}</h3>\n", escape(id), escape(&part.title));
    for paragraph in &part.text {
        let _ = writeln!(text, "<p>{}</p>", escape(paragraph));
    }
    if !part.figures.is_empty() {
        text += "<div class=\"figures\">\n";
        for figure in &part.figures {
            let svg = figure.svg().map_err(|error| LabError::Plot(error.to_string()))?;
            let _ = writeln!(text, "<figure>{}", inline(&svg));
            if !figure.note.is_empty() {
                let _ = writeln!(text, "<figcaption>{}</figcaption>", escape(&figure.note));
            }
            text += "</figure>\n";
        }
        text += "</div>\n";
    }
    part.tables.iter().for_each(|one| text += &table(one));
    text += &cells(&part.cells);
    Ok(text + "</section>\n")
}

/// Returns the element of an SVG file, for embedding in a page.
fn inline(svg: &str) -> &str {
    svg.find("<svg").map_or(svg, |start| &svg[start..])
}

fn table(one: &Table) -> String {
    let mut text = String::from("<div class=\"wide\"><table class=\"numbers\">");
    text += &format!("<caption>{}</caption><thead><tr>", escape(&one.title));
    one.head.iter().for_each(|word| text += &format!("<th>{}</th>", escape(word)));
    text += "</tr></thead><tbody>\n";
    for row in &one.rows {
        text += "<tr>";
        row.iter().for_each(|word| text += &format!("<td>{}</td>", escape(word)));
        text += "</tr>\n";
    }
    text + "</tbody></table></div>\n"
}

fn cells(cells: &[Cell]) -> String {
    if cells.is_empty() {
        return String::new();
    }
    let any_live = cells.iter().any(|cell| cell.live.is_some());
    let head = if any_live { "<th>live</th>" } else { "" };
    let mut text = format!(
        "<table class=\"cells\"><thead><tr><th>cell</th><th>kind</th><th>published</th><th>ours</th>{head}\
         <th>verdict</th><th>reason</th></tr></thead><tbody>\n",
    );
    for cell in cells {
        let _ = writeln!(
            text,
            "<tr class=\"{class}\"><td><b>{}</b><br><span class=\"dim\">{}</span></td><td>{}</td>\
             <td>{}</td><td>{}</td>{}<td><span class=\"verdict {class}\">{}</span></td><td>{}<br>\
             <span class=\"dim\">agrees when: {}</span></td></tr>",
            escape(&cell.name),
            escape(&cell.place),
            cell.evidence.name(),
            answer(&cell.published, cell),
            ours(cell),
            measured(cell, any_live),
            cell.verdict.name(),
            escape(&cell.reason),
            escape(&cell.criterion),
            class = class_of(cell.verdict),
        );
    }
    text + "</tbody></table>\n"
}

fn ours(cell: &Cell) -> String {
    let mut text = answer(&cell.ours, cell);
    if let Some([low, high]) = cell.ci95 {
        let _ = write!(
            text,
            "<br><span class=\"dim\">95&nbsp;%: {} to {}</span>",
            number(low),
            number(high)
        );
    }
    text
}

/// Returns the table entry of a cell's live value; empty if the table has no such column.
fn measured(cell: &Cell, any_live: bool) -> String {
    let Some(Measured { value, simulated, agrees, .. }) = &cell.live else {
        return if any_live { "<td></td>".to_owned() } else { String::new() };
    };
    let class = if *agrees { "dim" } else { "differs" };
    let beside = match (*simulated == cell.ours, agrees) {
        (true, true) => "as ours".to_owned(),
        (true, false) => "not as ours".to_owned(),
        (false, true) => format!("simulated {}: as live", answer(simulated, cell)),
        (false, false) => format!("simulated {}: not as live", answer(simulated, cell)),
    };
    format!("<td>{}<br><span class=\"{class}\">{beside}</span></td>", answer(value, cell))
}

fn answer(answer: &Answer, cell: &Cell) -> String {
    match answer {
        Answer::Number(value) => format!("{} {}", number(*value), escape(&cell.unit)),
        Answer::Words(text) => escape(text),
    }
}

/// Formats a number with about three significant digits.
pub(super) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 || size == 0.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Agrees => "agrees",
        Verdict::Differs => "differs",
        Verdict::NotComparable => "not_comparable",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::publication::Page;
    use crate::experiments::{Axis, Figure, Series};

    #[test]
    fn page_is_self_contained_and_escaped() {
        let text = "title = ''\n[[claim]]\nid = 'x'\nname = 'a < b'\nplace = 'section 1'\n\
                    statement = 'b & c'\ncriterion = 'always'\nreason = 'because'\n";
        let cell = Page::parse("x", text).claim("x").holds(false, "no", None);
        let live = Measured {
            value: Answer::Words("yes".into()),
            ci95: None,
            verdict: Verdict::Agrees,
            simulated: Answer::Words("no".into()),
            agrees: false,
        };
        let figure = Figure {
            id: "f".into(),
            title: "Figure".into(),
            x: Axis::linear("x"),
            y: Axis::linear("y"),
            series: vec![Series::dashed("line", [(0.0, 1.0), (1.0, 2.0)])],
            note: "a note".into(),
        };
        let section = Section {
            title: "Part".into(),
            figures: vec![figure],
            cells: vec![Cell { live: Some(live), ..cell }],
            ..Section::default()
        };
        let judged = Judged {
            id: "x-1999".into(),
            title: "T".into(),
            source: "S".into(),
            about: "A".into(),
            command: "bentpipe lab run x-1999 --seed 1".into(),
            code: "0".into(),
            replications: 20,
            jobs: 40,
            outcome: Outcome {
                summary: vec!["It stands.".into(), "Further words.".into()],
                set_up: vec![SetUp {
                    name: "rate".into(),
                    published: String::new(),
                    ours: "1 Mbit/s".into(),
                    why: "table 1".into(),
                    fitted: true,
                }],
                sections: vec![section],
                ..Outcome::default()
            },
        };
        let stale = Judged { id: "elaasar-2003".into(), ..judged.clone() };
        assert!(page(&[stale]).unwrap().contains("Other code made these results"));
        let page = page(&[judged]).unwrap();
        assert!(!page.contains("Other code"));
        for part in [
            "a &lt; b",
            "b &amp; c",
            "<svg",
            "a note",
            "What differs, and why",
            "<h2>In short</h2>\n<p><a href=\"#x-1999\"><b>T</b></a>. It stands.</p>\n</section>",
            "<th>live</th>",
            "<span class=\"differs\">not as ours</span>",
            "<td>0 of 1</td>",
            "bentpipe lab run x-1999 --seed 1",
            "Fitted to the published results: 1 (rate).",
        ] {
            assert!(page.contains(part), "the page lacks {part:?}");
        }
        for outside in ["src=\"http", "href=\"http", "<script"] {
            assert!(!page.contains(outside), "the page needs {outside:?}");
        }
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        let words: Vec<String> = [0.0, 0.0314, -2.5, 33.36, 2_512_000.4].map(number).into();
        assert_eq!(words, ["0.00", "0.031", "-2.50", "33.4", "2512000"]);
    }
}
