//! The unit by which clients are told apart where capacity is shared among them.
//!
//! An IPv4 client counts by its address. An IPv6 host has a whole /64 of addresses to choose from
//! (RFC 4291 §2.5.1, RFC 8981), so IPv6 clients count by their /64.

use std::net::{IpAddr, Ipv6Addr};

/// Length of the prefix by which IPv6 clients are counted, in bits.
pub(super) const IPV6_PREFIX_BITS: u32 = 64;

/// Returns the first address of the network by which `client` is counted. An IPv4-mapped IPv6
/// address (RFC 4291 §2.5.5.2) counts as the IPv4 address.
pub(super) fn client_network(client: IpAddr, ipv6_prefix_bits: u32) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let host_bits = 128 - ipv6_prefix_bits.min(128);
            let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_clients_count_by_prefix_and_ipv4_clients_by_address() {
        let network =
            |client: &str, bits| client_network(client.parse().unwrap(), bits).to_string();
        assert_eq!(network("10.1.0.7", 64), "10.1.0.7");
        assert_eq!(network("::ffff:10.1.0.7", 64), "10.1.0.7");
        assert_eq!(network("2001:db8:1:2:3:4:5:6", 64), "2001:db8:1:2::");
        assert_eq!(network("2001:db8:1:2:3:4:5:6", 56), "2001:db8:1::");
        assert_eq!(network("2001:db8::5", 128), "2001:db8::5");
        assert_eq!(network("2001:db8::5", 0), "::");
    }
}
