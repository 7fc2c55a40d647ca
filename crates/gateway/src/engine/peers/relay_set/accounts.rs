//! Owners and service classes of streams and packets.

use super::{Peer, RelaySet, StreamKey};
use crate::engine::limits::client_network::owner;
use relay::Service;
use std::net::{IpAddr, SocketAddr};
use units::Instant;

impl RelaySet {
    /// Forwards a packet of a client unsplit; false if there is no such peer.
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

    /// Returns whether a packet to the peer would be sent after a short queue.
    pub(crate) fn has_datagram_room(&mut self, peer: Peer) -> bool {
        self.relay(peer).is_some_and(|relay| relay.has_datagram_room())
    }

    /// Sets the length of the prefix by which IPv6 clients are counted.
    pub(crate) fn set_ipv6_prefix(&mut self, bits: u32) {
        self.ipv6_prefix = bits;
    }

    /// Sets the owner of the stream to the client at `source`.
    pub(crate) fn set_client(&mut self, key: StreamKey, source: Option<SocketAddr>) {
        let owner = owner(source, self.ipv6_prefix);
        if let Some(relay) = self.relay(key.peer) {
            relay.set_owner(key.stream, owner);
        }
    }

    /// Sets the service class of a stream.
    pub(crate) fn set_service(&mut self, key: StreamKey, service: Service) {
        if let Some(relay) = self.relay(key.peer) {
            relay.set_service(key.stream, service);
        }
    }
}
