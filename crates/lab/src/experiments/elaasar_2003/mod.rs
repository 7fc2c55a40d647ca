//! The paper of XSTP: Elaasar, Li, Barbeau and Kranakis 2003.

use super::{Entry, Outcome, Point, Results, Setting};

/// Its figures 6 to 17 and the questions of its section 8.
pub(crate) static ENTRY: Entry = Entry {
    id: "elaasar-2003",
    title: "The extended satellite transport protocol (XSTP)",
    source: "M. E. Elaasar, Z. Li, M. Barbeau, E. Kranakis: The eXtended Satellite Transport \
             Protocol: Its Design and Evaluation, 2003",
    about: "Probing for the cause of losses, on and off: bit corruption, hand-off, limited \
            connectivity, and a stack for packet radio.",
    replications: 20,
    live: false,
    parameters: &[],
    plan,
    judge,
};

fn plan(_: &Setting) -> Vec<Point> {
    Vec::new()
}

fn judge(_: &Setting, _: &Results) -> Outcome {
    Outcome::default()
}
