//! Evaluation of the paper's claims.

mod files;
mod networks;
mod pages;
mod simulators;
mod table_1;
mod web;

use super::latency::TAKEN;
use crate::experiments::publication::paper;
use crate::experiments::{Outcome, Results, Setting};

paper!(PAPER = "henderson-katz-1999");

pub(super) fn judge(_: &Setting, results: &Results) -> Outcome {
    Outcome {
        summary: PAPER.summary(&[]),
        set_up: PAPER.set_up(&[("rules", TAKEN.about.to_owned())]),
        sections: vec![
            files::from_end_to_end(results),
            table_1::section(results),
            web::replies(results),
            pages::section(results),
            files::split_up(results),
            networks::section(results),
            simulators::section(results),
        ],
        ..Outcome::default()
    }
}
