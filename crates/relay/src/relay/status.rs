//! Status of a relay, in addition to its counters.

use super::Relay;
use crate::Tap;
use units::Instant;

/// State of a relay's path and its limits at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayStatus {
    /// Since when there is a session with the peer, if there is one.
    pub connected_since: Option<Instant>,
    /// When a datagram of the peer was last decrypted.
    pub heard: Option<Instant>,
    /// Maximum size of IP packets, bytes.
    pub mtu: usize,
    /// Bytes of send buffer for all streams together.
    pub send_pool: u64,
    /// Maximum flow-control credit of the peer in bytes, for all streams together.
    pub receive_pool: u64,
    /// Bytes of memory that received data uses now.
    pub receive_memory: usize,
}

impl Relay {
    /// Returns the status.
    pub fn status(&self) -> RelayStatus {
        let [receive_pool, send_pool] = self.streams.pools();
        RelayStatus {
            connected_since: self.connected_since(),
            heard: self.heard,
            mtu: self.path.current(),
            send_pool,
            receive_pool,
            receive_memory: self.receive_allocated(),
        }
    }

    /// Returns when the session with the peer was opened, if there is one.
    pub(crate) fn connected_since(&self) -> Option<Instant> {
        self.connected_since.filter(|_| self.connected)
    }

    /// Copies the payloads of a terminal's association to `tap` from now on; `None` stops this. A
    /// hub has its own [tap](crate::Hub::set_tap).
    pub fn set_tap(&mut self, tap: Option<Tap>) {
        self.tap = tap.map(Box::new);
    }

    /// Returns the tap, if there is one.
    pub fn tap(&mut self) -> Option<&mut Tap> {
        self.tap.as_deref_mut()
    }
}
