//! The terminals that a hub has configured.

use crate::keys::{Keys, PresharedKey, PublicKey};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A configured terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    pub(super) name: Arc<str>,
    pub(super) preshared: PresharedKey,
    /// Timestamp of the last accepted Hello.
    pub(super) latest: u64,
    /// Whether it may only register a key.
    pub(super) enrols: bool,
}

impl Terminal {
    /// Returns true if a Hello gets the same response from both.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.name == other.name && self.preshared == other.preshared && self.enrols == other.enrols
    }
}

/// Returns the terminals configured in `keys`, with their state from `before`.
pub(super) fn terminals(
    keys: &Keys,
    before: &BTreeMap<PublicKey, Terminal>,
) -> BTreeMap<PublicKey, Terminal> {
    let remembering = |known: &crate::keys::Known, enrols| {
        let (name, preshared) = (known.name.as_str().into(), known.preshared.clone());
        let mut terminal = Terminal { name, preshared, latest: 0, enrols };
        // With another secret or name the response to the last Hello may have been useless: its
        // repetition is processed as after a restart of the hub.
        if let Some(old) = before.get(&known.public).filter(|old| old.is_like(&terminal)) {
            terminal.latest = old.latest;
        }
        terminal
    };
    let enrolment = keys.enrolment().iter().map(|known| (known, true));
    let all = keys.known().iter().map(|known| (known, false)).chain(enrolment);
    all.map(|(known, enrols)| (known.public, remembering(known, enrols))).collect()
}
