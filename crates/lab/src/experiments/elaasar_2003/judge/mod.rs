//! What the paper states, and what becomes of it.

mod ambiguities;
mod conclusion;
mod connectivity;
mod corruption;
mod figures;
mod handoff;
mod measure;
mod seen;
mod sentence;
mod set_up;
mod words;

use super::radio;
use crate::experiments::{Outcome, Results, Section, Setting};
use seen::Seen;

/// Judges all results.
pub(super) fn judge(setting: &Setting, results: &Results) -> Outcome {
    let seen = Seen::new(setting, results);
    let overview = Section {
        title: "What probing is worth".into(),
        figures: figures::gains(&seen),
        ..Section::default()
    };
    let mut sections = vec![
        overview,
        corruption::section(&seen),
        handoff::section(&seen),
        connectivity::section(&seen),
    ];
    sections.extend(radio::sections(results));
    sections.push(conclusion::section(&seen));
    sections.push(ambiguities::section(&seen));
    let mut set_up = set_up::lines(setting);
    set_up.extend(radio::set_up());
    let summary = words::SUMMARY.map(str::to_owned).into();
    Outcome { summary, set_up, sections, ..Outcome::default() }
}
