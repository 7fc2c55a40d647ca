//! The Internet checksum (RFC 1071), and the pseudo-header that it starts with.

use super::header::{Endpoints, PROTOCOL_NUMBER};
use core::net::IpAddr;

/// The checksum of a segment from `from` to `to`, its checksum field taken as it stands.
///
/// For a segment whose field holds the right checksum the result is zero.
pub(super) fn checksum(from: IpAddr, to: IpAddr, segment: &[u8]) -> u16 {
    let mut sum = add_address(0, from);
    sum = add_address(sum, to);
    sum += u64::from(PROTOCOL_NUMBER) + segment.len() as u64;
    !fold(add(sum, segment))
}

/// The checksum of a segment that leaves the local end.
pub(super) fn outgoing(endpoints: &Endpoints, segment: &[u8]) -> u16 {
    checksum(endpoints.local.ip(), endpoints.remote.ip(), segment)
}

fn add_address(sum: u64, address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => add(sum, &address.octets()),
        IpAddr::V6(address) => add(sum, &address.octets()),
    }
}

/// Adds 16-bit words; an odd octet at the end is the high one of a word.
fn add(sum: u64, octets: &[u8]) -> u64 {
    let (words, last) = octets.as_chunks::<2>();
    let total: u64 = words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum();
    let odd = last.first().map_or(0, |&octet| u64::from(octet) << 8);
    sum + total + odd
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
    fn words_add_up_with_their_carries() {
        // The example of RFC 1071, section 3: 0001 f203 f4f5 f6f7 adds up to ddf2, carries
        // folded. The pseudo-header adds the protocol, 253 = 00fd, and the length, 8: deF7.
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(ZERO, ZERO, &example), !0xdef7);
        // An odd octet is a high one: 0100 + 00fd + 1.
        assert_eq!(checksum(ZERO, ZERO, &[0x01]), !0x01fe);
    }

    #[test]
    fn addresses_are_part_of_it() {
        let from = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        let to = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
        // 0a00 + 0001 + c000 + 0207 + 00fd + 0
        assert_eq!(checksum(from, to, &[]), !0xcd05);
        let six = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
        // 2001 + 0db8 + 1 + 00fd
        assert_eq!(checksum(six, ZERO, &[]), !0x2eb7);
    }
}
