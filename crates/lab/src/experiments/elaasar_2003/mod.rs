//! The paper of XSTP: Elaasar, Li, Barbeau and Kranakis 2003.
//!
//! ```text
//!   conditions   the six tests of section 6 and their points
//!   trial        one transfer, by XSTP-OFF, XSTP-ON or steady
//!   variants     what the paper leaves open, varied
//!   congestion   section 8's open question
//!   radio        section 7: the stack over packet radio
//!   judge        what the paper states, and what becomes of it
//! ```

mod conditions;
mod congestion;
mod judge;
mod plan;
mod radio;
mod return_of_link;
mod trial;
mod variants;

use super::Entry;
use plan::*;

/// Its sections 6 to 8.
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
