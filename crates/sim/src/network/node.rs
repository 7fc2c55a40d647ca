//! Nodes and their output.

use super::fabric::Fabric;
use super::packet::{Buffer, NodeId, Packet};
use core::any::Any;
use units::Instant;

/// A host or gateway: a protocol without I/O, with its application.
pub trait Node: Any {
    /// Handles a packet that arrived at `now`. Its memory is reused afterwards.
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet);
    /// Sends all packets that may be sent at `now`.
    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>);
    /// Returns when to call [`Node::handle_timeout`] and then [`Node::poll_transmit`]; called after
    /// each `poll_transmit`.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Handles the timers that have expired at `now`.
    fn handle_timeout(&mut self, now: Instant);
}

/// The output of a node.
pub struct Outbox<'a> {
    pub(super) fabric: &'a mut Fabric,
    pub(super) node: NodeId,
    pub(super) now: Instant,
}

impl Outbox<'_> {
    /// The sending node.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// A buffer for a payload of `len` octets, with undefined content.
    pub fn buffer(&mut self, len: usize) -> Buffer {
        self.fabric.pool.take(len)
    }

    /// Sends a TCP segment to `to`.
    pub fn send_segment(&mut self, to: NodeId, segment: simtcp::Segment) {
        let boxed = self.fabric.pool.segment(segment);
        self.send(Packet::tcp(self.node, to, boxed));
    }

    /// Sends a TCP segment with its octets to `to`.
    pub fn send_stream(&mut self, to: NodeId, segment: simtcp::Segment, bytes: Buffer) {
        let boxed = self.fabric.pool.segment(segment);
        self.send(Packet::stream(self.node, to, boxed, bytes));
    }

    /// As [`Outbox::send_stream`], with the source `from`.
    pub fn send_stream_as(
        &mut self,
        from: NodeId,
        to: NodeId,
        segment: simtcp::Segment,
        bytes: Buffer,
    ) {
        let boxed = self.fabric.pool.segment(segment);
        self.send(Packet::stream(from, to, boxed, bytes));
    }

    /// Returns an unused buffer.
    pub fn give_back(&mut self, buffer: Buffer) {
        self.fabric.pool.put(buffer.into());
    }

    /// Forwards a packet that a gateway received for another node.
    ///
    /// # Panics
    /// If its hop limit is exceeded.
    pub fn forward_on(&mut self, packet: Packet) {
        self.fabric.created += 1;
        self.fabric.forward_on(self.now, self.node, packet);
    }

    /// Sends `packet` on the link of its route.
    pub fn send(&mut self, packet: Packet) {
        self.fabric.created += 1;
        self.fabric.forward(self.now, self.node, packet);
    }
}
