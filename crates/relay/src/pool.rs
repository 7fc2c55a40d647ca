//! Receive memory that all streams share, and its allocation.

use crate::fair::{Owner, Shares};

/// Maximum grant of a stream, as a multiple of the free bytes of its owner.
const STREAM_ALPHA: u64 = 2;

/// Receive memory that all streams share, and its allocation.
///
/// Streams have credit of three kinds: `stream_minimum` each; per-stream grants beyond that, at
/// most `size` in all; and shared credit, `shared` in all.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Bytes that can be granted.
    pub(crate) size: u64,
    /// Bytes granted and not yet consumed, beyond each stream's minimum.
    pub(crate) granted: Shares,
    /// Maximum shared credit that the peer may have outstanding.
    pub(crate) shared: u64,
    /// Bytes received on shared credit, in total.
    pub(crate) shared_received: u64,
    /// Bytes of shared credit that were returned, in total.
    pub(crate) shared_returned: u64,
    /// Bytes between the limits of streams and the highest offsets that shared credit permits,
    /// received or not: memory is reserved for all of them.
    pub(crate) shared_span: u64,
    /// Number of byte ranges ahead of a gap, in all streams.
    pub(crate) ranges: usize,
}

impl Pool {
    /// Returns the bytes granted and not yet consumed, beyond each stream's minimum.
    pub(crate) fn used(&self) -> u64 {
        self.granted.total()
    }

    /// Returns the free bytes less those of `owner`: an owner holds at most as many as are free.
    pub(crate) fn left(&self, owner: Owner) -> u64 {
        self.size.saturating_sub(self.used()).saturating_sub(self.granted.of(owner))
    }

    /// Returns the bytes that a stream of `owner` may be granted beyond its `reserved`, which are
    /// at most [`STREAM_ALPHA`] times the free bytes of the owner in all. A grant cannot be
    /// revoked, so this leaves room for others beside stalled readers.
    pub(crate) fn room(&self, owner: Owner, reserved: u64) -> u64 {
        let left = self.left(owner);
        // Each granted byte takes two of the owner's free bytes.
        let stream = (STREAM_ALPHA * left).saturating_sub(reserved) / (1 + 2 * STREAM_ALPHA);
        stream.min(left / 2)
    }

    pub(crate) fn shared_left(&self) -> u64 {
        self.shared.saturating_sub(self.shared_received - self.shared_returned)
    }

    /// Returns whether slow readers hold most of the shared credit.
    pub(crate) fn is_shared_short(&self) -> bool {
        self.shared_left() < self.shared / 4
    }

    /// Returns whether enough shared credit is free for `is_shared_short` to stay false.
    pub(crate) fn is_shared_plenty(&self) -> bool {
        self.shared_left() > self.shared / 2
    }
}
