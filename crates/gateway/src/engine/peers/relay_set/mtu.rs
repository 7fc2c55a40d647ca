//! What the host knows of the size of packets on the ways to peers.

use super::{Carrier, Side};
use crate::engine::host::Host;
use crate::engine::peers::route::{self, Route};
use relay::{Hub, PeerId, Relay};
use std::net::SocketAddr;

impl Carrier {
    /// Tells what the kernel believes that the paths to the peers take by now.
    pub(crate) fn check_paths(&mut self, host: &dyn Host) {
        match &mut self.side {
            Side::Terminal(paths) => paths.check(host),
            Side::Hub(hub) => {
                on_peers(hub, |relay, address| route::tell(host, relay, &Route::to(address)));
            }
        }
    }

    /// This host's own link did not take a datagram of `len` bytes to `destination`, by the outlet
    /// of this `number`.
    pub(crate) fn too_big(&mut self, number: usize, destination: SocketAddr, len: usize) {
        match &mut self.side {
            Side::Terminal(paths) => {
                if let Some(path) = paths.all.get_mut(number) {
                    path.relay.refuse_datagram(len);
                }
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
