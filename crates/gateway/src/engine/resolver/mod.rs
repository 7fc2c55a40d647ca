//! Addresses of names, for a loop that must not block.
//!
//! ```text
//!   resolve ─▶ literal, localhost ───────────────────────────────▶ answered at once
//!         └──▶ cache ──valid──────────────────────────────────────▶ answered at once
//!                └──▶ schedule ──fair, bounded──▶ worker: hosts, DNS ──waker──▶ poll_answer
//! ```
//!
//! [`schedule`] and [`cache`] are state machines without I/O, to which `now` is an argument. The
//! worker is the host's: one thread that reads files and queries name servers. A query whose result
//! is no longer needed is to be cancelled, which releases its slot and its sockets at once.

mod cache;
pub(crate) mod holdings;
pub(crate) mod name;
mod schedule;

pub(crate) use holdings::Owner;

use crate::ResolverSection;
use crate::observe::ResolverStatus;
use cache::Cache;
pub(crate) use schedule::Action;
use schedule::{Bounds, Schedule};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use units::{Instant, Span};

/// 128 lookups are up to 256 DNS queries. A client has 16 of them, which is 160 names a second at
/// 100 ms each; a site router's forwarder (dnsmasq: 150) is not filled by one client.
pub(crate) const BOUNDS: Bounds = Bounds { queries: 4_096, lookups: 128, of_client: 16 };
/// Names in the cache.
const CACHED: usize = 4_096;

/// Name lookups by files and name servers.
pub(crate) trait Lookups: std::fmt::Debug + Send {
    /// Applies a configuration; returns whether it differs from the present one.
    fn configure(&mut self, section: &ResolverSection) -> bool;

    /// Returns whether [`Lookups::send`] takes another action.
    fn has_room(&self) -> bool;

    /// Starts or stops a lookup. One that cannot be started fails.
    fn send(&mut self, action: &Action);

    /// Returns the next result.
    fn poll_update(&mut self) -> Option<Update>;

    /// Has the engine called with [`Source::Names`](crate::engine::host::Source::Names) ready.
    fn wake(&self);
}

/// A query that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueryId(u64);

/// Why there are no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The name does not exist, or has no addresses.
    NotFound,
    /// No name server has given a usable answer in time.
    NoAnswer,
    /// Too many queries are queued.
    Refused,
}

/// The result of a query. There is at least one address where there are any.
pub(crate) type Outcome = Result<Arc<[IpAddr]>, Failure>;

/// Result of submitting a query.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// It is answered already.
    Answered(Outcome),
    /// [`Resolver::poll_answer`] will return its answers, unless it is cancelled before.
    Pending(QueryId),
}

/// An answer to a query.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) id: QueryId,
    /// Token that was passed with the query.
    pub(crate) token: usize,
    pub(crate) result: Progress,
}

/// Progress of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The addresses of one family; the other's may follow.
    Partial(Arc<[IpAddr]>),
    /// All addresses, those included that were part of it before.
    Complete(Outcome),
}

/// What was found for a lookup.
#[derive(Debug)]
pub(crate) enum Found {
    /// The addresses of one family.
    Partial(Arc<[IpAddr]>),
    /// All of it, and for how long it is valid.
    Complete(Outcome, Span),
}

/// Results of lookups.
#[derive(Debug)]
pub(crate) enum Update {
    /// Something was found.
    Lookup {
        /// The number of the lookup.
        lookup: u64,
        /// What it is.
        found: Found,
    },
    /// The system's configuration has changed: older answers may be wrong.
    Reconfigured,
}

/// The resolver of one gateway.
#[derive(Debug)]
pub(crate) struct Resolver {
    schedule: Schedule,
    cache: Cache,
    worker: Box<dyn Lookups>,
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
    /// A resolver whose lookups are those of `worker`, which is woken when there are answers.
    pub(crate) fn new(worker: Box<dyn Lookups>) -> Self {
        Self {
            schedule: Schedule::new(BOUNDS),
            cache: Cache::new(CACHED),
            worker,
            pending: BTreeMap::new(),
            partial: BTreeMap::new(),
            answers: VecDeque::new(),
            counted: ResolverStatus::default(),
        }
    }

    /// Uses these name servers from here on. Lookups that run keep theirs.
    pub(crate) fn configure(&mut self, section: &ResolverSection) {
        if self.worker.configure(section) {
            self.cache.clear();
        }
    }

    /// Queries the addresses of `name` on behalf of `owner`; answers carry `token`.
    pub(crate) fn resolve(
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

    /// Cancels a query, which may have been answered meanwhile.
    pub(crate) fn cancel(&mut self, id: QueryId) {
        if self.pending.remove(&id.0).is_some() {
            self.counted.cancelled += 1;
            self.schedule.cancel(id.0);
            self.flush();
        }
    }

    /// Handles the results of the worker since the last call.
    pub(crate) fn handle_updates(&mut self, now: Instant) {
        while let Some(update) = self.worker.poll_update() {
            match update {
                Update::Reconfigured => self.cache.clear(),
                Update::Lookup { lookup, found } => self.found(now, lookup, found),
            }
        }
        self.flush();
    }

    /// Returns the next answer.
    pub(crate) fn poll_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// Returns the counters and the present numbers.
    pub(crate) fn status(&self) -> ResolverStatus {
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

    fn finish(&mut self, now: Instant, id: u64, outcome: Outcome, report: bool) {
        let Some(Pending { token, since }) = self.pending.remove(&id) else { return };
        self.counted.latency.count(now.since(since));
        match &outcome {
            Ok(_) => {}
            Err(Failure::NotFound) => self.counted.not_found += 1,
            Err(Failure::NoAnswer) => self.counted.no_answer += 1,
            Err(Failure::Refused) => self.counted.refused += 1,
        }
        if report {
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
pub(crate) fn seconds(ttl: u32) -> Span {
    Span::from_secs(u64::from(ttl))
}
