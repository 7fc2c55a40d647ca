//! Client, server, start and octet counts of a connection.

use relay::Destination;
use std::net::SocketAddr;
use units::Instant;

/// Data of a connection for status reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionInfo {
    /// Time at which it was accepted, or opened by the terminal.
    pub(crate) since: Instant,
    /// Address of the client, if known.
    pub(crate) client: Option<SocketAddr>,
    /// Destination; unknown until a proxy client has sent its request.
    pub(crate) server: Option<Destination>,
    /// Octets read from its socket.
    pub(crate) from_socket: u64,
    /// Octets written to its socket.
    pub(crate) to_socket: u64,
}

impl ConnectionInfo {
    /// Data of a connection that began at `since`.
    pub(crate) fn new(
        since: Instant,
        client: Option<SocketAddr>,
        server: Option<Destination>,
    ) -> Self {
        Self { since, client, server, ..Self::default() }
    }
}
