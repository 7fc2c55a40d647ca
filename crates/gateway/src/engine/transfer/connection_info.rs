//! What people want to know of a connection: who, where to, since when, and how much.

use relay::Destination;
use std::net::SocketAddr;
use units::Instant;

/// A connection as an operator sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// When it was accepted, or opened by the terminal.
    pub(crate) since: Instant,
    /// Who connected, as far as it is known.
    pub(crate) client: Option<SocketAddr>,
    /// Where to; not known while a proxy's client is still asked.
    pub(crate) server: Option<Destination>,
    /// Bytes read from its socket.
    pub(crate) from_socket: u64,
    /// Bytes written to its socket.
    pub(crate) to_socket: u64,
}

impl About {
    /// A connection that began at `since`.
    pub(crate) fn new(
        since: Instant,
        client: Option<SocketAddr>,
        server: Option<Destination>,
    ) -> Self {
        Self { since, client, server, ..Self::default() }
    }
}
