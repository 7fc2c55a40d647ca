//! Packet captures at a point of a network as pcapng, for tcpdump and Wireshark.
//!
//! ```text
//!   section header │ interface: IPv4, nanoseconds │ packet, packet, ... with their direction
//! ```
//!
//! Packets have real IPv4 and UDP headers, with the [addresses](crate::network::NodeId::ip) of
//! their nodes. Other octets below the payload, such as those of an association, are zeros. The
//! simulation's time zero is 1970.

mod tcp;

use crate::network::{Address, IPV4, IPV4_UDP, Packet, Payload, Protocol};
use core::fmt;
use simtcp::{Ecn, Segment};
use std::io::{self, Write};
use units::Instant;

/// Direction of a packet relative to the capturing node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDirection {
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

/// The link type of packets that start with an IPv4 header.
const LINKTYPE_IPV4: u16 = 228;
const UDP: u8 = 17;

/// An open capture.
pub struct Capture {
    out: Box<dyn Write>,
    block: Vec<u8>,
    packets: u64,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("packets", &self.packets).finish_non_exhaustive()
    }
}

impl Capture {
    /// Starts a capture of the interface `name`.
    pub fn new(mut out: Box<dyn Write>, name: &str) -> Self {
        let mut block = Vec::new();
        // Section header: byte order, version 1.0, length unknown.
        write_block(&mut block, 0x0a0d_0d0a, |out| {
            out.extend(0x1a2b_3c4d_u32.to_le_bytes());
            out.extend([1, 0, 0, 0]);
            out.extend((-1i64).to_le_bytes());
        });
        // Interface: link type, whole packets, name (option 2), nanoseconds (option 9).
        write_block(&mut block, 1, |out| {
            out.extend(LINKTYPE_IPV4.to_le_bytes());
            out.extend([0; 6]);
            write_option(out, 2, name.as_bytes());
            write_option(out, 9, &[9]);
            write_option(out, 0, &[]);
        });
        let failed = out.write_all(&block).err();
        Self { out, block, packets: 0, failed }
    }

    /// Writes a packet captured at `at`.
    pub fn packet(&mut self, at: Instant, direction: PacketDirection, packet: &Packet) {
        if self.failed.is_some() {
            return;
        }
        let number = self.packets as u16;
        self.packets += 1;
        self.block.clear();
        write_block(&mut self.block, 6, |out| {
            let nanos = at.as_nanos();
            out.extend([0; 4]);
            out.extend(((nanos >> 32) as u32).to_le_bytes());
            out.extend((nanos as u32).to_le_bytes());
            let lengths = out.len();
            out.extend([0; 8]);
            let start = out.len();
            write_packet(out, packet, number);
            let len = out.len() - start;
            out[lengths..lengths + 4].copy_from_slice(&(len as u32).to_le_bytes());
            out[lengths + 4..start].copy_from_slice(&(len as u32).to_le_bytes());
            pad(out, len);
            let flags: u32 = match direction {
                PacketDirection::Inbound => 1,
                PacketDirection::Outbound => 2,
            };
            write_option(out, 2, &flags.to_le_bytes());
            write_option(out, 0, &[]);
        });
        self.failed = self.out.write_all(&self.block).err();
    }

    /// Ends the capture; returns the number of packets.
    ///
    /// # Errors
    /// Returns the first error of writing.
    pub fn finish(mut self) -> io::Result<u64> {
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.packets),
        }
    }
}

/// The octets of a packet, of which `number` is the IPv4 identification.
pub(crate) fn octets(packet: &Packet, number: u16) -> Vec<u8> {
    let mut out = Vec::new();
    write_packet(&mut out, packet, number);
    out
}

/// Writes the packet in its wire format.
fn write_packet(out: &mut Vec<u8>, packet: &Packet, number: u16) {
    let start = out.len();
    let header = usize::from(packet.header);
    let protocol = match packet.protocol {
        Protocol::Udp => UDP,
        Protocol::Ip(number) => number,
    };
    let below = match packet.protocol {
        Protocol::Udp => IPV4_UDP,
        Protocol::Ip(_) => IPV4,
    };
    let total = header.max(below) + packet.payload.len();
    let service = match &packet.payload {
        Payload::Bytes(_) => 0,
        Payload::Tcp(segment) | Payload::Stream(segment, _) => match segment.ecn {
            Ecn::NotCapable => 0,
            Ecn::Scalable => 1,
            Ecn::Capable => 2,
            Ecn::Congestion => 3,
        },
    };
    let ends = [packet.from, packet.to];
    write_ipv4(out, ends, service, protocol, packet.hops(), number, total);
    if let Protocol::Udp = packet.protocol {
        out.extend(packet.from.port.to_be_bytes());
        out.extend(packet.to.port.to_be_bytes());
        out.extend(length(total - IPV4).to_be_bytes());
        // No checksum, which UDP allows over IPv4.
        out.extend([0, 0]);
    }
    out.resize(start + header.max(below), 0);
    let pseudo = |segment: &Segment| {
        let [a, b, c, d] = packet.from.node.ip().octets();
        let [e, f, g, h] = packet.to.node.ip().octets();
        let [high, low] = length(segment.len()).to_be_bytes();
        [a, b, c, d, e, f, g, h, 0, protocol, high, low]
    };
    match &packet.payload {
        Payload::Bytes(bytes) => out.extend_from_slice(bytes),
        Payload::Tcp(segment) => tcp::write(out, segment, None, &pseudo(segment)),
        Payload::Stream(segment, bytes) => {
            tcp::write(out, segment, Some(bytes), &pseudo(segment));
        }
    }
}

fn write_ipv4(
    out: &mut Vec<u8>,
    ends: [Address; 2],
    service: u8,
    protocol: u8,
    hops: u8,
    number: u16,
    total: usize,
) {
    let start = out.len();
    // Version 4, five words; type of service with ECN (RFC 3168, section 5).
    out.extend([0x45, service]);
    out.extend(length(total).to_be_bytes());
    out.extend(number.to_be_bytes());
    // Don't fragment.
    out.extend([0x40, 0]);
    out.extend([64_u8.saturating_sub(hops), protocol]);
    out.extend([0, 0]);
    ends.iter().for_each(|end| out.extend(end.node.ip().octets()));
    let sum = checksum(&[&out[start..]]);
    out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
}

/// The Internet checksum (RFC 1071) of parts of which only the last may have an odd length.
pub(crate) fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u64 =
        words.map(|word| u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn length(octets: usize) -> u16 {
    u16::try_from(octets).unwrap_or(u16::MAX)
}

fn write_block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let len = (out.len() + 4 - start) as u32;
    out[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
    out.extend(len.to_le_bytes());
}

fn write_option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

fn pad(out: &mut Vec<u8>, len: usize) {
    out.resize(out.len() + (len.next_multiple_of(4) - len), 0);
}

#[cfg(test)]
mod tests;
