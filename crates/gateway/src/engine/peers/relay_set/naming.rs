//! What peers and destinations are called, here and by the relay.

use crate::proxy::Destination;
use relay::Target;
use std::net::SocketAddr;

/// What a hub is remembered by.
pub(crate) fn hub_name(address: SocketAddr) -> String {
    plain(address).to_string()
}

/// The same address, also when a socket for both families writes IPv4 as IPv6.
pub(crate) fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    plain(one) == plain(other)
}

/// An IPv4 address in IPv6 clothes is the IPv4 address.
pub(super) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// A proxy's destination as the relay writes it.
pub(crate) fn target(destination: Destination, source: Option<SocketAddr>) -> Target {
    let destination = match destination {
        Destination::Address(address) => relay::Destination::Address(address),
        Destination::Name(name, port) => relay::Destination::Name(name, port),
    };
    Target { destination, source }
}
