//! An experiment with its evaluated results.

use super::outcome::Outcome;
use super::{ALL, store};
use serde::{Deserialize, Serialize};

/// An experiment with its evaluated results, as `outcome.json` stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Name of the experiment.
    pub id: String,
    /// Title of the experiment.
    pub title: String,
    /// Reference of the publication.
    pub source: String,
    /// Description in one sentence.
    pub about: String,
    /// The command that reproduces it.
    pub command: String,
    /// Hash of the code that produced the results.
    pub code: String,
    /// Replications of each point.
    pub replications: u32,
    /// Total number of jobs.
    pub jobs: usize,
    /// The evaluated results.
    pub outcome: Outcome,
}

impl Judged {
    /// Returns true if the results come from other code than this program has.
    pub(super) fn is_stale(&self) -> bool {
        let entry = ALL.iter().find(|entry| entry.id == self.id);
        entry.is_some_and(|entry| store::code_of(entry) != self.code)
    }
}
