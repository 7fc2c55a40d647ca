//! Evaluation of the recommendation's claims.

mod arithmetic;
mod atm;
mod enhancements;
mod equations;
mod measured;
mod pages;
mod shaping;
mod traces;

use crate::experiments::publication::paper;
use crate::experiments::{Outcome, Results, Setting};

paper!(PAPER = "itu-s1711");

pub(super) fn judge(_: &Setting, results: &Results) -> Outcome {
    Outcome {
        summary: PAPER.summary(&[]),
        set_up: PAPER.set_up(&[]),
        sections: vec![
            equations::section(results),
            traces::window(results),
            enhancements::section(results),
            measured::one_connection(results),
            measured::two_segments(results),
            measured::three_segments(results),
            atm::section(results),
            shaping::section(results),
            traces::files(results),
            pages::section(results),
            arithmetic::section(results),
        ],
        ..Outcome::default()
    }
}
