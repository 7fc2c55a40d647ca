//! Sockets with non-local addresses (`IP_TRANSPARENT`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

use crate::service::handed;
use socket2::{Domain, Protocol, Socket, Type};

/// Length of the accept queue; the kernel's own limit may be lower.
const BACKLOG: i32 = 4096;

/// The listeners of a terminal gateway's interception.
#[derive(Debug)]
pub struct Listeners {
    /// On 127.0.0.1.
    pub v4: TcpListener,
    /// On `::1` and the same port; `None` where the host has no IPv6.
    pub v6: Option<TcpListener>,
}

/// Listens for intercepted connections on `port` (0: any free one) of the loopback addresses:
/// the packet filter redirects intercepted connections there, and no other host can reach it. The
/// listeners are nonblocking.
///
/// # Errors
/// The kernel's; `EPERM` without `CAP_NET_ADMIN`.
pub fn listen(port: u16) -> io::Result<Listeners> {
    let v4 = listen_on(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))?;
    let port = v4.local_addr()?.port();
    let v6 = match listen_on(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port)) {
        Ok(listener) => Some(listener),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL) => None,
            _ => return Err(error),
        },
    };
    Ok(Listeners { v4, v6 })
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    if let Some(socket) = handed::listener(address) {
        set_transparent(&socket2::SockRef::from(&socket), address.ip())?;
        return Ok(socket);
    }
    let socket = transparent_socket(address.ip())?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Returns the original destination of an intercepted client, the accepted socket's local
/// address; `None` if the client connected to the listener itself.
pub fn original_destination(local: SocketAddr, listener: SocketAddr) -> Option<SocketAddr> {
    (local != listener).then(|| SocketAddr::new(local.ip().to_canonical(), local.port()))
}

/// Starts connecting to `server` from `client`, a non-local address. The socket is nonblocking.
/// The client's port is kept unless another connection has it.
///
/// The server responds to the client's address: its packets must be routed through this host, and
/// [`Interception::hub`](super::Interception::hub) must be installed to deliver them locally.
///
/// # Errors
/// The kernel's; `EPERM` without `CAP_NET_ADMIN`, `ENETUNREACH` without a route to the server.
pub fn connect_from(client: SocketAddr, server: SocketAddr) -> io::Result<TcpStream> {
    connect_prepared(Some(client), server, |_| Ok(()))
}

/// As [`connect_from`], or from the host's own address where there is no `source`; `prepare` is
/// applied before the first packet is sent.
pub(crate) fn connect_prepared(
    source: Option<SocketAddr>,
    server: SocketAddr,
    prepare: impl Fn(&Socket) -> io::Result<()>,
) -> io::Result<TcpStream> {
    match connect_once(source, server, &prepare) {
        // A client may use one port for several servers, or reuse it immediately.
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL)) =>
        {
            match source.filter(|source| source.port() != 0) {
                Some(source) => {
                    connect_once(Some(SocketAddr::new(source.ip(), 0)), server, &prepare)
                }
                None => Err(error),
            }
        }
        result => result,
    }
}

fn connect_once(
    source: Option<SocketAddr>,
    server: SocketAddr,
    prepare: &impl Fn(&Socket) -> io::Result<()>,
) -> io::Result<TcpStream> {
    let socket = match source {
        Some(source) => {
            let socket = transparent_socket(source.ip())?;
            socket.bind(&source.into())?;
            socket
        }
        None => tcp_socket(server.ip())?,
    };
    prepare(&socket)?;
    match socket.connect(&server.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        Ok(()) | Err(_) => Ok(socket.into()),
    }
}

fn tcp_socket(address: IpAddr) -> io::Result<Socket> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))
}

fn transparent_socket(address: IpAddr) -> io::Result<Socket> {
    let socket = tcp_socket(address)?;
    socket.set_reuse_address(true)?;
    set_transparent(&socket, address)?;
    Ok(socket)
}

fn set_transparent(socket: &Socket, address: IpAddr) -> io::Result<()> {
    match address {
        IpAddr::V4(_) => socket.set_ip_transparent_v4(true),
        IpAddr::V6(_) => socket.set_ip_transparent_v6(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direct_connection_has_no_destination() {
        let listener = "127.0.0.1:1080".parse().unwrap();
        let server = "192.0.2.1:80".parse().unwrap();
        assert_eq!(original_destination(server, listener), Some(server));
        assert_eq!(original_destination(listener, listener), None);
        let mapped = "[::ffff:192.0.2.1]:80".parse().unwrap();
        assert_eq!(original_destination(mapped, "[::1]:1080".parse().unwrap()), Some(server));
    }
}
