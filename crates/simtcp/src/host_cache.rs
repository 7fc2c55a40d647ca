//! A host's cache of its peers.

use crate::config::TcpConfig;
use crate::endpoint::Endpoint;
use crate::open::{Handshake, PeerMemory};
use crate::segment::Ports;
use alloc::collections::BTreeMap;

/// Maximum number of cached peers; the least recently used is discarded.
const PEERS: usize = 4_096;

/// A host's cache of its peers for T/TCP, Fast Open and path MTU discovery.
///
/// It creates connections and [learns](Self::learn) from them while they run:
///
/// ```
/// use simtcp::{HostCache, Opening, Ports, TcpConfig};
/// use units::Instant;
///
/// let config = TcpConfig { opening: Opening::Transaction, ..TcpConfig::reno() };
/// let (mut here, mut there) = (HostCache::new(1), HostCache::new(2));
/// let mut segments = Vec::new();
/// for port in [1_000, 1_001] {
///     let mut client = here.connect(2, &config, Ports { from: port, to: 80 }, 7);
///     let mut server = there.listen(1, &config, 80, 8);
///     client.write(100);
///     client.close();
///     let mut count = 0;
///     loop {
///         let before = count;
///         while let Some(segment) = client.poll_transmit(Instant::ZERO) {
///             server.handle_segment(Instant::ZERO, &segment);
///             count += 1;
///         }
///         if server.read(u64::MAX).is_some() {
///             server.write(200);
///             server.close();
///         }
///         while let Some(segment) = server.poll_transmit(Instant::ZERO) {
///             client.handle_segment(Instant::ZERO, &segment);
///             count += 1;
///         }
///         if count == before {
///             break;
///         }
///     }
///     here.learn(2, &mut client);
///     there.learn(1, &mut server);
///     segments.push(count);
/// }
/// // The second connection uses the cache: request, response, acknowledgement.
/// assert_eq!(segments[1], 3);
/// ```
#[derive(Clone, Debug)]
pub struct HostCache {
    secret: u64,
    /// CCgen (RFC 1644, section 3.1).
    connections: u32,
    uses: u64,
    peers: BTreeMap<u64, (u64, PeerMemory)>,
}

impl HostCache {
    /// An empty cache; its Fast Open cookies are derived from `secret`.
    pub fn new(secret: u64) -> Self {
        Self { secret, connections: 0, uses: 0, peers: BTreeMap::new() }
    }

    /// A client's end of a connection to the host `peer`, as [`Endpoint::connect`].
    ///
    /// # Panics
    /// When the configuration is not [valid](TcpConfig::validate).
    pub fn connect(
        &mut self,
        peer: u64,
        config: &TcpConfig,
        ports: Ports,
        content: u64,
    ) -> Endpoint {
        let handshake = self.handshake(peer, config);
        Endpoint::connect(config, ports, content).with_handshake(handshake)
    }

    /// A server's end on `port` for a SYN of the host `peer`, as [`Endpoint::listen`].
    ///
    /// # Panics
    /// When the configuration is not [valid](TcpConfig::validate).
    pub fn listen(&mut self, peer: u64, config: &TcpConfig, port: u16, content: u64) -> Endpoint {
        let handshake = self.handshake(peer, config);
        Endpoint::listen(config, port, content).with_handshake(handshake)
    }

    /// Stores what a connection has learned of `peer`; to be called after its segments are handled.
    pub fn learn(&mut self, peer: u64, endpoint: &mut Endpoint) {
        let Some(memory) = endpoint.news() else { return };
        self.uses += 1;
        self.peers.insert(peer, (self.uses, memory));
        if self.peers.len() > PEERS {
            let oldest = self.peers.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(peer) = oldest.map(|(&peer, _)| peer) {
                self.peers.remove(&peer);
            }
        }
    }

    fn handshake(&mut self, peer: u64, config: &TcpConfig) -> Handshake {
        self.uses += 1;
        // 0 is no valid count.
        self.connections = self.connections.wrapping_add(1).max(1);
        let memory = match self.peers.get_mut(&peer) {
            Some((used, memory)) => {
                *used = self.uses;
                *memory
            }
            None => PeerMemory::default(),
        };
        Handshake::new(config.opening, memory, self.connections, cookie(self.secret, peer))
    }
}

/// A cookie that the server can verify (RFC 7413, section 4.1.2, requires a cipher, which the
/// simulation does not need).
fn cookie(secret: u64, peer: u64) -> u64 {
    (secret ^ peer.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ peer
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Instant;

    #[test]
    fn least_recently_used_peer_is_discarded() {
        let mut cache = HostCache::new(1);
        let config = TcpConfig { opening: crate::Opening::Transaction, ..TcpConfig::reno() };
        for peer in 0..=PEERS as u64 {
            let mut client = cache.connect(peer, &config, Ports { from: 1, to: 2 }, 0);
            // A first SYN has a new count, which is stored.
            client.poll_transmit(Instant::ZERO);
            cache.learn(peer, &mut client);
        }
        assert_eq!(cache.peers.len(), PEERS);
        assert!(!cache.peers.contains_key(&0) && cache.peers.contains_key(&1));
    }
}
