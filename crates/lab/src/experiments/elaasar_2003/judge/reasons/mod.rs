//! The words of the report: what to see in a section, and why cells come out as they do.

pub(super) mod conclusion;
pub(super) mod connectivity;
pub(super) mod corruption;
pub(super) mod handoff;

pub(super) const CORRUPTION: [&str; 1] = ["..."];
pub(super) const HANDOFF: [&str; 1] = ["..."];
pub(super) const CONNECTIVITY: [&str; 1] = ["..."];
pub(super) const CONGESTION: [&str; 1] = ["..."];
pub(super) const AMBIGUITIES: [&str; 1] = ["..."];
