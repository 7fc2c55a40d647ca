//! Recommendation ITU-R S.1711: enhancements of TCP over satellite networks.
//!
//! ```text
//!   equations   annex 1's equations
//!   judge       what the document states, and what becomes of it
//! ```

mod equations;
mod judge;

use super::{Entry, Point, Setting};

/// Its annexes 1 to 3, but for annex 3's section 4.
pub(super) static ENTRY: Entry = Entry {
    id: "itu-s1711",
    title: "Performance enhancements of TCP over satellite networks (ITU-R S.1711)",
    source: "Recommendation ITU-R S.1711, 2005",
    about: "What limits TCP over satellites, and what splitting connections, larger windows, \
            shaping and pipelining gain, as measured by several laboratories.",
    replications: 5,
    live: false,
    parameters: &[],
    plan,
    judge: judge::judge,
};

fn plan(_: &Setting) -> Vec<Point> {
    Vec::new()
}
