//! Answers that are still valid (RFC 1035, section 7.4; RFC 2308 for negative ones).
//!
//! The number of entries is bounded. A new entry takes the place of the oldest one of the owner
//! with the most entries, so that a client that has many names looked up replaces its own.

use super::holdings::{Holdings, Owner};
use super::{Failure, Outcome};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Instant, Span};

/// Longest time for which addresses are used. RFC 1035, section 3.2.1 lets it be 68 years; common
/// caches stop at one day (RFC 8767, section 4 suggests a cap of days).
const MAX_TTL: Span = Span::from_secs(24 * 3600);
/// Longest time for which a name is taken not to exist. RFC 2308, section 5 finds one to three
/// hours sensible for a shared cache; behind the name server's own cache minutes are enough.
const MAX_NEGATIVE_TTL: Span = Span::from_secs(300);
/// A lookup that failed is not repeated for so long (RFC 9520, section 3.2: one second to five
/// minutes).
const FAILURE_TTL: Span = Span::from_secs(5);

/// Answers by name.
#[derive(Debug)]
pub(super) struct Cache {
    capacity: usize,
    entries: BTreeMap<Arc<str>, Entry>,
    /// Names by the number of their entry.
    names: BTreeMap<u64, Arc<str>>,
    held: Holdings,
    last: u64,
}

#[derive(Debug)]
struct Entry {
    outcome: Outcome,
    expires: Instant,
    owner: Owner,
    number: u64,
}

impl Cache {
    /// A cache of at most `capacity` names.
    pub(super) fn new(capacity: usize) -> Self {
        let (entries, names, held) = (BTreeMap::new(), BTreeMap::new(), Holdings::default());
        Self { capacity, entries, names, held, last: 0 }
    }

    /// The answer for `name`, if it is still valid.
    pub(super) fn get(&mut self, now: Instant, name: &str) -> Option<&Outcome> {
        if self.entries.get(name).is_some_and(|entry| entry.expires <= now) {
            self.remove(name);
        }
        self.entries.get(name).map(|entry| &entry.outcome)
    }

    /// Keeps the answer that `owner` caused to be looked up, valid for `ttl` as the name server
    /// has it.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        owner: &Owner,
        name: Arc<str>,
        outcome: Outcome,
        ttl: Span,
    ) {
        let ttl = match &outcome {
            Ok(_) => ttl.min(MAX_TTL),
            Err(Failure::NotFound) => ttl.min(MAX_NEGATIVE_TTL),
            Err(Failure::NoAnswer) => FAILURE_TTL,
            Err(Failure::Refused) => Span::ZERO,
        };
        self.remove(&name);
        if ttl.is_zero() || self.capacity == 0 {
            return;
        }
        if self.entries.len() >= self.capacity {
            let oldest = self.held.largest().and_then(|owner| self.held.ends(&owner));
            if let Some(name) = oldest.and_then(|(oldest, _)| self.names.get(&oldest).cloned()) {
                self.remove(&name);
            }
        }
        self.last += 1;
        let entry = Entry { outcome, expires: now + ttl, owner: owner.clone(), number: self.last };
        self.held.insert(owner, self.last);
        self.names.insert(self.last, Arc::clone(&name));
        self.entries.insert(name, entry);
    }

    /// Number of entries, including those that have expired since their last use.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }

    fn remove(&mut self, name: &str) {
        if let Some(entry) = self.entries.remove(name) {
            self.held.remove(&entry.owner, entry.number);
            self.names.remove(&entry.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::holdings::owner;
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    fn found(last: u8) -> Outcome {
        Ok([[192, 0, 2, last].into()].into())
    }

    #[test]
    fn answers_are_valid_for_their_ttl_within_bounds() {
        let mut cache = Cache::new(10);
        let day = 24 * 3600;
        for (name, outcome, ttl, valid) in [
            ("a", found(1), 60, 60),
            ("b", found(2), 10 * day, day),
            ("c", Err(Failure::NotFound), 30, 30),
            ("d", Err(Failure::NotFound), day, 300),
            ("e", Err(Failure::NoAnswer), 0, 5),
        ] {
            cache.insert(
                at(100),
                &owner("t", 1),
                name.into(),
                outcome.clone(),
                Span::from_secs(ttl),
            );
            assert_eq!(cache.get(at(100 + valid - 1), name), Some(&outcome), "{name}");
            assert_eq!(cache.get(at(100 + valid), name), None, "{name}");
        }
        for (outcome, ttl) in [(found(1), 0), (Err(Failure::Refused), 60)] {
            cache.insert(at(0), &owner("t", 1), "f".into(), outcome, Span::from_secs(ttl));
            assert_eq!(cache.get(at(0), "f"), None);
        }
        assert_eq!(cache.len(), 0);
    }

    #[test]
    fn a_client_with_many_names_replaces_its_own_entries() {
        let mut cache = Cache::new(100);
        let ttl = Span::from_secs(3600);
        for number in 0..10 {
            cache.insert(at(0), &owner("t", 1), format!("mine{number}").into(), found(1), ttl);
            cache.insert(at(0), &owner("u", 1), format!("theirs{number}").into(), found(1), ttl);
        }
        for number in 0..10_000 {
            cache.insert(at(1), &owner("t", 2), format!("many{number}").into(), found(2), ttl);
        }
        assert_eq!(cache.len(), 100);
        for number in 0..10 {
            assert!(cache.get(at(2), &format!("mine{number}")).is_some());
            assert!(cache.get(at(2), &format!("theirs{number}")).is_some());
        }
        assert!(cache.get(at(2), "many9999").is_some());
        assert!(cache.get(at(2), "many9919").is_none(), "80 entries are left for that client");
    }

    #[test]
    fn an_entry_is_replaced_by_a_newer_answer_for_its_name() {
        let mut cache = Cache::new(2);
        let ttl = Span::from_secs(3600);
        for (client, last) in [(1, 1), (2, 2), (1, 3)] {
            cache.insert(at(0), &owner("t", client), "same".into(), found(last), ttl);
        }
        assert_eq!(cache.get(at(1), "same"), Some(&found(3)));
        assert_eq!(cache.len(), 1);
    }
}
