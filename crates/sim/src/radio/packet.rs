//! IPv4 packets with a source route, 60 bytes of header, as the packet-radio stack sends them.
//!
//! ```text
//!   IPv4 without options   20     version 4, header of 15 words, protocol 253
//!   loose source route     39     type 131, length 39, pointer, nine addresses (RFC 791)
//!   end of options          1
//! ```
//!
//! Elaasar et al. 2003, section 7.2, count 60 bytes "including source routing options", the maximum
//! length of an IPv4 header.

use core::net::Ipv4Addr;

/// IPv4 with 40 octets of options.
pub const HEADER: usize = 60;

/// Addresses in the route.
const HOPS: usize = 9;

/// The header of one direction's packets.
#[derive(Clone, Debug)]
pub struct Route {
    from: Ipv4Addr,
    to: Ipv4Addr,
    hops: [Ipv4Addr; HOPS],
    /// Identification of the next packet.
    next: u16,
}

impl Route {
    /// From one station to another through `hops`.
    pub fn new(from: Ipv4Addr, to: Ipv4Addr, hops: [Ipv4Addr; HOPS]) -> Self {
        Self { from, to, hops, next: 0 }
    }

    /// The packet that carries `payload`.
    pub fn packet(&mut self, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; HEADER];
        packet[0] = 0x4f;
        let total = (HEADER + payload.len()) as u16;
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet[4..6].copy_from_slice(&self.next.to_be_bytes());
        self.next = self.next.wrapping_add(1);
        packet[8] = 64;
        packet[9] = xstp::wire::PROTOCOL_NUMBER;
        packet[12..16].copy_from_slice(&self.from.octets());
        packet[16..20].copy_from_slice(&self.to.octets());
        packet[20..23].copy_from_slice(&[131, 39, 4]);
        for (at, hop) in packet[23..59].chunks_exact_mut(4).zip(&self.hops) {
            at.copy_from_slice(&hop.octets());
        }
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend_from_slice(payload);
        packet
    }
}

/// The payload of an IPv4 packet; `None` if it is invalid, truncated, or its header is damaged.
pub fn payload(packet: &[u8]) -> Option<&[u8]> {
    let first = *packet.first()?;
    let header = usize::from(first & 15) * 4;
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    if first >> 4 != 4 || header < 20 || checksum(packet.get(..header)?) != 0 {
        return None;
    }
    packet.get(header..total)
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
        let hops = [Ipv4Addr::new(44, 0, 0, 9); HOPS];
        let mut route = Route::new([44, 0, 0, 1].into(), [44, 0, 0, 2].into(), hops);
        let first = route.packet(b"abc");
        assert_eq!(first.len(), 63);
        assert_eq!(payload(&first), Some(&b"abc"[..]));
        assert_ne!(first, route.packet(b"abc"), "each packet has its own identification");
        for at in 0..HEADER {
            let mut damaged = first.clone();
            damaged[at] ^= 16;
            assert_eq!(payload(&damaged), None, "byte {at}");
        }
        assert_eq!(payload(&first[..62]), None);
        assert_eq!(payload(&[]), None);
    }

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        // Its section 3: 0001 f203 f4f5 f6f7 add up to ddf2.
        assert_eq!(checksum(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }
}
