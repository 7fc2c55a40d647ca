//! A way out of this host to a peer.

use super::host::Host;
use crate::route::Route;

/// Tells `relay` what the host believes that the route to its peer takes.
pub(super) fn tell(host: &dyn Host, relay: &mut relay::Relay, route: &Route) {
    match host.path_mtu(route) {
        Ok(mtu) => relay.hint_mtu(mtu),
        Err(error) => tracing::debug!(peer = %route.peer, %error, "the path's MTU is not known"),
    }
}
