//! Addresses of names, for a loop that must not block.
//!
//! ```text
//!   resolve ─▶ literal, localhost ───────────────────────────────▶ answered at once
//!         └──▶ cache ──valid──────────────────────────────────────▶ answered at once
//!                └──▶ schedule ──fair, bounded──▶ worker: hosts, DNS ──waker──▶ poll_answer
//! ```
//!
//! [`schedule`] and [`cache`] are state machines without I/O, `now` being an argument; [`worker`]
//! is the one thread that reads files and talks to name servers. A query that nobody waits for any
//! more is to be cancelled: its slot and its sockets are free at once then.

mod cache;
mod holdings;
mod name;
mod schedule;
mod system;
mod worker;

pub(super) use holdings::Owner;

use crate::ResolverSection;
use crate::observe::ResolverStatus;
use cache::Cache;
use mio::Waker;
use schedule::{Action, Bounds, Schedule};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use units::{Instant, Span};
use worker::{Found, Update, Worker};

/// 128 lookups are up to 256 DNS queries. A client has 16 of them, which is 160 names a second at
/// 100 ms each; a site router's forwarder (dnsmasq: 150) is not filled by one client.
const BOUNDS: Bounds = Bounds { queries: 4_096, lookups: 128, of_client: 16 };
/// Names in the cache.
const CACHED: usize = 4_096;

/// A query that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueryId(u64);

/// Why there are no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The name does not exist, or has no addresses.
    NotFound,
    /// No name server has given a usable answer in time.
    NoAnswer,
    /// Too many queries wait.
    Refused,
}

/// The result of a query. There is at least one address where there are any.
pub(super) type Outcome = Result<Arc<[IpAddr]>, Failure>;

/// What becomes of a new query.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resolution {
    /// It is answered already.
    Answered(Outcome),
    /// [`Resolver::poll_answer`] will return its answers, unless it is cancelled before.
    Pending(QueryId),
}

/// An answer to a query.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) id: QueryId,
    /// What the query was given by whoever submitted it.
    pub(super) token: usize,
    pub(super) result: Progress,
}

/// How far a query has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The addresses of one family; the other's may follow.
    Partial(Arc<[IpAddr]>),
    /// All addresses, those included that were part of it before.
    Complete(Outcome),
}

/// The resolver of one gateway.
#[derive(Debug)]
pub(super) struct Resolver {
    schedule: Schedule,
    cache: Cache,
    worker: Worker,
    pending: BTreeMap<u64, Pending>,
    /// The first part of answers that are not complete, by lookup.
    partial: BTreeMap<u64, Arc<[IpAddr]>>,
    answers: VecDeque<Answer>,
    counted: ResolverStatus,
}

#[derive(Debug)]
struct Pending {
    token: usize,
    since: Instant,
}

impl Resolver {
    /// A resolver that wakes the loop by `waker` when there are answers.
    pub(super) fn new(waker: Waker) -> Self {
        Self {
            schedule: Schedule::new(BOUNDS),
            cache: Cache::new(CACHED),
            worker: Worker::new(waker),
            pending: BTreeMap::new(),
            partial: BTreeMap::new(),
            answers: VecDeque::new(),
            counted: ResolverStatus::default(),
        }
    }

    /// Uses these name servers from here on. Lookups that run keep theirs.
    pub(super) fn configure(&mut self, section: &ResolverSection) {
        if self.worker.configure(section) {
            self.cache.clear();
        }
    }

    /// Asks for the addresses of `name` on behalf of `owner`; answers carry `token`.
    pub(super) fn resolve(
        &mut self,
        now: Instant,
        owner: &Owner,
        name: &str,
        token: usize,
    ) -> Resolution {
        self.counted.queries += 1;
        if let Some(addresses) = name::without_lookup(name) {
            return Resolution::Answered(Ok(addresses));
        }
        let name: Arc<str> = name.to_ascii_lowercase().into();
        if let Some(outcome) = self.cache.get(now, &name) {
            self.counted.cache_hits += 1;
            return Resolution::Answered(outcome.clone());
        }
        let (id, refused) = self.schedule.submit(owner, &name);
        self.pending.insert(id, Pending { token, since: now });
        if let Some(refused) = refused {
            self.finish(now, refused, Err(Failure::Refused), refused != id);
        }
        self.flush();
        if refused == Some(id) {
            return Resolution::Answered(Err(Failure::Refused));
        }
        if let Some(lookup) = self.schedule.lookup_of(id)
            && let Some(partial) = self.partial.get(&lookup)
        {
            let result = Progress::Partial(Arc::clone(partial));
            self.answers.push_back(Answer { id: QueryId(id), token, result });
            self.worker.wake();
        }
        Resolution::Pending(QueryId(id))
    }

    /// Nobody waits for the query any more. It may have been answered since.
    pub(super) fn cancel(&mut self, id: QueryId) {
        if self.pending.remove(&id.0).is_some() {
            self.counted.cancelled += 1;
            self.schedule.cancel(id.0);
            self.flush();
        }
    }

    /// Takes what the worker has found since the last call.
    pub(super) fn handle_updates(&mut self, now: Instant) {
        while let Some(update) = self.worker.poll_update() {
            match update {
                Update::Reconfigured => self.cache.clear(),
                Update::Lookup { lookup, found } => self.found(now, lookup, found),
            }
        }
        self.flush();
    }

    /// The next answer, in the order in which they were found.
    pub(super) fn poll_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// What was counted, and what there is at present.
    pub(super) fn status(&self) -> ResolverStatus {
        ResolverStatus {
            in_flight: self.schedule.lookups() as u64,
            queued: self.schedule.queued() as u64,
            cached: self.cache.len() as u64,
            ..self.counted.clone()
        }
    }

    fn found(&mut self, now: Instant, lookup: u64, found: Found) {
        // It may have been stopped in the meantime.
        let Some((name, owner)) = self.schedule.lookup(lookup) else { return };
        match found {
            Found::Partial(addresses) => {
                self.partial.insert(lookup, Arc::clone(&addresses));
                for id in self.schedule.queries_of(lookup) {
                    let Some(Pending { token, .. }) = self.pending.get(&id) else { continue };
                    let result = Progress::Partial(Arc::clone(&addresses));
                    self.answers.push_back(Answer { id: QueryId(id), token: *token, result });
                }
            }
            Found::Complete(outcome, ttl) => {
                let (name, owner) = (Arc::clone(name), owner.clone());
                self.cache.insert(now, &owner, name, outcome.clone(), ttl);
                self.partial.remove(&lookup);
                self.counted.lookups += 1;
                for id in self.schedule.complete(lookup) {
                    self.finish(now, id, outcome.clone(), true);
                }
            }
        }
    }

    fn finish(&mut self, now: Instant, id: u64, outcome: Outcome, tell: bool) {
        let Some(Pending { token, since }) = self.pending.remove(&id) else { return };
        self.counted.latency.count(now.since(since));
        match &outcome {
            Ok(_) => {}
            Err(Failure::NotFound) => self.counted.not_found += 1,
            Err(Failure::NoAnswer) => self.counted.no_answer += 1,
            Err(Failure::Refused) => self.counted.refused += 1,
        }
        if tell {
            let result = Progress::Complete(outcome);
            self.answers.push_back(Answer { id: QueryId(id), token, result });
            self.worker.wake();
        }
    }

    /// Hands actions to the worker as far as it takes them.
    fn flush(&mut self) {
        while self.worker.has_room() {
            let Some(action) = self.schedule.poll_action() else { return };
            if let Action::Stop { lookup } = action {
                self.partial.remove(&lookup);
            }
            self.worker.send(&action);
        }
    }
}

/// A time to live in whole seconds, as name servers give it.
fn seconds(ttl: u32) -> Span {
    Span::from_secs(u64::from(ttl))
}

#[cfg(test)]
pub(super) mod tests;
