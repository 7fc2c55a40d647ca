//! The paper of STP: Henderson and Katz 1999.
//!
//! ```text
//!   latency   table I's reckoning
//!   judge     what the paper states, and what becomes of it
//! ```

mod judge;
mod latency;

use super::{Entry, Point, Setting};

/// Its sections V to VII.
pub(super) static ENTRY: Entry = Entry {
    id: "henderson-katz-1999",
    title: "Transport protocols for Internet-compatible satellite networks (STP)",
    source: "T. R. Henderson, R. H. Katz: Transport Protocols for Internet-Compatible Satellite \
             Networks, IEEE Journal on Selected Areas in Communications 17(2), 1999",
    about: "How well TCP does over GEO and LEO satellites, for files and for the web, alone and \
            beside others; what splitting the connection gains, and what STP does.",
    replications: 20,
    live: false,
    parameters: &[],
    plan,
    judge: judge::judge,
};

/// The study of table I's reckoning.
const ANALYSIS: &str = "analysis";

fn plan(_: &Setting) -> Vec<Point> {
    let models = std::iter::once(latency::TAKEN).chain(latency::OTHERS);
    models.map(|model| Point::new(ANALYSIS, model.name, 1, move |_| Ok(model.table()))).collect()
}
