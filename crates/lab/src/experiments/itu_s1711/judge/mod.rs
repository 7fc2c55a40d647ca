//! What the recommendation states, and what becomes of it.

mod arithmetic;
mod equations;

use crate::experiments::{Outcome, Results, SetUp, Setting};

/// Judges all results.
pub(super) fn judge(_: &Setting, results: &Results) -> Outcome {
    Outcome {
        summary: vec![SUMMARY.to_owned()],
        set_up: set_up(),
        sections: vec![equations::section(results), arithmetic::section(results)],
        ..Outcome::default()
    }
}

const SUMMARY: &str = "Of the recommendation these are done: annex 1's equations and its tables 1 \
                       and 2, and what annex 3 makes of its own numbers. Not yet: its \
                       measurements.";

fn set_up() -> Vec<SetUp> {
    vec![
        SetUp::published("round trips of tables 1 and 2", "20, 200, 600 and 520 ms"),
        SetUp::chosen(
            "window of table 1",
            "64 kbytes, or 65,535 bytes",
            "65,535 bytes",
            "what the header can say",
        ),
        SetUp::fitted(
            "packets of table 2",
            "1 kbit",
            "1 kbyte",
            "the table's numbers do not follow from 1 kbit; the lengths that were tried stand \
             beside it",
        ),
    ]
}
