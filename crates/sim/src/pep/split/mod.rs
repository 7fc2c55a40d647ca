//! Splitting: a gateway that terminates connections on one side and opens new ones on the other.
//!
//! ```text
//!   two segments    user ──TCP── [Split] ──TCP over the satellite── user
//!   three segments  user ──TCP── [Split] ──STP or TCP over the satellite── [Split] ──TCP── user
//! ```
//!
//! ITU-R S.1711 Annex 2, sections 3.1 and 3.2; RFC 3135, section 2.4; Henderson and Katz 1999,
//! section 6. Both neighbours see the address of the remote end (RFC 3135, section 2.5). Data from
//! one side is acknowledged to it immediately and buffered until the other side has acknowledged
//! it, also while the other side's connection is being opened.
//!
//! An end of stream is forwarded after all data before it, and acknowledged only when the other
//! side has acknowledged it, so a connection closes in order only if all its data has arrived
//! (Henderson and Katz, section 6.1). A reset is forwarded immediately.

use super::BufferUsage;
use super::buffer_usage::{Level, Levels};
use crate::host::{Interceptor, StreamEvent, carry};
use crate::network::{Node, NodeId, Outbox, Packet};
use std::collections::{BTreeMap, BTreeSet};
use units::Instant;

/// A gateway between the transports `left` and `right`. Streams may be opened from either side.
/// Packets that neither transport handles are forwarded.
pub struct Split<L: Interceptor, R: Interceptor> {
    /// The transport of the given nodes, and of the hosts that they address.
    pub left: L,
    /// The transport of all others.
    pub right: R,
    lefts: BTreeSet<NodeId>,
    pairs: BTreeMap<L::Id, Pair<R::Id>>,
    by_right: BTreeMap<R::Id, L::Id>,
    /// Pairs with an end that is not acknowledged.
    ending: BTreeSet<L::Id>,
    passing: Vec<Packet>,
    levels: Levels,
}

#[derive(Clone, Copy, Debug)]
struct Pair<I> {
    right: I,
    /// For left and right: the peer has ended; its end is forwarded; its end is acknowledged.
    ended: [bool; 2],
    passed: [bool; 2],
    confirmed: [bool; 2],
    gone: [bool; 2],
    /// Octets buffered; `None` when no more will be.
    level: Option<Level>,
}

impl<L: Interceptor, R: Interceptor> Split<L, R> {
    /// A gateway with the nodes `lefts` on its left side.
    pub fn new(left: L, right: R, lefts: impl IntoIterator<Item = NodeId>) -> Self {
        Self {
            left,
            right,
            lefts: lefts.into_iter().collect(),
            pairs: BTreeMap::new(),
            by_right: BTreeMap::new(),
            ending: BTreeSet::new(),
            passing: Vec::new(),
            levels: Levels::default(),
        }
    }

    /// Number of connections that it carries, those in their final linger time included.
    pub fn carried(&self) -> usize {
        self.pairs.len()
    }

    /// The memory used by connections so far.
    pub fn usage(&self) -> BufferUsage {
        self.levels.usage(self.pairs.values().filter_map(|pair| pair.level.as_ref()))
    }

    fn events(&mut self, now: Instant) {
        loop {
            if let Some(event) = self.left.poll_event() {
                self.on_left(now, event);
            } else if let Some(event) = self.right.poll_event() {
                self.on_right(now, event);
            } else if !self.confirm(now) {
                return;
            }
        }
    }

    fn on_left(&mut self, now: Instant, event: StreamEvent<L::Id>) {
        match event {
            StreamEvent::Opened(left) => {
                let Some(ends) = self.left.ends(left) else { return };
                let right = self.right.open_between(now, ends);
                self.join(now, left, right);
            }
            StreamEvent::Readable(left) => self.carry_right(now, left),
            StreamEvent::Writable(left) => self.carry_left(now, left),
            StreamEvent::Ended(left) => {
                self.change(now, left, |pair| pair.ended[0] = true);
                self.carry_right(now, left);
            }
            StreamEvent::Broken(left) => {
                if let Some(pair) = self.pairs.get(&left) {
                    self.right.reset(now, pair.right);
                }
            }
            StreamEvent::Gone(left) => self.change(now, left, |pair| pair.gone[0] = true),
        }
    }

    fn on_right(&mut self, now: Instant, event: StreamEvent<R::Id>) {
        let left = |right| self.by_right.get(&right).copied();
        match event {
            StreamEvent::Opened(right) => {
                let Some(ends) = self.right.ends(right) else { return };
                let left = self.left.open_between(now, ends);
                self.join(now, left, right);
            }
            StreamEvent::Readable(right) => {
                if let Some(left) = left(right) {
                    self.carry_left(now, left);
                }
            }
            StreamEvent::Writable(right) => {
                if let Some(left) = left(right) {
                    self.carry_right(now, left);
                }
            }
            StreamEvent::Ended(right) => {
                if let Some(left) = left(right) {
                    self.change(now, left, |pair| pair.ended[1] = true);
                    self.carry_left(now, left);
                }
            }
            StreamEvent::Broken(right) => {
                if let Some(left) = left(right) {
                    self.left.reset(now, left);
                }
            }
            StreamEvent::Gone(right) => {
                if let Some(left) = left(right) {
                    self.change(now, left, |pair| pair.gone[1] = true);
                }
            }
        }
    }

    fn join(&mut self, now: Instant, left: L::Id, right: R::Id) {
        let [ended, passed, confirmed, gone] = [[false; 2]; 4];
        let level = Some(Level::new(now));
        self.pairs.insert(left, Pair { right, ended, passed, confirmed, gone, level });
        self.by_right.insert(right, left);
    }

    /// Changes a pair, and discards it when both its streams are closed.
    fn change(&mut self, now: Instant, left: L::Id, change: impl FnOnce(&mut Pair<R::Id>)) {
        let Some(pair) = self.pairs.get_mut(&left) else { return };
        change(pair);
        if pair.gone == [true; 2] {
            if let Some(level) = &mut pair.level {
                self.levels.end(now, level);
            }
            self.by_right.remove(&pair.right);
            self.ending.remove(&left);
            self.pairs.remove(&left);
        }
    }

    fn carry_right(&mut self, now: Instant, left: L::Id) {
        let Some(pair) = self.pairs.get_mut(&left) else { return };
        let ends = pair.ended[0] && !pair.passed[0];
        if carry(now, &mut self.left, left, &mut self.right, pair.right, ends) {
            pair.passed[0] = true;
            self.ending.insert(left);
        }
        self.update_level(now, left);
    }

    fn carry_left(&mut self, now: Instant, left: L::Id) {
        let Some(pair) = self.pairs.get_mut(&left) else { return };
        let ends = pair.ended[1] && !pair.passed[1];
        if carry(now, &mut self.right, pair.right, &mut self.left, left, ends) {
            pair.passed[1] = true;
            self.ending.insert(left);
        }
        self.update_level(now, left);
    }

    /// Acknowledges ends that the other side has acknowledged; returns whether there were any.
    fn confirm(&mut self, now: Instant) -> bool {
        let mut any = false;
        let (left, right) = (&mut self.left, &mut self.right);
        self.ending.retain(|&id| {
            let Some(pair) = self.pairs.get_mut(&id) else { return false };
            if pair.passed[0] && !pair.confirmed[0] && right.is_confirmed(pair.right) {
                pair.confirmed[0] = true;
                left.confirm(now, id);
                any = true;
            }
            if pair.passed[1] && !pair.confirmed[1] && left.is_confirmed(id) {
                pair.confirmed[1] = true;
                right.confirm(now, pair.right);
                any = true;
            }
            pair.passed != pair.confirmed
        });
        any
    }

    /// Records the octets buffered for a connection.
    fn update_level(&mut self, now: Instant, left: L::Id) {
        let Some(pair) = self.pairs.get_mut(&left) else { return };
        let held = self.left.held(left) + self.right.held(pair.right);
        let Some(level) = &mut pair.level else { return };
        if pair.ended == [true; 2] && held == 0 {
            self.levels.end(now, level);
            pair.level = None;
        } else {
            self.levels.set(now, level, held);
        }
    }

    /// Handles the effects of a packet of a known stream, given by its left identifier.
    fn after(&mut self, now: Instant, left: Option<L::Id>) {
        self.events(now);
        if let Some(left) = left {
            self.update_level(now, left);
        }
    }
}

impl<L: Interceptor, R: Interceptor> Node for Split<L, R> {
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let from_left = self.lefts.contains(&packet.from.node);
        if self.left.wants(packet) || from_left && self.left.opens(packet) {
            self.left.handle_packet(now, packet);
            let stream = self.left.stream_of(packet);
            self.after(now, stream);
        } else if self.right.wants(packet) || !from_left && self.right.opens(packet) {
            self.right.handle_packet(now, packet);
            let stream = self.right.stream_of(packet);
            let stream = stream.and_then(|right| self.by_right.get(&right).copied());
            self.after(now, stream);
        } else {
            self.passing.push(packet.clone());
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        self.passing.drain(..).for_each(|packet| out.forward_on(packet));
        self.left.poll_transmit(now, out);
        self.right.poll_transmit(now, out);
        self.events(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.left.poll_timeout(), self.right.poll_timeout()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.left.handle_timeout(now);
        self.right.handle_timeout(now);
        self.events(now);
    }
}

#[cfg(test)]
mod tests;
