//! Interface types of streams: target, priority, events and errors.

use core::fmt;
use std::net::SocketAddr;

/// Identifier of a stream, the same at both ends, unique in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// The side that opened the stream is the first bit, so that each side's streams are in order.
    key: u32,
}

/// Maximum number of a stream; a session that has used all numbers opens no more.
pub(crate) const MAX_NUMBER: u32 = (1 << 28) - 1;
const HUB_BIT: u32 = 1 << 31;

impl StreamId {
    pub(crate) const fn new(number: u32, opened_by_hub: bool) -> Self {
        Self { key: if opened_by_hub { number | HUB_BIT } else { number } }
    }

    /// Returns the number, counted by the side that opened the stream.
    pub const fn number(self) -> u32 {
        self.key & !HUB_BIT
    }

    /// Returns whether the hub opened it.
    pub const fn opened_by_hub(self) -> bool {
        self.key & HUB_BIT != 0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.opened_by_hub() { 'h' } else { 't' }, self.number())
    }
}

/// Destination of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// An address and a port.
    Address(SocketAddr),
    /// A name that the peer gateway resolves (at most 255 bytes), and a port.
    Name(String, u16),
}

/// Name of the hub's name servers as a destination. No host has it (RFC 6761, section 6.4), so a hub
/// that does not know it refuses the stream.
pub const NAME_SERVERS: &str = "name-servers.invalid";

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            // The name is input from the network, so control characters are escaped in logs.
            Self::Name(name, port) => write!(f, "{}:{port}", name.escape_debug()),
        }
    }
}

/// Target of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The destination.
    pub destination: Destination,
    /// The client's address, for a peer gateway that uses it as source address.
    pub source: Option<SocketAddr>,
}

impl Target {
    /// Returns the target `address`, without a client.
    pub fn address(address: SocketAddr) -> Self {
        Self { destination: Destination::Address(address), source: None }
    }

    /// Returns the target `port` of the host `name`, without a client.
    pub fn name(name: &str, port: u16) -> Self {
        Self { destination: Destination::Name(name.into(), port), source: None }
    }

    /// Returns the same target with the client at `source`.
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

/// Priority of a stream's bytes.
///
/// A sparse [`Normal`](Priority::Normal) stream is served as an interactive one, so most callers
/// need no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Before all others.
    Interactive,
    /// Before others while it is sparse, otherwise in turn with other bulk.
    #[default]
    Normal,
    /// When no other data is queued, and one turn in eight when there is.
    Background,
}

/// Reason for refusing a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefuseReason {
    /// The server sent a RST.
    ConnectionRefused,
    /// No route to the server in its network.
    HostUnreachable,
    /// No route to the server's network.
    NetworkUnreachable,
    /// The server did not respond in time.
    TimedOut,
    /// Forbidden by configuration.
    Policy,
    /// The name has no address.
    NameNotFound,
    /// Too many connections.
    Limit,
    /// Any other reason.
    Other,
}

impl RefuseReason {
    /// Returns a description of the reason.
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

/// Reason for a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetReason {
    /// The TCP connection of the stream was reset.
    Aborted,
    /// Closed by the peer gateway itself (shutdown, policy).
    Local,
    /// A timeout at the peer gateway.
    TimedOut,
    /// The stream's frames were contradictory.
    Protocol,
}

/// Reason in a RESET frame, which stands for a refusal or for a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Reset(ResetReason),
    Refused(RefuseReason),
    /// The opening of the stream has an undefined value.
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

    /// Returns the meaning of a code; an unknown one is interpreted by its range.
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

/// Event for the layer above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session with the peer is open.
    Connected,
    /// The session has ended with all its streams (without an event for each).
    Disconnected {
        /// The reason.
        reason: DisconnectReason,
    },
    /// The peer opened a stream: connect to the target, then call `accept` or `refuse`.
    Opened {
        /// The stream.
        stream: StreamId,
        /// The target.
        target: Target,
    },
    /// The peer gateway has connected to the target.
    Accepted {
        /// The stream.
        stream: StreamId,
    },
    /// The peer gateway could not connect. The stream is closed.
    Refused {
        /// The stream.
        stream: StreamId,
        /// The reason.
        reason: RefuseReason,
    },
    /// New bytes can be read by `peek`.
    Readable {
        /// The stream.
        stream: StreamId,
    },
    /// There is room for `write` again.
    Writable {
        /// The stream.
        stream: StreamId,
    },
    /// The peer finished its side, and every byte of it was consumed.
    Ended {
        /// The stream.
        stream: StreamId,
    },
    /// The peer reset the stream after bytes that can still be read: `Reset` follows when all of
    /// them were consumed. Nothing more can be written; `reset` discards the bytes.
    Ending {
        /// The stream.
        stream: StreamId,
        /// The reason.
        reason: ResetReason,
    },
    /// The peer reset the stream. The stream is closed.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The reason.
        reason: ResetReason,
    },
    /// Both sides are finished and all bytes are acknowledged. The stream is closed.
    Released {
        /// The stream.
        stream: StreamId,
    },
}

/// Reason for the end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The peer restarted.
    PeerRestarted,
    /// The peer has not responded within the configured timeout.
    NoResponse,
    /// The peer closed the session.
    Closed,
    /// The peer sent a frame that this side could not decode.
    Unreadable {
        /// First octet of the frame.
        frame: u8,
    },
    /// The peer could not decode a frame of this side.
    Rejected {
        /// First octet of the frame.
        frame: u8,
    },
}

/// Reason for not opening a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The peer's limit on open streams is reached.
    Limit {
        /// Number of open streams.
        open: usize,
        /// Maximum number of open streams.
        limit: usize,
    },
    /// The target's name is empty or longer than 255 bytes.
    Name {
        /// Its length, bytes.
        len: usize,
    },
    /// Every stream number of this session has been used.
    Numbers,
    /// The session is ending in order and opens no streams.
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

/// Error of a call for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// There is no such stream, or it is closed.
    Unknown(StreamId),
    /// This side has finished the stream already.
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
    fn control_characters_in_names_are_escaped() {
        assert_eq!(Target::name("server.example", 80).to_string(), "server.example:80");
        let evil = Target::name("a\nERROR \u{1b}[31m", 80);
        assert_eq!(evil.to_string(), "a\\nERROR \\u{1b}[31m:80");
    }
}
