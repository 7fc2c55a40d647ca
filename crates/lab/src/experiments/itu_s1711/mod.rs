//! Recommendation ITU-R S.1711: enhancements of TCP over satellite networks.
//!
//! ```text
//!   equations     annex 1's equations
//!   enhancements  annex 2, table 3; varied: what its differing entries hang on
//!   bench         annex 3, section 2: gateways
//!   atm, shaping  annex 3, section 3: OC-3
//!   pages         annex 3, section 5: the web
//!   traces        figures that show one connection over time
//!   judge         what the document states, and what becomes of it
//! ```

mod atm;
mod bench;
mod enhancements;
mod equations;
mod judge;
mod live;
mod pages;
mod plan;
mod shaping;
#[cfg(test)]
mod tests;
mod traces;
mod varied;

use super::Entry;
use plan::*;

/// Its annexes 1 to 3, but for annex 3's section 4.
pub(super) static ENTRY: Entry = Entry {
    id: "itu-s1711",
    title: "Performance enhancements of TCP over satellite networks (ITU-R S.1711)",
    source: "Recommendation ITU-R S.1711, 2005",
    about: "What limits TCP over satellites, and what splitting connections, larger windows, \
            shaping and pipelining gain, as measured by several laboratories.",
    replications: REPLICATIONS,
    live: Some(&live::LIVE),
    parameters: &[],
    plan,
    judge: judge::judge,
};
