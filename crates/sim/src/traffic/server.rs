//! Servers behind the hub.

use super::{HEAD, Head};
use crate::{Meter, StreamCheck, Streams};
use std::collections::{BTreeMap, VecDeque};
use units::{Instant, Span};

/// All servers behind one hub: they read requests and respond.
#[derive(Debug)]
pub struct Server<S> {
    connections: BTreeMap<S, Connection>,
    received: Meter,
    lost: u64,
    closes: bool,
    pause: Span,
}

#[derive(Debug, Default)]
struct Connection {
    head: Vec<u8>,
    request: Option<(Head, StreamCheck)>,
    /// Outstanding responses; octets of the first that are written.
    responses: VecDeque<Head>,
    written: u64,
    /// The stream ends after the last response: the client has ended, or this server closes.
    ends: bool,
    ended: bool,
    /// End of the current processing delay, and whether the delay before the end has passed.
    due: Option<Instant>,
    paused: bool,
}

impl<S: Copy + Ord> Server<S> {
    /// Creates servers without connections.
    pub fn new() -> Self {
        let received = Meter::new(Span::from_millis(10));
        Self { connections: BTreeMap::new(), received, lost: 0, closes: false, pause: Span::ZERO }
    }

    /// Returns servers that close each connection after its first response, as in HTTP/1.0.
    #[must_use]
    pub fn closing(self) -> Self {
        Self { closes: true, ..self }
    }

    /// Returns servers with a processing delay before each response, and again before they end a
    /// connection. Acknowledgements are not delayed.
    #[must_use]
    pub fn pausing(self, pause: Span) -> Self {
        Self { pause, ..self }
    }

    /// When a processing delay ends.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.pause.is_zero() {
            return None;
        }
        self.connections.values().filter_map(|connection| connection.due).min()
    }

    /// Sends the responses and ends that are due.
    pub fn handle_timeout(&mut self, now: Instant, streams: &mut impl Streams<Id = S>) {
        if self.pause.is_zero() {
            return;
        }
        for (&stream, connection) in &mut self.connections {
            if connection.due.is_some_and(|due| due <= now) {
                connection.due = None;
                connection.write(now, stream, self.pause, streams);
            }
        }
    }

    /// Octets of requests received, over time.
    pub fn received(&self) -> &Meter {
        &self.received
    }

    /// Connections that were reset or lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Handles an opened stream.
    pub fn opened(&mut self, stream: S) {
        self.connections.insert(stream, Connection::default());
    }

    /// Handles a stream that accepts octets again.
    pub fn writable(&mut self, now: Instant, stream: S, streams: &mut impl Streams<Id = S>) {
        if let Some(connection) = self.connections.get_mut(&stream) {
            connection.write(now, stream, self.pause, streams);
        }
    }

    /// Handles a stream with octets to read.
    ///
    /// # Panics
    ///
    /// If octets differ from those that the client sent.
    pub fn readable(&mut self, now: Instant, stream: S, streams: &mut impl Streams<Id = S>) {
        let Some(connection) = self.connections.get_mut(&stream) else { return };
        loop {
            let bytes = streams.peek(stream);
            if bytes.is_empty() {
                break;
            }
            let count = connection.read(bytes);
            connection.ends |= self.closes && !connection.responses.is_empty();
            self.received.count(now, count as u64);
            streams.consume(now, stream, count);
        }
        let asked = !connection.responses.is_empty() && connection.due.is_none();
        if asked && !self.pause.is_zero() {
            connection.due = Some(now + self.pause);
        }
        connection.write(now, stream, self.pause, streams);
    }

    /// Handles the end of a client's send side.
    pub fn ended(&mut self, now: Instant, stream: S, streams: &mut impl Streams<Id = S>) {
        if let Some(connection) = self.connections.get_mut(&stream) {
            connection.ends = true;
            connection.write(now, stream, self.pause, streams);
        }
    }

    /// Handles a closed stream.
    pub fn gone(&mut self, stream: S) {
        if let Some(connection) = self.connections.remove(&stream) {
            self.lost += u64::from(!connection.ended);
        }
    }
}

impl<S: Copy + Ord> Server<S> {
    /// Handles the loss of all streams.
    pub fn all_gone(&mut self) {
        let open = self.connections.values().filter(|connection| !connection.ended);
        self.lost += open.count() as u64;
        self.connections.clear();
    }
}

impl<S: Copy + Ord> Default for Server<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl Connection {
    fn read(&mut self, bytes: &[u8]) -> usize {
        let count = if let Some((head, check)) = &mut self.request {
            let left = head.request - HEAD - check.received();
            let count = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
            check.take(&bytes[..count]).expect("the client's bytes");
            count
        } else {
            let count = (HEAD as usize - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..count]);
            if let Ok(whole) = <[u8; HEAD as usize]>::try_from(self.head.as_slice()) {
                let head = Head::from_bytes(whole);
                self.head.clear();
                self.request = Some((head, StreamCheck::new(head.body())));
            }
            count
        };
        if let Some((head, check)) = self.request
            && check.received() + HEAD == head.request
        {
            self.responses.push_back(head);
            self.request = None;
        }
        count
    }

    fn write<S: Copy>(
        &mut self,
        now: Instant,
        stream: S,
        pause: Span,
        streams: &mut impl Streams<Id = S>,
    ) {
        if self.due.is_some() {
            return;
        }
        let mut piece = [0; 16_384];
        while let Some(head) = self.responses.front() {
            let left = head.response - self.written;
            let length = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
            head.answer().fill(self.written, &mut piece[..length]);
            let taken = streams.write(now, stream, &piece[..length]);
            self.written += taken as u64;
            if self.written == head.response {
                self.responses.pop_front();
                self.written = 0;
            } else if taken < length {
                return;
            }
        }
        if self.ends && !self.ended && !pause.is_zero() && !self.paused {
            self.paused = true;
            self.due = Some(now + pause);
        } else if self.ends && !self.ended {
            self.ended = true;
            streams.end(now, stream);
        }
    }
}
