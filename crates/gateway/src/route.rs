//! A route out of this host to a peer.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A route out of this host to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Where it leads.
    pub(crate) peer: SocketAddr,
    /// The address that packets carry; what the routes say when it is unspecified.
    pub(crate) source: IpAddr,
    /// The interface that they go by; what the routes say when `None`.
    pub(crate) interface: Option<String>,
}

impl Route {
    /// As the routes say.
    pub(crate) fn to(peer: SocketAddr) -> Self {
        Self { peer, source: Ipv4Addr::UNSPECIFIED.into(), interface: None }
    }
}
