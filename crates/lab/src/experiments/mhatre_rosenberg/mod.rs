//! Mhatre and Rosenberg 2002: split TCP over a shared return link.
//!
//! ```text
//!   plan      the points: table I, interpretations, sweeps, bulk transfers, the grant loop
//!   access    other access schemes for the same link
//!   judge     evaluation of the paper's claims
//! ```

mod access;
mod judge;
mod plan;

use super::Entry;
use plan::*;

pub(crate) static ENTRY: Entry = Entry {
    id: "mhatre-rosenberg",
    title: "TCP over a return link that terminals share",
    source: "V. Mhatre, C. Rosenberg: Performance Improvement of TCP-based Applications in a \
             Multi-access Satellite System, 2002",
    about: "Twenty terminals on 100 kbit/s: TCP end to end with fixed shares, and TCP split by \
            STP with bandwidth on demand; Table I, sweeps, and what the paper left to the future.",
    replications: 20,
    live: None,
    parameters: &[],
    plan,
    judge: judge::judge,
};
