//! Who uses the network: clients that ask for objects of one size, servers that have them.

use crate::host::{Application, StreamEvent};
use crate::{Pattern, StreamCheck, Streams};
use std::collections::{BTreeMap, VecDeque};
use units::{Instant, RngStream, Span};

/// The bytes of all requests on a connection, and those of all objects.
const REQUESTS: Pattern = Pattern(1);
const OBJECTS: Pattern = Pattern(2);
/// Bytes of a pattern that are made at once.
const PIECE: usize = 1 << 12;

/// What the connections of one site ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asking {
    /// Bytes of a request, at least one.
    pub request: u64,
    /// Bytes of an object, at least one.
    pub object: u64,
    /// The mean of the exponentially distributed time between two requests.
    pub think: Span,
    /// When the next request comes: a thought after the object, or a thought after the request
    /// before it, whether that was answered or not.
    pub order: AskingOrder,
    /// No request before this.
    pub start: Instant,
    /// The mean of the exponentially distributed time from then to a connection's first request;
    /// `None`: `think`.
    pub first: Option<Span>,
}

/// When the next request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskingOrder {
    /// A thought after the object has come. A Poisson process that is not heard while an object
    /// is awaited is the same.
    Closed,
    /// A thought after the request before it, pipelined.
    Open,
    /// Pages of so many objects: each but a page's first as soon as the one before it has come.
    Pages(u32),
}

/// Clients on persistent connections.
pub struct Asker<I> {
    asking: Asking,
    connections: Vec<Connection<I>>,
    rng: RngStream,
    responses: Vec<(Instant, Span)>,
    received: u64,
    lost: u64,
}

#[derive(Debug)]
struct Connection<I> {
    stream: Option<I>,
    /// When the next request is due; `None`: an object is awaited first.
    next: Option<Instant>,
    asked: VecDeque<Instant>,
    /// Objects that came.
    had: u32,
    /// Request bytes that are wanted, and those that are written.
    wanted: u64,
    written: u64,
    check: StreamCheck,
}

impl<I: Copy + Ord> Asker<I> {
    /// `connections` of them.
    pub fn new(asking: Asking, connections: usize, mut rng: RngStream) -> Self {
        let connections = (0..connections)
            .map(|_| Connection {
                stream: None,
                next: Some(
                    asking.start + rng.exponential_span(asking.first.unwrap_or(asking.think)),
                ),
                asked: VecDeque::new(),
                had: 0,
                wanted: 0,
                written: 0,
                check: StreamCheck::new(OBJECTS),
            })
            .collect();
        Self { asking, connections, rng, responses: Vec::new(), received: 0, lost: 0 }
    }

    /// Objects that came whole: when, and how long after they were asked for.
    pub fn responses(&self) -> &[(Instant, Span)] {
        &self.responses
    }

    /// Bytes of objects.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Connections that were lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn ask(&mut self, now: Instant, index: usize) {
        let connection = &mut self.connections[index];
        connection.asked.push_back(now);
        connection.wanted += self.asking.request;
        connection.next = match self.asking.order {
            AskingOrder::Closed | AskingOrder::Pages(_) => None,
            AskingOrder::Open => Some(now + self.rng.exponential_span(self.asking.think)),
        };
    }

    fn write(&mut self, now: Instant, index: usize, streams: &mut impl Streams<Id = I>) {
        let connection = &mut self.connections[index];
        let Some(stream) = connection.stream else { return };
        write(now, stream, REQUESTS, &mut connection.written, connection.wanted, streams);
    }

    fn read(&mut self, now: Instant, index: usize, streams: &mut impl Streams<Id = I>) {
        let object = self.asking.object;
        let connection = &mut self.connections[index];
        let Some(stream) = connection.stream else { return };
        let before = connection.check.received() / object;
        self.received += take(now, stream, &mut connection.check, streams);
        for _ in before..connection.check.received() / object {
            let asked = connection.asked.pop_front().expect("an object that nobody asked for");
            self.responses.push((now, now.since(asked)));
            connection.had += 1;
            let page_over = match self.asking.order {
                AskingOrder::Closed => true,
                AskingOrder::Open => continue,
                AskingOrder::Pages(objects) => connection.had.is_multiple_of(objects.max(1)),
            };
            let think = self.asking.think;
            let pause = if page_over { self.rng.exponential_span(think) } else { Span::ZERO };
            connection.next = Some(now + pause);
        }
    }

    fn of(&self, stream: I) -> Option<usize> {
        self.connections.iter().position(|connection| connection.stream == Some(stream))
    }
}

impl<S: Streams> Application<S> for Asker<S::Id>
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
pub struct Answerer<I> {
    request: u64,
    object: u64,
    connections: BTreeMap<I, Answering>,
    received: u64,
}

#[derive(Debug)]
struct Answering {
    check: StreamCheck,
    written: u64,
}

impl<I: Copy + Ord> Answerer<I> {
    /// For clients that ask as `asking` says.
    pub fn new(asking: &Asking) -> Self {
        let (request, object) = (asking.request, asking.object);
        Self { request, object, connections: BTreeMap::new(), received: 0 }
    }

    /// Bytes of requests.
    pub fn received(&self) -> u64 {
        self.received
    }

    fn serve(&mut self, now: Instant, stream: I, streams: &mut impl Streams<Id = I>) {
        let Some(connection) = self.connections.get_mut(&stream) else { return };
        self.received += take(now, stream, &mut connection.check, streams);
        let wanted = connection.check.received() / self.request * self.object;
        write(now, stream, OBJECTS, &mut connection.written, wanted, streams);
    }
}

impl<S: Streams> Application<S> for Answerer<S::Id>
where
    S::Id: 'static,
{
    fn handle_event(&mut self, now: Instant, event: StreamEvent<S::Id>, streams: &mut S) {
        match event {
            StreamEvent::Opened(stream) => {
                let connection = Answering { check: StreamCheck::new(REQUESTS), written: 0 };
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

/// Writes `pattern` from `*written` up to `wanted`, as far as the stream takes it.
fn write<I: Copy>(
    now: Instant,
    stream: I,
    pattern: Pattern,
    written: &mut u64,
    wanted: u64,
    streams: &mut impl Streams<Id = I>,
) {
    let mut piece = [0; PIECE];
    while *written < wanted {
        let count = (wanted - *written).min(PIECE as u64) as usize;
        pattern.fill(*written, &mut piece[..count]);
        let taken = streams.write(now, stream, &piece[..count]);
        *written += taken as u64;
        if taken < count {
            return;
        }
    }
}

/// Takes and checks what there is; says how much.
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
