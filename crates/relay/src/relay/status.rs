//! What an operator may want to see of a relay beside its counters.

use super::Relay;
use crate::Tap;
use units::Instant;

/// A relay's way and its bounds, at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Since when there is a session with the peer, while there is one.
    pub connected_since: Option<Instant>,
    /// When something of the peer's was last opened.
    pub heard: Option<Instant>,
    /// Largest IP packet that is sent, bytes.
    pub mtu: usize,
    /// Bytes of send buffer that all streams together may take.
    pub send_pool: u64,
    /// Bytes of received data that the peer may be promised in all.
    pub receive_pool: u64,
    /// Bytes of memory that received data takes now.
    pub receive_memory: usize,
}

impl Relay {
    /// What there is to see.
    pub fn sight(&self) -> Sight {
        let [receive_pool, send_pool] = self.streams.pools();
        Sight {
            connected_since: self.connected_since(),
            heard: self.heard,
            mtu: self.path.current(),
            send_pool,
            receive_pool,
            receive_memory: self.receive_allocated(),
        }
    }

    /// When the session with the peer was established, while there is one.
    pub(crate) fn connected_since(&self) -> Option<Instant> {
        self.connected_since.filter(|_| self.connected)
    }

    /// Copies from now on what a terminal's association opens and seals into `tap`; `None`: no
    /// more. A hub has a [tap](crate::Hub::set_tap) of its own.
    pub fn set_tap(&mut self, tap: Option<Tap>) {
        self.tap = tap.map(Box::new);
    }

    /// The tap, while there is one.
    pub fn tap(&mut self) -> Option<&mut Tap> {
        self.tap.as_deref_mut()
    }
}
