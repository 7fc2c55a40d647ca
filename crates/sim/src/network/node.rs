//! What stands in a network, and how it sends.

use super::fabric::Fabric;
use super::packet::{Buffer, NodeId, Packet};
use core::any::Any;
use units::Instant;

/// A host or gateway: a protocol without I/O, with whatever uses it.
pub trait Node: Any {
    /// Takes a packet that arrived at `now`. What is left of it is used again.
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet);
    /// Sends all packets that may leave at `now`.
    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>);
    /// When to call [`Node::handle_timeout`], and then [`Node::poll_transmit`]; asked after
    /// each `poll_transmit`.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Does what is due at `now`.
    fn handle_timeout(&mut self, now: Instant);
}

/// Where a node's packets go out.
pub struct Outbox<'a> {
    pub(super) fabric: &'a mut Fabric,
    pub(super) node: NodeId,
    pub(super) now: Instant,
}

impl Outbox<'_> {
    /// The node that sends.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Memory for a payload of `len` bytes, which may be anything.
    pub fn buffer(&mut self, len: usize) -> Buffer {
        self.fabric.pool.take(len)
    }

    /// Sends a TCP segment to `to`.
    pub fn send_segment(&mut self, to: NodeId, segment: simtcp::Segment) {
        let boxed = self.fabric.pool.segment(segment);
        self.send(Packet::tcp(self.node, to, boxed));
    }

    /// Sends a TCP segment with its bytes to `to`.
    pub fn send_stream(&mut self, to: NodeId, segment: simtcp::Segment, bytes: Buffer) {
        let boxed = self.fabric.pool.segment(segment);
        self.send(Packet::stream(self.node, to, boxed, bytes));
    }

    /// As [`Outbox::send_stream`], in the name of `from`.
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

    /// Gives back what was not needed after all.
    pub fn give_back(&mut self, buffer: Buffer) {
        self.fabric.pool.put(buffer.into());
    }

    /// Sends on a packet that came to a gateway and is for another.
    ///
    /// # Panics
    /// When it was sent on too often.
    pub fn pass_on(&mut self, packet: Packet) {
        self.fabric.created += 1;
        self.fabric.pass_on(self.now, self.node, packet);
    }

    /// Sends `packet` on the link that leads to its receiver.
    pub fn send(&mut self, packet: Packet) {
        self.fabric.created += 1;
        self.fabric.forward(self.now, self.node, packet);
    }
}
