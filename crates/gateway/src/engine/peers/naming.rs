//! Names of peers and destinations.

use std::net::SocketAddr;

/// Returns the key of a hub's cached path metrics.
pub(crate) fn hub_name(address: SocketAddr) -> String {
    plain(address).to_string()
}

/// Whether two addresses are the same after unmapping IPv4-mapped IPv6 addresses.
pub(crate) fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    plain(one) == plain(other)
}

/// Unmaps an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2).
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
