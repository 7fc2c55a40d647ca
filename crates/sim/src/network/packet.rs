//! What travels in a network.

use core::fmt;
use core::ops::{Deref, DerefMut};
use satlink::Frame;
use simtcp::{Ports, Segment};
use std::net::Ipv4Addr;

/// Octets of an IPv4 header.
pub const IPV4: usize = 20;
/// TCP's protocol number.
const TCP: u8 = 6;
/// Octets of IPv4 and UDP headers.
pub const IPV4_UDP: usize = 28;

/// Names a node of a [`Network`](super::Network).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    /// The node of this number, for captures of what is no network.
    pub(crate) const fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// The node that has this address.
    pub(super) const fn with_ip(ip: u32) -> Self {
        Self((ip & 0xff_ffff).wrapping_sub(1))
    }

    /// Its place: nodes are numbered from 0 in the order in which they were put in.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The IPv4 address that it has where one is needed: 10.0.0.1 for the first node, and so on.
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

/// Where a packet comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The node.
    pub node: NodeId,
    /// What on it; 0 where ports mean nothing.
    pub port: u16,
}

impl Address {
    /// `port` of `node`.
    pub const fn new(node: NodeId, port: u16) -> Self {
        Self { node, port }
    }
}

/// What stands between IPv4's header and a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A UDP header with the ports of the addresses.
    Udp,
    /// Nothing: the payload is that of this protocol number.
    Ip(u8),
}

/// A packet: its payload's bytes, and how many there are below.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Who sent it.
    pub from: Address,
    /// Who is to have it.
    pub to: Address,
    /// What the payload is, for whoever reads a capture.
    pub protocol: Protocol,
    /// Octets of the headers below the payload, IPv4's included; they count and are not there.
    pub header: u16,
    /// Routers passed.
    pub(crate) hops: u8,
    /// What a link with compressed headers has made of it, while it is there.
    pub(crate) squeezed: Option<Squeezed>,
    /// What it carries.
    pub payload: Payload,
}

/// A packet whose headers are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Squeezed {
    /// Octets that it is shorter by.
    pub(crate) saved: u16,
    /// Which packet of its context it is.
    pub(crate) packets: u32,
    /// It cannot be made again without the packet before it.
    pub(crate) refers: bool,
}

impl Packet {
    /// A UDP datagram.
    pub fn udp(from: Address, to: Address, payload: impl Into<Payload>) -> Self {
        let (protocol, payload) = (Protocol::Udp, payload.into());
        Self { from, to, protocol, header: IPV4_UDP as u16, hops: 0, squeezed: None, payload }
    }

    /// A packet of the IP protocol `number`.
    pub fn ip(from: Address, to: Address, number: u8, payload: impl Into<Payload>) -> Self {
        let (protocol, payload) = (Protocol::Ip(number), payload.into());
        Self { from, to, protocol, header: IPV4 as u16, hops: 0, squeezed: None, payload }
    }

    /// A TCP segment, between the ports that it names.
    pub fn tcp(from: NodeId, to: NodeId, segment: Box<Segment>) -> Self {
        let Ports { from: near, to: far } = segment.ports;
        Self::ip(Address::new(from, near), Address::new(to, far), TCP, Payload::Tcp(segment))
    }

    /// A TCP segment with the bytes that it carries.
    pub fn stream(from: NodeId, to: NodeId, segment: Box<Segment>, bytes: Buffer) -> Self {
        let Ports { from: near, to: far } = segment.ports;
        let payload = Payload::Stream(segment, bytes);
        Self::ip(Address::new(from, near), Address::new(to, far), TCP, payload)
    }

    /// The segment that it carries, if it is TCP's.
    pub fn segment(&self) -> Option<&Segment> {
        match &self.payload {
            Payload::Tcp(segment) | Payload::Stream(segment, _) => Some(segment),
            Payload::Bytes(_) => None,
        }
    }

    /// The packet, leaving one without a payload behind.
    pub(crate) fn take(&mut self) -> Self {
        let payload = core::mem::replace(&mut self.payload, Buffer::default().into());
        Self { payload, ..*self }
    }

    /// Changes its segment, if it is TCP's.
    pub(crate) fn change_segment(&mut self, change: impl FnOnce(&mut Segment)) {
        match &mut self.payload {
            Payload::Tcp(segment) | Payload::Stream(segment, _) => change(segment),
            Payload::Bytes(_) => {}
        }
    }

    /// Cuts `head` and `tail` numbers off its segment; of the tail a FIN is the first to go.
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

    /// The same with `header` octets below the payload.
    #[must_use]
    pub fn with_header(self, header: usize) -> Self {
        Self { header: u16::try_from(header).unwrap_or(u16::MAX), ..self }
    }

    /// Routers that it has passed.
    pub fn hops(&self) -> u8 {
        self.hops
    }

    /// The payload, where it is bytes; else nothing.
    pub fn bytes(&self) -> &[u8] {
        match &self.payload {
            Payload::Bytes(bytes) => bytes,
            Payload::Tcp(_) => &[],
            Payload::Stream(_, bytes) => bytes,
        }
    }

    /// As [`Packet::bytes`], to be scratched over.
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
        let saved = self.squeezed.map_or(0, |squeezed| usize::from(squeezed.saved));
        usize::from(self.header) + self.payload.len() - saved
    }

    fn flow(&self) -> u64 {
        let end = |address: Address| u64::from(address.node.0) << 16 | u64::from(address.port);
        end(self.from).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ end(self.to)
    }

    /// What a TCP segment can carry of it (RFC 3168).
    fn mark(&mut self) -> bool {
        let mut marked = false;
        self.change_segment(|segment| marked = segment.mark());
        marked
    }
}

/// What a packet carries.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Bytes.
    Bytes(Buffer),
    /// A TCP segment, which says which bytes it carries; with its header.
    Tcp(Box<Segment>),
    /// A TCP segment and the bytes that it carries.
    Stream(Box<Segment>, Buffer),
}

impl Payload {
    /// Octets.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks for that")]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Tcp(segment) | Self::Stream(segment, _) => segment.len(),
        }
    }

    /// What tells it from others, in a trace.
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

/// Bytes whose memory is used again by later packets.
#[derive(Debug, Default)]
pub struct Buffer {
    /// At least `len` bytes; those behind are what earlier packets left.
    bytes: Vec<u8>,
    len: usize,
}

impl Buffer {
    /// Keeps the first `len` bytes.
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

/// Memory of packets that are gone, for those that come.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Vec<Vec<u8>>,
    #[expect(clippy::vec_box, reason = "it is the boxes that are used again")]
    segments: Vec<Box<Segment>>,
}

/// Buffers that are kept at most.
const KEPT: usize = 1 << 14;
/// Buffers are cut in sizes that are multiples of this.
const GRAIN: usize = 256;

impl Pool {
    /// A buffer of `len` bytes that may be anything.
    pub(crate) fn take(&mut self, len: usize) -> Buffer {
        let mut bytes = self.free.pop().unwrap_or_default();
        if bytes.len() < len {
            bytes.resize(len.next_multiple_of(GRAIN), 0);
        }
        Buffer { bytes, len }
    }

    /// `segment` in a box.
    pub(crate) fn segment(&mut self, segment: Segment) -> Box<Segment> {
        match self.segments.pop() {
            Some(mut old) => {
                *old = segment;
                old
            }
            None => Box::new(segment),
        }
    }

    /// Takes back what a packet held.
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
    fn memory_is_used_again() {
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
    fn a_packet_is_as_long_as_its_headers_and_payload() {
        let (from, to) = (Address::new(NodeId(1), 5), Address::new(NodeId(2), 6));
        let packet = Packet::udp(from, to, vec![0; 100]);
        assert_eq!(packet.len(), 128);
        assert_eq!(packet.clone().with_header(52).len(), 152);
        assert_ne!(packet.flow(), Packet::udp(to, from, vec![0; 100]).flow());
        assert_eq!(Packet::ip(from, to, 253, vec![0; 100]).len(), 120);
    }
}
