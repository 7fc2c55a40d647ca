//! Evaluation of the paper's claims.

mod ambiguities;
mod conclusion;
mod connectivity;
mod corruption;
mod figures;
mod grid;
mod handoff;
mod joint;
mod measure;
mod seen;
mod shapes;

use super::radio;
use crate::experiments::publication::paper;
use crate::experiments::{Outcome, Results, Section, Setting};
use seen::Seen;

paper!(PAPER = "elaasar-2003");

pub(super) fn judge(setting: &Setting, results: &Results) -> Outcome {
    let seen = Seen::new(setting, results);
    let figures = figures::gains(&seen);
    let overview = Section { figures, ..figures::OVERVIEW.section() };
    let mut sections = vec![
        overview,
        corruption::section(&seen),
        handoff::section(&seen),
        connectivity::section(&seen),
    ];
    sections.extend(radio::sections(results));
    sections.push(conclusion::section(&seen));
    sections.push(ambiguities::section(&seen));
    sections.push(joint::section(&seen));
    grid::add(&seen, &mut sections);
    let values = [
        ("replications", setting.replications.to_string()),
        ("tolerance", format!("{}, a ratio", setting.get("tolerance"))),
        ("idle_threshold", format!("{} s", setting.get("idle_threshold_s"))),
        ("processing", format!("{} ms", radio::PROCESSING_MS)),
        ("pause", format!("{:.1} s", radio::PAUSE_MS as f64 / 1e3)),
    ];
    let (summary, set_up) = (PAPER.summary(&[]), PAPER.set_up(&values));
    Outcome { summary, set_up, sections, ..Outcome::default() }
}
