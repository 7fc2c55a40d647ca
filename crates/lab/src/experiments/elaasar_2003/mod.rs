//! The XSTP paper: Elaasar, Li, Barbeau and Kranakis 2003.
//!
//! ```text
//!   conditions   the six tests of section 6 and their points
//!   trial        one transfer, by XSTP-OFF, XSTP-ON or steady
//!   variants     other interpretations of the paper
//!   joint        the readings that decide sizes, combined
//!   grid         all cells of section 6 under four parameters, combined
//!   congestion   the open question of section 8
//!   radio        section 7: the stack over packet radio
//!   judge        evaluation of the paper's claims
//! ```

mod conditions;
mod congestion;
mod grid;
mod joint;
mod judge;
mod plan;
mod radio;
mod return_of_link;
mod trial;
mod variants;

pub(crate) use radio::{counted_bits, table_1};

use super::Entry;
use plan::*;

pub(crate) static ENTRY: Entry = Entry {
    id: "elaasar-2003",
    title: "The extended satellite transport protocol (XSTP)",
    source: "M. E. Elaasar, Z. Li, M. Barbeau, E. Kranakis: The eXtended Satellite Transport \
             Protocol: Its Design and Evaluation, 2003",
    about: "XSTP finds out by probing whether a loss was congestion or an error of the link. The \
            paper sends a file over links with bit corruption, hand-offs and limited \
            connectivity, with probing off and on, and runs the protocol over packet radio.",
    replications: 20,
    live: None,
    parameters: PARAMETERS,
    plan,
    judge: judge::judge,
};

#[cfg(test)]
mod tests;
