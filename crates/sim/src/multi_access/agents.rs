//! Clients that request objects of one size, and their servers.

use crate::host::{Application, StreamEvent};
use crate::{Pattern, StreamCheck, Streams};
use std::collections::{BTreeMap, VecDeque};
use units::{Instant, RngStream, Span};

/// The octets of all requests on a connection, and of all objects.
const REQUESTS: Pattern = Pattern(1);
const OBJECTS: Pattern = Pattern(2);
/// Octets of a pattern generated at a time.
const CHUNK: usize = 1 << 12;

/// The requests on the connections of one site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestModel {
    /// Octets of a request, at least one.
    pub request: u64,
    /// Octets of an object, at least one.
    pub object: u64,
    /// Mean of the exponentially distributed think time.
    pub think: Span,
    /// When the think time starts.
    pub order: RequestOrder,
    /// No request is sent before this time.
    pub start: Instant,
    /// Mean of the exponentially distributed time from `start` to a connection's first request;
    /// `None`: `think`.
    pub first: Option<Span>,
}

/// When the think time before a request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOrder {
    /// When the object has arrived. This equals a Poisson process whose arrivals are ignored while
    /// an object is outstanding.
    Closed,
    /// When the previous request was sent; requests are pipelined.
    Open,
    /// Pages of so many objects: each object but the first of a page is requested as soon as the
    /// previous one has arrived.
    Pages(u32),
}

/// Clients on persistent connections.
pub struct RequestClient<I> {
    requests: RequestModel,
    connections: Vec<Connection<I>>,
    rng: RngStream,
    responses: Vec<(Instant, Span)>,
    received: u64,
    lost: u64,
}

#[derive(Debug)]
struct Connection<I> {
    stream: Option<I>,
    /// When the next request is due; `None`: an object is outstanding.
    next: Option<Instant>,
    asked: VecDeque<Instant>,
    /// Objects received.
    objects_received: u32,
    /// Request octets to be written, and octets written.
    to_write: u64,
    written: u64,
    check: StreamCheck,
}

impl<I: Copy + Ord> RequestClient<I> {
    /// Creates `connections` clients.
    pub fn new(requests: RequestModel, connections: usize, mut rng: RngStream) -> Self {
        let connections = (0..connections)
            .map(|_| Connection {
                stream: None,
                next: Some(
                    requests.start + rng.exponential_span(requests.first.unwrap_or(requests.think)),
                ),
                asked: VecDeque::new(),
                objects_received: 0,
                to_write: 0,
                written: 0,
                check: StreamCheck::new(OBJECTS),
            })
            .collect();
        Self { requests, connections, rng, responses: Vec::new(), received: 0, lost: 0 }
    }

    /// Complete objects: time of arrival, and response time.
    pub fn responses(&self) -> &[(Instant, Span)] {
        &self.responses
    }

    /// Octets of objects received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Connections lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn ask(&mut self, now: Instant, index: usize) {
        let connection = &mut self.connections[index];
        connection.asked.push_back(now);
        connection.to_write += self.requests.request;
        connection.next = match self.requests.order {
            RequestOrder::Closed | RequestOrder::Pages(_) => None,
            RequestOrder::Open => Some(now + self.rng.exponential_span(self.requests.think)),
        };
    }

    fn write(&mut self, now: Instant, index: usize, streams: &mut impl Streams<Id = I>) {
        let connection = &mut self.connections[index];
        let Some(stream) = connection.stream else { return };
        write(now, stream, REQUESTS, &mut connection.written, connection.to_write, streams);
    }

    fn read(&mut self, now: Instant, index: usize, streams: &mut impl Streams<Id = I>) {
        let object = self.requests.object;
        let connection = &mut self.connections[index];
        let Some(stream) = connection.stream else { return };
        let before = connection.check.received() / object;
        self.received += take(now, stream, &mut connection.check, streams);
        for _ in before..connection.check.received() / object {
            let asked = connection.asked.pop_front().expect("an object that was not requested");
            self.responses.push((now, now.since(asked)));
            connection.objects_received += 1;
            let page_over = match self.requests.order {
                RequestOrder::Closed => true,
                RequestOrder::Open => continue,
                RequestOrder::Pages(objects) => {
                    connection.objects_received.is_multiple_of(objects.max(1))
                }
            };
            let think = self.requests.think;
            let pause = if page_over { self.rng.exponential_span(think) } else { Span::ZERO };
            connection.next = Some(now + pause);
        }
    }

    fn of(&self, stream: I) -> Option<usize> {
        self.connections.iter().position(|connection| connection.stream == Some(stream))
    }
}

impl<S: Streams> Application<S> for RequestClient<S::Id>
where
    S::Id: 'static,
{
    fn handle_event(&mut self, now: Instant, event: StreamEvent<S::Id>, streams: &mut S) {
        match event {
            StreamEvent::Readable(stream) => {
                if let Some(index) = self.of(stream) {
                    self.read(now, index, streams);
                }
            }
            StreamEvent::Writable(stream) => {
                if let Some(index) = self.of(stream) {
                    self.write(now, index, streams);
                }
            }
            StreamEvent::Gone(stream) => {
                if let Some(index) = self.of(stream) {
                    self.lost += 1;
                    self.connections[index].stream = None;
                    self.connections[index].next = None;
                }
            }
            StreamEvent::Opened(_) | StreamEvent::Ended(_) | StreamEvent::Broken(_) => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connections.iter().filter_map(|connection| connection.next).min()
    }

    fn handle_timeout(&mut self, now: Instant, streams: &mut S) {
        for index in 0..self.connections.len() {
            while self.connections[index].next.is_some_and(|at| at <= now) {
                if self.connections[index].stream.is_none() {
                    self.connections[index].stream = Some(streams.open(now));
                }
                self.ask(now, index);
                self.write(now, index, streams);
            }
        }
    }
}

/// Servers that answer each request with an object.
pub struct ObjectServer<I> {
    request: u64,
    object: u64,
    connections: BTreeMap<I, ServerConnection>,
    received: u64,
}

#[derive(Debug)]
struct ServerConnection {
    check: StreamCheck,
    written: u64,
}

impl<I: Copy + Ord> ObjectServer<I> {
    /// Creates servers for clients of `requests`.
    pub fn new(requests: &RequestModel) -> Self {
        let (request, object) = (requests.request, requests.object);
        Self { request, object, connections: BTreeMap::new(), received: 0 }
    }

    /// Octets of requests received.
    pub fn received(&self) -> u64 {
        self.received
    }

    fn serve(&mut self, now: Instant, stream: I, streams: &mut impl Streams<Id = I>) {
        let Some(connection) = self.connections.get_mut(&stream) else { return };
        self.received += take(now, stream, &mut connection.check, streams);
        let to_write = connection.check.received() / self.request * self.object;
        write(now, stream, OBJECTS, &mut connection.written, to_write, streams);
    }
}

impl<S: Streams> Application<S> for ObjectServer<S::Id>
where
    S::Id: 'static,
{
    fn handle_event(&mut self, now: Instant, event: StreamEvent<S::Id>, streams: &mut S) {
        match event {
            StreamEvent::Opened(stream) => {
                let connection = ServerConnection { check: StreamCheck::new(REQUESTS), written: 0 };
                self.connections.insert(stream, connection);
            }
            StreamEvent::Readable(stream) | StreamEvent::Writable(stream) => {
                self.serve(now, stream, streams);
            }
            StreamEvent::Ended(stream) => streams.end(now, stream),
            StreamEvent::Gone(stream) => {
                self.connections.remove(&stream);
            }
            StreamEvent::Broken(_) => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _: Instant, _: &mut S) {}
}

/// Writes `pattern` from `*written` up to `wanted`, as far as the stream accepts it.
fn write<I: Copy>(
    now: Instant,
    stream: I,
    pattern: Pattern,
    written: &mut u64,
    to_write: u64,
    streams: &mut impl Streams<Id = I>,
) {
    let mut platform_part = [0; CHUNK];
    while *written < to_write {
        let count = (to_write - *written).min(CHUNK as u64) as usize;
        pattern.fill(*written, &mut platform_part[..count]);
        let taken = streams.write(now, stream, &platform_part[..count]);
        *written += taken as u64;
        if taken < count {
            return;
        }
    }
}

/// Reads and verifies all available octets; returns how many.
fn take<I: Copy>(
    now: Instant,
    stream: I,
    check: &mut StreamCheck,
    streams: &mut impl Streams<Id = I>,
) -> u64 {
    let before = check.received();
    loop {
        let bytes = streams.peek(stream);
        let count = bytes.len();
        if count == 0 {
            return check.received() - before;
        }
        check.take(bytes).expect("the peer's bytes, each once and in order");
        streams.consume(now, stream, count);
    }
}
