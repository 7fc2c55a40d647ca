//! A connection with the octets of its segments.

use simtcp::{Endpoint, Segment, State};
use std::collections::{BTreeMap, VecDeque};
use units::Instant;

/// A TCP connection with real octets.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) endpoint: Endpoint,
    /// Octets written and not acknowledged, from `base` on.
    sent: VecDeque<u8>,
    base: u64,
    /// Out-of-order octets, by offset.
    ahead: BTreeMap<u64, Vec<u8>>,
    ahead_bytes: u64,
    /// Octets in order; those up to `taken` are consumed.
    ready: Vec<u8>,
    taken: usize,
    /// Offset of the end of `ready` in the peer's stream.
    front: u64,
    /// It accepted fewer octets than offered.
    blocked: bool,
}

impl Stream {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            sent: VecDeque::new(),
            base: 0,
            ahead: BTreeMap::new(),
            ahead_bytes: 0,
            ready: Vec::new(),
            taken: 0,
            front: 0,
            blocked: false,
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = self.endpoint.write(bytes.len() as u64) as usize;
        self.sent.extend(&bytes[..taken]);
        self.blocked = taken < bytes.len();
        taken
    }

    /// Whether it accepts octets again after it did not; true once.
    pub(super) fn unblocks(&mut self) -> bool {
        let unblocks = self.blocked && self.endpoint.room() > 0;
        self.blocked &= !unblocks;
        unblocks
    }

    /// Octets in order that are not consumed.
    pub(super) fn peek(&self) -> &[u8] {
        &self.ready[self.taken..]
    }

    /// Octets of the peer's stream that were consumed.
    pub(super) fn consumed(&self) -> u64 {
        self.front - self.peek().len() as u64
    }

    /// Octets buffered here, of both directions.
    pub(super) fn held(&self) -> u64 {
        self.sent.len() as u64 + self.peek().len() as u64 + self.ahead_bytes
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.taken += count;
        assert!(self.taken <= self.ready.len(), "no more than there is");
        if self.taken == self.ready.len() {
            self.ready.clear();
            self.taken = 0;
        } else if self.taken >= self.ready.len() / 2 {
            self.ready.drain(..self.taken);
            self.taken = 0;
        }
        // The window opens as the application reads.
        self.endpoint.read(count as u64);
    }

    /// Handles a segment with its octets.
    pub(super) fn handle(&mut self, now: Instant, segment: &Segment, bytes: &[u8]) {
        let place = segment.payload.offset;
        let fresh = place + bytes.len() as u64 > self.front && !bytes.is_empty();
        let known = self.ahead.get(&place).is_some_and(|old| old.len() >= bytes.len());
        self.endpoint.handle_segment(now, segment);
        if fresh && !known && self.endpoint.state() != State::Closed {
            let old = self.ahead.insert(place, bytes.to_vec());
            self.ahead_bytes += bytes.len() as u64 - old.map_or(0, |old| old.len() as u64);
        }
        let end = self.consumed() + self.endpoint.readable();
        while self.front < end {
            let (place, bytes) = self.ahead.pop_first().expect("what the endpoint accepted");
            self.ahead_bytes -= bytes.len() as u64;
            let skip = (self.front - place) as usize;
            if skip < bytes.len() {
                self.ready.extend_from_slice(&bytes[skip..]);
                self.front = place + bytes.len() as u64;
            }
        }
    }

    /// Copies the octets of `segment`, which the endpoint sends, into `out`.
    pub(super) fn fill(&self, segment: &Segment, out: &mut [u8]) {
        if out.is_empty() {
            return;
        }
        let start = (segment.payload.offset - self.base) as usize;
        let (first, second) = self.sent.as_slices();
        let from_first = first.len().saturating_sub(start).min(out.len());
        let (head, tail) = out.split_at_mut(from_first);
        if from_first > 0 {
            head.copy_from_slice(&first[start..start + from_first]);
        }
        let start = (start + from_first) - first.len().min(start + from_first);
        tail.copy_from_slice(&second[start..start + tail.len()]);
    }

    /// Discards acknowledged octets.
    pub(super) fn release(&mut self) {
        let acknowledged = self.endpoint.acknowledged();
        self.sent.drain(..(acknowledged - self.base) as usize);
        self.base = acknowledged;
    }
}
