//! Elements on a path that handle packets one by one.

use crate::network::{Node, NodeId, Outbox, Packet};
use std::collections::{BTreeSet, VecDeque};
use units::Instant;

/// The side to which a packet travels through an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Toward {
    /// To the nodes on the left.
    Left,
    /// To all others.
    Right,
}

impl Toward {
    /// The opposite side.
    #[must_use]
    pub fn reverse(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// Packets that leave an element, each with its side.
pub type Output = VecDeque<(Toward, Packet)>;

/// Handles packets on a path: forwards, delays, drops or generates them.
pub trait Element: 'static {
    /// Handles a packet; packets that leave immediately are added to `out`.
    fn pass(&mut self, now: Instant, toward: Toward, packet: Packet, out: &mut Output);
    /// Returns when to call [`Element::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// Handles expired timers; packets that leave are added to `out`.
    fn handle_timeout(&mut self, _: Instant, _: &mut Output) {}
}

/// Two elements in a row: the first is on the left. Longer rows are nested pairs.
impl<A: Element, B: Element> Element for (A, B) {
    fn pass(&mut self, now: Instant, toward: Toward, packet: Packet, out: &mut Output) {
        let mut work = Between::default();
        match toward {
            Toward::Right => self.0.pass(now, toward, packet, &mut work.first),
            Toward::Left => self.1.pass(now, toward, packet, &mut work.second),
        }
        work.settle(self, now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.0.poll_timeout(), self.1.poll_timeout()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Output) {
        let mut work = Between::default();
        self.0.handle_timeout(now, &mut work.first);
        self.1.handle_timeout(now, &mut work.second);
        work.settle(self, now, out);
    }
}

/// Packets between the two elements of a pair.
#[derive(Default)]
struct Between {
    first: Output,
    second: Output,
}

impl Between {
    fn settle<A: Element, B: Element>(
        &mut self,
        pair: &mut (A, B),
        now: Instant,
        out: &mut Output,
    ) {
        loop {
            if let Some((toward, packet)) = self.first.pop_front() {
                match toward {
                    Toward::Left => out.push_back((toward, packet)),
                    Toward::Right => pair.1.pass(now, toward, packet, &mut self.second),
                }
            } else if let Some((toward, packet)) = self.second.pop_front() {
                match toward {
                    Toward::Right => out.push_back((toward, packet)),
                    Toward::Left => pair.0.pass(now, toward, packet, &mut self.first),
                }
            } else {
                return;
            }
        }
    }
}

/// A node on the path that passes every packet through an element.
#[derive(Debug)]
pub struct Inline<E> {
    /// The element.
    pub element: E,
    lefts: BTreeSet<NodeId>,
    leaving: Output,
}

impl<E: Element> Inline<E> {
    /// `element` with the nodes `lefts` on its left side, and all others on its right.
    pub fn new(element: E, lefts: impl IntoIterator<Item = NodeId>) -> Self {
        Self { element, lefts: lefts.into_iter().collect(), leaving: Output::new() }
    }
}

impl<E: Element> Node for Inline<E> {
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let toward =
            if self.lefts.contains(&packet.to.node) { Toward::Left } else { Toward::Right };
        self.element.pass(now, toward, packet.take(), &mut self.leaving);
    }

    fn poll_transmit(&mut self, _: Instant, out: &mut Outbox<'_>) {
        self.leaving.drain(..).for_each(|(_, packet)| out.forward_on(packet));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.element.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.element.poll_timeout().is_some_and(|at| at <= now) {
            self.element.handle_timeout(now, &mut self.leaving);
        }
    }
}
