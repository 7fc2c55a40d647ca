//! A unidirectional transfer whose octets are verified.

use super::{Application, StreamEvent};
use crate::{Meter, Pattern, StreamCheck, Streams};
use std::collections::BTreeMap;
use units::{Instant, Span};

/// Octets of the pattern generated at a time.
const PIECE: usize = 1 << 14;

/// Opens a stream and sends a pattern on it.
#[derive(Debug)]
pub struct BulkSender<I> {
    start: Option<Instant>,
    bytes: u64,
    pattern: Pattern,
    stream: Option<I>,
    /// Octets generated and not yet accepted.
    piece: Vec<u8>,
    from: usize,
    made: u64,
    ended: bool,
    over: Option<Instant>,
}

impl<I: Copy + Ord> BulkSender<I> {
    /// Sends `bytes` octets of the pattern `tag` from `start` on, and ends the stream.
    pub fn new(start: Instant, bytes: u64, tag: u64) -> Self {
        Self {
            start: Some(start),
            bytes,
            pattern: Pattern(tag),
            stream: None,
            piece: Vec::new(),
            from: 0,
            made: 0,
            ended: false,
            over: None,
        }
    }

    /// Octets accepted by the transport.
    pub fn written(&self) -> u64 {
        self.made - (self.piece.len() - self.from) as u64
    }

    /// When the stream was closed: everything is acknowledged, or the stream was lost.
    pub fn over(&self) -> Option<Instant> {
        self.over
    }

    /// Its stream, once it is open.
    pub fn stream(&self) -> Option<I> {
        self.stream
    }

    fn write(&mut self, now: Instant, streams: &mut impl Streams<Id = I>) {
        let Some(stream) = self.stream else { return };
        if self.ended || self.over.is_some() {
            return;
        }
        loop {
            if self.from == self.piece.len() {
                let left = self.bytes - self.made;
                if left == 0 {
                    break;
                }
                self.piece.resize(left.min(PIECE as u64) as usize, 0);
                self.pattern.fill(self.made, &mut self.piece);
                self.made += self.piece.len() as u64;
                self.from = 0;
            }
            let taken = streams.write(now, stream, &self.piece[self.from..]);
            self.from += taken;
            if self.from < self.piece.len() {
                return;
            }
        }
        self.ended = true;
        streams.end(now, stream);
    }
}

impl<S: Streams> Application<S> for BulkSender<S::Id>
where
    S::Id: 'static,
{
    fn handle_event(&mut self, now: Instant, event: StreamEvent<S::Id>, streams: &mut S) {
        match event {
            StreamEvent::Writable(_) => self.write(now, streams),
            StreamEvent::Ended(stream) => streams.end(now, stream),
            StreamEvent::Gone(_) => self.over = self.over.or(Some(now)),
            StreamEvent::Opened(_) | StreamEvent::Readable(_) | StreamEvent::Broken(_) => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.start
    }

    fn handle_timeout(&mut self, now: Instant, streams: &mut S) {
        if self.start.take().is_some() {
            self.stream = Some(streams.open(now));
            self.write(now, streams);
        }
    }
}

/// Accepts all streams and verifies that each carries the pattern, in order and once.
#[derive(Debug)]
pub struct BulkReceiver<I> {
    pattern: Pattern,
    streams: BTreeMap<I, Incoming>,
    arrived: Meter,
}

/// A stream that is being received.
#[derive(Clone, Copy, Debug)]
pub struct Incoming {
    check: StreamCheck,
    /// When the first octet arrived.
    pub first: Option<Instant>,
    /// When the latest octet arrived.
    pub last: Option<Instant>,
    /// When the sender's end arrived.
    pub ended: Option<Instant>,
    /// When the stream was closed.
    pub gone: Option<Instant>,
}

impl Incoming {
    /// Octets received so far.
    pub fn received(&self) -> u64 {
        self.check.received()
    }
}

impl<I: Copy + Ord> BulkReceiver<I> {
    /// For streams that carry the pattern `tag`.
    pub fn new(tag: u64) -> Self {
        Self {
            pattern: Pattern(tag),
            streams: BTreeMap::new(),
            arrived: Meter::new(Span::from_millis(10)),
        }
    }

    /// Octets received on all streams, in order.
    pub fn received(&self) -> u64 {
        self.streams.values().map(Incoming::received).sum()
    }

    /// Octets received in order, over time.
    pub fn arrived(&self) -> &Meter {
        &self.arrived
    }

    /// All streams, in the order of their opening.
    pub fn streams(&self) -> impl Iterator<Item = &Incoming> {
        self.streams.values()
    }

    /// Whether there were streams and their senders have ended all of them.
    pub fn is_done(&self) -> bool {
        !self.streams.is_empty() && self.streams.values().all(|stream| stream.ended.is_some())
    }
}

impl<S: Streams> Application<S> for BulkReceiver<S::Id>
where
    S::Id: 'static,
{
    /// # Panics
    /// If octets differ from the pattern.
    fn handle_event(&mut self, now: Instant, event: StreamEvent<S::Id>, streams: &mut S) {
        match event {
            StreamEvent::Opened(stream) => {
                let check = StreamCheck::new(self.pattern);
                let incoming = Incoming { check, first: None, last: None, ended: None, gone: None };
                self.streams.insert(stream, incoming);
            }
            StreamEvent::Readable(stream) => {
                let Some(incoming) = self.streams.get_mut(&stream) else { return };
                loop {
                    let bytes = streams.peek(stream);
                    let count = bytes.len();
                    if count == 0 {
                        break;
                    }
                    incoming.check.take(bytes).expect("the sender's bytes, once and in order");
                    incoming.first.get_or_insert(now);
                    incoming.last = Some(now);
                    self.arrived.count(now, count as u64);
                    streams.consume(now, stream, count);
                }
            }
            StreamEvent::Ended(stream) => {
                if let Some(incoming) = self.streams.get_mut(&stream) {
                    incoming.ended = Some(now);
                }
                streams.end(now, stream);
            }
            StreamEvent::Gone(stream) => {
                if let Some(incoming) = self.streams.get_mut(&stream) {
                    incoming.gone = Some(now);
                }
            }
            StreamEvent::Writable(_) | StreamEvent::Broken(_) => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _: Instant, _: &mut S) {}
}
