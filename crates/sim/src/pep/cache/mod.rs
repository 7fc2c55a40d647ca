//! A transparent web cache. It answers requests for cached objects, and splits connections for all
//! others (Henderson and Katz 1999, section 6.1; RFC 3135, section 2.1.2).
//!
//! ```text
//!   user ── request ──▶ [WebCache] ── misses only ──▶ server
//!        ◀── response ─           ◀─ response, cached ──
//! ```
//!
//! It implements the protocol of [`Client`](crate::traffic::Client) and
//! [`Server`](crate::traffic::Server). An object is identified by the tag and the length of the
//! response, so two users with the same plans read the same pages. Misses are requested on one
//! connection per user connection, pipelined in order.

mod store;

use crate::host::{Interceptor, StreamEvent};
use crate::network::{Node, NodeId, Outbox, Packet};
use crate::traffic::{HEAD, Head};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use store::Store;
use units::Instant;

/// Maximum number of outstanding requests per connection; further ones are not read.
const ANSWERS: usize = 64;
/// Longer requests are uploads, and their responses are not cached.
const LONGEST_REQUEST: u64 = 4_096;

/// A cache between `near`, the users' side, and `far`.
pub struct WebCache<N: Interceptor, F: Interceptor> {
    /// The transport of the users.
    pub near: N,
    /// The transport of the servers.
    pub far: F,
    users: BTreeSet<NodeId>,
    visits: BTreeMap<N::Id, Visit<F::Id>>,
    by_far: BTreeMap<F::Id, N::Id>,
    passing: Vec<Packet>,
    store: Store,
    counts: CacheCounts,
}

/// Counters of a [`WebCache`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Requests answered from the cache.
    pub hits: u64,
    /// Requests forwarded to a server.
    pub misses: u64,
    /// Octets of responses from the cache.
    pub hit_bytes: u64,
    /// Octets of responses from servers.
    pub missed_bytes: u64,
}

/// A user's connection.
#[derive(Debug)]
struct Visit<I> {
    far: Option<I>,
    /// The octets of a request's head received so far.
    head: Vec<u8>,
    /// Octets left of a request, and whether it is forwarded.
    body: Option<(u64, bool)>,
    /// The head of a request that is being forwarded.
    onward: Vec<u8>,
    answers: VecDeque<Answer>,
    user_ended: bool,
    over: bool,
}

/// A response that is due.
#[derive(Debug)]
struct Answer {
    head: Head,
    sent: u64,
    from: From,
}

#[derive(Debug)]
enum From {
    Store(Rc<[u8]>),
    /// The server; the octets to be cached so far.
    Far(Vec<u8>),
}

impl<N: Interceptor, F: Interceptor> WebCache<N, F> {
    /// A cache for `users` with a capacity of `capacity` octets.
    pub fn new(near: N, far: F, users: impl IntoIterator<Item = NodeId>, capacity: u64) -> Self {
        Self {
            near,
            far,
            users: users.into_iter().collect(),
            visits: BTreeMap::new(),
            by_far: BTreeMap::new(),
            passing: Vec::new(),
            store: Store::new(capacity),
            counts: CacheCounts::default(),
        }
    }

    /// Its counters.
    pub fn counts(&self) -> CacheCounts {
        self.counts
    }

    /// Octets of cached responses.
    pub fn kept(&self) -> u64 {
        self.store.bytes()
    }

    /// Number of open user connections.
    pub fn visits(&self) -> usize {
        self.visits.len()
    }

    fn events(&mut self, now: Instant) {
        loop {
            if let Some(event) = self.near.poll_event() {
                self.on_near(now, event);
            } else if let Some(event) = self.far.poll_event() {
                self.on_far(now, event);
            } else {
                return;
            }
        }
    }

    fn on_near(&mut self, now: Instant, event: StreamEvent<N::Id>) {
        match event {
            StreamEvent::Opened(near) => {
                self.visits.insert(near, Visit::default());
            }
            StreamEvent::Readable(near) | StreamEvent::Writable(near) => self.pump(now, near),
            StreamEvent::Ended(near) => {
                if let Some(visit) = self.visits.get_mut(&near) {
                    visit.user_ended = true;
                }
                self.pump(now, near);
            }
            StreamEvent::Broken(near) => {
                if let Some(far) = self.visits.get(&near).and_then(|visit| visit.far) {
                    self.far.reset(now, far);
                }
            }
            StreamEvent::Gone(near) => {
                self.visits.remove(&near);
            }
        }
    }

    fn on_far(&mut self, now: Instant, event: StreamEvent<F::Id>) {
        let (StreamEvent::Opened(far)
        | StreamEvent::Readable(far)
        | StreamEvent::Writable(far)
        | StreamEvent::Ended(far)
        | StreamEvent::Broken(far)
        | StreamEvent::Gone(far)) = event;
        let Some(&near) = self.by_far.get(&far) else { return };
        match event {
            // Servers open no streams.
            StreamEvent::Opened(_) => {}
            StreamEvent::Readable(_) | StreamEvent::Writable(_) => self.pump(now, near),
            StreamEvent::Ended(_) => {
                self.pump(now, near);
                self.far.confirm(now, far);
                self.leave(now, near);
            }
            StreamEvent::Broken(_) => self.near.reset(now, near),
            StreamEvent::Gone(_) => {
                self.leave(now, near);
                self.by_far.remove(&far);
                if let Some(visit) = self.visits.get_mut(&near) {
                    visit.far = None;
                }
            }
        }
    }

    /// The server has ended: users waiting for it receive nothing.
    fn leave(&mut self, now: Instant, near: N::Id) {
        let Some(visit) = self.visits.get(&near) else { return };
        if visit.answers.iter().any(|answer| matches!(answer.from, From::Far(_))) {
            self.near.reset(now, near);
        }
    }

    /// Moves as many octets of a user's connection as possible.
    fn pump(&mut self, now: Instant, near: N::Id) {
        while self.ask(now, near) | self.answer(now, near) {}
        let Some(visit) = self.visits.get_mut(&near) else { return };
        if visit.user_ended && visit.is_idle() && !visit.over {
            visit.over = true;
            if let Some(far) = visit.far {
                self.far.end(now, far);
            }
            self.near.end(now, near);
            self.near.confirm(now, near);
        }
    }

    /// Reads requests; returns whether any octet moved.
    fn ask(&mut self, now: Instant, near: N::Id) -> bool {
        let Some(visit) = self.visits.get_mut(&near) else { return false };
        let mut moved = false;
        loop {
            if let (Some(far), false) = (visit.far, visit.onward.is_empty()) {
                let taken = self.far.write(now, far, &visit.onward);
                visit.onward.drain(..taken);
                moved |= taken > 0;
            }
            let bytes = self.near.peek(near);
            let stuck = !visit.onward.is_empty() || visit.answers.len() == ANSWERS;
            if bytes.is_empty() || stuck && visit.body.is_none() {
                return moved;
            }
            let taken = match (visit.body, visit.far) {
                (None, _) => (HEAD as usize - visit.head.len()).min(bytes.len()),
                (Some((left, false)), _) => left.min(bytes.len() as u64) as usize,
                (Some(_), _) if !visit.onward.is_empty() => 0,
                (Some((left, true)), Some(far)) => {
                    let count = left.min(bytes.len() as u64) as usize;
                    self.far.write(now, far, &bytes[..count])
                }
                // The connection to the server is closed.
                (Some((_, true)), None) => 0,
            };
            if taken == 0 {
                return moved;
            }
            moved = true;
            let head = match &mut visit.body {
                Some((left, _)) => {
                    *left -= taken as u64;
                    None
                }
                None => {
                    visit.head.extend_from_slice(&bytes[..taken]);
                    <[u8; HEAD as usize]>::try_from(visit.head.as_slice()).ok()
                }
            };
            self.near.consume(now, near, taken);
            if let Some(bytes) = head {
                visit.head.clear();
                let head = Head::from_bytes(bytes);
                let hit = match head.request {
                    0..=LONGEST_REQUEST => self.store.get((head.tag, head.response)),
                    _ => None,
                };
                visit.body = Some((head.request.saturating_sub(HEAD), hit.is_none()));
                if hit.is_none() && visit.far.is_none() {
                    let Some(ends) = self.near.ends(near) else { return moved };
                    let far = self.far.open_between(now, ends);
                    visit.far = Some(far);
                    self.by_far.insert(far, near);
                }
                if hit.is_none() {
                    visit.onward.extend(bytes);
                }
                self.counts.hits += u64::from(hit.is_some());
                self.counts.misses += u64::from(hit.is_none());
                let from = hit.map_or(From::Far(Vec::new()), From::Store);
                visit.answers.push_back(Answer { head, sent: 0, from });
            }
            visit.body = visit.body.filter(|(left, _)| *left > 0);
        }
    }

    /// Writes responses; returns whether any octet moved.
    fn answer(&mut self, now: Instant, near: N::Id) -> bool {
        let Some(visit) = self.visits.get_mut(&near) else { return false };
        let mut moved = false;
        while let Some(answer) = visit.answers.front_mut() {
            let left = answer.head.response - answer.sent;
            let stored = match &answer.from {
                From::Store(object) => Some(Rc::clone(object)),
                From::Far(_) => None,
            };
            let bytes = match (&stored, visit.far) {
                (Some(object), _) => &object[answer.sent as usize..],
                (None, Some(far)) => self.far.peek(far),
                (None, None) => &[],
            };
            let count = left.min(bytes.len() as u64) as usize;
            let taken = self.near.write(now, near, &bytes[..count]);
            answer.sent += taken as u64;
            let keeps =
                answer.head.request <= LONGEST_REQUEST && self.store.keeps(answer.head.response);
            match (&mut answer.from, visit.far) {
                (From::Store(_), _) => self.counts.hit_bytes += taken as u64,
                (From::Far(kept), Some(far)) if taken > 0 => {
                    if keeps {
                        kept.extend_from_slice(&bytes[..taken]);
                    }
                    self.counts.missed_bytes += taken as u64;
                    self.far.consume(now, far, taken);
                }
                (From::Far(_), _) => {}
            }
            moved |= taken > 0;
            if answer.sent < answer.head.response {
                return moved;
            }
            let done = visit.answers.pop_front();
            if let Some(Answer { head, from: From::Far(object), .. }) = done
                && keeps
            {
                self.store.put((head.tag, head.response), object);
            }
        }
        moved
    }
}

impl<I> Default for Visit<I> {
    fn default() -> Self {
        Self {
            far: None,
            head: Vec::new(),
            body: None,
            onward: Vec::new(),
            answers: VecDeque::new(),
            user_ended: false,
            over: false,
        }
    }
}

impl<I> Visit<I> {
    /// No request is outstanding.
    fn is_idle(&self) -> bool {
        self.head.is_empty()
            && self.body.is_none()
            && self.onward.is_empty()
            && self.answers.is_empty()
    }
}

impl<N: Interceptor, F: Interceptor> Node for WebCache<N, F> {
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let of_user = self.users.contains(&packet.from.node);
        if self.near.wants(packet) || of_user && self.near.opens(packet) {
            self.near.handle_packet(now, packet);
        } else if self.far.wants(packet) {
            self.far.handle_packet(now, packet);
        } else {
            self.passing.push(packet.take());
        }
        self.events(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        self.passing.drain(..).for_each(|packet| out.forward_on(packet));
        self.near.poll_transmit(now, out);
        self.far.poll_transmit(now, out);
        self.events(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.near.poll_timeout(), self.far.poll_timeout()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.near.handle_timeout(now);
        self.far.handle_timeout(now);
        self.events(now);
    }
}

#[cfg(test)]
mod tests;
