//! Internet checksum (RFC 1071) with the pseudo-header.

use super::header::{Endpoints, PROTOCOL_NUMBER};
use core::net::IpAddr;

/// Checksum of a segment from `from` to `to`, with the current value of its checksum field.
///
/// The result is zero if that value is correct.
pub(super) fn checksum(from: IpAddr, to: IpAddr, segment: &[u8]) -> u16 {
    let mut sum = add_address(0, from);
    sum = add_address(sum, to);
    sum += u64::from(PROTOCOL_NUMBER) + segment.len() as u64;
    !fold(add(sum, segment))
}

/// Checksum of a segment that is sent.
pub(super) fn outgoing(endpoints: &Endpoints, segment: &[u8]) -> u16 {
    checksum(endpoints.local.ip(), endpoints.remote.ip(), segment)
}

fn add_address(sum: u64, address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => add(sum, &address.octets()),
        IpAddr::V6(address) => add(sum, &address.octets()),
    }
}

/// Adds 16-bit words; an odd last octet is the high one of its word.
///
/// Eight octets at a time are added in the opposite byte order: in one's complement arithmetic
/// this gives the same sum with its octets swapped (RFC 1071, section 2 (B)).
fn add(sum: u64, octets: &[u8]) -> u64 {
    let (wide, rest) = octets.as_chunks::<8>();
    let (mut low, mut high) = (0u64, 0u64);
    for &octets in wide {
        let word = u64::from_le_bytes(octets);
        low += word & 0xffff_ffff;
        high += word >> 32;
    }
    let (words, last) = rest.as_chunks::<2>();
    let rest: u64 = words.iter().map(|&word| u64::from(u16::from_le_bytes(word))).sum();
    let odd = last.first().map_or(0, |&octet| u64::from(octet));
    sum + u64::from(fold(low + high + rest + odd).swap_bytes())
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    const ZERO: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

    // XSTP-3.3.1, XSTP-3.3.4
    #[test]
    fn the_example_of_rfc_1071() {
        // The example of RFC 1071, section 3: 0001 f203 f4f5 f6f7 adds up to ddf2, carries
        // folded. The pseudo-header adds the protocol, 253 = 00fd, and the length, 8: deF7.
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(ZERO, ZERO, &example), !0xdef7);
        // An odd octet is a high one: 0100 + 00fd + 1.
        assert_eq!(checksum(ZERO, ZERO, &[0x01]), !0x01fe);
    }

    #[test]
    fn eight_octets_at_a_time_give_the_same_sum() {
        let octets: std::vec::Vec<u8> = (0..200u8).map(|n| n.wrapping_mul(151) | 1).collect();
        for len in 0..octets.len() {
            let plain: u64 = octets[..len]
                .chunks(2)
                .map(|w| u64::from(w[0]) << 8 | u64::from(*w.get(1).unwrap_or(&0)))
                .sum();
            assert_eq!(fold(add(0x1234, &octets[..len])), fold(0x1234 + plain), "{len}");
        }
        assert_eq!(fold(add(0, &[0xff; 40])), 0xffff);
    }

    #[test]
    fn the_checksum_covers_the_addresses() {
        let from = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        let to = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
        // 0a00 + 0001 + c000 + 0207 + 00fd + 0
        assert_eq!(checksum(from, to, &[]), !0xcd05);
        let six = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
        // 2001 + 0db8 + 1 + 00fd
        assert_eq!(checksum(six, ZERO, &[]), !0x2eb7);
    }
}
