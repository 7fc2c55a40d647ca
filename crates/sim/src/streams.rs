//! Byte streams as applications use them.

use units::Instant;

/// The interface between applications and transports: byte streams with half-close.
pub trait Streams {
    /// Identifies a stream.
    type Id: Copy + Ord;
    /// Opens a stream to the server.
    fn open(&mut self, now: Instant) -> Self::Id;
    /// Accepts some of `bytes` and returns how many; if fewer than all, a "writable" event follows.
    fn write(&mut self, now: Instant, stream: Self::Id, bytes: &[u8]) -> usize;
    /// Ends the send side.
    fn end(&mut self, now: Instant, stream: Self::Id);
    /// Octets received in order; empty if there are none.
    fn peek(&self, stream: Self::Id) -> &[u8];
    /// Consumes the first `count` of them.
    fn consume(&mut self, now: Instant, stream: Self::Id, count: usize);
}
