//! Schedule of name lookups: max-min fair over terminals, then over the clients of a terminal, then
//! by age.
//!
//! ```text
//!   query ─▶ queued ──a slot is free, or the largest owner's newest lookup is stopped──▶ running
//!       └─ the name is being looked up: joins that lookup                   stopped ─▶ queued
//! ```
//!
//! Invariants: at most [`Bounds::lookups`] lookups run, at most [`Bounds::of_client`] of them for
//! one client, and each name is looked up once at a time. When all slots are taken, an owner that
//! has at least two fewer than the one with the most takes a slot from it, so that a new owner
//! never waits for the lookups of others. A query stopped in this way keeps its age. When all
//! places for queries are taken, the newest query of the largest owner is refused.

use super::holdings::{Holdings, Owner};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What the schedule is bounded by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Queries, whether queued or being looked up.
    pub(crate) queries: usize,
    /// Lookups in flight.
    pub(crate) lookups: usize,
    /// Lookups in flight for one client.
    pub(crate) of_client: usize,
}

/// What is to be done with a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Start { lookup: u64, name: Arc<str> },
    Stop { lookup: u64 },
}

/// Queries, and the lookups that serve them.
#[derive(Debug)]
pub(super) struct Schedule {
    bounds: Bounds,
    last_id: u64,
    queries: BTreeMap<u64, Query>,
    lookups: BTreeMap<u64, Lookup>,
    /// The lookup that runs for a name.
    by_name: BTreeMap<Arc<str>, u64>,
    /// Queued queries for a name.
    queued_by_name: BTreeMap<Arc<str>, BTreeSet<u64>>,
    all: Holdings,
    queued: Holdings,
    /// Lookups, each counted for one of the owners of its queries.
    running: Holdings,
    /// When an owner, or a terminal, last began a lookup, as a count.
    served: BTreeMap<Owner, u64>,
    terminals_served: BTreeMap<Arc<str>, u64>,
    actions: VecDeque<Action>,
}

#[derive(Debug)]
struct Query {
    owner: Owner,
    name: Arc<str>,
    lookup: Option<u64>,
}

#[derive(Debug)]
struct Lookup {
    name: Arc<str>,
    /// Whose slot it takes.
    owner: Owner,
    queries: BTreeSet<u64>,
}

impl Schedule {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            last_id: 0,
            queries: BTreeMap::new(),
            lookups: BTreeMap::new(),
            by_name: BTreeMap::new(),
            queued_by_name: BTreeMap::new(),
            all: Holdings::default(),
            queued: Holdings::default(),
            running: Holdings::default(),
            served: BTreeMap::new(),
            terminals_served: BTreeMap::new(),
            actions: VecDeque::new(),
        }
    }

    /// Adds a query. Returns its number and the query that was refused for it, which is the new
    /// one itself when its owner has the most.
    pub(super) fn submit(&mut self, owner: &Owner, name: &Arc<str>) -> (u64, Option<u64>) {
        let id = self.next_id();
        self.all.insert(owner, id);
        let query = Query { owner: owner.clone(), name: Arc::clone(name), lookup: None };
        self.queries.insert(id, query);
        match self.by_name.get(name).copied() {
            Some(lookup) => self.join(id, lookup),
            None => self.enqueue(id),
        }
        let refused = if self.all.len() > self.bounds.queries {
            let largest = self.all.largest().and_then(|owner| self.all.ends(&owner));
            largest.map(|(_, newest)| newest)
        } else {
            None
        };
        if let Some(refused) = refused {
            self.cancel(refused);
        }
        // A lookup that was stopped for it may have served others that are due as well.
        if refused != Some(id) && self.start_for(owner) && self.is_full() {
            self.fill();
        }
        (id, refused)
    }

    /// Removes a query. A lookup that serves no other one is stopped.
    pub(super) fn cancel(&mut self, id: u64) {
        let Some(query) = self.queries.remove(&id) else { return };
        self.all.remove(&query.owner, id);
        match query.lookup {
            None => self.dequeue(id, &query.owner, &query.name),
            Some(lookup) => self.leave(id, lookup),
        }
        self.forget(&query.owner);
        self.fill();
    }

    /// Ends a lookup. Returns the queries that it served.
    pub(super) fn complete(&mut self, lookup: u64) -> BTreeSet<u64> {
        let Some(lookup) = self.remove_lookup(lookup) else { return BTreeSet::new() };
        for id in &lookup.queries {
            if let Some(query) = self.queries.remove(id) {
                self.all.remove(&query.owner, *id);
                self.forget(&query.owner);
            }
        }
        self.fill();
        lookup.queries
    }

    /// What is to be done next.
    pub(super) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The queries that a lookup serves.
    pub(super) fn queries_of(&self, lookup: u64) -> impl Iterator<Item = u64> {
        self.lookups.get(&lookup).into_iter().flat_map(|lookup| lookup.queries.iter().copied())
    }

    /// The lookup that serves a query, if it is not queued.
    pub(super) fn lookup_of(&self, id: u64) -> Option<u64> {
        self.queries.get(&id)?.lookup
    }

    /// The name that a lookup is for, and the owner whose slot it takes.
    pub(super) fn lookup(&self, lookup: u64) -> Option<(&Arc<str>, &Owner)> {
        self.lookups.get(&lookup).map(|lookup| (&lookup.name, &lookup.owner))
    }

    /// Lookups in flight.
    pub(super) fn lookups(&self) -> usize {
        self.lookups.len()
    }

    /// Queries that wait for a slot.
    pub(super) fn queued(&self) -> usize {
        self.queued.len()
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn enqueue(&mut self, id: u64) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        query.lookup = None;
        self.queued.insert(&query.owner, id);
        self.queued_by_name.entry(Arc::clone(&query.name)).or_default().insert(id);
    }

    fn dequeue(&mut self, id: u64, owner: &Owner, name: &Arc<str>) {
        self.queued.remove(owner, id);
        if let Some(same) = self.queued_by_name.get_mut(name) {
            same.remove(&id);
            if same.is_empty() {
                self.queued_by_name.remove(name);
            }
        }
    }

    fn join(&mut self, id: u64, lookup: u64) {
        if let (Some(query), Some(one)) = (self.queries.get_mut(&id), self.lookups.get_mut(&lookup))
        {
            query.lookup = Some(lookup);
            one.queries.insert(id);
        }
    }

    /// A query does not need its lookup any more.
    fn leave(&mut self, id: u64, lookup: u64) {
        let Some(one) = self.lookups.get_mut(&lookup) else { return };
        one.queries.remove(&id);
        let next = one.queries.first().and_then(|next| self.queries.get(next));
        match next.map(|query| query.owner.clone()) {
            None => self.stop(lookup),
            // The slot counts for one of the remaining owners.
            Some(owner) => {
                let before = std::mem::replace(&mut one.owner, owner.clone());
                self.running.remove(&before, lookup);
                self.running.insert(&owner, lookup);
            }
        }
    }

    fn stop(&mut self, lookup: u64) {
        if self.remove_lookup(lookup).is_some() {
            let waits = |action: &Action| matches!(action, Action::Start { lookup: other, .. } if *other == lookup);
            match self.actions.iter().position(waits) {
                Some(at) => drop(self.actions.remove(at)),
                None => self.actions.push_back(Action::Stop { lookup }),
            }
        }
    }

    fn remove_lookup(&mut self, lookup: u64) -> Option<Lookup> {
        let one = self.lookups.remove(&lookup)?;
        self.by_name.remove(&one.name);
        self.running.remove(&one.owner, lookup);
        Some(one)
    }

    /// Stops a lookup in favour of another; its queries are queued again.
    fn preempt(&mut self, lookup: u64) {
        let queries = self.lookups.get(&lookup).map(|one| one.queries.clone()).unwrap_or_default();
        self.stop(lookup);
        for id in queries {
            self.enqueue(id);
        }
    }

    /// Starts lookups as long as slots are free, or can be taken from the largest owner.
    fn fill(&mut self) {
        loop {
            let mut terminals: Vec<&Arc<str>> = self.queued.terminals().collect();
            terminals.sort_by_key(|terminal| {
                let served = self.terminals_served.get(*terminal).copied().unwrap_or(0);
                (self.running.of_terminal(terminal), served)
            });
            let mut next = terminals.into_iter().filter_map(|terminal| self.next_of(terminal));
            let next = match self.is_full() {
                false => next.next(),
                true => next.find(|owner| self.victim_for(owner).is_some()),
            };
            let Some(owner) = next else { return };
            if !self.start_for(&owner) {
                return;
            }
        }
    }

    /// Returns the client of `terminal` whose turn it is.
    fn next_of(&self, terminal: &Arc<str>) -> Option<Owner> {
        let load =
            |owner: &Owner| (self.running.of(owner), self.served.get(owner).copied().unwrap_or(0));
        let clients = self.queued.clients(terminal);
        clients.filter(|owner| self.running.of(owner) < self.bounds.of_client).min_by_key(load)
    }

    fn is_full(&self) -> bool {
        self.running.len() >= self.bounds.lookups
    }

    /// The lookup that is to be stopped so that `owner` has one: the newest of an owner that still
    /// has at least as many as `owner` afterwards.
    fn victim_for(&self, owner: &Owner) -> Option<u64> {
        let largest = self.running.largest()?;
        let of_terminal = |owner: &Owner| self.running.of_terminal(&owner.terminal);
        let victim = if of_terminal(&largest) > of_terminal(owner) + 1 {
            Some(largest)
        } else {
            let of_same = self.running.largest_of(&owner.terminal);
            of_same.filter(|same| self.running.of(same) > self.running.of(owner) + 1)
        };
        victim.and_then(|victim| self.running.ends(&victim)).map(|(_, newest)| newest)
    }

    /// Starts the lookup of the oldest queued query of `owner`, if it may have one more.
    fn start_for(&mut self, owner: &Owner) -> bool {
        let Some((id, _)) = self.queued.ends(owner) else { return false };
        if self.running.of(owner) >= self.bounds.of_client {
            return false;
        }
        if self.is_full() {
            let Some(victim) = self.victim_for(owner) else { return false };
            self.preempt(victim);
        }
        let Some(name) = self.queries.get(&id).map(|query| Arc::clone(&query.name)) else {
            return false;
        };
        let lookup = self.next_id();
        let one =
            Lookup { name: Arc::clone(&name), owner: owner.clone(), queries: BTreeSet::new() };
        self.lookups.insert(lookup, one);
        self.by_name.insert(Arc::clone(&name), lookup);
        self.running.insert(owner, lookup);
        self.served.insert(owner.clone(), lookup);
        self.terminals_served.insert(Arc::clone(&owner.terminal), lookup);
        for id in self.queued_by_name.remove(&name).unwrap_or_default() {
            if let Some(query) = self.queries.get(&id) {
                self.queued.remove(&query.owner, id);
            }
            self.join(id, lookup);
        }
        self.actions.push_back(Action::Start { lookup, name });
        true
    }

    /// An owner without queries is removed.
    fn forget(&mut self, owner: &Owner) {
        if self.all.of(owner) == 0 {
            self.served.remove(owner);
        }
        if self.all.of_terminal(&owner.terminal) == 0 {
            self.terminals_served.remove(&owner.terminal);
        }
    }
}

#[cfg(test)]
mod tests;
