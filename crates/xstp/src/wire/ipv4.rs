//! IPv4 packets with published segments, for links to which this host gives whole packets.
//!
//! ```text
//!   IPv4 without options   20     version 4, protocol 253, time to live 64
//!   loose source route      3     type 131, length, pointer; then four octets for each address
//!   end of options          1
//! ```
//!
//! Source: RFC 791. Elaasar et al. 2003, section 7.2, count 60 octets "including source routing
//! options", the maximum length of an IPv4 header: nine addresses.

use super::PROTOCOL_NUMBER;
use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

/// Octets of a header without options.
pub const HEADER: usize = 20;

/// Octets of a header with a source route of nine addresses, and the maximum of any header.
pub const HEADER_WITH_ROUTE: usize = 60;

/// Maximum number of addresses in a source route.
pub const MAX_HOPS: usize = 9;

/// The packets from one host to another.
#[derive(Clone, Debug)]
pub struct Packets {
    from: Ipv4Addr,
    to: Ipv4Addr,
    options: Vec<u8>,
    /// Identification of the next packet.
    next: u16,
}

impl Packets {
    /// Packets without options.
    pub fn new(from: Ipv4Addr, to: Ipv4Addr) -> Self {
        Self { from, to, options: Vec::new(), next: 0 }
    }

    /// Adds a loose source route through `hops`, if there are any.
    ///
    /// # Panics
    /// If there are more than [`MAX_HOPS`].
    #[must_use]
    pub fn with_route(mut self, hops: &[Ipv4Addr]) -> Self {
        assert!(hops.len() <= MAX_HOPS, "a route has at most {MAX_HOPS} addresses");
        self.options.clear();
        if !hops.is_empty() {
            self.options.extend([131, 3 + 4 * hops.len() as u8, 4]);
            hops.iter().for_each(|hop| self.options.extend(hop.octets()));
            self.options.push(0);
        }
        self
    }

    /// Octets of a header.
    pub fn header_len(&self) -> usize {
        HEADER + self.options.len()
    }

    /// Returns the packet with `segment`.
    pub fn packet(&mut self, segment: &[u8]) -> Vec<u8> {
        let header = self.header_len();
        let mut packet = vec![0; header];
        packet[0] = 0x40 | (header / 4) as u8;
        let total = (header + segment.len()) as u16;
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet[4..6].copy_from_slice(&self.next.to_be_bytes());
        self.next = self.next.wrapping_add(1);
        packet[8] = 64;
        packet[9] = PROTOCOL_NUMBER;
        packet[12..16].copy_from_slice(&self.from.octets());
        packet[16..20].copy_from_slice(&self.to.octets());
        packet[HEADER..].copy_from_slice(&self.options);
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend_from_slice(segment);
        packet
    }
}

/// A packet that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Source.
    pub from: Ipv4Addr,
    /// Destination.
    pub to: Ipv4Addr,
    /// The segment.
    pub segment: &'a [u8],
}

/// Returns the addresses and the segment of an IPv4 packet; `None` if its header is damaged, it is
/// truncated or a fragment, or has another protocol.
pub fn decode(packet: &[u8]) -> Option<Received<'_>> {
    let first = *packet.first()?;
    let header = usize::from(first & 15) * 4;
    let word = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let is_valid = first >> 4 == 4 && header >= HEADER && checksum(packet.get(..header)?) == 0;
    // More fragments, or an offset.
    let is_fragment = word(6)? & 0x3fff != 0;
    if !is_valid || is_fragment || packet[9] != PROTOCOL_NUMBER {
        return None;
    }
    let address =
        |at: usize| Ipv4Addr::from([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
    let segment = packet.get(header..usize::from(word(2)?))?;
    Some(Received { from: address(12), to: address(16), segment })
}

/// RFC 1071's checksum of a header of whole words: zero if it is valid.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_complete_and_damage_is_detected() {
        let [a, b] = [1, 2].map(|last| Ipv4Addr::new(44, 0, 0, last));
        for hops in [&[][..], &[b; MAX_HOPS]] {
            let mut packets = Packets::new(a, b).with_route(hops);
            let header = if hops.is_empty() { HEADER } else { HEADER_WITH_ROUTE };
            assert_eq!(packets.header_len(), header);
            let first = packets.packet(b"abc");
            assert_eq!(first.len(), header + 3);
            assert_eq!(decode(&first), Some(Received { from: a, to: b, segment: b"abc" }));
            assert_ne!(first, packets.packet(b"abc"), "each packet has its own identification");
            for at in 0..header {
                let mut damaged = first.clone();
                damaged[at] ^= 16;
                assert_eq!(decode(&damaged), None, "byte {at}");
            }
            assert_eq!(decode(&first[..header + 2]), None);
        }
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[0x41; 24]), None);
    }

    #[test]
    fn fragments_and_other_protocols_are_refused() {
        let mut packet = Packets::new([44, 0, 0, 1].into(), [44, 0, 0, 2].into()).packet(b"abc");
        for (at, value) in [(6, 0x20), (7, 1), (9, 6)] {
            let mut other = packet.clone();
            // The checksum follows the word that changes.
            other[at] = value;
            other[10..12].copy_from_slice(&[0; 2]);
            let sum = checksum(&other[..HEADER]);
            other[10..12].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(decode(&other), None, "byte {at}");
        }
        packet.push(0);
        assert_eq!(decode(&packet).map(|received| received.segment), Some(&b"abc"[..]));
    }

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        // Its section 3: 0001 f203 f4f5 f6f7 add up to ddf2.
        assert_eq!(checksum(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }
}
