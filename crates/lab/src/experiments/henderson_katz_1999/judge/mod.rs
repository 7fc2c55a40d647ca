//! What the paper states, and what becomes of it.

mod table_1;

use crate::experiments::{Outcome, Results, SetUp, Setting};

/// Judges all results.
pub(super) fn judge(_: &Setting, results: &Results) -> Outcome {
    Outcome {
        summary: vec![SUMMARY.to_owned()],
        set_up: set_up(),
        sections: vec![table_1::section(results)],
        ..Outcome::default()
    }
}

const SUMMARY: &str = "Of the paper's results these are done: the reckoned columns of table I, and \
                       what section V.B says about them. Not yet: figures 3, 4, 7 and 9, the \
                       measured column of table I, and tables II and III.";

fn set_up() -> Vec<SetUp> {
    vec![
        SetUp::published("round trips of table I", "600 ms for GEO, 80 ms for LEO"),
        SetUp::chosen(
            "sizes of replies",
            "the distributions of Mah's traces",
            "28 quantiles of the primary replies, evenly interpolated",
            "replies to what a user asked for; secondary ones fit the table worse",
        ),
        SetUp::fitted(
            "how the window opens in table I",
            "from one segment, delayed acknowledgements of 100 ms on average; no more is said",
            super::latency::TAKEN.about,
            "among the rules that were tried the set under which most of the 48 numbers agree",
        ),
    ]
}
