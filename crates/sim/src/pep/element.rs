//! What stands in a way and handles the packets that come by, one by one.

use crate::network::{Node, NodeId, Outbox, Packet};
use std::collections::{BTreeSet, VecDeque};
use units::Instant;

/// Which way a packet goes through an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// To the nodes on the left.
    Left,
    /// To all others.
    Right,
}

impl Way {
    /// The other one.
    #[must_use]
    pub fn back(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// Packets that leave an element, each with its way.
pub type Leaving = VecDeque<(Way, Packet)>;

/// Handles packets on their way: lets them pass, keeps them, drops them, or makes new ones.
pub trait Element: 'static {
    /// A packet comes by; what leaves at once goes to `out`.
    fn pass(&mut self, now: Instant, way: Way, packet: Packet, out: &mut Leaving);
    /// When to call [`Element::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// Does what is due at `now`; what leaves goes to `out`.
    fn handle_timeout(&mut self, _: Instant, _: &mut Leaving) {}
}

/// Two elements in a row: the first stands on the left. More are pairs of pairs.
impl<A: Element, B: Element> Element for (A, B) {
    fn pass(&mut self, now: Instant, way: Way, packet: Packet, out: &mut Leaving) {
        let mut work = Between::default();
        match way {
            Way::Right => self.0.pass(now, way, packet, &mut work.first),
            Way::Left => self.1.pass(now, way, packet, &mut work.second),
        }
        work.settle(self, now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.0.poll_timeout(), self.1.poll_timeout()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Leaving) {
        let mut work = Between::default();
        self.0.handle_timeout(now, &mut work.first);
        self.1.handle_timeout(now, &mut work.second);
        work.settle(self, now, out);
    }
}

/// What has left each of two elements and is not yet out of the pair.
#[derive(Default)]
struct Between {
    first: Leaving,
    second: Leaving,
}

impl Between {
    fn settle<A: Element, B: Element>(
        &mut self,
        pair: &mut (A, B),
        now: Instant,
        out: &mut Leaving,
    ) {
        loop {
            if let Some((way, packet)) = self.first.pop_front() {
                match way {
                    Way::Left => out.push_back((way, packet)),
                    Way::Right => pair.1.pass(now, way, packet, &mut self.second),
                }
            } else if let Some((way, packet)) = self.second.pop_front() {
                match way {
                    Way::Right => out.push_back((way, packet)),
                    Way::Left => pair.0.pass(now, way, packet, &mut self.first),
                }
            } else {
                return;
            }
        }
    }
}

/// A node through which ways lead and every packet goes through an element.
#[derive(Debug)]
pub struct Inline<E> {
    /// The element.
    pub element: E,
    lefts: BTreeSet<NodeId>,
    leaving: Leaving,
}

impl<E: Element> Inline<E> {
    /// `element` with the nodes `lefts` on its left side, and all others on its right.
    pub fn new(element: E, lefts: impl IntoIterator<Item = NodeId>) -> Self {
        Self { element, lefts: lefts.into_iter().collect(), leaving: Leaving::new() }
    }
}

impl<E: Element> Node for Inline<E> {
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let way = if self.lefts.contains(&packet.to.node) { Way::Left } else { Way::Right };
        self.element.pass(now, way, packet.take(), &mut self.leaving);
    }

    fn poll_transmit(&mut self, _: Instant, out: &mut Outbox<'_>) {
        self.leaving.drain(..).for_each(|(_, packet)| out.pass_on(packet));
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
