//! Receive memory that all streams share, and what of it is promised.

use crate::fair::{Owner, Shares};

/// A stream may be granted this many times what is left to its owner.
const STREAM_ALPHA: u64 = 2;

/// Receive memory that all streams share, and what of it is promised.
///
/// Streams hold promises of three kinds: `stream_minimum` each, in any case; what a stream was
/// granted beyond that, at most `size` in all; and shared credit, `shared` in all.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Bytes that can be granted.
    pub(crate) size: u64,
    /// Bytes granted and not yet consumed, beyond each stream's minimum.
    pub(crate) granted: Shares,
    /// Shared credit that the peer may have out.
    pub(crate) shared: u64,
    /// Bytes that came on shared credit, ever.
    pub(crate) shared_received: u64,
    /// Of those, what was given back, ever.
    pub(crate) shared_returned: u64,
    /// Bytes between the limits of streams and what they have reached on shared credit, come or
    /// not: memory is taken for all of them.
    pub(crate) shared_span: u64,
    /// Ranges of bytes ahead of a gap, in all streams.
    pub(crate) ranges: usize,
}

impl Pool {
    /// Bytes granted and not yet consumed, beyond each stream's minimum.
    pub(crate) fn used(&self) -> u64 {
        self.granted.total()
    }

    /// By how much what is free exceeds what `owner` holds: an owner holds at most as much as is
    /// free.
    pub(crate) fn left(&self, owner: Owner) -> u64 {
        self.size.saturating_sub(self.used()).saturating_sub(self.granted.of(owner))
    }

    /// Bytes that a stream of `owner` may be granted beyond the `reserved` that it has: in all at
    /// most [`STREAM_ALPHA`] times what is left to its owner. A grant cannot be taken back, so
    /// what readers that have stopped hold leaves room for others.
    pub(crate) fn room(&self, owner: Owner, reserved: u64) -> u64 {
        let left = self.left(owner);
        // Each byte that is granted takes two of what is left to the owner.
        let stream = (STREAM_ALPHA * left).saturating_sub(reserved) / (1 + 2 * STREAM_ALPHA);
        stream.min(left / 2)
    }

    pub(crate) fn shared_left(&self) -> u64 {
        self.shared.saturating_sub(self.shared_received - self.shared_returned)
    }

    /// Whether slow readers hold most of the shared credit.
    pub(crate) fn is_shared_short(&self) -> bool {
        self.shared_left() < self.shared / 4
    }

    /// Whether more of the shared credit is left than makes a difference to `is_shared_short`.
    pub(crate) fn is_shared_plenty(&self) -> bool {
        self.shared_left() > self.shared / 2
    }
}
