//! XSTP sessions without gateways: an endpoint with a source and a sink of packets.
//!
//! For properties of the protocol alone: exactly-once delivery of packets, the load of the return
//! link, loss recovery. Delivery is immediate, as in the relay; each packet contains the offset of
//! its octets in the source.

use crate::invariants::SessionGuard;
use crate::{Endpoint, Meter, Pattern};
use std::collections::BTreeMap;
use units::{Instant, Span};
use xstp::Seq24;
use xstp::session::{Event, NewPacket, Session, UpperLayer};

/// Octets of the offset at the start of a packet.
const PLACE: usize = 8;

/// An endpoint with one session.
#[derive(Debug)]
pub struct SessionEndpoint {
    /// The session.
    pub session: Session,
    /// Its source and sink.
    pub data: PacketSourceSink,
    /// Segments rejected.
    pub bad: u64,
    /// Events of the session.
    pub events: Vec<(Instant, Event)>,
    end_at_source: bool,
    guard: SessionGuard,
}

/// The source and the sink of a [`SessionEndpoint`].
#[derive(Debug)]
pub struct PacketSourceSink {
    pattern: Pattern,
    /// Octets of the source, and octets of it that were sent.
    source: u64,
    taken: u64,
    /// Unacknowledged packets: handle to offset and length.
    unreleased: BTreeMap<u64, (u64, usize)>,
    next_handle: u64,
    /// Packets received beyond the in-order octets: offset to length.
    ahead: BTreeMap<u64, u64>,
    front: u64,
    arrived: Meter,
    now: Instant,
}

impl SessionEndpoint {
    /// Sends `source` octets of the pattern `tag` on `session`, and with `end` ends it when all are
    /// acknowledged. Both ends need the same `tag`.
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
    /// Octets received in order.
    pub fn in_order(&self) -> u64 {
        self.front
    }

    /// Octets received in order, over time.
    pub fn arrived(&self) -> &Meter {
        &self.arrived
    }

    /// Whether all octets of the source are sent and acknowledged.
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
        assert!(self.unreleased.remove(&handle).is_some(), "a sent packet is acknowledged once");
    }

    fn deliver(&mut self, _: Seq24, payload: &[u8]) {
        let (place, bytes) = payload.split_first_chunk().expect("a packet of the peer");
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
