//! A way out of this host to a peer.

use crate::engine::host::Host;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A way out of this machine to a peer.
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

/// Tells `relay` what the host believes that the route to its peer takes.
pub(crate) fn tell(host: &dyn Host, relay: &mut relay::Relay, route: &Route) {
    match host.path_mtu(route) {
        Ok(mtu) => relay.hint_mtu(mtu),
        Err(error) => tracing::debug!(peer = %route.peer, %error, "the path's MTU is not known"),
    }
}
