//! Numbered items, counted by the client that owns them and by the terminal of that client.
//!
//! Limits that are shared are enforced against the owner with the most items: the terminal with
//! the most, and of its clients the one with the most.

use crate::engine::limits::rates::QuotaOwner;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A client, and the terminal that it is behind. At a terminal all clients have the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) terminal: Arc<str>,
    pub(crate) client: QuotaOwner,
}

/// Items by owner.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    terminals: BTreeMap<Arc<str>, OfTerminal>,
    len: usize,
}

/// The items of one terminal's clients. No client is without one.
#[derive(Debug, Default)]
pub(super) struct OfTerminal {
    clients: BTreeMap<QuotaOwner, BTreeSet<u64>>,
    len: usize,
}

impl Holdings {
    /// Number of items of all owners.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn insert(&mut self, owner: &Owner, item: u64) {
        let terminal = self.terminals.entry(Arc::clone(&owner.terminal)).or_default();
        if terminal.clients.entry(owner.client.clone()).or_default().insert(item) {
            terminal.len += 1;
            self.len += 1;
        }
    }

    /// Removes an item; false when the owner does not have it.
    pub(super) fn remove(&mut self, owner: &Owner, item: u64) -> bool {
        let Some(terminal) = self.terminals.get_mut(&owner.terminal) else { return false };
        let Some(items) = terminal.clients.get_mut(&owner.client) else { return false };
        if !items.remove(&item) {
            return false;
        }
        if items.is_empty() {
            terminal.clients.remove(&owner.client);
        }
        terminal.len -= 1;
        self.len -= 1;
        if terminal.len == 0 {
            self.terminals.remove(&owner.terminal);
        }
        true
    }

    /// Number of items of a terminal's clients together.
    pub(super) fn of_terminal(&self, terminal: &str) -> usize {
        self.terminals.get(terminal).map_or(0, |terminal| terminal.len)
    }

    /// Number of items of one client.
    pub(super) fn of(&self, owner: &Owner) -> usize {
        self.items(owner).map_or(0, BTreeSet::len)
    }

    /// The least and the greatest item of one client.
    pub(super) fn ends(&self, owner: &Owner) -> Option<(u64, u64)> {
        let items = self.items(owner)?;
        Some((*items.first()?, *items.last()?))
    }

    /// The terminals with items.
    pub(super) fn terminals(&self) -> impl Iterator<Item = &Arc<str>> {
        self.terminals.keys()
    }

    /// The clients of `terminal` that have items.
    pub(super) fn clients(&self, terminal: &Arc<str>) -> impl Iterator<Item = Owner> {
        let clients = self.terminals.get(terminal).into_iter().flat_map(|one| one.clients.keys());
        let terminal = Arc::clone(terminal);
        clients.map(move |client| Owner { terminal: Arc::clone(&terminal), client: client.clone() })
    }

    /// The client with the most items of the terminal with the most.
    pub(super) fn largest(&self) -> Option<Owner> {
        let (terminal, _) = self.terminals.iter().max_by_key(|(_, terminal)| terminal.len)?;
        self.largest_of(terminal)
    }

    /// The client of `terminal` with the most items.
    pub(super) fn largest_of(&self, terminal: &Arc<str>) -> Option<Owner> {
        let clients = &self.terminals.get(terminal)?.clients;
        let (client, _) = clients.iter().max_by_key(|(_, items)| items.len())?;
        Some(Owner { terminal: Arc::clone(terminal), client: client.clone() })
    }

    fn items(&self, owner: &Owner) -> Option<&BTreeSet<u64>> {
        self.terminals.get(&owner.terminal)?.clients.get(&owner.client)
    }
}

#[cfg(test)]
pub(crate) fn owner(terminal: &str, client: u8) -> Owner {
    Owner { terminal: terminal.into(), client: QuotaOwner::Client([10, 0, 0, client].into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_owner_is_of_the_largest_terminal() {
        let mut held = Holdings::default();
        let mut item = 0;
        for (terminal, client, count) in [("a", 1, 4), ("b", 1, 3), ("b", 2, 2)] {
            for _ in 0..count {
                item += 1;
                held.insert(&owner(terminal, client), item);
            }
        }
        assert_eq!(held.largest(), Some(owner("b", 1)), "5 of terminal b, 4 of terminal a");
        assert_eq!((held.len(), held.of_terminal("b"), held.of(&owner("b", 2))), (9, 5, 2));
        assert_eq!(held.ends(&owner("b", 1)), Some((5, 7)));
        assert!(held.remove(&owner("b", 1), 5) && !held.remove(&owner("b", 1), 5));
        assert!(held.remove(&owner("b", 1), 6));
        assert_eq!(held.largest(), Some(owner("a", 1)));
        assert_eq!(held.len(), 7);
    }
}
