//! IPv4 addresses that are embedded in an IPv6 address: a translator or a tunnel on the path would
//! send the packets there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns all IPv4 addresses that `address` may embed; none for an IPv4 address. IPv4-mapped
/// addresses (`::ffff:0:0/96`) have been unmapped before.
pub(super) fn embedded(address: IpAddr) -> Vec<IpAddr> {
    let IpAddr::V6(address) = address else { return Vec::new() };
    let (bits, octets) = (address.to_bits(), address.octets());
    let at = |at: usize| v4([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
    let within = |network: Ipv6Addr, length: u32| (bits ^ network.to_bits()) >> (128 - length) == 0;
    let mut found = Vec::new();
    // RFC 4291, section 2.5.5.1: "IPv4-compatible", except `::` and `::1`.
    if within(Ipv6Addr::UNSPECIFIED, 96) && bits > 1 {
        found.push(at(12));
    }
    // RFC 7915 with RFC 2765's addresses: "IPv4-translated", ::ffff:0:a.b.c.d.
    if within(Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96) {
        found.push(at(12));
    }
    // RFC 6052: NAT64 by the well-known prefix.
    if within(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96) {
        found.push(at(12));
    }
    // RFC 8215: NAT64 by local prefixes from this range, of RFC 6052's lengths: 48, 56, 64 and 96.
    if within(Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48) {
        let forms = [
            v4([octets[6], octets[7], octets[9], octets[10]]),
            v4([octets[7], octets[9], octets[10], octets[11]]),
            at(9),
            at(12),
        ];
        // Only the translator's configuration determines the length, so each form is checked. One in
        // 0.0.0.0/8 is skipped if there is another: its zeroes belong to the prefix or the suffix.
        let is_a_hosts = |address: &&IpAddr| !is_no_hosts(**address);
        let before = found.len();
        found.extend(forms.iter().filter(is_a_hosts));
        if found.len() == before {
            found.push(at(12));
        }
    }
    // RFC 3056: 6to4.
    if within(Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16) {
        found.push(at(2));
    }
    // RFC 4380: Teredo's server, and its client with inverted bits.
    if within(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32) {
        found.push(at(4));
        found.push(v4([!octets[12], !octets[13], !octets[14], !octets[15]]));
    }
    // RFC 5214: ISATAP, within any network.
    if matches!(octets[8..12], [0 | 2, 0, 0x5e, 0xfe]) {
        found.push(at(12));
    }
    found
}

/// Whether it is in 0.0.0.0/8.
fn is_no_hosts(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.octets()[0] == 0)
}

fn v4(octets: [u8; 4]) -> IpAddr {
    Ipv4Addr::from(octets).into()
}
