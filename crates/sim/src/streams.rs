//! Byte streams, as applications see them.

use units::Instant;

/// What clients and servers need of the layer below: byte streams with a half-close.
pub trait Streams {
    /// Names a stream.
    type Id: Copy + Ord;
    /// Opens a stream to the server.
    fn open(&mut self, now: Instant) -> Self::Id;
    /// Takes some of `bytes`; less than all means that a "writable" will follow.
    fn write(&mut self, now: Instant, stream: Self::Id, bytes: &[u8]) -> usize;
    /// Sends no more on it.
    fn end(&mut self, now: Instant, stream: Self::Id);
    /// Bytes that have come, in order; empty: none now.
    fn peek(&self, stream: Self::Id) -> &[u8];
    /// Drops the first `count` of them.
    fn consume(&mut self, now: Instant, stream: Self::Id, count: usize);
}
