//! Spoofing: early acknowledgements for the sender, the receiver's own kept back, and what is
//! lost behind the gateway retransmitted by the gateway.
//!
//! ```text
//!   sender ── data ──▶ [Spoofer] ── data, again where lost ──▶ receiver
//!          ◀─ early ──          ◀── the true ones end here ───
//! ```
//!
//! ITU-R S.1711 Annex 2, section 4.1; RFC 3135, sections 3.1.2 and 3.1.3; Henderson and Katz
//! 1999, section 6.1. The connection stays one: numbers, windows' scales and options are those
//! of its ends, and the opening goes from end to end. So does the end: a FIN is never
//! acknowledged early, and its true acknowledgement passes.
//!
//! What is under way behind the gateway is bounded by the receiver's window and by the gateway's
//! own, not by a congestion window: it is for a link that belongs to the gateway. Its rate is
//! for a [`Shaper`](super::Shaper) behind it.

mod connection;

use super::acks::{like, pure_ack};
use super::{Element, Leaving, Way};
use crate::network::{Address, Packet};
use connection::Connection;
use simtcp::Segment;
use std::collections::BTreeMap;
use units::{Instant, Span};

/// How a [`Spoofer`] behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoofConfig {
    /// Bytes of each connection that are kept until the receiver has them: the window that the
    /// sender is told.
    pub memory: u64,
    /// Bytes of each connection that may be under way to the receiver: one or two
    /// bandwidth-delay products.
    pub window: u64,
    /// The first retransmission timeout, and the least.
    pub timeout: Span,
}

/// Acknowledges early what goes one way.
#[derive(Debug)]
pub struct Spoofer {
    config: SpoofConfig,
    way: Way,
    connections: BTreeMap<Flow, Connection>,
    counts: Spoofed,
}

/// A connection: who sends the data, and to whom.
type Flow = (Address, Address);

/// What a [`Spoofer`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spoofed {
    /// Acknowledgements made.
    pub early: u64,
    /// Acknowledgements of receivers that were kept back.
    pub suppressed: u64,
    /// Segments that were retransmitted from here.
    pub again: u64,
    /// Segments for which there was no memory.
    pub dropped: u64,
    /// The most bytes kept for one connection.
    pub most_kept: u64,
}

/// Connections at once, at most; more pass by as they are.
const CONNECTIONS: usize = 4_096;

impl Spoofer {
    /// Acknowledges data that goes `way`.
    pub fn new(config: SpoofConfig, way: Way) -> Self {
        Self { config, way, connections: BTreeMap::new(), counts: Spoofed::default() }
    }

    /// What it did so far.
    pub fn counts(&self) -> Spoofed {
        self.counts
    }

    /// Connections that it knows.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// A packet of the sender.
    fn forth(&mut self, now: Instant, packet: Packet, out: &mut Leaving) {
        let flow = (packet.from, packet.to);
        let Some(segment) = packet.segment().copied() else {
            out.push_back((self.way, packet));
            return;
        };
        if segment.flags.reset {
            self.connections.remove(&flow);
        } else if segment.flags.syn
            && let Some(connection) = self.opening(flow, 0, &segment)
        {
            connection.begins(&segment);
        }
        let connection = self.connections.get_mut(&flow);
        let Some(connection) = connection.filter(|it| it.is_open() && !segment.flags.syn) else {
            out.push_back((self.way, packet));
            return;
        };
        if segment.span() == 0 {
            let mut packet = packet;
            packet.change_segment(|segment| connection.acknowledges(segment));
            out.push_back((self.way, packet));
        } else {
            let kept = connection.keep(packet.clone(), &segment);
            self.counts.dropped += u64::from(!kept);
            self.counts.most_kept = self.counts.most_kept.max(connection.kept());
            if let Some(early) = connection.early(&segment) {
                let ack = Packet {
                    from: packet.to,
                    to: packet.from,
                    payload: like(&packet.payload, early),
                    ..packet
                };
                self.counts.early += 1;
                out.push_back((self.way.back(), ack));
            }
        }
        self.send(now, flow, out);
    }

    /// The connection that `syn` of the sender (0) or the receiver (1) opens or answers. One that
    /// brings data with its SYN passes by: it is over soon. So does a SYN that comes again, late or
    /// twice: what it opened goes on.
    fn opening(&mut self, flow: Flow, who: usize, syn: &Segment) -> Option<&mut Connection> {
        if self.connections.get(&flow).is_some_and(|known| known.knows(who, syn)) {
            return None;
        }
        if syn.acknowledgement.is_none() || syn.span() > 1 {
            self.connections.remove(&flow);
            if syn.span() > 1 || self.connections.len() == CONNECTIONS {
                return None;
            }
            self.connections.insert(flow, Connection::new(&self.config));
        }
        self.connections.get_mut(&flow)
    }

    /// A packet of the receiver.
    fn back(&mut self, now: Instant, mut packet: Packet, out: &mut Leaving) {
        let (flow, back) = ((packet.to, packet.from), self.way.back());
        let Some(segment) = packet.segment().copied() else {
            out.push_back((back, packet));
            return;
        };
        if segment.flags.reset {
            self.connections.remove(&flow);
        } else if segment.flags.syn
            && let Some(connection) = self.opening(flow, 1, &segment)
        {
            connection.opened(&segment);
        }
        let connection = self.connections.get_mut(&flow);
        let Some(connection) = connection.filter(|it| it.is_open() && !segment.flags.syn) else {
            out.push_back((back, packet));
            return;
        };
        connection.acknowledged(now, &segment);
        let of_the_end = connection.end_is_acknowledged();
        if pure_ack(&packet).is_none() || of_the_end {
            packet.change_segment(|segment| connection.answers(segment));
            out.push_back((back, packet));
        } else {
            self.counts.suppressed += 1;
            if let Some(update) = connection.update() {
                self.counts.early += 1;
                let payload = like(&packet.payload, update);
                out.push_back((back, Packet { payload, ..packet }));
            }
        }
        self.send(now, flow, out);
    }

    /// Resets both ends of a connection whose receiver has been silent for too long.
    fn give_up(&mut self, flow: Flow, out: &mut Leaving) -> bool {
        let given = self.connections.get(&flow).and_then(Connection::gives_up);
        let Some((packet, [forth, back])) = given else { return false };
        let payload = like(&packet.payload, back);
        let answer = Packet { from: packet.to, to: packet.from, payload, ..packet.clone() };
        out.push_back((self.way, Packet { payload: like(&packet.payload, forth), ..packet }));
        out.push_back((self.way.back(), answer));
        self.connections.remove(&flow);
        true
    }

    /// Sends what may go to the receiver.
    fn send(&mut self, now: Instant, flow: Flow, out: &mut Leaving) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        while let Some((packet, again)) = connection.next(now) {
            self.counts.again += u64::from(again);
            out.push_back((self.way, packet));
        }
        if connection.is_over() {
            self.connections.remove(&flow);
        }
    }
}

impl Element for Spoofer {
    fn pass(&mut self, now: Instant, way: Way, packet: Packet, out: &mut Leaving) {
        if way == self.way {
            self.forth(now, packet, out);
        } else {
            self.back(now, packet, out);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connections.values().filter_map(Connection::timer).min()
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Leaving) {
        let due = |(&flow, connection): (&Flow, &Connection)| {
            connection.timer().filter(|&at| at <= now).map(|_| flow)
        };
        let flows: Vec<Flow> = self.connections.iter().filter_map(due).collect();
        for flow in flows {
            if let Some(connection) = self.connections.get_mut(&flow) {
                connection.time_out(now);
            }
            if !self.give_up(flow, out) {
                self.send(now, flow, out);
            }
        }
    }
}

#[cfg(test)]
mod tests;
