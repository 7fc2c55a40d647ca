//! Acknowledgements on a low-rate return link: filtering, reconstruction and spacing.
//!
//! * filtering: of the queued acknowledgements a [`Shaper`](super::Shaper) sends only the latest;
//! * [reconstruction](AckRebuilder): filtered acknowledgements are regenerated;
//! * [spacing](AckSpacer): acknowledgements that arrive in a burst are spread over time.
//!
//! RFC 3135, sections 3.1.1 and 3.1.4; ITU-R S.1711 Annex 2, section 4.2. These elements read TCP
//! headers and apply to TCP only.

use super::{Element, Output, Toward};
use crate::network::{Address, Packet, Payload};
use simtcp::{SackBlocks, Segment};
use std::collections::BTreeMap;
use units::{Instant, Span};

/// Maximum number of connections with state in an element; the least recently used is discarded.
const FLOWS: usize = 4_096;

/// The acknowledgement number of `packet` if it is a pure acknowledgement.
pub(super) fn pure_ack(packet: &Packet) -> Option<u64> {
    let segment = packet.segment()?;
    let plain = segment.span() == 0 && !segment.flags.reset && segment.options.probe.is_none();
    segment.acknowledgement.filter(|_| plain)
}

/// Whether `new` makes the acknowledgement `old` redundant. A duplicate does not: the sender counts
/// duplicates.
pub(super) fn supersedes(new: &Packet, old: &Packet) -> bool {
    (new.from, new.to) == (old.from, old.to)
        && matches!((pure_ack(new), pure_ack(old)), (Some(new), Some(old)) if new > old)
}

/// Bounded state of the connections of one direction.
#[derive(Debug)]
struct Flows<T> {
    all: BTreeMap<(Address, Address), (Instant, T)>,
}

impl<T> Default for Flows<T> {
    fn default() -> Self {
        Self { all: BTreeMap::new() }
    }
}

impl<T: Copy> Flows<T> {
    fn get(&self, packet: &Packet) -> Option<T> {
        self.all.get(&(packet.from, packet.to)).map(|(_, flow)| *flow)
    }

    fn forget(&mut self, packet: &Packet) {
        self.all.remove(&(packet.from, packet.to));
    }

    fn set(&mut self, now: Instant, packet: &Packet, flow: T) {
        let key = (packet.from, packet.to);
        if self.all.len() == FLOWS && !self.all.contains_key(&key) {
            let oldest = self.all.iter().min_by_key(|(_, (since, _))| *since);
            let oldest = oldest.map(|(&key, _)| key);
            oldest.and_then(|key| self.all.remove(&key));
        }
        self.all.insert(key, (now, flow));
    }
}

/// Regenerates acknowledgements between two received ones, one per `stride` octets, so that a
/// sender that counts acknowledgements opens its window as if none had been filtered. Without a
/// spacer behind it they are sent in a burst.
#[derive(Debug)]
pub struct AckRebuilder {
    stride: u64,
    most: u64,
    toward: Toward,
    /// The highest number acknowledged.
    flows: Flows<u64>,
    made: u64,
}

impl AckRebuilder {
    /// For acknowledgements to the side `toward`. `stride` is the number of octets per
    /// acknowledgement of the receiver, two segments; at most `most` are generated at a time.
    ///
    /// # Panics
    /// If `stride` is zero.
    pub fn new(toward: Toward, stride: u64, most: u64) -> Self {
        assert!(stride > 0, "a stride of some bytes");
        Self { stride, most, toward, flows: Flows::default(), made: 0 }
    }

    /// Number of acknowledgements generated.
    pub fn made(&self) -> u64 {
        self.made
    }

    fn rebuild(&mut self, packet: &Packet, number: u64, last: u64, out: &mut Output) {
        let missing = ((number - last).div_ceil(self.stride) - 1).min(self.most);
        let Some(segment) = packet.segment() else { return };
        for left in (1..=missing).rev() {
            let mut made = *segment;
            made.acknowledgement = Some(number - left * self.stride);
            made.options.sack = SackBlocks::default();
            let packet = Packet { payload: like(&packet.payload, made), ..packet.clone() };
            out.push_back((self.toward, packet));
            self.made += 1;
        }
    }
}

/// `segment` in the same kind of payload as `payload`.
pub(super) fn like(payload: &Payload, segment: Segment) -> Payload {
    match payload {
        Payload::Tcp(_) => Payload::Tcp(Box::new(segment)),
        Payload::Bytes(_) | Payload::Stream(..) => {
            Payload::Stream(Box::new(segment), Vec::new().into())
        }
    }
}

impl Element for AckRebuilder {
    fn pass(&mut self, now: Instant, toward: Toward, packet: Packet, out: &mut Output) {
        if toward == self.toward && packet.segment().is_some_and(|segment| segment.flags.syn) {
            // A new connection: the numbers of the previous one do not apply.
            self.flows.forget(&packet);
        }
        let number = packet.segment().and_then(|segment| segment.acknowledgement);
        if let (true, Some(number)) = (toward == self.toward, number) {
            let last = self.flows.get(&packet);
            if let (Some(last), Some(_)) = (last, pure_ack(&packet))
                && number > last
            {
                self.rebuild(&packet, number, last, out);
            }
            self.flows.set(now, &packet, last.map_or(number, |last| last.max(number)));
        }
        out.push_back((toward, packet));
    }
}

/// Forwards the acknowledgements of each connection in order at a minimum interval, so that they
/// cause no bursts (RFC 3135, section 3.1.1). Other packets are not delayed.
#[derive(Debug)]
pub struct AckSpacer {
    gap: Span,
    most: usize,
    toward: Toward,
    /// When the last acknowledgement of a connection is or was sent.
    flows: Flows<Instant>,
    waiting: BTreeMap<(Instant, u64), Packet>,
    order: u64,
}

impl AckSpacer {
    /// For acknowledgements to the side `toward`. With `most` queued the oldest of the connection
    /// is sent to make room. `gap` is the time in which the link transmits the data of one
    /// acknowledgement.
    pub fn new(toward: Toward, gap: Span, most: usize) -> Self {
        let (flows, waiting) = (Flows::default(), BTreeMap::new());
        Self { gap, most, toward, flows, waiting, order: 0 }
    }

    /// Assigns the last slot of its connection to `packet`, moves each queued one to the slot
    /// before its own, and returns the oldest, so that the order is kept.
    fn take_slots(&mut self, mut packet: Packet) -> Packet {
        let flow = (packet.from, packet.to);
        let same = |waiting: &&mut Packet| (waiting.from, waiting.to) == flow;
        for waiting in self.waiting.values_mut().rev().filter(same) {
            core::mem::swap(waiting, &mut packet);
        }
        packet
    }
}

impl Element for AckSpacer {
    fn pass(&mut self, now: Instant, toward: Toward, packet: Packet, out: &mut Output) {
        if toward != self.toward || pure_ack(&packet).is_none() {
            out.push_back((toward, packet));
            return;
        }
        let next = self.flows.get(&packet).map_or(now, |last| (last + self.gap).max(now));
        if next > now && self.waiting.len() >= self.most {
            out.push_back((toward, self.take_slots(packet)));
            return;
        }
        if next <= now {
            self.flows.set(now, &packet, now);
            out.push_back((toward, packet));
            return;
        }
        self.flows.set(now, &packet, next);
        self.order += 1;
        self.waiting.insert((next, self.order), packet);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(&(at, _), _)| at)
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Output) {
        while let Some(next) = self.waiting.first_entry() {
            if next.key().0 > now {
                return;
            }
            out.push_back((self.toward, next.remove()));
        }
    }
}

#[cfg(test)]
mod tests;
