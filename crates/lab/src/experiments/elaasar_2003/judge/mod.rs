//! What the paper states, and what becomes of it.

mod ambiguities;
mod conclusion;
mod connectivity;
mod corruption;
mod figures;
mod handoff;
mod published;
mod reasons;
mod seen;
mod set_up;

use crate::experiments::{Outcome, Results, Section, Setting};
use seen::Seen;

/// Judges all results.
pub(super) fn judge(setting: &Setting, results: &Results) -> Outcome {
    let seen = Seen { setting, results };
    let overview = Section {
        title: "What probing is worth".into(),
        figures: figures::gains(&seen),
        ..Section::default()
    };
    Outcome {
        set_up: set_up::lines(setting),
        sections: vec![
            overview,
            corruption::section(&seen),
            handoff::section(&seen),
            connectivity::section(&seen),
            conclusion::section(&seen),
            ambiguities::section(&seen),
        ],
        ..Outcome::default()
    }
}
