//! Sessions without gateways: an XSTP session as an endpoint, with a source and a sink on it.
//!
//! For what concerns the protocol alone: whether every packet arrives once, what the return
//! channel carries, how a loss is repaired. Deliveries are immediate, as in the relay; each
//! packet says where in the source's bytes it belongs.

use crate::invariants::SessionGuard;
use crate::{Endpoint, Meter, Pattern};
use std::collections::BTreeMap;
use units::{Instant, Span};
use xstp::Seq24;
use xstp::session::{Event, NewPacket, Session, UpperLayer};

/// Bytes in a packet before the pattern: where it belongs.
const PLACE: usize = 8;

/// An endpoint with one session.
#[derive(Debug)]
pub struct SessionEndpoint {
    /// The session.
    pub session: Session,
    /// What it sends and gets.
    pub data: PacketSourceSink,
    /// Segments that were not accepted.
    pub bad: u64,
    /// What the session reported.
    pub events: Vec<(Instant, Event)>,
    end_at_source: bool,
    guard: SessionGuard,
}

/// The source and the sink of a [`SessionEndpoint`].
#[derive(Debug)]
pub struct PacketSourceSink {
    pattern: Pattern,
    /// Bytes that the source has; bytes of it that were taken.
    source: u64,
    taken: u64,
    /// What is sent and not released: number to place and length.
    unreleased: BTreeMap<u64, (u64, usize)>,
    next_handle: u64,
    /// What has arrived beyond the in-order front: place to length.
    ahead: BTreeMap<u64, u64>,
    front: u64,
    arrived: Meter,
    now: Instant,
}

impl SessionEndpoint {
    /// A session that sends `source` bytes of the pattern numbered `tag`, and ends when they are
    /// all acknowledged if `end` says so. Both ends must have the same `tag`.
    pub fn new(session: Session, tag: u64, source: u64, end: bool) -> Self {
        let data = PacketSourceSink {
            pattern: Pattern(tag),
            source,
            taken: 0,
            unreleased: BTreeMap::new(),
            next_handle: 0,
            ahead: BTreeMap::new(),
            front: 0,
            arrived: Meter::new(Span::from_millis(10)),
            now: Instant::ZERO,
        };
        let guard = SessionGuard::new(session.config());
        Self { session, data, bad: 0, events: Vec::new(), end_at_source: end, guard }
    }

    fn note(&mut self, now: Instant) {
        while let Some(event) = self.session.poll_event() {
            self.events.push((now, event));
        }
        if self.end_at_source && self.data.taken == self.data.source {
            self.session.end(now);
        }
    }
}

impl PacketSourceSink {
    /// Bytes that have arrived in order.
    pub fn in_order(&self) -> u64 {
        self.front
    }

    /// In-order bytes by the time of their coming.
    pub fn arrived(&self) -> &Meter {
        &self.arrived
    }

    /// Whether everything that the source has was taken and released.
    pub fn is_released(&self) -> bool {
        self.taken == self.source && self.unreleased.is_empty()
    }
}

impl UpperLayer for PacketSourceSink {
    fn has_new_data(&self) -> bool {
        self.taken < self.source
    }

    fn fill_new(&mut self, _: Seq24, room: &mut [u8]) -> Option<NewPacket> {
        let len = (self.source - self.taken).min(room.len().checked_sub(PLACE + 1)? as u64 + 1);
        if len == 0 {
            return None;
        }
        let handle = self.next_handle;
        self.next_handle += 1;
        self.unreleased.insert(handle, (self.taken, len as usize));
        self.taken += len;
        Some(NewPacket { len: self.fill_retransmission(Seq24::ZERO, handle, room), handle })
    }

    fn fill_retransmission(&mut self, _: Seq24, handle: u64, room: &mut [u8]) -> usize {
        let (place, len) = self.unreleased[&handle];
        room[..PLACE].copy_from_slice(&place.to_be_bytes());
        self.pattern.fill(place, &mut room[PLACE..PLACE + len]);
        PLACE + len
    }

    fn on_acknowledged(&mut self, _: Seq24, handle: u64) {
        assert!(self.unreleased.remove(&handle).is_some(), "released once, and what was sent");
    }

    fn deliver(&mut self, _: Seq24, payload: &[u8]) {
        let (place, bytes) = payload.split_first_chunk().expect("what the other end made");
        let place = u64::from_be_bytes(*place);
        assert_eq!(self.pattern.mismatch(place, bytes), None, "the bytes that were sent");
        let fresh = place >= self.front && self.ahead.insert(place, bytes.len() as u64).is_none();
        assert!(fresh, "each packet is delivered once");
        while let Some(len) = self.ahead.remove(&self.front) {
            self.front += len;
            self.arrived.count(self.now, len);
        }
    }
}

impl Endpoint for SessionEndpoint {
    fn handle_datagram(&mut self, now: Instant, datagram: &mut [u8]) {
        self.data.now = now;
        let handled = self.session.handle_segment(now, datagram, &mut self.data);
        self.bad += u64::from(handled.is_err());
        self.note(now);
    }

    fn poll_transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8])) {
        self.note(now);
        let mut out = [0; 1500];
        let room = self.session.max_segment();
        while let Some(len) = self.session.poll_transmit(now, &mut self.data, &mut out[..room]) {
            send(&out[..len]);
            self.guard.on_sent(now, len, &self.session);
        }
        self.note(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.session.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
        self.note(now);
    }
}

#[cfg(test)]
mod tests;
