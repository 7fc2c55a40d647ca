//! Opening of listeners, and reuse of those that a service manager has kept.

use super::tcp::KernelListener;
use crate::engine::{Kind, Listener};
use crate::host;
use crate::service::handed;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// Opens a listener on `address`.
pub(crate) fn bind(address: SocketAddr, kind: Kind) -> io::Result<Listener> {
    let socket = match handed::listener(address) {
        Some(socket) => socket,
        // An IPv4 listener on the same port is a separate socket.
        None => listen_on(address, true)?,
    };
    let local = socket.local_addr()?;
    Ok(Listener::new(KernelListener::from_std(socket), kind, (local, address)))
}

/// Converts a listener that was opened elsewhere; it is nonblocking.
pub(crate) fn from_std(socket: std::net::TcpListener, kind: Kind) -> io::Result<Listener> {
    let address = socket.local_addr()?;
    Ok(Listener::new(KernelListener::from_std(socket), kind, (address, address)))
}

/// Returns the socket that the service manager keeps across a restart, and its name.
pub(crate) fn to_keep(listener: &Listener) -> Option<(String, BorrowedFd<'_>)> {
    let kind = match listener.kind {
        Kind::Transparent => "intercept",
        Kind::Socks5 => "socks5",
        Kind::HttpConnect => "connect",
        Kind::Dns => "dns",
    };
    Some((handed::name_of(kind, listener.address), listener.descriptor()?))
}

/// Opens a nonblocking listener on `address`, which this host need not have yet. On an IPv6 address
/// it also accepts IPv4 clients if the system permits it, except with `only_v6`.
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
