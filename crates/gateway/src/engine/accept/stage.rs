//! The stages of a terminal's connections.

use crate::engine::accept::direct::DirectConnect;
use crate::engine::accept::dns_service::{DnsClient, NameLookup};
use crate::engine::resolver::QueryId;
use crate::engine::transfer::connection::{Stage, Transfer};
use crate::engine::transfer::connections::Core;
use crate::engine::transfer::final_reply::FinalReply;
use crate::intercept::Syn;
use crate::proxy::Handshake;
use relay::Target;
use std::net::SocketAddr;

/// A terminal's connections.
pub(crate) type TerminalCore = Core<TerminalStage>;

/// Stage of a terminal's connection.
#[derive(Debug)]
pub(crate) enum TerminalStage {
    /// The client of a proxy has not sent its whole request.
    ProxyHandshake(ProxyClient),
    /// The stream is opened as soon as the client has sent data, or at the deadline, where the
    /// server sends first.
    AwaitingData {
        /// The server.
        target: Target,
        /// The part of a proxy's reply that the client has not taken yet.
        pending_reply: Vec<u8>,
    },
    /// The SYN of an intercepted client is held until the hub has connected to the server.
    SynHeld(PendingSyn),
    /// The client of a proxy is answered when the hub has connected to the server.
    Confirming(Handshake),
    /// The terminal connects to the server by itself.
    DirectConnect(Box<DirectConnect>),
    /// A client of the DNS forwarder by TCP.
    Dns(DnsClient),
    /// The DNS forwarder looks a name up at the hub. There is no client's socket.
    NameLookup(NameLookup),
    /// Bytes are moved.
    Transfer(Transfer),
}

impl TerminalStage {
    /// Returns the stage of a connection that is about to end.
    pub(crate) fn ending() -> Self {
        Transfer::FinalReply(FinalReply::default()).into()
    }
}

impl From<Transfer> for TerminalStage {
    fn from(transfer: Transfer) -> Self {
        Self::Transfer(transfer)
    }
}

impl Stage for TerminalStage {
    fn transfer(&self) -> Option<&Transfer> {
        if let Self::Transfer(transfer) = self { Some(transfer) } else { None }
    }

    fn transfer_mut(&mut self) -> Option<&mut Transfer> {
        if let Self::Transfer(transfer) = self { Some(transfer) } else { None }
    }

    fn query(&self) -> Option<QueryId> {
        if let Self::DirectConnect(direct) = self { direct.query() } else { None }
    }

    fn takes_socket_errors(&self) -> bool {
        match self {
            Self::Transfer(transfer) => transfer.takes_socket_errors(),
            // Nothing is read from the client meanwhile.
            Self::Confirming(_) => true,
            Self::ProxyHandshake(_)
            | Self::AwaitingData { .. }
            | Self::SynHeld(_)
            | Self::Dns(_)
            | Self::NameLookup(_)
            | Self::DirectConnect(_) => false,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::ProxyHandshake(_) => "asking",
            Self::AwaitingData { .. } => "greeting",
            Self::Confirming(_) | Self::SynHeld(_) => "confirming",
            Self::DirectConnect(_) => "direct",
            Self::Dns(_) => "dns",
            Self::NameLookup(_) => "name-lookup",
            Self::Transfer(transfer) => transfer.name(),
        }
    }
}

/// A client of a proxy that has not sent its whole request.
#[derive(Debug)]
pub(crate) struct ProxyClient {
    pub(crate) handshake: Handshake,
    /// Replies that the socket has not taken yet.
    pub(crate) reply: Vec<u8>,
    pub(crate) client: SocketAddr,
}

/// A client whose SYN is held.
#[derive(Debug)]
pub(crate) struct PendingSyn {
    /// Most recent SYN of the client.
    pub(crate) syn: Syn,
    /// The SYN was reinjected because the hub has connected to the server.
    pub(crate) reinjected: bool,
}
