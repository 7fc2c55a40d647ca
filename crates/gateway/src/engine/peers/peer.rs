//! Peer gateways and their streams.

use relay::{PeerId, StreamId};

/// A peer gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    /// A terminal's hub over the path with this number.
    Path(usize),
    /// A terminal's hub in an earlier association, whose session ends.
    Former(u32),
    /// One of a hub's terminals.
    Terminal(PeerId),
}

/// A stream and its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    pub(crate) peer: Peer,
    pub(crate) stream: StreamId,
}
