//! Status of a relay, in addition to its counters.

use super::{Path, Relay};
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
            heard: self.first().heard,
            mtu: self.mtu(),
            send_pool,
            receive_pool,
            receive_memory: self.receive_allocated(),
        }
    }

    /// Returns when the session with the peer was opened, if there is one.
    pub(crate) fn connected_since(&self) -> Option<Instant> {
        let connected = self.paths.iter().filter(|(_, path)| path.connected);
        connected.filter_map(|(_, path)| path.connected_since).min()
    }

    /// Returns when the session of this path was opened, if it has one.
    pub(crate) fn connected_since_on(&self, number: usize) -> Option<Instant> {
        self.paths.get(number).filter(|path| path.connected)?.connected_since
    }

    /// Returns the path with the lowest number.
    pub(crate) fn first(&self) -> &Path {
        let first = self.paths.iter().next().map(|(_, path)| path);
        first.expect("a relay keeps its last path")
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
