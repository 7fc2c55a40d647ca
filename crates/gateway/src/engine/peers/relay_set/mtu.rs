//! MTU hints of the host for the paths to peers.

use super::{RelaySet, Side};
use crate::engine::host::{Host, Route};
use crate::engine::peers::paths::update_mtu_hint;
use relay::{Hub, Relay};
use std::net::SocketAddr;

impl RelaySet {
    /// Updates the MTU hints of all peers.
    pub(crate) fn check_paths(&mut self, host: &dyn Host) {
        match &mut self.side {
            Side::Terminal(paths) => paths.check(host),
            Side::Hub(hub) => {
                on_peers(hub, |path, address| update_mtu_hint(host, path, &Route::to(address)));
            }
        }
    }

    /// Handles `EMSGSIZE` for a datagram of `len` octets to `destination` by the link socket
    /// `number`.
    pub(crate) fn on_emsgsize(&mut self, number: usize, destination: SocketAddr, len: usize) {
        match &mut self.side {
            Side::Terminal(paths) => {
                let Some((relays, number)) = paths.relays_of(number) else { return };
                relays.for_each(|relay| relay.refuse_datagram_on(number, len));
            }
            Side::Hub(hub) => on_peers(hub, |(relay, number), address| {
                if address == destination {
                    relay.refuse_datagram_on(number, len);
                }
            }),
        }
    }
}

/// Calls `call` with each path of the hub's relays and its number there.
fn on_peers(hub: &mut Hub, mut call: impl FnMut((&mut Relay, usize), SocketAddr)) {
    for peer in hub.paths() {
        let address = hub.address(peer);
        if let (Some(address), Some(path)) = (address, hub.path(peer)) {
            call(path, address);
        }
    }
}
