//! A client's socket and a server's, of which one leads over the satellite.

use crate::engine::host::{Close, Socket, TcpSocket};
use crate::engine::transfer::last_bytes::Progress;
use crate::engine::transfer::socket_pair::{Shaper, Side, SocketPair, Tally, Turn};
use crate::engine::transfer::token_bucket::TokenBucket;
use std::net::SocketAddr;
use units::{Instant, Span};

/// A connection of a single gateway.
#[derive(Debug)]
pub(super) struct Pair {
    /// Unique number, unlike the index in the table, which is used again.
    pub(super) number: u64,
    pub(super) client: Socket,
    pub(super) server: Socket,
    pub(super) addresses: (SocketAddr, SocketAddr),
    /// The server has not answered yet. What the client sends meanwhile stays in its socket.
    pub(super) is_connecting: bool,
    pub(super) since: Instant,
    /// Octets that it has moved.
    pub(super) moved: Tally,
    /// Cause of its end, once it has ended.
    pub(super) cause: &'static str,
    /// The side that leads over the satellite.
    pub(super) satellite: Side,
    pipes: SocketPair,
    /// Retransmissions over the satellite that were charged to the bucket, in segments.
    retransmitted: u32,
    /// Deadline of connecting, or of the next check of last bytes.
    pub(super) due: Option<Instant>,
    /// Whether it is queued for a turn.
    pub(super) in_turn: bool,
    /// Whether it is queued for tokens.
    pub(super) awaits_tokens: bool,
}

impl Pair {
    /// An intercepted client, and the socket that is being connected for it.
    pub(super) fn new(
        client: Socket,
        server: Socket,
        addresses: (SocketAddr, SocketAddr),
        satellite: Side,
        since: Instant,
    ) -> Self {
        Self {
            number: 0,
            client,
            server,
            addresses,
            is_connecting: true,
            since,
            moved: Tally::default(),
            cause: "ended by the gateway",
            satellite,
            pipes: SocketPair::new(Vec::new(), Vec::new()),
            retransmitted: 0,
            due: None,
            in_turn: false,
            awaits_tokens: false,
        }
    }

    /// Notes that the socket of this side is ready.
    pub(super) fn ready(&mut self, side: Side, readable: bool, writable: bool) {
        self.pipes.on_readiness(side, readable, writable);
    }

    /// Whether bytes are copied in both directions.
    pub(super) fn is_open(&self) -> bool {
        !self.is_connecting && !self.pipes.is_closing()
    }

    /// Whether a socket has failed, and the other receives the last bytes.
    pub(super) fn is_closing(&self) -> bool {
        self.pipes.is_closing()
    }

    /// Moves what can be moved in both directions; towards the satellite as far as there are
    /// tokens, and nothing while other connections have waited longer for them.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        bucket: Option<&mut TokenBucket>,
        scratch: &mut [u8],
        tally: &mut Tally,
    ) -> Turn {
        let (towards, is_queued) = (self.satellite, self.awaits_tokens);
        let shaper = bucket.map(|bucket| Shaper { bucket, towards, is_queued });
        self.pipes.run(now, [&*self.client, &*self.server], shaper, scratch, tally)
    }

    /// Notes that the socket of this side has failed.
    pub(super) fn fail(&mut self, now: Instant, side: Side) {
        let sink = match side {
            Side::Client => &*self.server,
            Side::Server => &*self.client,
        };
        self.pipes.fail(now, side, sink);
    }

    /// Moves the last bytes after a failure.
    pub(super) fn run_last_bytes(
        &mut self,
        now: Instant,
        scratch: &mut [u8],
        tally: &mut Tally,
    ) -> Progress {
        self.pipes.run_last_bytes(now, [&*self.client, &*self.server], scratch, tally)
    }

    /// Returns how many of the octets of `tally` went over the satellite.
    pub(super) fn to_satellite(&self, tally: Tally) -> u64 {
        match self.satellite {
            Side::Server => tally.to_server,
            Side::Client => tally.written - tally.to_server,
        }
    }

    /// Returns what the kernel has retransmitted over the satellite since the last call: segments,
    /// and octets.
    pub(super) fn take_retransmitted(&mut self) -> (u64, u64) {
        let Some((all, size)) = self.facing().retransmitted() else { return (0, 0) };
        let segments = all.wrapping_sub(self.retransmitted);
        self.retransmitted = all;
        (u64::from(segments), u64::from(segments) * u64::from(size))
    }

    /// Whether a peer of the two sockets has not acknowledged anything for `longest`.
    pub(super) fn has_vanished(&mut self, now: Instant, longest: Span) -> bool {
        self.pipes.has_vanished(now, [&*self.client, &*self.server], longest)
    }

    /// Closes both sockets in good order.
    pub(super) fn close(self) {
        self.client.close(Close::Graceful);
        self.server.close(Close::Graceful);
    }

    /// Resets both sockets.
    pub(super) fn reset(self) {
        self.client.close(Close::Reset);
        self.server.close(Close::Reset);
    }

    fn facing(&self) -> &dyn TcpSocket {
        match self.satellite {
            Side::Client => &*self.client,
            Side::Server => &*self.server,
        }
    }
}
