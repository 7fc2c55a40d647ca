//! Accepting clients, and not accepting them while there is no room.

use crate::host;
use crate::service::handed;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

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
    socket: TcpListener,
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    /// The address that was asked for, which may leave the port to the system.
    pub(crate) wanted: SocketAddr,
    /// Clients may be waiting.
    ready: bool,
}

/// What came of accepting.
#[derive(Debug)]
pub(super) enum Accepted {
    /// A client and its address.
    Client(TcpStream, SocketAddr),
    /// Nobody waits.
    Nobody,
    /// The system has no descriptor or memory for another client: try again later.
    NoRoom(io::Error),
}

impl Listener {
    /// A listener of one's own on `address`.
    pub(crate) fn bind(address: SocketAddr, kind: Kind) -> io::Result<Self> {
        if let Some(socket) = handed::listener(address) {
            let listener = Self::from_std(socket, kind)?;
            return Ok(Self { wanted: address, ..listener });
        }
        // An IPv4 listener on the same port is a listener of its own.
        let listener = Self::from_std(listen_on(address, true)?, kind)?;
        Ok(Self { wanted: address, ..listener })
    }

    /// A listener that somebody else has made; it must not block.
    pub(crate) fn from_std(socket: std::net::TcpListener, kind: Kind) -> io::Result<Self> {
        let address = socket.local_addr()?;
        let socket = TcpListener::from_std(socket);
        Ok(Self { socket, kind, address, wanted: address, ready: true })
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.socket, token, Interest::READABLE)
    }

    /// What the service manager keeps over a restart, and by what name.
    pub(crate) fn to_keep(&self) -> (String, BorrowedFd<'_>) {
        let kind = match self.kind {
            Kind::Transparent => "intercept",
            Kind::Socks5 => "socks5",
            Kind::HttpConnect => "connect",
        };
        (handed::name_of(kind, self.address), self.socket.as_fd())
    }

    /// The socket itself.
    pub(super) fn socket(&self) -> &TcpListener {
        &self.socket
    }

    /// Clients are waiting.
    pub(super) fn is_ready(&mut self) {
        self.ready = true;
    }

    /// Whether clients may be waiting.
    pub(super) fn may_accept(&self) -> bool {
        self.ready
    }

    /// The next client.
    pub(super) fn accept(&mut self) -> Accepted {
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

/// A listener on `address`, which this host need not have yet; it does not block. One on an IPv6
/// address takes IPv4 clients as well, where the system says so, unless it is for `only_v6`.
pub(crate) fn listen_on(address: SocketAddr, only_v6: bool) -> io::Result<std::net::TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    if address.is_ipv6() && only_v6 {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    host::bind(&socket, address)?;
    socket.listen(1024)?;
    Ok(socket.into())
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
