//! What the paper states, and what becomes of it.

mod files;
mod set_up;
mod table_1;
mod web;

use crate::experiments::{Outcome, Results, Setting};

/// Judges all results.
pub(super) fn judge(_: &Setting, results: &Results) -> Outcome {
    Outcome {
        summary: SUMMARY.map(str::to_owned).into(),
        set_up: set_up::lines(),
        sections: vec![
            files::from_end_to_end(results),
            table_1::section(results),
            web::replies(results),
            files::split_up(results),
            web::commercial(results),
        ],
        ..Outcome::default()
    }
}

const SUMMARY: [&str; 3] = [
    "The paper's main results stand. TCP with SACK and NewReno's rules keeps most of a satellite's \
     rate when it is alone; a single connection with a short round trip takes nearly all of it; \
     splitting the connection gives it back; and STP does the same with a fraction of the return \
     channel. Replies on the web wait for round trips, and T/TCP and a larger first window save \
     more than half of them together.",
    "How little TCP loses from 20 to 600 ms hangs on the router's queue, which is not given: within \
     10 %, as published, with 200 packets, not with 50. Measured means of table I and table II hang \
     on who closes and when: with a server that closes with its reply, as HTTP/1.0 does, they agree \
     but for small segments over GEO, where requests and the largest replies decide. Table III \
     hangs on networks that are no more.",
    "All figures and tables of the paper are here. Figures 1, 2, 6 and 8 are drawings.",
];
