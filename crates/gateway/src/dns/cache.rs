//! Responses of name servers, also after they have expired (RFC 8767).
//!
//! The octets are bounded. A new response takes the place of the least recently used one of the
//! client with the most, so that a client that has many names looked up replaces its own.

use super::message::{Question, Response};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use units::{Instant, Span};

/// Longest lifetime of a response.
const MAX_TTL: Span = Span::from_secs(24 * 3600);
/// Longest lifetime of a negative one: behind the name server's own cache minutes are enough.
const MAX_NEGATIVE_TTL: Span = Span::from_secs(300);
/// A failed lookup is not repeated for so long (RFC 9520, section 3.2: 1 s to 5 minutes).
const FAILURE_TTL: Span = Span::from_secs(5);
/// Shortest lifetime of a response that is renewed before it expires, and the time before that.
const MIN_RENEWED: Span = Span::from_secs(10);
const RENEWED_BEFORE: Span = Span::from_secs(3);
/// Memory of an entry besides its message and its question, estimated from the maps' nodes.
const OVERHEAD: usize = 256;

/// Responses by question.
#[derive(Debug)]
pub(crate) struct Cache {
    limits: CacheLimits,
    bytes: usize,
    entries: BTreeMap<Arc<Question>, Entry>,
    /// Questions by the number of their last use.
    used: BTreeMap<u64, Arc<Question>>,
    /// Numbers of the entries of each client.
    owners: BTreeMap<IpAddr, BTreeSet<u64>>,
    /// When entries are to be renewed.
    renewals: BTreeSet<(Instant, Arc<Question>)>,
    last: u64,
}

/// Limits of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheLimits {
    /// Octets of memory.
    pub(crate) bytes: usize,
    /// Time for which an expired response is still used.
    pub(crate) stale: Span,
    /// Whether responses in use are renewed before they expire.
    pub(crate) prefetch: bool,
}

#[derive(Debug)]
struct Entry {
    response: Response,
    owner: IpAddr,
    number: u64,
    stored: Instant,
    expires: Instant,
    /// From when on it is to be renewed, and whether it was used since it was stored.
    renew_at: Option<Instant>,
    is_used: bool,
    /// The last renewal failed; it is not repeated before this.
    retry_at: Instant,
}

/// A stored response.
#[derive(Debug)]
pub(crate) struct Hit<'a> {
    pub(crate) response: &'a Response,
    pub(crate) age: Span,
    /// It has expired.
    pub(crate) is_stale: bool,
    /// It is to be looked up again.
    pub(crate) renew: bool,
}

impl Cache {
    pub(crate) fn new(limits: CacheLimits) -> Self {
        Self {
            limits,
            bytes: 0,
            entries: BTreeMap::new(),
            used: BTreeMap::new(),
            owners: BTreeMap::new(),
            renewals: BTreeSet::new(),
            last: 0,
        }
    }

    /// Returns the response to `question`, if one is stored that may be used.
    pub(crate) fn get(&mut self, now: Instant, question: &Question) -> Option<Hit<'_>> {
        let entry = self.entries.get(question)?;
        let kept = if entry.response.is_failure { Span::ZERO } else { self.limits.stale };
        if entry.expires + kept <= now {
            self.remove(question);
            return None;
        }
        self.last += 1;
        let last = self.last;
        let entry = self.entries.get_mut(question)?;
        if let Some(question) = self.used.remove(&entry.number) {
            self.used.insert(last, question);
        }
        let numbers = self.owners.entry(entry.owner).or_default();
        numbers.remove(&entry.number);
        numbers.insert(last);
        (entry.number, entry.is_used) = (last, true);
        let is_stale = entry.expires <= now;
        let is_due = is_stale || entry.renew_at.is_some_and(|at| at <= now);
        let renew = is_due && entry.retry_at <= now;
        Some(Hit { response: &entry.response, age: now.since(entry.stored), is_stale, renew })
    }

    /// Stores the response that `owner` caused to be looked up. A failure does not replace a
    /// response that may still be used.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        owner: IpAddr,
        question: &Arc<Question>,
        response: Response,
    ) {
        let ttl = match (response.is_failure, response.is_negative) {
            (true, _) => FAILURE_TTL,
            (false, true) => response.ttl.min(MAX_NEGATIVE_TTL),
            (false, false) => response.ttl.min(MAX_TTL),
        };
        if response.is_failure && self.failed(now, question) {
            return;
        }
        self.remove(question);
        let size = size(question, &response);
        if ttl.is_zero() || size > self.limits.bytes / 16 {
            return;
        }
        while self.bytes + size > self.limits.bytes {
            let Some(question) = self.oldest() else { break };
            self.remove(&question);
        }
        self.last += 1;
        let expires = now + ttl;
        let renewed = self.limits.prefetch && !response.is_failure && ttl >= MIN_RENEWED;
        let renew_at = renewed.then(|| now + ttl.saturating_sub((ttl / 10).max(RENEWED_BEFORE)));
        self.renewals.extend(renew_at.map(|at| (at, Arc::clone(question))));
        self.owners.entry(owner).or_default().insert(self.last);
        self.used.insert(self.last, Arc::clone(question));
        self.bytes += size;
        let entry = Entry {
            response,
            owner,
            number: self.last,
            stored: now,
            expires,
            renew_at,
            is_used: false,
            retry_at: Instant::ZERO,
        };
        self.entries.insert(Arc::clone(question), entry);
    }

    /// Notes that looking up `question` has failed; false if no response to it is stored.
    pub(crate) fn failed(&mut self, now: Instant, question: &Question) -> bool {
        let entry = self.entries.get_mut(question).filter(|entry| !entry.response.is_failure);
        let Some(entry) = entry else { return false };
        entry.retry_at = now + FAILURE_TTL;
        true
    }

    /// Returns the next response that is due to be renewed and was used since it was stored, and
    /// its owner.
    pub(crate) fn poll_renewal(&mut self, now: Instant) -> Option<(Arc<Question>, IpAddr)> {
        while let Some((at, _)) = self.renewals.first()
            && *at <= now
        {
            let (_, question) = self.renewals.pop_first()?;
            if let Some(entry) = self.entries.get(&question).filter(|entry| entry.is_used) {
                return Some((question, entry.owner));
            }
        }
        None
    }

    /// Returns when the next renewal may be due.
    pub(crate) fn next_renewal(&self) -> Option<Instant> {
        self.renewals.first().map(|(at, _)| *at)
    }

    /// The number of stored responses.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The octets of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The least recently used response of the client with the most.
    fn oldest(&self) -> Option<Arc<Question>> {
        let largest = self.owners.values().max_by_key(|numbers| numbers.len())?;
        self.used.get(largest.first()?).cloned()
    }

    fn remove(&mut self, question: &Question) {
        let Some((question, entry)) = self.entries.remove_entry(question) else { return };
        self.bytes -= size(&question, &entry.response);
        self.used.remove(&entry.number);
        if let Some(numbers) = self.owners.get_mut(&entry.owner) {
            numbers.remove(&entry.number);
            if numbers.is_empty() {
                self.owners.remove(&entry.owner);
            }
        }
        if let Some(at) = entry.renew_at {
            self.renewals.remove(&(at, question));
        }
    }
}

fn size(question: &Question, response: &Response) -> usize {
    OVERHEAD + question.size() + response.size()
}
