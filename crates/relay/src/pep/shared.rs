//! What all connections of a proxy share: configuration, counters, output.

use std::collections::VecDeque;
use std::net::SocketAddr;

/// Maximum number of packets to the near side that the caller has not taken.
const MOST_OUTPUT: usize = 4_096;

/// The side to which a packet travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// To the hosts on this gateway's own side.
    Near,
    /// To the other gateway.
    Far,
}

impl Toward {
    /// The opposite side.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn reverse(self) -> Self {
        match self {
            Self::Near => Self::Far,
            Self::Far => Self::Near,
        }
    }
}

/// Configuration of a [`PacketPep`](super::PacketPep).
#[derive(Clone, Copy, Debug)]
pub struct PepConfig {
    /// Whether data of near senders is acknowledged early.
    pub spoof: bool,
    /// Whether acknowledgements to near senders are regenerated and spaced.
    pub space_acks: bool,
    /// Maximum number of connections with state.
    pub flows: usize,
    /// Memory for the packets of one connection, in octets.
    pub flow_memory: usize,
    /// Memory for all stored packets, in octets.
    pub memory: usize,
}

impl Default for PepConfig {
    fn default() -> Self {
        let (flow_memory, memory) = (8 << 20, 64 << 20);
        Self { spoof: false, space_acks: false, flows: 4_096, flow_memory, memory }
    }
}

/// Counters of a [`PacketPep`](super::PacketPep), from its start on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PepStatistics {
    /// Connections with state now.
    pub flows: usize,
    /// Octets of memory of stored packets now.
    pub stored: usize,
    /// Connections whose handshake was seen.
    pub opened: u64,
    /// Connections whose data was acknowledged early.
    pub spoofed: u64,
    /// Acknowledgements that were built for near senders.
    pub early_acks: u64,
    /// Acknowledgements of far receivers that were suppressed.
    pub suppressed: u64,
    /// Segments that were retransmitted from here.
    pub retransmitted: u64,
    /// Retransmissions of near senders that were not forwarded, because they were stored.
    pub duplicates: u64,
    /// Acknowledgements that were regenerated.
    pub regenerated: u64,
    /// Segments that were not stored for lack of memory, and were forwarded.
    pub no_room: u64,
    /// Segments outside the windows, or with a wrong checksum, which changed nothing.
    pub implausible: u64,
    /// Connections with stored data that were reset, because the far end did not respond.
    pub aborted: u64,
}

/// The near and the far end of a connection.
pub(super) type Key = (SocketAddr, SocketAddr);

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: PepConfig,
    /// Octets that near senders may send before far receivers acknowledge more, over all spoofed
    /// connections.
    pub(super) committed: u64,
    pub(super) output: VecDeque<Vec<u8>>,
    pub(super) statistics: PepStatistics,
}

impl Shared {
    pub(super) fn push(&mut self, packet: Vec<u8>) {
        if self.output.len() < MOST_OUTPUT {
            self.output.push_back(packet);
        }
    }
}
