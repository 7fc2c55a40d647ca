//! What the engine asks of the relay, in the words of sockets.
//!
//! A terminal has one peer and a hub has many; here a stream's key names both, so that what
//! splices sockets to streams is written once.

use crate::proxy::{Destination, Refusal};
use std::net::SocketAddr;
use units::Instant;

/// A stream, and the peer that it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    /// Which peer; always zero at a terminal.
    pub(crate) peer: u64,
    /// Which of its streams.
    pub(crate) stream: u64,
}

/// Where a stream is to be connected on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The server.
    pub(crate) destination: Destination,
    /// The client's own address.
    pub(crate) source: Option<SocketAddr>,
}

/// What happened to a stream or a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The peer answers.
    Connected { peer: u64 },
    /// The peer is lost, and all its streams with it: no event follows for them.
    Disconnected { peer: u64, reason: String },
    /// The other side wants a connection; at a hub.
    Opened { key: StreamKey, target: Target },
    /// The other side has connected; at a terminal.
    Accepted { key: StreamKey },
    /// The other side could not connect; the stream is gone.
    Refused { key: StreamKey, reason: Refusal },
    /// There are bytes to peek at.
    Readable { key: StreamKey },
    /// There is room to write again.
    Writable { key: StreamKey },
    /// After what can be peeked at no more follows.
    Ended { key: StreamKey },
    /// The stream was reset by the other side and is gone.
    Reset { key: StreamKey },
    /// Both halves are over, and the other side has everything; the stream is gone.
    Released { key: StreamKey },
}

/// Datagrams that were put into the engine's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// Where they go.
    pub(crate) destination: SocketAddr,
    /// Bytes in the buffer.
    pub(crate) len: usize,
    /// Bytes of each but the last.
    pub(crate) segment_size: usize,
}

/// The relay, or what stands for it in a test. A stream that is gone takes no bytes, has none, and
/// is not missed.
pub(crate) trait Carrier {
    /// Opens a stream; what is written before the next [`Carrier::poll_transmit`] rides with the
    /// opening.
    fn open(&mut self, now: Instant, target: Target) -> Result<StreamKey, Refusal>;
    /// Tells the other side that the server has answered.
    fn accept(&mut self, now: Instant, key: StreamKey);
    /// Tells the other side why there is no connection; the stream is gone.
    fn refuse(&mut self, now: Instant, key: StreamKey, reason: Refusal);
    /// Takes bytes; fewer than given when full, and then [`Event::Writable`] follows.
    fn write(&mut self, now: Instant, key: StreamKey, bytes: &[u8]) -> usize;
    /// Nothing more will be written.
    fn end(&mut self, now: Instant, key: StreamKey);
    /// Gives up both halves; the stream is gone.
    fn reset(&mut self, now: Instant, key: StreamKey);
    /// The next bytes in order; empty when none have come.
    fn peek(&mut self, key: StreamKey) -> &[u8];
    /// Forgets the first `count` bytes; the other side may send as many more.
    fn consume(&mut self, now: Instant, key: StreamKey, count: usize);
    /// Takes a datagram from the network, which may be anything at all.
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]);
    /// Puts what is due into `buffer`, at most `most` datagrams.
    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8], most: usize) -> Option<Outgoing>;
    /// A datagram of `len` bytes to `destination` was larger than the path takes.
    fn too_big(&mut self, now: Instant, destination: SocketAddr, len: usize);
    /// When [`Carrier::handle_timeout`] wants to be called, or more can be sent.
    fn poll_timeout(&self) -> Option<Instant>;
    /// The time of [`Carrier::poll_timeout`] has come.
    fn handle_timeout(&mut self, now: Instant);
    /// What happened since the last call.
    fn poll_event(&mut self) -> Option<Event>;
    /// Says farewell to all peers; what is to be sent for it is sent next.
    fn close(&mut self, now: Instant);
    /// Its counters, for the report.
    fn statistics(&self) -> serde_json::Value;
}
