//! Packets and their memory.

use core::fmt;
use core::ops::{Deref, DerefMut};
use satlink::Frame;
use simtcp::{Ports, Segment};
use std::net::Ipv4Addr;

/// Octets of an IPv4 header.
pub const IPV4: usize = 20;
/// Protocol number of TCP.
const TCP: u8 = 6;
/// Octets of IPv4 and UDP headers.
pub const IPV4_UDP: usize = 28;

/// Identifies a node of a [`Network`](super::Network).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    /// The node of this number, for captures outside of a network.
    pub(crate) const fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// The node with this address.
    pub(super) const fn with_ip(ip: u32) -> Self {
        Self((ip & 0xff_ffff).wrapping_sub(1))
    }

    /// The node with the address that [`NodeId::ip`] returns.
    pub(crate) fn with_address(ip: Ipv4Addr) -> Self {
        Self::with_ip(ip.to_bits())
    }

    /// Its index: nodes are numbered from 0 in the order of their creation.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Its IPv4 address: 10.0.0.1 for the first node, and so on.
    pub fn ip(self) -> Ipv4Addr {
        let [_, a, b, c] = (self.0 + 1).to_be_bytes();
        Ipv4Addr::new(10, a, b, c)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// Source or destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The node.
    pub node: NodeId,
    /// Its port; 0 for protocols without ports.
    pub port: u16,
}

impl Address {
    /// `port` of `node`.
    pub const fn new(node: NodeId, port: u16) -> Self {
        Self { node, port }
    }
}

/// The protocol between IPv4's header and a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A UDP header with the ports of the addresses.
    Udp,
    /// None: the payload has this protocol number.
    Ip(u8),
}

/// A packet: the octets of its payload, and the number of octets below.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Source.
    pub from: Address,
    /// Destination.
    pub to: Address,
    /// Protocol of the payload, for captures.
    pub protocol: Protocol,
    /// Octets of the headers below the payload, IPv4's included; they count but are not stored.
    pub header: u16,
    /// Number of routers passed.
    pub(crate) hops: u8,
    /// State of header compression, while the packet is on a compressed link.
    pub(crate) compressed: Option<CompressedHeaders>,
    /// Payload.
    pub payload: Payload,
}

/// A packet with compressed headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompressedHeaders {
    /// Octets saved.
    pub(crate) saved: u16,
    /// Its number within its context.
    pub(crate) packets: u32,
    /// Whether it can only be decompressed after the previous packet.
    pub(crate) refers: bool,
    /// Whether its changes are those of the previous packet, too.
    pub(crate) repeats: bool,
}

impl Packet {
    /// A UDP datagram.
    pub fn udp(from: Address, to: Address, payload: impl Into<Payload>) -> Self {
        let (protocol, payload) = (Protocol::Udp, payload.into());
        Self { from, to, protocol, header: IPV4_UDP as u16, hops: 0, compressed: None, payload }
    }

    /// A packet of the IP protocol `number`.
    pub fn ip(from: Address, to: Address, number: u8, payload: impl Into<Payload>) -> Self {
        let (protocol, payload) = (Protocol::Ip(number), payload.into());
        Self { from, to, protocol, header: IPV4 as u16, hops: 0, compressed: None, payload }
    }

    /// A TCP segment, between the ports that it contains.
    pub fn tcp(from: NodeId, to: NodeId, segment: Box<Segment>) -> Self {
        let Ports { from: near, to: far } = segment.ports;
        Self::ip(Address::new(from, near), Address::new(to, far), TCP, Payload::Tcp(segment))
    }

    /// A TCP segment with its payload octets.
    pub fn stream(from: NodeId, to: NodeId, segment: Box<Segment>, bytes: Buffer) -> Self {
        let Ports { from: near, to: far } = segment.ports;
        let payload = Payload::Stream(segment, bytes);
        Self::ip(Address::new(from, near), Address::new(to, far), TCP, payload)
    }

    /// Its TCP segment, if it has one.
    pub fn segment(&self) -> Option<&Segment> {
        match &self.payload {
            Payload::Tcp(segment) | Payload::Stream(segment, _) => Some(segment),
            Payload::Bytes(_) => None,
        }
    }

    /// Takes the packet, leaving one without a payload.
    pub(crate) fn take(&mut self) -> Self {
        let payload = core::mem::replace(&mut self.payload, Buffer::default().into());
        Self { payload, ..*self }
    }

    /// Changes its TCP segment, if it has one.
    pub(crate) fn change_segment(&mut self, change: impl FnOnce(&mut Segment)) {
        match &mut self.payload {
            Payload::Tcp(segment) | Payload::Stream(segment, _) => change(segment),
            Payload::Bytes(_) => {}
        }
    }

    /// Removes `head` and `tail` sequence numbers from its segment; a FIN is the first of the tail.
    pub(crate) fn cut_segment(&mut self, head: u64, tail: u64) {
        let mut kept = 0..0;
        self.change_segment(|segment| {
            let fin = u64::from(segment.flags.fin);
            segment.flags.fin &= tail == 0;
            let len = u64::from(segment.payload.len);
            let head = head.min(len);
            let end = len - tail.saturating_sub(fin).min(len - head);
            segment.sequence += head;
            segment.payload.offset += head;
            segment.payload.len = (end - head) as u32;
            kept = head as usize..end as usize;
        });
        if let Payload::Stream(_, bytes) = &mut self.payload
            && kept.len() < bytes.len()
        {
            *bytes = bytes[kept].to_vec().into();
        }
    }

    /// Returns the packet with `header` octets below the payload.
    #[must_use]
    pub fn with_header(self, header: usize) -> Self {
        Self { header: u16::try_from(header).unwrap_or(u16::MAX), ..self }
    }

    /// Number of routers passed.
    pub fn hops(&self) -> u8 {
        self.hops
    }

    /// The payload if it is octets; otherwise empty.
    pub fn bytes(&self) -> &[u8] {
        match &self.payload {
            Payload::Bytes(bytes) => bytes,
            Payload::Tcp(_) => &[],
            Payload::Stream(_, bytes) => bytes,
        }
    }

    /// As [`Packet::bytes`], mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.payload {
            Payload::Bytes(bytes) => bytes,
            Payload::Tcp(_) => &mut [],
            Payload::Stream(_, bytes) => bytes,
        }
    }
}

impl Frame for Packet {
    fn len(&self) -> usize {
        let saved = self.compressed.map_or(0, |compressed| usize::from(compressed.saved));
        usize::from(self.header) + self.payload.len() - saved
    }

    fn flow(&self) -> u64 {
        let end = |address: Address| u64::from(address.node.0) << 16 | u64::from(address.port);
        end(self.from).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ end(self.to)
    }

    /// Sets ECN congestion experienced on TCP segments that allow it (RFC 3168).
    fn mark(&mut self) -> bool {
        let mut marked = false;
        self.change_segment(|segment| marked = segment.mark());
        marked
    }

    fn is_l4s(&self) -> bool {
        self.segment().is_some_and(|segment| segment.ecn.is_l4s())
    }
}

/// The payload of a packet.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Octets.
    Bytes(Buffer),
    /// A TCP segment with its header, which names its octets without containing them.
    Tcp(Box<Segment>),
    /// A TCP segment and its octets.
    Stream(Box<Segment>, Buffer),
}

impl Payload {
    /// Length in octets.
    #[expect(clippy::len_without_is_empty, reason = "not needed")]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Tcp(segment) | Self::Stream(segment, _) => segment.len(),
        }
    }

    /// Passes the identifying octets to `mark`, for traces.
    pub(crate) fn mark(&self, mark: impl FnOnce(&[u8])) {
        match self {
            Self::Bytes(bytes) => mark(bytes),
            Self::Tcp(segment) | Self::Stream(segment, _) => {
                let words = [
                    segment.sequence,
                    segment.acknowledgement.unwrap_or(u64::MAX),
                    segment.len() as u64,
                    u64::from(segment.window),
                    segment.payload.content,
                ];
                let mut bytes = [0; 40];
                for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
                mark(&bytes);
            }
        }
    }
}

impl From<Buffer> for Payload {
    fn from(buffer: Buffer) -> Self {
        Self::Bytes(buffer)
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec().into())
    }
}

/// Octets whose memory is reused by later packets.
#[derive(Debug, Default)]
pub struct Buffer {
    /// At least `len` octets; the rest is of earlier packets.
    bytes: Vec<u8>,
    len: usize,
}

impl Buffer {
    /// Keeps the first `len` octets.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        self.to_vec().into()
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len(), bytes }
    }
}

/// Memory of discarded packets, for reuse.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Vec<Vec<u8>>,
    #[expect(clippy::vec_box, reason = "the boxes are reused")]
    segments: Vec<Box<Segment>>,
}

/// Maximum number of pooled buffers.
const KEPT: usize = 1 << 14;
/// Buffer sizes are multiples of this.
const GRAIN: usize = 256;

impl Pool {
    /// A buffer of `len` octets with undefined content.
    pub(crate) fn take(&mut self, len: usize) -> Buffer {
        let mut bytes = self.free.pop().unwrap_or_default();
        if bytes.len() < len {
            bytes.resize(len.next_multiple_of(GRAIN), 0);
        }
        Buffer { bytes, len }
    }

    /// Boxes `segment`.
    pub(crate) fn segment(&mut self, segment: Segment) -> Box<Segment> {
        match self.segments.pop() {
            Some(mut old) => {
                *old = segment;
                old
            }
            None => Box::new(segment),
        }
    }

    /// Returns the memory of a packet's payload.
    pub(crate) fn put(&mut self, payload: Payload) {
        match payload {
            Payload::Bytes(buffer) => {
                if self.free.len() < KEPT && !buffer.bytes.is_empty() {
                    self.free.push(buffer.bytes);
                }
            }
            Payload::Tcp(segment) => {
                if self.segments.len() < KEPT {
                    self.segments.push(segment);
                }
            }
            Payload::Stream(segment, buffer) => {
                self.put(buffer.into());
                self.put(Payload::Tcp(segment));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused() {
        let mut pool = Pool::default();
        let mut first = pool.take(1_000);
        first.fill(7);
        let place = first.as_ptr();
        pool.put(first.into());
        let mut second = pool.take(600);
        assert_eq!((second.as_ptr(), second.len()), (place, 600));
        second.truncate(900);
        assert_eq!(second.len(), 600, "never longer");
        second.truncate(10);
        assert_eq!(second.clone().len(), 10);
    }

    #[test]
    fn packet_length_is_headers_and_payload() {
        let (from, to) = (Address::new(NodeId(1), 5), Address::new(NodeId(2), 6));
        let packet = Packet::udp(from, to, vec![0; 100]);
        assert_eq!(packet.len(), 128);
        assert_eq!(packet.clone().with_header(52).len(), 152);
        assert_ne!(packet.flow(), Packet::udp(to, from, vec![0; 100]).flow());
        assert_eq!(Packet::ip(from, to, 253, vec![0; 100]).len(), 120);
    }
}
