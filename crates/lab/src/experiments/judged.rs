//! An entry with what it came to.

use super::outcome::Outcome;
use super::{ALL, store};
use serde::{Deserialize, Serialize};

/// An entry with what it came to, as it is kept beside its store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The entry's name.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// What it is, in a sentence.
    pub about: String,
    /// What runs it again.
    pub command: String,
    /// Names the code that made the results.
    pub code: String,
    /// How often each point was run.
    pub replications: u32,
    /// Jobs in all.
    pub jobs: usize,
    /// What it came to.
    pub outcome: Outcome,
}

impl Judged {
    /// Whether other code made it than would run now.
    pub(super) fn is_stale(&self) -> bool {
        let entry = ALL.iter().find(|entry| entry.id == self.id);
        entry.is_some_and(|entry| store::code_of(entry) != self.code)
    }
}
