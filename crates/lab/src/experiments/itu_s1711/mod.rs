//! Recommendation ITU-R S.1711: enhancements of TCP over satellite networks.
//!
//! ```text
//!   equations     annex 1's equations
//!   enhancements  annex 2, table 3; varied: tests of the reasons for differences
//!   bench         annex 3, section 2: gateways
//!   atm, shaping  annex 3, section 3: OC-3
//!   pages         annex 3, section 5: the web
//!   traces        figures of one connection over time
//!   judge         evaluation of the document's claims
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
