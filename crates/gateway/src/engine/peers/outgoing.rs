//! Batches of datagrams that are to be sent.

use std::net::SocketAddr;

/// A batch of datagrams in the send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// Destination of all of them.
    pub(crate) destination: SocketAddr,
    /// Octets in the buffer.
    pub(crate) len: usize,
    /// Octets of each datagram but the last.
    pub(crate) segment_size: usize,
}
