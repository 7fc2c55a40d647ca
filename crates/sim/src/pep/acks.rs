//! Acknowledgements on a narrow return channel, and what is made of them behind it.
//!
//! * filtering: of those that wait only the latest goes (a [`Shaper`](super::Shaper) does it);
//! * [reconstruction](AckRebuilder): those that were filtered are made again;
//! * [spacing](AckSpacer): those that come together go on one after another.
//!
//! RFC 3135, sections 3.1.1 and 3.1.4; ITU-R S.1711 Annex 2, section 4.2. All of it is for TCP:
//! it reads its headers.

use super::{Element, Leaving, Way};
use crate::network::{Address, Packet, Payload};
use simtcp::{SackBlocks, Segment};
use std::collections::BTreeMap;
use units::{Instant, Span};

/// Connections of which an element keeps something; the one that was idle longest goes.
const FLOWS: usize = 4_096;

/// The number that `packet` acknowledges, when it does nothing else.
pub(super) fn pure_ack(packet: &Packet) -> Option<u64> {
    let segment = packet.segment()?;
    let plain = segment.span() == 0 && !segment.flags.reset && segment.options.probe.is_none();
    segment.acknowledgement.filter(|_| plain)
}

/// Whether `new` says all that the acknowledgement `old` does. One that repeats a number does
/// not: the sender counts them.
pub(super) fn supersedes(new: &Packet, old: &Packet) -> bool {
    (new.from, new.to) == (old.from, old.to)
        && matches!((pure_ack(new), pure_ack(old)), (Some(new), Some(old)) if new > old)
}

/// What is known of each connection that goes one way, bounded.
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

/// Makes the acknowledgements again that lie between two that came: one for each `stride` bytes.
/// A sender that counts acknowledgements opens its window as if none had been filtered. Put a
/// spacer behind it, or what it makes goes in a burst.
#[derive(Debug)]
pub struct AckRebuilder {
    stride: u64,
    most: u64,
    way: Way,
    /// The highest number acknowledged.
    flows: Flows<u64>,
    made: u64,
}

impl AckRebuilder {
    /// For acknowledgements that go `way`. `stride` is what the receiver acknowledges at a time,
    /// two segments; not more than `most` are made at once.
    ///
    /// # Panics
    /// When `stride` is zero.
    pub fn new(way: Way, stride: u64, most: u64) -> Self {
        assert!(stride > 0, "a stride of some bytes");
        Self { stride, most, way, flows: Flows::default(), made: 0 }
    }

    /// Acknowledgements made.
    pub fn made(&self) -> u64 {
        self.made
    }

    fn rebuild(&mut self, packet: &Packet, number: u64, last: u64, out: &mut Leaving) {
        let missing = ((number - last).div_ceil(self.stride) - 1).min(self.most);
        let Some(segment) = packet.segment() else { return };
        for left in (1..=missing).rev() {
            let mut made = *segment;
            made.acknowledgement = Some(number - left * self.stride);
            made.options.sack = SackBlocks::default();
            let packet = Packet { payload: like(&packet.payload, made), ..packet.clone() };
            out.push_back((self.way, packet));
            self.made += 1;
        }
    }
}

/// `segment`, carried as in `payload`.
pub(super) fn like(payload: &Payload, segment: Segment) -> Payload {
    match payload {
        Payload::Tcp(_) => Payload::Tcp(Box::new(segment)),
        Payload::Bytes(_) | Payload::Stream(..) => {
            Payload::Stream(Box::new(segment), Vec::new().into())
        }
    }
}

impl Element for AckRebuilder {
    fn pass(&mut self, now: Instant, way: Way, packet: Packet, out: &mut Leaving) {
        if way == self.way && packet.segment().is_some_and(|segment| segment.flags.syn) {
            // A new connection begins, whose numbers are none of the last one's.
            self.flows.forget(&packet);
        }
        let number = packet.segment().and_then(|segment| segment.acknowledgement);
        if let (true, Some(number)) = (way == self.way, number) {
            let last = self.flows.get(&packet);
            if let (Some(last), Some(_)) = (last, pure_ack(&packet))
                && number > last
            {
                self.rebuild(&packet, number, last, out);
            }
            self.flows.set(now, &packet, last.map_or(number, |last| last.max(number)));
        }
        out.push_back((way, packet));
    }
}

/// Lets the acknowledgements of each connection go on no closer together than a time, so that
/// they call forth no burst (RFC 3135, section 3.1.1). In their order; whatever else comes by
/// does not wait.
#[derive(Debug)]
pub struct AckSpacer {
    gap: Span,
    most: usize,
    way: Way,
    /// When the last one of a connection goes or went.
    flows: Flows<Instant>,
    waiting: BTreeMap<(Instant, u64), Packet>,
    order: u64,
}

impl AckSpacer {
    /// For acknowledgements that go `way`; with `most` waiting the oldest of its
    /// connection makes room for the next. `gap` is that at which the link's rate brings what one of them acknowledges.
    pub fn new(way: Way, gap: Span, most: usize) -> Self {
        let (flows, waiting) = (Flows::default(), BTreeMap::new());
        Self { gap, most, way, flows, waiting, order: 0 }
    }

    /// `packet` waits for the last turn of its connection, each that waits takes the turn before
    /// its own, and the oldest is returned: they stay in their order.
    fn take_turns(&mut self, mut packet: Packet) -> Packet {
        let flow = (packet.from, packet.to);
        let same = |waiting: &&mut Packet| (waiting.from, waiting.to) == flow;
        for waiting in self.waiting.values_mut().rev().filter(same) {
            core::mem::swap(waiting, &mut packet);
        }
        packet
    }
}

impl Element for AckSpacer {
    fn pass(&mut self, now: Instant, way: Way, packet: Packet, out: &mut Leaving) {
        if way != self.way || pure_ack(&packet).is_none() {
            out.push_back((way, packet));
            return;
        }
        let next = self.flows.get(&packet).map_or(now, |last| (last + self.gap).max(now));
        if next > now && self.waiting.len() >= self.most {
            out.push_back((way, self.take_turns(packet)));
            return;
        }
        if next <= now {
            self.flows.set(now, &packet, now);
            out.push_back((way, packet));
            return;
        }
        self.flows.set(now, &packet, next);
        self.order += 1;
        self.waiting.insert((next, self.order), packet);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(&(at, _), _)| at)
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Leaving) {
        while let Some(next) = self.waiting.first_entry() {
            if next.key().0 > now {
                return;
            }
            out.push_back((self.way, next.remove()));
        }
    }
}

#[cfg(test)]
mod tests;
