//! Listening sockets.

use crate::engine::host::{Host, ListenSocket, Socket, Source};
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// Protocol of the clients of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// None: clients are intercepted, and their sockets have the address of the original
    /// destination.
    Transparent,
    /// SOCKS5.
    Socks5,
    /// HTTP CONNECT.
    HttpConnect,
    /// DNS.
    Dns,
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Box<dyn ListenSocket>,
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    /// Configured address, whose port may be 0.
    pub(crate) wanted: SocketAddr,
    /// Clients may be in the accept queue.
    ready: bool,
}

/// Result of accepting.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// A client and its address.
    Client(Socket, SocketAddr),
    /// The accept queue is empty.
    Empty,
    /// The system has no descriptor or memory for another client: try again later.
    Exhausted(io::Error),
}

impl Listener {
    /// A listener on `address`, for which `wanted` was configured.
    pub(crate) fn new(
        socket: Box<dyn ListenSocket>,
        kind: Kind,
        (address, wanted): (SocketAddr, SocketAddr),
    ) -> Self {
        Self { socket, kind, address, wanted, ready: true }
    }

    /// Watches the socket as the source with this number.
    pub(crate) fn watch(&self, host: &mut dyn Host, number: usize) -> io::Result<()> {
        host.watch(self.socket.id(), Source::Listener(number))
    }

    /// Ends [`Listener::watch`].
    pub(crate) fn unwatch(&self, host: &mut dyn Host) {
        host.unwatch(self.socket.id());
    }

    /// The kernel's descriptor, where there is one.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.descriptor()
    }

    /// Notes that clients are in the accept queue.
    pub(crate) fn is_ready(&mut self) {
        self.ready = true;
    }

    /// Whether clients may be in the accept queue.
    pub(crate) fn may_accept(&self) -> bool {
        self.ready
    }

    /// Accepts the next client.
    pub(crate) fn accept(&mut self) -> Accepted {
        loop {
            match self.socket.accept() {
                Ok((stream, client)) => return Accepted::Client(stream, client),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.ready = false;
                    return Accepted::Empty;
                }
                // The error is of this client or its network only.
                Err(error) if is_transient(&error) => {
                    tracing::debug!(%error, "client disconnected before it was accepted");
                }
                // There are no descriptors or no memory, which an immediate retry would not change.
                Err(error) => return Accepted::Exhausted(error),
            }
        }
    }
}

/// Whether the error concerns one client and not the listener.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ECONNABORTED
                | libc::EINTR
                | libc::EPROTO
                | libc::EPERM
                | libc::ENETDOWN
                | libc::ENETUNREACH
                | libc::EHOSTDOWN
                | libc::EHOSTUNREACH
                | libc::ENOPROTOOPT
                | libc::EOPNOTSUPP
                | libc::ETIMEDOUT
        )
    )
}
