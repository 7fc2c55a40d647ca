//! Spoofing: the gateway acknowledges data early to the sender, suppresses the receiver's
//! acknowledgements, and retransmits what is lost behind it.
//!
//! ```text
//!   sender ── data ──▶ [Spoofer] ── data, retransmissions ──▶ receiver
//!          ◀─ early ──          ◀── acknowledgements end here ─
//! ```
//!
//! ITU-R S.1711 Annex 2, section 4.1; RFC 3135, sections 3.1.2 and 3.1.3; Henderson and Katz 1999,
//! section 6.1. There is one connection: sequence numbers, window scales and options are those of
//! its ends, and the handshake is end to end. A FIN is never acknowledged early; the receiver's
//! acknowledgement of it is forwarded.
//!
//! The data in flight behind the gateway is limited by the receiver's window and by the gateway's
//! own, not by a congestion window: the link must be dedicated to the gateway. Its rate is limited
//! by a [`Shaper`](super::Shaper) behind it.

mod connection;

use super::acks::{like, pure_ack};
use super::{Element, Output, Toward};
use crate::network::{Address, Packet};
use connection::Connection;
use simtcp::Segment;
use std::collections::BTreeMap;
use units::{Instant, Span};

/// Parameters of a [`Spoofer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoofConfig {
    /// Octets buffered per connection: the window advertised to the sender.
    pub memory: u64,
    /// Maximum octets in flight to the receiver per connection: one or two bandwidth-delay
    /// products.
    pub window: u64,
    /// The initial and minimum retransmission timeout.
    pub timeout: Span,
}

/// Acknowledges early the data of one direction.
#[derive(Debug)]
pub struct Spoofer {
    config: SpoofConfig,
    toward: Toward,
    connections: BTreeMap<Flow, Connection>,
    counts: Spoofed,
}

/// A connection: the sender of the data and its receiver.
type Flow = (Address, Address);

/// Counters of a [`Spoofer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spoofed {
    /// Early acknowledgements sent.
    pub early: u64,
    /// Acknowledgements of receivers suppressed.
    pub suppressed: u64,
    /// Segments retransmitted by the gateway.
    pub retransmitted: u64,
    /// Segments dropped for lack of memory.
    pub dropped: u64,
    /// Maximum octets buffered for a connection.
    pub max_kept: u64,
}

/// Maximum number of connections; further ones are forwarded unchanged.
const CONNECTIONS: usize = 4_096;

impl Spoofer {
    /// Acknowledges data sent to the side `toward`.
    pub fn new(config: SpoofConfig, toward: Toward) -> Self {
        Self { config, toward, connections: BTreeMap::new(), counts: Spoofed::default() }
    }

    /// Its counters.
    pub fn counts(&self) -> Spoofed {
        self.counts
    }

    /// Number of known connections.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Handles a packet of the sender.
    fn on_data(&mut self, now: Instant, packet: Packet, out: &mut Output) {
        let flow = (packet.from, packet.to);
        let Some(segment) = packet.segment().copied() else {
            out.push_back((self.toward, packet));
            return;
        };
        if segment.flags.reset {
            self.connections.remove(&flow);
        } else if segment.flags.syn
            && let Some(connection) = self.opening(flow, 0, &segment)
        {
            connection.on_syn(&segment);
        }
        let connection = self.connections.get_mut(&flow);
        let Some(connection) = connection.filter(|it| it.is_open() && !segment.flags.syn) else {
            out.push_back((self.toward, packet));
            return;
        };
        if segment.span() == 0 {
            let mut packet = packet;
            packet.change_segment(|segment| connection.acknowledges(segment));
            out.push_back((self.toward, packet));
        } else {
            let kept = connection.keep(packet.clone(), &segment);
            self.counts.dropped += u64::from(!kept);
            self.counts.max_kept = self.counts.max_kept.max(connection.kept());
            if let Some(early) = connection.early(&segment) {
                let ack = Packet {
                    from: packet.to,
                    to: packet.from,
                    payload: like(&packet.payload, early),
                    ..packet
                };
                self.counts.early += 1;
                out.push_back((self.toward.reverse(), ack));
            }
        }
        self.send(now, flow, out);
    }

    /// The connection that `syn` of the sender (0) or the receiver (1) opens or answers.
    /// Connections with data on the SYN are not handled: they are short. A repeated SYN has no
    /// effect on the existing connection.
    fn opening(&mut self, flow: Flow, who: usize, syn: &Segment) -> Option<&mut Connection> {
        if self.connections.get(&flow).is_some_and(|known| known.is_opening_syn(who, syn)) {
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

    /// Handles a packet of the receiver.
    fn on_acknowledgement(&mut self, now: Instant, mut packet: Packet, out: &mut Output) {
        let (flow, reverse) = ((packet.to, packet.from), self.toward.reverse());
        let Some(segment) = packet.segment().copied() else {
            out.push_back((reverse, packet));
            return;
        };
        if segment.flags.reset {
            self.connections.remove(&flow);
        } else if segment.flags.syn
            && let Some(connection) = self.opening(flow, 1, &segment)
        {
            connection.on_syn_ack(&segment);
        }
        let connection = self.connections.get_mut(&flow);
        let Some(connection) = connection.filter(|it| it.is_open() && !segment.flags.syn) else {
            out.push_back((reverse, packet));
            return;
        };
        connection.acknowledged(now, &segment);
        let of_the_end = connection.end_is_acknowledged();
        if pure_ack(&packet).is_none() || of_the_end {
            packet.change_segment(|segment| connection.answers(segment));
            out.push_back((reverse, packet));
        } else {
            self.counts.suppressed += 1;
            if let Some(update) = connection.update() {
                self.counts.early += 1;
                let payload = like(&packet.payload, update);
                out.push_back((reverse, Packet { payload, ..packet }));
            }
        }
        self.send(now, flow, out);
    }

    /// Resets both ends of a connection after too many timeouts of its receiver.
    fn give_up(&mut self, flow: Flow, out: &mut Output) -> bool {
        let given = self.connections.get(&flow).and_then(Connection::gives_up);
        let Some((packet, [on_data, on_acknowledgement])) = given else { return false };
        let payload = like(&packet.payload, on_acknowledgement);
        let answer = Packet { from: packet.to, to: packet.from, payload, ..packet.clone() };
        out.push_back((self.toward, Packet { payload: like(&packet.payload, on_data), ..packet }));
        out.push_back((self.toward.reverse(), answer));
        self.connections.remove(&flow);
        true
    }

    /// Sends the segments that may be sent to the receiver.
    fn send(&mut self, now: Instant, flow: Flow, out: &mut Output) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        while let Some((packet, retransmitted)) = connection.next(now) {
            self.counts.retransmitted += u64::from(retransmitted);
            out.push_back((self.toward, packet));
        }
        if connection.is_over() {
            self.connections.remove(&flow);
        }
    }
}

impl Element for Spoofer {
    fn pass(&mut self, now: Instant, toward: Toward, packet: Packet, out: &mut Output) {
        if toward == self.toward {
            self.on_data(now, packet, out);
        } else {
            self.on_acknowledgement(now, packet, out);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connections.values().filter_map(Connection::timer).min()
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Output) {
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
