//! Clients at the terminal.

use super::plan::{ConnectionPlan, Order, Start};
use super::{HEAD, Head};
use crate::{Meter, StreamCheck, Streams};
use std::collections::{BTreeMap, VecDeque};
use units::{Instant, Span};

/// All clients behind one terminal: they follow their plans and record the results.
#[derive(Debug)]
pub struct Client<S> {
    connections: Vec<Connection<S>>,
    by_stream: BTreeMap<S, usize>,
    received: Meter,
    exchanged: Vec<Exchanged>,
    lost: u64,
    /// Connections to be opened, and those whose last request waits for another connection's end.
    waiting: usize,
    /// Connections with delayed requests.
    holding: usize,
    ends: ClientClose,
}

/// When a client ends its send side of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientClose {
    /// With the last response.
    #[default]
    AfterResponses,
    /// With the last request, as T/TCP's `MSG_EOF` does.
    WithRequests,
    /// Never: the server ends the stream.
    Never,
}

/// An exchange that has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchanged {
    /// Index of the connection in the plans.
    pub connection: usize,
    /// For the first exchange when its connection was opened, otherwise when the request was sent.
    pub asked: Instant,
    /// When the first octet of the response arrived.
    pub first_byte: Option<Instant>,
    /// When the last octet arrived.
    pub done: Option<Instant>,
}

#[derive(Debug)]
struct Connection<S> {
    plan: ConnectionPlan,
    stream: Option<S>,
    /// Requests to be written, and the octets of the first that are written.
    requests: VecDeque<Head>,
    written: u64,
    /// Until when requests are delayed.
    held: Option<Instant>,
    /// Outstanding responses with their index in `exchanged`, and the state of the first.
    responses: VecDeque<(Head, usize)>,
    check: Option<StreamCheck>,
    asked: usize,
    answered: usize,
    half_closed: bool,
    ended: bool,
}

impl<S: Copy + Ord> Client<S> {
    /// Clients that follow `plans`.
    pub fn new(plans: Vec<ConnectionPlan>) -> Self {
        let waiting = plans.iter().map(|plan| 1 + usize::from(plan.waits_for.is_some())).sum();
        let connections = plans.into_iter().map(Connection::new).collect();
        Self {
            waiting,
            holding: 0,
            connections,
            by_stream: BTreeMap::new(),
            received: Meter::new(Span::from_millis(10)),
            exchanged: Vec::new(),
            lost: 0,
            ends: ClientClose::default(),
        }
    }

    /// Returns the clients with another way of ending streams.
    #[must_use]
    pub fn ending(self, ends: ClientClose) -> Self {
        Self { ends, ..self }
    }

    /// Octets of responses received, over time.
    pub fn received(&self) -> &Meter {
        &self.received
    }

    /// All exchanges, in the order of their start.
    pub fn exchanged(&self) -> &[Exchanged] {
        &self.exchanged
    }

    /// Connections that were reset, refused or lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether all plans are finished.
    pub fn is_done(&self) -> bool {
        self.connections.iter().all(|connection| connection.ended)
    }

    /// When the next connection is to be opened, or the next delayed request sent.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let waiting = self.connections.iter().filter(|connection| connection.waits());
        let opens = waiting.filter_map(|connection| self.opens_at(connection)).min();
        let held = self.connections.iter().filter_map(|connection| connection.held).min();
        [opens, held].into_iter().flatten().min()
    }

    /// Opens the connections that are due by `now`, and sends the requests delayed until then.
    pub fn handle_timeout(&mut self, now: Instant, streams: &mut impl Streams<Id = S>) {
        self.send_held(now, streams);
        if self.waiting == 0 {
            return;
        }
        for index in 0..self.connections.len() {
            if self.connections[index].may_go_on(&self.connections) {
                self.connections[index].plan.waits_for = None;
                self.waiting -= 1;
                self.ask(index, now);
                self.write(index, now, streams);
            }
            let connection = &self.connections[index];
            let due = self.opens_at(connection).is_some_and(|at| at <= now);
            if connection.waits() && due {
                let stream = streams.open(now);
                self.connections[index].stream = Some(stream);
                self.waiting -= 1;
                self.by_stream.insert(stream, index);
                self.ask(index, now);
                self.write(index, now, streams);
            }
        }
    }

    fn send_held(&mut self, now: Instant, streams: &mut impl Streams<Id = S>) {
        if self.holding == 0 {
            return;
        }
        for index in 0..self.connections.len() {
            if self.connections[index].held.is_some_and(|until| until <= now) {
                self.connections[index].held = None;
                self.holding -= 1;
                self.write(index, now, streams);
            }
        }
    }

    /// Handles a stream that accepts octets again.
    pub fn writable(&mut self, now: Instant, stream: S, streams: &mut impl Streams<Id = S>) {
        if let Some(&index) = self.by_stream.get(&stream) {
            self.write(index, now, streams);
        }
    }

    /// Handles a stream with octets to read.
    ///
    /// # Panics
    ///
    /// If octets differ from those that the server sent, or were not requested.
    pub fn readable(&mut self, now: Instant, stream: S, streams: &mut impl Streams<Id = S>) {
        let Some(&index) = self.by_stream.get(&stream) else { return };
        loop {
            let bytes = streams.peek(stream);
            if bytes.is_empty() {
                break;
            }
            let count = self.read(index, now, bytes);
            streams.consume(now, stream, count);
            self.ask(index, now);
            self.write(index, now, streams);
        }
        // Other connections may wait for this one.
        self.handle_timeout(now, streams);
    }

    /// Handles a closed stream.
    pub fn gone(&mut self, stream: S) {
        if let Some(index) = self.by_stream.remove(&stream)
            && !self.connections[index].ended
        {
            self.lose(index);
        }
    }

    /// Handles the loss of a connection, and of those that wait for its first response.
    fn lose(&mut self, index: usize) {
        self.connections[index].ended = true;
        self.lost += 1;
        self.holding -= usize::from(self.connections[index].held.take().is_some());
        self.waiting -= usize::from(self.connections[index].plan.waits_for.is_some());
        for other in 0..self.connections.len() {
            let connection = &self.connections[other];
            let after = match connection.plan.start {
                Start::At(_) => None,
                Start::AfterFirstOf(other) | Start::InTurn { after: other, .. } => Some(other),
            };
            let hopeless =
                after == Some(index) && connection.waits() && self.first_done(index).is_none();
            if hopeless {
                self.waiting -= 1;
                self.lose(other);
            }
        }
    }

    /// Handles the loss of all streams.
    pub fn all_gone(&mut self) {
        while let Some((&stream, _)) = self.by_stream.first_key_value() {
            self.gone(stream);
        }
    }

    fn opens_at(&self, connection: &Connection<S>) -> Option<Instant> {
        match connection.plan.start {
            Start::At(at) => Some(at),
            Start::AfterFirstOf(other) => self.first_done(other),
            Start::InTurn { after, at_once } => {
                let open = |other: &&Connection<S>| {
                    other.plan.start == connection.plan.start && other.is_open()
                };
                let free = self.connections.iter().filter(open).count() < at_once;
                self.first_done(after).filter(|_| free)
            }
        }
    }

    /// When the first response on a connection was complete.
    fn first_done(&self, connection: usize) -> Option<Instant> {
        self.exchanged.iter().find(|one| one.connection == connection)?.done
    }

    /// Queues the next requests, if they are due.
    fn ask(&mut self, index: usize, now: Instant) {
        let connection = &mut self.connections[index];
        let total = connection.plan.exchanges.len();
        let check_page = match connection.plan.order {
            Order::OneByOne => (connection.answered + 1).min(total),
            Order::PipelinedAfterFirst if connection.answered == 0 => 1.min(total),
            Order::PipelinedAsNamed if connection.answered == 0 => connection.named(),
            Order::PipelinedAfterFirst | Order::PipelinedAsNamed => total,
        };
        let check_page = if connection.plan.waits_for.is_some() {
            check_page.min(total - 1)
        } else {
            check_page
        };
        let holds = !connection.plan.held.is_zero() && connection.held.is_none();
        let is_over = connection.answered == total && !connection.ended;
        if (connection.asked < check_page || is_over) && holds {
            connection.held = Some(now + connection.plan.held);
            self.holding += 1;
        }
        while connection.asked < check_page {
            let exchange = connection.plan.exchanges[connection.asked];
            let head = Head {
                tag: (index as u64) << 32 | connection.asked as u64,
                request: exchange.request.max(HEAD),
                response: exchange.response.max(1),
            };
            connection.requests.push_back(head);
            connection.responses.push_back((head, self.exchanged.len()));
            connection.asked += 1;
            self.exchanged.push(Exchanged {
                connection: index,
                asked: now,
                first_byte: None,
                done: None,
            });
        }
    }

    fn write(&mut self, index: usize, now: Instant, streams: &mut impl Streams<Id = S>) {
        let connection = &mut self.connections[index];
        let Some(stream) = connection.stream.filter(|_| connection.held.is_none()) else { return };
        let mut piece = [0; 4096];
        while let Some(head) = connection.requests.front() {
            let left = head.request - connection.written;
            let length = head.piece(connection.written, left, &mut piece);
            let taken = streams.write(now, stream, &piece[..length]) as u64;
            connection.written += taken;
            if connection.written == head.request {
                connection.requests.pop_front();
                connection.written = 0;
            } else if taken < length as u64 {
                return;
            }
        }
        let total = connection.plan.exchanges.len();
        if self.ends == ClientClose::WithRequests
            && connection.asked == total
            && !connection.half_closed
        {
            connection.half_closed = true;
            streams.end(now, stream);
        }
        if connection.answered == total && !connection.ended {
            connection.ended = true;
            if self.ends == ClientClose::AfterResponses {
                streams.end(now, stream);
            }
        }
    }

    fn read(&mut self, index: usize, now: Instant, bytes: &[u8]) -> usize {
        let connection = &mut self.connections[index];
        let &(head, place) = connection.responses.front().expect("octets of a request");
        let check = connection.check.get_or_insert_with(|| StreamCheck::new(head.answer()));
        let left = head.response - check.received();
        let count = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        check.take(&bytes[..count]).expect("the server's bytes");
        self.received.count(now, count as u64);
        let exchanged = &mut self.exchanged[place];
        exchanged.first_byte.get_or_insert(now);
        if check.received() == head.response {
            exchanged.done = Some(now);
            connection.check = None;
            connection.responses.pop_front();
            connection.answered += 1;
        }
        count
    }
}

impl<S> Connection<S> {
    fn new(plan: ConnectionPlan) -> Self {
        Self {
            plan,
            stream: None,
            requests: VecDeque::new(),
            written: 0,
            held: None,
            responses: VecDeque::new(),
            check: None,
            asked: 0,
            answered: 0,
            half_closed: false,
            ended: false,
        }
    }

    /// Exchanges named by the part of the first response received so far, itself included.
    fn named(&self) -> usize {
        let all = &self.plan.exchanges;
        let Some(first) = all.first() else { return 0 };
        let came = self.check.as_ref().map_or(0, StreamCheck::received);
        1 + (came * (all.len() as u64 - 1) / first.response.max(1)) as usize
    }

    fn is_open(&self) -> bool {
        self.stream.is_some() && !self.ended
    }

    fn waits(&self) -> bool {
        self.stream.is_none() && !self.ended
    }

    /// Whether the end that its last request waits for has occurred.
    fn may_go_on(&self, all: &[Self]) -> bool {
        let awaited = self.plan.waits_for.filter(|_| !self.ended);
        awaited.is_some_and(|other| all.get(other).is_none_or(|other| other.ended))
    }
}

impl Head {
    /// Fills `out` with octets of the request from `offset` on; returns how many.
    fn piece(&self, offset: u64, left: u64, out: &mut [u8]) -> usize {
        let count = usize::try_from(left).map_or(out.len(), |left| left.min(out.len()));
        let out = &mut out[..count];
        let head = self.to_bytes();
        let from_head = HEAD.saturating_sub(offset).min(count as u64) as usize;
        out[..from_head].copy_from_slice(&head[offset.min(HEAD) as usize..][..from_head]);
        let body = (offset + from_head as u64).saturating_sub(HEAD);
        self.body().fill(body, &mut out[from_head..]);
        count
    }
}
