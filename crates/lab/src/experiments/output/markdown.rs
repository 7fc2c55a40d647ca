//! The result page of an entry as Markdown.

use super::plain;
use crate::experiments::cell::{Answer, Cell, Evidence, Measured, Verdict};
use crate::experiments::judged::Judged;
use crate::experiments::outcome::{Section, agreement};
use std::fmt::Write;

/// How numbers are compared, and what the kinds of cells are.
const RULE: &str = "\
A number agrees within 10 % of the published one plus half of our 95 % interval, of which at most \
5 % count; another tolerance has its reason beside it. Kinds of cells: *simulated* without a \
parameter chosen by the published value, *live* with the kernel and the gateway program, \
*arithmetic* on formulas or published numbers, *fitted* with a parameter chosen with the published \
value in view, *restated* where the value is part of the set-up, *own goal* where it is this \
project's.\n";

/// Returns the overview of all entries: cells that agree, by kind and by section.
pub(super) fn overview(judged: &[Judged]) -> String {
    let mut text = "# Cells that agree, by kind\n\n| experiment |".to_owned();
    Evidence::ALL.iter().for_each(|evidence| text += &format!(" {} |", evidence.name()));
    text += " not comparable | live as simulated |\n|---|";
    text += &"---|".repeat(Evidence::ALL.len() + 2);
    for Judged { id, outcome, .. } in judged {
        let _ = write!(text, "\n| {id} |");
        for evidence in Evidence::ALL {
            let cells = outcome.cells().filter(|cell| cell.evidence == evidence);
            let _ = write!(text, " {} |", counted(agreement(cells)));
        }
        let [live, agree] = outcome.vouched();
        let open = outcome.count(Verdict::NotComparable);
        let _ = write!(text, " {open} | {} |", counted([agree, live]));
    }
    text += "\n";
    for Judged { id, outcome, .. } in judged {
        let _ = write!(text, "\n## {id}\n\n| section | simulated or live | other kinds |\n");
        text += "|---|---|---|\n";
        for section in outcome.sections.iter().filter(|section| !section.cells.is_empty()) {
            let (first, others): (Vec<&Cell>, Vec<&Cell>) =
                section.cells.iter().partition(|cell| cell.evidence.is_headline());
            let [first, others] = [first, others].map(|cells| counted(agreement(cells)));
            let _ = writeln!(text, "| {} | {first} | {others} |", escape(&section.title));
        }
    }
    text
}

fn counted([agree, of]: [usize; 2]) -> String {
    if of == 0 { "–".to_owned() } else { format!("{agree} of {of}") }
}

/// Returns the page of an entry: counts, set-up, cells and tables.
pub(super) fn page(judged: &Judged) -> String {
    let Judged { title, source, command, replications, jobs, outcome, .. } = judged;
    let mut text = format!("# {title}\n\n{source}\n\n");
    for paragraph in &outcome.summary {
        let _ = writeln!(text, "{paragraph}\n");
    }
    let _ = writeln!(
        text,
        "{} Fitted values: {}. `{command}` writes this page, with figures and tables beside it \
         ({replications} replications, {jobs} runs).\n\n{RULE}\n",
        outcome.headline(),
        outcome.fitted()
    );
    text += "## Set-up\n\n| | the publication says | ours | why |\n|---|---|---|---|\n";
    for line in &outcome.set_up {
        let mark = if line.fitted { " (**fitted**)" } else { "" };
        let words = [&line.name, &line.published, &line.ours, &line.why].map(|word| escape(word));
        let [name, published, ours, why] = words;
        let _ = writeln!(text, "| {name} | {published} | {ours}{mark} | {why} |");
    }
    let [live, agree] = outcome.vouched();
    if live > 0 {
        let _ = writeln!(
            text,
            "\n{live} cells were measured live as well, with the kernel's TCP and the gateway's \
             program over the emulator; in {agree} of them each number agrees with that of the \
             simulator's model of the same programs."
        );
    }
    for part in &outcome.sections {
        // Sections of figures alone are in the HTML report.
        if !part.cells.is_empty() || !part.tables.is_empty() {
            text += &section(part);
        }
    }
    text
}

fn section(section: &Section) -> String {
    let mut text = format!("\n## {}\n", section.title);
    for paragraph in &section.text {
        let _ = writeln!(text, "\n{paragraph}");
    }
    if !section.cells.is_empty() {
        let any_live = section.cells.iter().any(|cell| cell.live.is_some());
        let [live, rule] = if any_live { [" live |", "---|"] } else { ["", ""] };
        let _ = writeln!(
            text,
            "\n| cell | kind | published | ours |{live} agrees when | verdict | reason |\n\
             |---|---|---|---|{rule}---|---|---|"
        );
        section.cells.iter().for_each(|cell| text += &row(cell, any_live));
    }
    for table in &section.tables {
        let line = |words: &[String]| {
            let words: Vec<String> = words.iter().map(|word| escape(word)).collect();
            format!("| {} |\n", words.join(" | "))
        };
        let _ = writeln!(text, "\n### {}\n", table.title);
        text += &line(&table.head);
        text += &format!("|{}\n", "---|".repeat(table.head.len()));
        table.rows.iter().for_each(|row| text += &line(row));
    }
    text
}

fn row(cell: &Cell, any_live: bool) -> String {
    let verdict = match cell.verdict {
        Verdict::Agrees => "agrees",
        Verdict::Differs => "**differs**",
        Verdict::NotComparable => "*not comparable*",
    };
    let ours = match cell.ci95 {
        Some([low, high]) => {
            format!("{} (95 %: {} to {})", value(&cell.ours, cell), round(low), round(high))
        }
        None => value(&cell.ours, cell),
    };
    let live = match &cell.live {
        Some(live) => format!(" {} |", escape(&measured(live, cell))),
        None if any_live => " |".to_owned(),
        None => String::new(),
    };
    format!(
        "| {} ({}) | {} | {} | {} |{live} {} | {verdict} | {} |\n",
        escape(&cell.name),
        escape(&cell.place),
        cell.evidence.name(),
        escape(&value(&cell.published, cell)),
        escape(&ours),
        escape(&cell.criterion),
        escape(&cell.reason)
    )
}

/// Formats a live value and its agreement with the simulation of the same programs.
fn measured(live: &Measured, cell: &Cell) -> String {
    let beside = match (live.simulated == cell.ours, live.agrees) {
        (true, true) => "as ours".to_owned(),
        (true, false) => "**not as ours**".to_owned(),
        (false, true) => format!("simulated {}, as live", value(&live.simulated, cell)),
        (false, false) => format!("simulated {}, **not as live**", value(&live.simulated, cell)),
    };
    format!("{} ({beside})", value(&live.value, cell))
}

fn value(answer: &Answer, cell: &Cell) -> String {
    match answer {
        Answer::Number(value) => format!("{} {}", round(*value), cell.unit),
        Answer::Words(_) => plain(answer),
    }
}

fn round(value: f64) -> String {
    super::html::number(value)
}

/// Escapes text for a table entry.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}
