//! MTU hints of the host for the paths to peers.

use super::{RelaySet, Side};
use crate::engine::host::{Host, Route};
use crate::engine::peers::paths::update_mtu_hint;
use relay::{Hub, PeerId, Relay};
use std::net::SocketAddr;

impl RelaySet {
    /// Updates the MTU hints of all peers.
    pub(crate) fn check_paths(&mut self, host: &dyn Host) {
        match &mut self.side {
            Side::Terminal(paths) => paths.check(host),
            Side::Hub(hub) => {
                on_peers(hub, |relay, address| update_mtu_hint(host, relay, &Route::to(address)));
            }
        }
    }

    /// Handles `EMSGSIZE` for a datagram of `len` octets to `destination` by the link socket
    /// `number`.
    pub(crate) fn on_emsgsize(&mut self, number: usize, destination: SocketAddr, len: usize) {
        match &mut self.side {
            Side::Terminal(paths) => {
                paths.relays_of(number).for_each(|relay| relay.refuse_datagram(len));
            }
            Side::Hub(hub) => on_peers(hub, |relay, address| {
                if address == destination {
                    relay.refuse_datagram(len);
                }
            }),
        }
    }
}

fn on_peers(hub: &mut Hub, mut call: impl FnMut(&mut Relay, SocketAddr)) {
    let peers: Vec<PeerId> = hub.peers().collect();
    for peer in peers {
        let address = hub.address(peer);
        if let (Some(address), Some(relay)) = (address, hub.peer(peer)) {
            call(relay, address);
        }
    }
}
