//! Servers behind the hub.

use super::{HEAD, Head};
use crate::{Meter, StreamCheck, Streams};
use std::collections::{BTreeMap, VecDeque};
use units::{Instant, Span};

/// All servers behind one hub: they read requests and answer them.
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
    /// What is to be answered; how much of the first is written.
    responses: VecDeque<Head>,
    written: u64,
    /// It is to be ended when all is answered: the client has ended, or this server closes.
    ends: bool,
    ended: bool,
    /// Until when the program takes its time, and whether it did so before the end.
    due: Option<Instant>,
    paused: bool,
}

impl<S: Copy + Ord> Server<S> {
    /// Servers that nobody has asked anything yet.
    pub fn new() -> Self {
        let received = Meter::new(Span::from_millis(10));
        Self { connections: BTreeMap::new(), received, lost: 0, closes: false, pause: Span::ZERO }
    }

    /// The same, closing each connection with its first response, as HTTP/1.0 does.
    #[must_use]
    pub fn closing(self) -> Self {
        Self { closes: true, ..self }
    }

    /// The same, with a program that takes so long before it answers, and again before it ends a
    /// connection. Acknowledgements do not wait for it.
    #[must_use]
    pub fn pausing(self, pause: Span) -> Self {
        Self { pause, ..self }
    }

    /// When the program has taken its time.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.pause.is_zero() {
            return None;
        }
        self.connections.values().filter_map(|connection| connection.due).min()
    }

    /// Answers and ends what is due.
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

    /// Request bytes by the time of their coming.
    pub fn received(&self) -> &Meter {
        &self.received
    }

    /// Connections that were reset or lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// A stream was opened.
    pub fn opened(&mut self, stream: S) {
        self.connections.insert(stream, Connection::default());
    }

    /// A stream takes bytes again.
    pub fn writable(&mut self, now: Instant, stream: S, streams: &mut impl Streams<Id = S>) {
        if let Some(connection) = self.connections.get_mut(&stream) {
            connection.write(now, stream, self.pause, streams);
        }
    }

    /// A stream has bytes.
    ///
    /// # Panics
    /// When a byte is not the one that the client sent.
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

    /// The client will send no more on a stream.
    pub fn ended(&mut self, now: Instant, stream: S, streams: &mut impl Streams<Id = S>) {
        if let Some(connection) = self.connections.get_mut(&stream) {
            connection.ends = true;
            connection.write(now, stream, self.pause, streams);
        }
    }

    /// A stream is gone.
    pub fn gone(&mut self, stream: S) {
        if let Some(connection) = self.connections.remove(&stream) {
            self.lost += u64::from(!connection.ended);
        }
    }
}

impl<S: Copy + Ord> Server<S> {
    /// All streams are gone.
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
