//! A DNS forwarder with a cache, without I/O: clients' queries in, responses and queries to the
//! hub's name servers out.
//!
//! ```text
//!   query ──stored──▶ response           ──in use and about to expire──▶ look-up
//!     ├──expired──▶ look-up ──no answer for 1.8 s, or none──▶ expired response
//!     ├──placeholders──▶ placeholder, and a look-up
//!     └──▶ look-up ──▶ response, stored
//! ```
//!
//! Each look-up is one stream of the association, which names the hub's name servers by
//! [`relay::NAME_SERVERS`].

mod cache;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod message;
mod names;
#[cfg(any(test, feature = "fuzzing", feature = "simulation"))]
pub(crate) mod samples;

pub(crate) use cache::CacheLimits;
pub(crate) use names::AddressNames;

use crate::observe::DnsStatus;
use cache::Cache;
use message::{A, AAAA, BadQuery, HTTPS, Query, Question, Response, SERVFAIL, SVCB};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use units::{Instant, Span};

/// Maximum number of look-ups, and of one client's. Each needs a stream.
const MAX_LOOKUPS: usize = 256;
const MAX_OF_CLIENT: usize = 32;
/// Maximum number of queries that wait for one look-up.
const MAX_WAITING: usize = 64;
/// Time after which a client has an expired response, if there is one (RFC 8767, section 5).
const PATIENCE: Span = Span::from_millis(1_800);
/// TTL of an expired response (RFC 8767, section 4), and of a placeholder.
const STALE_TTL: Span = Span::from_secs(30);
const PLACEHOLDER_TTL: Span = Span::from_secs(10);
/// Time after which a look-up has failed: clients have repeated their queries by then.
const LIMIT: Span = Span::from_secs(10);
/// Domains whose names no public name server knows, or that are not opened by name
/// (RFC 6761, 6762, 7686, 8375, 9476).
const SPECIAL: [&str; 9] =
    ["alt", "arpa", "home", "internal", "invalid", "lan", "local", "localhost", "onion"];

/// Where a response goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyTo {
    /// A datagram from the socket with this number.
    Datagram(usize),
    /// The connection with this index and this number.
    Connection(usize, u64),
}

/// The sender of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    /// The network by which it is counted.
    pub(crate) network: IpAddr,
    pub(crate) reply_to: ReplyTo,
}

/// What the forwarder wants to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The query `message` is sent to the hub's name servers, on behalf of a client if there is one.
    Ask { lookup: u64, message: Vec<u8>, client: Option<SocketAddr> },
    /// The look-up is abandoned.
    Abandon { lookup: u64 },
    /// A client has a response.
    Reply { client: Client, message: Vec<u8> },
}

/// The forwarder.
#[derive(Debug)]
pub(crate) struct Forwarder {
    cache: Cache,
    lookups: BTreeMap<u64, Lookup>,
    by_question: BTreeMap<Arc<Question>, u64>,
    by_client: BTreeMap<IpAddr, BTreeSet<u64>>,
    /// When look-ups are to be reviewed.
    timers: BTreeSet<(Instant, u64)>,
    actions: VecDeque<Action>,
    last: u64,
    /// Whether a hub responds.
    is_up: bool,
    status: DnsStatus,
}

#[derive(Debug)]
struct Lookup {
    question: Arc<Question>,
    owner: IpAddr,
    waiting: Vec<(Client, Query)>,
    begun: Instant,
}

impl Forwarder {
    pub(crate) fn new(limits: CacheLimits) -> Self {
        Self {
            cache: Cache::new(limits),
            lookups: BTreeMap::new(),
            by_question: BTreeMap::new(),
            by_client: BTreeMap::new(),
            timers: BTreeSet::new(),
            actions: VecDeque::new(),
            last: 0,
            is_up: true,
            status: DnsStatus::default(),
        }
    }

    /// Notes whether a hub responds. Without one, nothing is looked up.
    pub(crate) fn set_up(&mut self, is_up: bool) {
        self.is_up = is_up;
    }

    /// Returns the counters.
    pub(crate) fn status(&self) -> DnsStatus {
        DnsStatus {
            in_flight: self.lookups.len() as u64,
            cached: self.cache.len() as u64,
            cache_bytes: self.cache.bytes() as u64,
            ..self.status.clone()
        }
    }

    /// Returns what is to be done next.
    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Handles a message of a client, which need not be well-formed.
    pub(crate) fn handle_query(
        &mut self,
        now: Instant,
        client: Client,
        message: &[u8],
        names: &mut AddressNames,
    ) {
        self.status.queries += 1;
        let query = match Query::parse(message) {
            Ok(query) => query,
            Err(bad) => {
                self.status.bad_queries += 1;
                if let BadQuery::Rejected(message) = bad {
                    self.actions.push_back(Action::Reply { client, message });
                }
                return;
            }
        };
        let is_running = self.by_question.contains_key(&query.question);
        if let Some(hit) = self.cache.get(now, &query.question) {
            let can_begin = hit.renew && self.is_up && !is_running;
            if hit.is_stale && can_begin {
                return self.wait(now, client, query);
            }
            let stale = hit.is_stale.then_some(STALE_TTL);
            let limit = limit_of(client, &query);
            let message = query.with_response(hit.response, hit.age, stale, limit);
            self.status.hits += 1;
            self.status.stale += u64::from(hit.is_stale);
            self.actions.push_back(Action::Reply { client, message });
            if can_begin {
                self.status.prefetches += 1;
                self.look_up(now, (client.network, None), query.question.into());
            }
        } else if !self.is_up {
            self.reply_failure(now, client, &query);
        } else if let Some(message) = placeholder(now, &query, names) {
            self.status.placeholders += 1;
            self.actions.push_back(Action::Reply { client, message });
            self.look_up(now, (client.network, Some(client.address)), query.question.into());
        } else {
            self.wait(now, client, query);
        }
    }

    /// Has the client wait for a look-up.
    fn wait(&mut self, now: Instant, client: Client, query: Query) {
        let question = Arc::new(query.question.clone());
        let who = (client.network, Some(client.address));
        let lookup = self.look_up(now, who, question).and_then(|id| self.lookups.get_mut(&id));
        match lookup {
            Some(lookup) if lookup.waiting.contains(&(client, query.clone())) => {}
            Some(lookup) if lookup.waiting.len() < MAX_WAITING => {
                lookup.waiting.push((client, query));
            }
            Some(_) | None => {
                self.status.refused += 1;
                self.reply_failure(now, client, &query);
            }
        }
    }

    /// Returns the running look-up of `question`, which begins where there is none; `None`: there
    /// are too many.
    fn look_up(
        &mut self,
        now: Instant,
        (owner, client): (IpAddr, Option<SocketAddr>),
        question: Arc<Question>,
    ) -> Option<u64> {
        if let Some(&lookup) = self.by_question.get(&question) {
            return Some(lookup);
        }
        let own = self.by_client.get(&owner).map_or(0, BTreeSet::len);
        if own >= MAX_OF_CLIENT {
            return None;
        }
        if self.lookups.len() >= MAX_LOOKUPS {
            // The newest look-up of the client with the most, if it keeps as many as this one has.
            let largest = self.by_client.values().max_by_key(|lookups| lookups.len())?;
            let newest = *largest.last().filter(|_| largest.len() > own + 1)?;
            self.status.refused += 1;
            self.fail(now, newest);
        }
        self.last += 1;
        let id = self.last;
        self.status.lookups += 1;
        self.timers.extend([(now + PATIENCE, id), (now + LIMIT, id)]);
        self.by_client.entry(owner).or_default().insert(id);
        self.by_question.insert(Arc::clone(&question), id);
        let message = question.query(id as u16);
        self.lookups.insert(id, Lookup { question, owner, waiting: Vec::new(), begun: now });
        self.actions.push_back(Action::Ask { lookup: id, message, client });
        Some(id)
    }

    /// Handles the message that the name servers have sent for `lookup`.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        lookup: u64,
        message: &[u8],
        names: &mut AddressNames,
    ) {
        let Some(one) = self.lookups.get(&lookup) else { return };
        let Ok(response) = Response::parse(message, &one.question, lookup as u16) else {
            self.status.bad_responses += 1;
            self.handle_failure(now, lookup);
            return;
        };
        let Some(one) = self.remove(lookup) else { return };
        if let Some(host) = one.question.host() {
            names.learn(now, &host, &response);
        }
        let is_failure = response.is_failure;
        self.status.failures += u64::from(is_failure);
        for (client, query) in &one.waiting {
            if is_failure && self.reply_stale(now, *client, query) {
                continue;
            }
            let limit = limit_of(*client, query);
            let message = query.with_response(&response, Span::ZERO, None, limit);
            self.actions.push_back(Action::Reply { client: *client, message });
        }
        self.cache.insert(now, one.owner, &one.question, response);
    }

    /// Handles the end of the stream of `lookup` without a response.
    pub(crate) fn handle_failure(&mut self, now: Instant, lookup: u64) {
        let Some(one) = self.lookups.get(&lookup) else { return };
        self.status.failures += 1;
        if self.is_up {
            let failure = Response::failure(&one.question);
            self.cache.insert(now, one.owner, &one.question, failure);
        }
        self.fail(now, lookup);
    }

    fn fail(&mut self, now: Instant, lookup: u64) {
        let Some(one) = self.remove(lookup) else { return };
        self.actions.push_back(Action::Abandon { lookup });
        for (client, query) in &one.waiting {
            self.reply_failure(now, *client, query);
        }
    }

    fn remove(&mut self, lookup: u64) -> Option<Lookup> {
        let one = self.lookups.remove(&lookup)?;
        self.by_question.remove(&one.question);
        for due in [one.begun + PATIENCE, one.begun + LIMIT] {
            self.timers.remove(&(due, lookup));
        }
        if let Some(lookups) = self.by_client.get_mut(&one.owner) {
            lookups.remove(&lookup);
            if lookups.is_empty() {
                self.by_client.remove(&one.owner);
            }
        }
        Some(one)
    }

    /// Replies with an expired response, or that there is none.
    fn reply_failure(&mut self, now: Instant, client: Client, query: &Query) {
        if !self.reply_stale(now, client, query) {
            let message = query.without_records(SERVFAIL);
            self.actions.push_back(Action::Reply { client, message });
        }
    }

    /// Replies with a stored response, if there is one.
    fn reply_stale(&mut self, now: Instant, client: Client, query: &Query) -> bool {
        let hit = self.cache.get(now, &query.question);
        let Some(hit) = hit.filter(|hit| !hit.response.is_failure) else { return false };
        let message = query.with_response(
            hit.response,
            hit.age,
            hit.is_stale.then_some(STALE_TTL),
            limit_of(client, query),
        );
        self.status.hits += 1;
        self.status.stale += u64::from(hit.is_stale);
        self.actions.push_back(Action::Reply { client, message });
        true
    }

    /// Returns when to call [`Forwarder::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let lookups = self.timers.first().map(|(at, _)| *at);
        lookups.into_iter().chain(self.cache.next_renewal()).min()
    }

    /// Handles what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, lookup)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            let Some(one) = self.lookups.get_mut(&lookup) else { continue };
            if one.begun + LIMIT <= now {
                self.status.timeouts += 1;
                self.handle_failure(now, lookup);
                continue;
            }
            let waiting = std::mem::take(&mut one.waiting);
            let still = waiting.into_iter().filter(|(c, query)| !self.reply_stale(now, *c, query));
            let still = still.collect();
            if let Some(one) = self.lookups.get_mut(&lookup) {
                one.waiting = still;
            }
        }
        while let Some((question, owner)) = self.cache.poll_renewal(now) {
            if self.is_up {
                self.status.prefetches += 1;
                self.look_up(now, (owner, None), question);
            }
        }
    }
}

/// Returns the response with the placeholder of the name, or without records where the name has one
/// and another type is queried: the hub finds the addresses of both families.
fn placeholder(now: Instant, query: &Query, names: &mut AddressNames) -> Option<Vec<u8>> {
    let kind = query.question.kind();
    if query.question.is_validated() || !matches!(kind, A | AAAA | SVCB | HTTPS) {
        return None;
    }
    let host = query.question.host()?;
    let (_, domain) = host.rsplit_once('.')?;
    if SPECIAL.contains(&domain) || host.starts_with('_') {
        return None;
    }
    let address = names.placeholder(now, &host)?;
    Some(match kind {
        A => query.with_address(address, PLACEHOLDER_TTL),
        _ => query.without_records(0),
    })
}

/// Returns the maximum size of a response to `client`.
fn limit_of(client: Client, query: &Query) -> usize {
    match client.reply_to {
        ReplyTo::Datagram(_) => query.udp_size(),
        ReplyTo::Connection(..) => usize::from(u16::MAX),
    }
}

#[cfg(test)]
mod tests;
