//! One connection of the table, and the stages that the connections of every role have.

use crate::engine::host::{Readiness, Socket};
use crate::engine::limits::rates::QuotaOwner;
use crate::engine::peers::peer::StreamKey;
use crate::engine::resolver::QueryId;
use crate::engine::transfer::close_cause::CloseCause;
use crate::engine::transfer::connection_info::ConnectionInfo;
use crate::engine::transfer::final_reply::FinalReply;
use crate::engine::transfer::last_bytes::{LastBytes, Towards};
use crate::engine::transfer::socket_pair::SocketPair;
use crate::engine::transfer::splice::Splice;
use crate::engine::transfer::unresponsive;
use std::fmt::Debug;
use units::{Instant, Span};

/// A connection from accepting or opening it to its last byte. `S` has the stages of the role.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    /// Unique number, unlike the index in the table, which is used again.
    pub(crate) id: u64,
    /// Addresses, start and octet counts for reports.
    pub(crate) info: ConnectionInfo,
    /// Cause of its end, as far as it is known.
    pub(crate) close_cause: CloseCause,
    /// The client's socket at a terminal, the server's at a hub; a hub has none at first.
    pub(crate) socket: Option<Socket>,
    /// The relay's stream; a terminal has none at first.
    pub(crate) key: Option<StreamKey>,
    /// Owner of its quota: a terminal at a hub, a client at a terminal.
    pub(crate) quota_owner: Option<QuotaOwner>,
    /// Present stage.
    pub(crate) stage: S,
    /// The stream's end was announced before there was a splice.
    pub(crate) stream_ended: bool,
    /// The stream was reset behind bytes that can still be read.
    pub(crate) ending_stream: bool,
    /// Bytes that a proxy client sent behind its request and that the stream has not taken yet.
    pub(crate) pending_input: Vec<u8>,
    /// Deadline of the stage, as registered with the table's deadlines.
    pub(crate) due: Option<Instant>,
    /// Time since which data to the socket's peer has been unacknowledged.
    pub(crate) unacked_since: Option<Instant>,
    /// Whether it is queued for a turn.
    pub(crate) is_queued: bool,
}

impl<S: Stage> Connection<S> {
    /// Whether bytes are copied between two ends and neither has been reset.
    pub(crate) fn is_open(&self) -> bool {
        match self.stage.transfer() {
            Some(Transfer::Spliced(_)) => true,
            Some(Transfer::Direct(direct)) => !direct.pair.is_closing(),
            Some(Transfer::LastBytes(_) | Transfer::FinalReply(_)) | None => false,
        }
    }

    /// Whether an end of the open connection has not acknowledged anything for `longest`.
    pub(crate) fn has_vanished(&mut self, now: Instant, longest: Span) -> bool {
        if !self.is_open() {
            return false;
        }
        let Some(socket) = self.socket.as_deref() else { return false };
        match self.stage.transfer_mut() {
            Some(Transfer::Direct(direct)) => direct
                .server
                .as_deref()
                .is_some_and(|server| direct.pair.has_vanished(now, [socket, server], longest)),
            _ => unresponsive::has_vanished(
                now,
                socket.unanswered_for(),
                &mut self.unacked_since,
                longest,
            ),
        }
    }
}

/// The stages of a role's connections.
pub(crate) trait Stage: Debug + From<Transfer> {
    /// Returns the stage that all roles have, if the connection is in one.
    fn transfer(&self) -> Option<&Transfer>;

    /// Returns the same to be changed.
    fn transfer_mut(&mut self) -> Option<&mut Transfer>;

    /// Returns the query whose result the connection waits for.
    fn query(&self) -> Option<QueryId>;

    /// Whether an error of the socket ends the connection at once: reading does not find it while
    /// the stream takes no bytes.
    fn takes_socket_errors(&self) -> bool;

    /// Returns its name in status reports.
    fn name(&self) -> &'static str;
}

/// The stages in which bytes are moved.
#[derive(Debug)]
pub(crate) enum Transfer {
    /// Bytes are copied between the socket and the stream.
    Spliced(Splice),
    /// One end was reset; the other receives the bytes that came before, and a reset.
    LastBytes(Box<LastBytes>),
    /// Bytes are copied between the client's socket and the server's, without a hub.
    Direct(Box<Direct>),
    /// The client receives a last message and an orderly end.
    FinalReply(FinalReply),
}

impl Transfer {
    /// Notes that the socket is ready.
    pub(crate) fn on_readiness(&mut self, ready: Readiness) {
        if let Self::Spliced(splice) = self {
            if ready.readable {
                splice.socket_is_readable();
            }
            if ready.writable {
                splice.socket_is_writable();
            }
        }
    }

    /// As [`Stage::takes_socket_errors`].
    pub(crate) fn takes_socket_errors(&self) -> bool {
        match self {
            Self::Spliced(_) => true,
            Self::LastBytes(last) => last.towards() == Towards::Socket,
            Self::Direct(_) | Self::FinalReply(_) => false,
        }
    }

    /// Returns its name in status reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Spliced(_) => "open",
            Self::LastBytes(last) => match last.towards() {
                Towards::Socket => "emptying",
                Towards::Stream => "breaking",
            },
            Self::Direct(_) => "direct",
            Self::FinalReply(_) => "farewell",
        }
    }
}

/// A connection that a terminal has made without a hub.
#[derive(Debug)]
pub(crate) struct Direct {
    /// The server's socket, until it is closed.
    pub(crate) server: Option<Socket>,
    pub(crate) pair: SocketPair,
}
