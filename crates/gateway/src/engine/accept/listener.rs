//! Accepting clients, and not accepting them while there is no room.

use crate::engine::host::{Host, ListenSocket, Socket, Source};
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// What a client is expected to say first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing to us: it was intercepted on its way to the address that its socket has.
    Transparent,
    /// SOCKS5.
    Socks5,
    /// HTTP CONNECT.
    HttpConnect,
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Box<dyn ListenSocket>,
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    /// The address that was asked for, which may leave the port to the system.
    pub(crate) wanted: SocketAddr,
    /// Clients may be waiting.
    ready: bool,
}

/// What came of accepting.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// A client and its address.
    Client(Socket, SocketAddr),
    /// Nobody waits.
    Nobody,
    /// The system has no descriptor or memory for another client: try again later.
    NoRoom(io::Error),
}

impl Listener {
    /// A listener on `address`, where `wanted` was asked for.
    pub(crate) fn new(
        socket: Box<dyn ListenSocket>,
        kind: Kind,
        (address, wanted): (SocketAddr, SocketAddr),
    ) -> Self {
        Self { socket, kind, address, wanted, ready: true }
    }

    /// Has the host report its clients as those of the listener with this number.
    pub(crate) fn watch(&self, host: &mut dyn Host, number: usize) -> io::Result<()> {
        host.watch(self.socket.id(), Source::Listener(number))
    }

    /// The kernel's descriptor, where there is one.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.descriptor()
    }

    /// Clients are waiting.
    pub(crate) fn is_ready(&mut self) {
        self.ready = true;
    }

    /// Whether clients may be waiting.
    pub(crate) fn may_accept(&self) -> bool {
        self.ready
    }

    /// The next client.
    pub(crate) fn accept(&mut self) -> Accepted {
        loop {
            match self.socket.accept() {
                Ok((stream, client)) => return Accepted::Client(stream, client),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.ready = false;
                    return Accepted::Nobody;
                }
                // The client went away again, or its network did: not our trouble.
                Err(error) if is_passing(&error) => tracing::debug!(%error, "a client was gone"),
                // No descriptors, no memory, or something that trying at once would not cure.
                Err(error) => return Accepted::NoRoom(error),
            }
        }
    }
}

/// An error of the client's, not of the listener's.
fn is_passing(error: &io::Error) -> bool {
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
