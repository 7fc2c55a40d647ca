//! What the engine remembers of one connection.

use crate::engine::accept::confirm_queue::Knock;
use crate::engine::connect::direct::Bypass;
use crate::engine::connect::server_connect::Connecting;
use crate::engine::host::Socket;
use crate::engine::limits::rates::Holder;
use crate::engine::peers::relay_set::{Carrier, StreamKey};
use crate::engine::resolver::QueryId;
use crate::engine::transfer::close_cause::Ending;
use crate::engine::transfer::connection_info::About;
use crate::engine::transfer::reset_flush::Emptying;
use crate::engine::transfer::splice::{Splice, Stream};
use crate::proxy::Handshake;
use relay::Target;
use std::net::SocketAddr;
use units::Instant;

/// One connection, from accepting or opening to its last byte.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Never used twice, unlike the place in the table.
    pub(crate) id: u64,
    /// What people want to know of it.
    pub(crate) about: About,
    /// How it ends, as far as that is known.
    pub(crate) ending: Ending,
    /// The client's socket at a terminal, the server's at a hub; a hub has none at first.
    pub(crate) socket: Option<Socket>,
    /// The relay's stream; a terminal has none at first.
    pub(crate) key: Option<StreamKey>,
    /// Whose it is: a terminal's at a hub, a client's at a terminal.
    pub(crate) holder: Option<Holder>,
    /// How far it has come.
    pub(crate) phase: Phase,
    /// The stream's end was announced before there was a splice to tell.
    pub(crate) stream_ended: bool,
    /// The stream was reset behind bytes that can still be read.
    pub(crate) ending_stream: bool,
    /// What the client of a proxy sent with its request and the stream has not taken yet.
    pub(crate) kept: Vec<u8>,
    /// When something must have happened; kept with the engine's deadlines.
    pub(crate) due: Option<Instant>,
    /// Since when the other end of the socket was seen to owe TCP an answer.
    pub(crate) owing: Option<Instant>,
    /// Whether it waits for its turn.
    pub(crate) in_turn: bool,
}

impl Connection {
    /// Whether what comes by its stream goes to its socket.
    pub(crate) fn is_handing_out(&self) -> bool {
        matches!(self.phase, Phase::Spliced(_) | Phase::Emptying(_))
    }

    /// Whether a hub is still connecting to its server.
    pub(crate) fn is_on_its_way(&self) -> bool {
        matches!(self.phase, Phase::Connecting(_))
    }
}

/// How far a connection has come.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Terminal: the client tells a proxy what it wants.
    Asking(Asking),
    /// Terminal: the stream is opened as soon as the client's first bytes are there, or at the
    /// deadline, when it is the server that speaks first.
    Greeting {
        /// Where to.
        target: Target,
        /// What is left of a proxy's answer to the client.
        preface: Vec<u8>,
    },
    /// Terminal: the client was intercepted, and is answered when the hub has answered.
    Knocking(Knock),
    /// Terminal: the client of a proxy is answered when the hub has answered.
    Confirming(Handshake),
    /// Terminal: it is carried without a hub.
    Direct(Box<Bypass>),
    /// Terminal: a last message to the client, and then no more.
    Farewell {
        /// What is left of it.
        message: Vec<u8>,
        /// The client was told that nothing more follows.
        ended: bool,
    },
    /// Hub: the server's name is being looked up, or the server is being connected to.
    Connecting(Box<Onward>),
    /// Socket and stream are one.
    Spliced(Splice),
    /// The stream was reset; what came by it before that is handed out, and a reset follows.
    Emptying(Box<Emptying>),
    /// The socket broke; what it gave before that is on its way, and a reset follows.
    Breaking(Breaking),
}

impl Phase {
    /// The query whose answer is waited for.
    pub(crate) fn query(&self) -> Option<QueryId> {
        match self {
            Self::Connecting(onward) => onward.server.query(),
            Self::Direct(bypass) => bypass.query(),
            Self::Asking(_)
            | Self::Greeting { .. }
            | Self::Knocking(_)
            | Self::Confirming(_)
            | Self::Farewell { .. }
            | Self::Spliced(_)
            | Self::Emptying(_)
            | Self::Breaking(_) => None,
        }
    }

    /// Where to, while that is kept here.
    pub(crate) fn target(&self) -> Option<&Target> {
        if let Self::Greeting { target, .. } = self { Some(target) } else { None }
    }
}

/// What is left of a connection whose socket broke.
#[derive(Debug)]
pub(crate) struct Breaking {
    /// Read from the socket and not taken by the stream yet.
    pub(crate) kept: Vec<u8>,
    /// The socket has nothing more to read.
    pub(crate) drained: bool,
    /// Bytes that the stream held when the socket broke, and those written since.
    pub(crate) written: u64,
    /// How many of these the other side had when some were last seen to arrive.
    pub(crate) arrived: Option<u64>,
    /// When that was.
    pub(crate) moved: Instant,
    /// When to give up waiting, unless more arrive by then.
    pub(crate) patience: Instant,
}

/// A client that tells a proxy what it wants.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) handshake: Handshake,
    /// Answers on the way that the socket did not take yet.
    pub(crate) reply: Vec<u8>,
    pub(crate) client: SocketAddr,
}

/// A server that a hub tries to reach.
#[derive(Debug)]
pub(crate) struct Onward {
    pub(crate) server: Connecting,
    /// The client's own address, from which to connect.
    pub(crate) source: Option<SocketAddr>,
}

/// A carrier's stream, as a splice sees it.
#[derive(Debug)]
pub(crate) struct Carried<'a> {
    pub(crate) carrier: &'a mut Carrier,
    pub(crate) key: StreamKey,
    pub(crate) now: Instant,
    /// Bytes from the socket into the stream.
    pub(crate) taken_in: &'a mut u64,
    /// Bytes from the stream into the socket.
    pub(crate) handed_out: &'a mut u64,
}

impl Stream for Carried<'_> {
    fn write(&mut self, bytes: &[u8]) -> usize {
        let count = self.carrier.write(self.now, self.key, bytes);
        *self.taken_in += count as u64;
        count
    }

    fn end(&mut self) {
        self.carrier.end(self.key);
    }

    fn peek(&mut self) -> &[u8] {
        self.carrier.peek(self.key)
    }

    fn consume(&mut self, count: usize) {
        self.carrier.consume(self.now, self.key, count);
        *self.handed_out += count as u64;
    }
}
