//! On whose account streams and packets are, and how they are served.

use super::{Carrier, Peer, StreamKey};
use crate::engine::limits::client_network::owner;
use relay::Service;
use std::net::{IpAddr, SocketAddr};
use units::Instant;

impl Carrier {
    /// Carries a packet of a client as it is; false when there is no way to the peer.
    pub(crate) fn send_datagram(
        &mut self,
        now: Instant,
        peer: Peer,
        packet: &[u8],
        (client, service): (IpAddr, Option<Service>),
    ) -> bool {
        let owner = owner(Some((client, 0).into()), self.ipv6_prefix);
        self.relay(peer).is_some_and(|relay| relay.send_datagram_as(now, packet, (owner, service)))
    }

    /// IPv6 clients are counted by prefixes of this length from here on.
    pub(crate) fn set_ipv6_prefix(&mut self, bits: u32) {
        self.ipv6_prefix = bits;
    }

    /// The stream is on the account of the client at `source`.
    pub(crate) fn set_client(&mut self, key: StreamKey, source: Option<SocketAddr>) {
        let owner = owner(source, self.ipv6_prefix);
        if let Some(relay) = self.relay(key.peer) {
            relay.set_owner(key.stream, owner);
        }
    }

    /// Serves a stream as told from here on.
    pub(crate) fn set_service(&mut self, key: StreamKey, service: Service) {
        if let Some(relay) = self.relay(key.peer) {
            relay.set_service(key.stream, service);
        }
    }
}
