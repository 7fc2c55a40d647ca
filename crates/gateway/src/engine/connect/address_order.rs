//! The order in which the addresses of a server are tried (RFC 6724, section 6).
//!
//! Rules 3, 4 and 7 are omitted: they need properties that the kernel does not report for a route
//! (whether the source address is deprecated, a home address, or reached through a tunnel). Rule 9,
//! the longest matching prefix, is applied to IPv6 only, as by common C libraries: IPv4 prefixes do
//! not indicate distance, and the order in a name server's response distributes load.

use crate::engine::host::Host;
use std::cmp::Reverse;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Prefixes that matter of an IPv6 source address: its subnet (RFC 6724, section 2.2).
const SUBNET_BITS: u32 = 64;

/// Sorts `addresses`, best first. The address that this host would send from decides; addresses
/// that it has no route to are last; others keep their order where no rule distinguishes them.
pub(crate) fn sort(addresses: &mut [SocketAddr], host: &dyn Host) {
    if addresses.len() > 1 {
        sort_with(addresses, |address| host.source_for(address));
    }
}

fn sort_with(addresses: &mut [SocketAddr], source_for: impl Fn(SocketAddr) -> Option<IpAddr>) {
    addresses.sort_by_cached_key(|&address| {
        let (ip, source) = (address.ip(), source_for(address));
        let with_source = |same: fn(IpAddr, IpAddr) -> bool| source.is_some_and(|s| same(s, ip));
        (
            // Rule 1: avoid unusable destinations.
            source.is_none(),
            // Rule 2: prefer matching scope.
            !with_source(|source, ip| scope(source) == scope(ip)),
            // Rule 5: prefer matching label.
            !with_source(|source, ip| policy(source).1 == policy(ip).1),
            // Rule 6: prefer higher precedence.
            Reverse(policy(ip).0),
            // Rule 8: prefer smaller scope.
            scope(ip),
            // Rule 9: use longest matching prefix. Families differ in precedence already.
            Reverse(source.map_or(0, |source| matching_bits(source, ip))),
        )
    });
}

/// Scopes of RFC 4291, section 2.7; unicast addresses as in RFC 6724, sections 3.1 and 3.2.
fn scope(address: IpAddr) -> u8 {
    const LINK_LOCAL: u8 = 2;
    const SITE_LOCAL: u8 = 5;
    const GLOBAL: u8 = 14;
    match address.to_canonical() {
        IpAddr::V4(ip) if ip.is_loopback() || ip.is_link_local() => LINK_LOCAL,
        IpAddr::V4(_) => GLOBAL,
        IpAddr::V6(ip) if ip.is_multicast() => ip.octets()[1] & 0xf,
        IpAddr::V6(ip) if ip.is_loopback() || ip.is_unicast_link_local() => LINK_LOCAL,
        IpAddr::V6(ip) if ip.segments()[0] & 0xffc0 == 0xfec0 => SITE_LOCAL,
        IpAddr::V6(_) => GLOBAL,
    }
}

/// Precedence and label (RFC 6724, section 2.1).
fn policy(address: IpAddr) -> (u8, u8) {
    const TABLE: [(Ipv6Addr, u32, u8, u8); 9] = [
        (Ipv6Addr::LOCALHOST, 128, 50, 0),
        (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, 35, 4),
        (Ipv6Addr::UNSPECIFIED, 96, 1, 3),
        (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, 5, 5),
        (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, 30, 2),
        (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16, 1, 12),
        (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, 1, 11),
        (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, 3, 13),
        (Ipv6Addr::UNSPECIFIED, 0, 40, 1),
    ];
    let address = mapped(address);
    let fits = |prefix: Ipv6Addr, bits| common_bits(prefix, address) >= bits;
    let entry = TABLE.iter().find(|(prefix, bits, ..)| fits(*prefix, *bits));
    entry.map_or((0, 0), |&(.., precedence, label)| (precedence, label))
}

fn matching_bits(source: IpAddr, destination: IpAddr) -> u32 {
    match (source, destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            common_bits(source, destination).min(SUBNET_BITS)
        }
        (IpAddr::V4(_), _) | (_, IpAddr::V4(_)) => 0,
    }
}

fn common_bits(one: Ipv6Addr, other: Ipv6Addr) -> u32 {
    (one.to_bits() ^ other.to_bits()).leading_zeros()
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorts `destinations`, each with the source address that would be chosen for it.
    fn sorted(destinations: &[(&str, &str)]) -> Vec<String> {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut list: Vec<SocketAddr> =
            destinations.iter().map(|(to, _)| SocketAddr::new(ip(to), 80)).collect();
        sort_with(&mut list, |to| {
            let found = destinations.iter().find(|(ip, _)| to.ip().to_string() == *ip);
            found.and_then(|(_, source)| source.parse().ok())
        });
        list.iter().map(|address| address.ip().to_string()).collect()
    }

    /// The examples of RFC 6724, section 10.2, without those of home addresses and deprecation;
    /// the source addresses are those that the RFC finds.
    #[test]
    fn rfc_6724_examples() {
        for (example, expected) in [
            // Prefer matching scope.
            (
                [("2001:db8:1::1", "2001:db8:1::2"), ("198.51.100.121", "169.254.13.78")],
                ["2001:db8:1::1", "198.51.100.121"],
            ),
            (
                [("2001:db8:1::1", "fe80::1"), ("198.51.100.121", "198.51.100.117")],
                ["198.51.100.121", "2001:db8:1::1"],
            ),
            // Prefer higher precedence.
            (
                [("2001:db8:1::1", "2001:db8:1::2"), ("10.1.2.3", "10.1.2.4")],
                ["2001:db8:1::1", "10.1.2.3"],
            ),
            // Prefer smaller scope.
            (
                [("2001:db8:1::1", "2001:db8:1::2"), ("fe80::1", "fe80::2")],
                ["fe80::1", "2001:db8:1::1"],
            ),
            // Longest matching prefix.
            (
                [("2001:db8:1::1", "2001:db8:1::2"), ("2001:db8:3ffe::1", "2001:db8:3f44::2")],
                ["2001:db8:1::1", "2001:db8:3ffe::1"],
            ),
            // Prefer matching label.
            (
                [
                    ("2002:c633:6401::1", "2002:c633:6401::2"),
                    ("2001:db8:1::1", "2002:c633:6401::2"),
                ],
                ["2002:c633:6401::1", "2001:db8:1::1"],
            ),
            // Prefer higher precedence.
            (
                [("2002:c633:6401::1", "2002:c633:6401::2"), ("2001:db8:1::1", "2001:db8:1::2")],
                ["2001:db8:1::1", "2002:c633:6401::1"],
            ),
        ] {
            assert_eq!(sorted(&example), expected);
            let [one, other] = example;
            assert_eq!(sorted(&[other, one]), expected, "whatever the order was");
        }
    }

    #[test]
    fn addresses_without_a_route_come_last_and_ties_keep_their_order() {
        let list =
            [("2001:db8::1", "none"), ("192.0.2.9", "192.0.2.1"), ("192.0.2.2", "192.0.2.1")];
        assert_eq!(sorted(&list), ["192.0.2.9", "192.0.2.2", "2001:db8::1"]);
        // A unique local address that is only reached from a global one is of another label.
        let list = [("fd00::1", "2001:db8::2"), ("192.0.2.9", "192.0.2.1")];
        assert_eq!(sorted(&list), ["192.0.2.9", "fd00::1"]);
    }
}
