//! The network by which clients are counted where capacity is shared among them.
//!
//! An IPv4 client counts by its address. An IPv6 host has a whole /64 of addresses to choose from
//! (RFC 4291 §2.5.1, RFC 8981), so IPv6 clients count by their /64, or by
//! the prefix that `limits.ipv6_prefix` says.

use relay::Owner;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns the first address of the network by which `client` is counted. An IPv4-mapped IPv6
/// address (RFC 4291 §2.5.5.2) counts as the IPv4 address.
pub(crate) fn client_network(client: IpAddr, ipv6_prefix_bits: u32) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let host_bits = 128 - ipv6_prefix_bits.min(128);
            let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

/// Returns the account on which the streams and packets of the client at `source` are. Those
/// without a client's address share one.
pub(crate) fn owner(source: Option<SocketAddr>, ipv6_prefix_bits: u32) -> Owner {
    let network = source.map(|source| client_network(source.ip(), ipv6_prefix_bits));
    let key = |network| match network {
        IpAddr::V4(address) => Ipv4Addr::to_ipv6_mapped(&address),
        IpAddr::V6(address) => address,
    };
    Owner(network.map_or(0, |network| key(network).to_bits()))
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

    #[test]
    fn clients_of_one_network_are_one_owner() {
        let of = |client: &str| owner(Some(client.parse().unwrap()), 64);
        assert_eq!(of("10.1.0.7:80"), of("10.1.0.7:443"));
        assert_eq!(of("10.1.0.7:80"), of("[::ffff:10.1.0.7]:80"));
        assert_ne!(of("10.1.0.7:80"), of("10.1.0.8:80"));
        assert_eq!(of("[2001:db8::1]:80"), of("[2001:db8::2]:80"));
        assert_ne!(of("[2001:db8::1]:80"), of("[2001:db8:0:1::1]:80"));
        assert_ne!(of("[2001:db8::1]:80"), owner(None, 64));
    }
}
