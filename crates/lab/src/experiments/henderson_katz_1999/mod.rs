//! The STP paper: Henderson and Katz 1999.
//!
//! ```text
//!   latency    analysis of table I
//!   bench      files over the network of figure 2: figures 3, 4, 7 and 9
//!   web        requests and replies: table I's measured column, table II
//!   pages      whole pages: section V.B
//!   networks   table III
//!   simulators the same file by the RFCs' senders, and in ns-2
//!   live       figure 3's file with a current kernel and gateways
//!   judge      evaluation of the paper's claims
//! ```

mod bench;
mod judge;
mod latency;
mod live;
mod networks;
mod pages;
mod plan;
mod simulators;
#[cfg(test)]
mod tests;
mod web;

use super::Entry;
use plan::*;

pub(super) static ENTRY: Entry = Entry {
    id: "henderson-katz-1999",
    title: "Transport protocols for Internet-compatible satellite networks (STP)",
    source: "T. R. Henderson, R. H. Katz: Transport Protocols for Internet-Compatible Satellite \
             Networks, IEEE Journal on Selected Areas in Communications 17(2), 1999",
    about: "How well TCP does over GEO and LEO satellites, for files and for the web, alone and \
            beside others; what splitting the connection gains, and what STP does.",
    replications: 20,
    live: Some(&live::LIVE),
    parameters: &[],
    plan,
    judge: judge::judge,
};
