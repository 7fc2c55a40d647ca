//! ICMP messages for packets that exceed the MTU of the next link.
//!
//! ```text
//!   ICMP: 3, 4 │ checksum │ 0 │ MTU of the next link │ the packet's first 28 octets
//!                                                       IPv4, ports, sequence number
//! ```
//!
//! "Fragmentation needed and DF set", with the MTU (RFC 1191, section 4; RFC 792). Only TCP
//! segments are answered: no other transport here evaluates the message.

use super::fabric::Fabric;
use super::packet::{Address, IPV4, NodeId, Packet};
use crate::capture::{checksum, octets};
use satlink::Frame;
use simtcp::Endpoint;
use units::Instant;

/// Protocol number of ICMP.
const ICMP: u8 = 1;
/// Destination unreachable; fragmentation needed and DF set.
const KIND: [u8; 2] = [3, 4];
/// Octets of ICMP's header, and of the quoted packet.
const HEADER: usize = 8;
const QUOTED: usize = IPV4 + 8;

/// Contents of such a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// Source of the packet.
    pub from: Address,
    /// Destination of the packet.
    pub to: Address,
    /// The lower 32 bits of its sequence number.
    pub sequence: u32,
    /// MTU of the next link, IPv4's header included.
    pub mtu: u16,
}

impl TooBig {
    /// Notifies the sender's end of the connection.
    pub(crate) fn tell(&self, now: Instant, endpoint: &mut Endpoint) {
        // Restores the upper bits near the outstanding octets: the next one follows those
        // acknowledged.
        let base = endpoint.acknowledged() + 1;
        let ahead = self.sequence.wrapping_sub(base as u32) as i32;
        if let Some(sequence) = base.checked_add_signed(i64::from(ahead)) {
            endpoint.handle_too_big(now, sequence, self.mtu);
        }
    }
}

impl Packet {
    /// The contents, if this packet is such a message.
    pub fn too_big(&self) -> Option<TooBig> {
        if self.protocol != super::Protocol::Ip(ICMP) {
            return None;
        }
        let bytes = self.bytes();
        if bytes.len() < HEADER + QUOTED || bytes[..2] != KIND {
            return None;
        }
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| u32::from(short(at)) << 16 | u32::from(short(at + 2));
        let quoted = HEADER + IPV4;
        let end = |ip: usize, port: usize| {
            Address::new(NodeId::with_ip(long(HEADER + ip)), short(quoted + port))
        };
        Some(TooBig { from: end(12, 0), to: end(16, 2), sequence: long(quoted + 4), mtu: short(6) })
    }
}

impl Fabric {
    /// Whether `packet` fits into the next link; otherwise it is dropped, and `at` answers.
    pub(super) fn fits(&mut self, now: Instant, at: NodeId, place: usize, packet: &Packet) -> bool {
        let Some(mtu) = self.lines[place].mtu.filter(|&mtu| packet.len() > usize::from(mtu)) else {
            return true;
        };
        self.too_big += 1;
        if packet.segment().is_some() {
            let from = Address::new(at, 0);
            let to = Address::new(packet.from.node, 0);
            let answer = Packet::ip(from, to, ICMP, message(packet, mtu));
            self.created += 1;
            self.forward(now, at, answer);
        }
        false
    }
}

fn message(packet: &Packet, mtu: u16) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[..2].copy_from_slice(&KIND);
    bytes[6..HEADER].copy_from_slice(&mtu.to_be_bytes());
    bytes.extend(octets(packet, 0).into_iter().take(QUOTED));
    let sum = checksum(&[&bytes]);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}
