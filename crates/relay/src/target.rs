//! What the layers above say about streams: where to, how urgent, and why not.

use core::fmt;
use std::net::SocketAddr;

/// A stream's name, the same at both ends. Never used twice in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// The first bit is the side that opened it, so that each side's streams are in order.
    key: u32,
}

/// Largest number of a stream; a session that has used them all opens no more.
pub(crate) const MAX_NUMBER: u32 = (1 << 28) - 1;
const HUB_BIT: u32 = 1 << 31;

impl StreamId {
    pub(crate) const fn new(number: u32, opened_by_hub: bool) -> Self {
        Self { key: if opened_by_hub { number | HUB_BIT } else { number } }
    }

    /// The number, counted by the side that opened the stream.
    pub const fn number(self) -> u32 {
        self.key & !HUB_BIT
    }

    /// Whether the hub opened it; else the terminal did.
    pub const fn opened_by_hub(self) -> bool {
        self.key & HUB_BIT != 0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.opened_by_hub() { 'h' } else { 't' }, self.number())
    }
}

/// Where the far end connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// An address and a port.
    Address(SocketAddr),
    /// A name that the far end resolves (at most 255 bytes), and a port.
    Name(String, u16),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            // It came from outside: logs and terminals are not to obey it.
            Self::Name(name, port) => write!(f, "{}:{port}", name.escape_debug()),
        }
    }
}

/// What a stream is opened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where to.
    pub destination: Destination,
    /// The client's own address, for a far end that connects with it.
    pub source: Option<SocketAddr>,
}

impl Target {
    /// A connection to `address`, from nobody in particular.
    pub fn address(address: SocketAddr) -> Self {
        Self { destination: Destination::Address(address), source: None }
    }

    /// A connection to `port` of the host called `name`, from nobody in particular.
    pub fn name(name: &str, port: u16) -> Self {
        Self { destination: Destination::Name(name.into(), port), source: None }
    }

    /// The same on behalf of the client at `source`.
    #[must_use]
    pub fn from(self, source: SocketAddr) -> Self {
        Self { source: Some(source), ..self }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.destination.fmt(f)
    }
}

/// How urgent a stream's bytes are.
///
/// A [`Normal`](Priority::Normal) stream that has sent little lately is served as an interactive
/// one, so most callers need no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Before all others.
    Interactive,
    /// Before others while it sends little, then in turn with its like.
    #[default]
    Normal,
    /// When nothing else is to be sent (and an eighth of the time when there is).
    Background,
}

/// Why a connection that was asked for is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefuseReason {
    /// The server answered with a reset.
    ConnectionRefused,
    /// No answer from the server's network about the server.
    HostUnreachable,
    /// No route to the server's network.
    NetworkUnreachable,
    /// The server did not answer in time.
    TimedOut,
    /// The gateways' configuration forbids it.
    Policy,
    /// The name has no address.
    NameNotFound,
    /// Too many connections already.
    Limit,
    /// Anything else.
    Other,
}

impl RefuseReason {
    /// The reason in words, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ConnectionRefused => "the server refused the connection",
            Self::HostUnreachable => "the server cannot be reached",
            Self::NetworkUnreachable => "the server's network cannot be reached",
            Self::TimedOut => "the server did not answer in time",
            Self::Policy => "the gateway's configuration does not allow this destination",
            Self::NameNotFound => "the server's name has no address",
            Self::Limit => "the gateway has too many connections open",
            Self::Other => "the gateway could not make the connection",
        }
    }
}

/// Why a stream ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetReason {
    /// The connection beside the relay was reset.
    Aborted,
    /// The far gateway gave it up by itself (shutdown, policy).
    Local,
    /// The far gateway waited too long for something.
    TimedOut,
    /// Its frames contradicted each other.
    Protocol,
}

/// Why a stream is cut off: the two kinds share a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Reset(ResetReason),
    Refused(RefuseReason),
    /// The opening of the stream has a value that is not defined.
    BadOpening,
}

impl Cut {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Reset(ResetReason::Aborted) => 0,
            Self::Reset(ResetReason::Local) => 1,
            Self::Reset(ResetReason::TimedOut) => 2,
            Self::Reset(ResetReason::Protocol) => 3,
            Self::Refused(RefuseReason::Other) => 64,
            Self::Refused(RefuseReason::ConnectionRefused) => 65,
            Self::Refused(RefuseReason::HostUnreachable) => 66,
            Self::Refused(RefuseReason::NetworkUnreachable) => 67,
            Self::Refused(RefuseReason::TimedOut) => 68,
            Self::Refused(RefuseReason::Policy) => 69,
            Self::Refused(RefuseReason::NameNotFound) => 70,
            Self::Refused(RefuseReason::Limit) => 71,
            Self::BadOpening => 72,
        }
    }

    /// The meaning of a code; one that a later version made is taken by its kind.
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Reset(ResetReason::Aborted),
            2 => Self::Reset(ResetReason::TimedOut),
            3 => Self::Reset(ResetReason::Protocol),
            1 | 4..=63 => Self::Reset(ResetReason::Local),
            65 => Self::Refused(RefuseReason::ConnectionRefused),
            66 => Self::Refused(RefuseReason::HostUnreachable),
            67 => Self::Refused(RefuseReason::NetworkUnreachable),
            68 => Self::Refused(RefuseReason::TimedOut),
            69 => Self::Refused(RefuseReason::Policy),
            70 => Self::Refused(RefuseReason::NameNotFound),
            71 => Self::Refused(RefuseReason::Limit),
            64 | 72..=255 => Self::Refused(RefuseReason::Other),
        }
    }
}

/// What happened on a relay, for the layer above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// There is a session with the peer.
    Connected,
    /// The session is gone, and every stream with it (no further event for each).
    Disconnected {
        /// Why.
        reason: DisconnectReason,
    },
    /// The peer opened a stream: connect, then `accept` or `refuse`.
    Opened {
        /// The stream.
        stream: StreamId,
        /// Where to.
        target: Target,
    },
    /// The far end has connected.
    Accepted {
        /// The stream.
        stream: StreamId,
    },
    /// The far end could not connect. The stream is gone.
    Refused {
        /// The stream.
        stream: StreamId,
        /// Why.
        reason: RefuseReason,
    },
    /// There are new bytes to `peek`.
    Readable {
        /// The stream.
        stream: StreamId,
    },
    /// There is room to `write` again.
    Writable {
        /// The stream.
        stream: StreamId,
    },
    /// The peer ended its half, and every byte of it has been consumed.
    Ended {
        /// The stream.
        stream: StreamId,
    },
    /// The peer reset the stream, behind bytes that can still be read: `Reset` follows when all of
    /// them have been consumed. Nothing more can be written; `reset` forgets them.
    Ending {
        /// The stream.
        stream: StreamId,
        /// Why.
        reason: ResetReason,
    },
    /// The peer reset the stream. The stream is gone.
    Reset {
        /// The stream.
        stream: StreamId,
        /// Why.
        reason: ResetReason,
    },
    /// Both halves are done and the peer has every byte. The stream is gone.
    Released {
        /// The stream.
        stream: StreamId,
    },
}

/// Why a session is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The peer started anew.
    PeerRestarted,
    /// The peer has not answered for longer than the configuration allows.
    NoResponse,
    /// The peer closed the session.
    Closed,
    /// The peer sent a frame that this side could not read.
    Unreadable {
        /// First octet of the frame.
        frame: u8,
    },
    /// The peer could not read a frame of this side.
    Rejected {
        /// First octet of the frame.
        frame: u8,
    },
}

/// Why a stream could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// As many streams are open as the peer takes.
    Limit {
        /// Streams open.
        open: usize,
        /// Streams that may be.
        limit: usize,
    },
    /// The target's name is longer than 255 bytes, or empty.
    Name {
        /// Its length, bytes.
        len: usize,
    },
    /// Every stream number of this session has been used.
    Numbers,
    /// The session is ending in order: no streams are opened in it any more.
    Draining,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit { open, limit } => write!(f, "{open} streams are open of {limit}"),
            Self::Name { len } => write!(f, "target name of {len} bytes; 1 to 255 are possible"),
            Self::Numbers => write!(f, "every stream number of the session has been used"),
            Self::Draining => write!(f, "the session is ending"),
        }
    }
}

impl std::error::Error for OpenError {}

/// Why a call about a stream was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// There is no such stream (any more).
    Unknown(StreamId),
    /// This side has ended its half already.
    Ended(StreamId),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(stream) => write!(f, "there is no stream {stream}"),
            Self::Ended(stream) => write!(f, "this side's half of stream {stream} has ended"),
        }
    }
}

impl std::error::Error for StreamError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_write_lines_or_colours_into_a_log() {
        assert_eq!(Target::name("server.example", 80).to_string(), "server.example:80");
        let evil = Target::name("a\nERROR \u{1b}[31m", 80);
        assert_eq!(evil.to_string(), "a\\nERROR \\u{1b}[31m:80");
    }
}
