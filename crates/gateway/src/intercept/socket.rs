//! Sockets with non-local addresses (`IP_TRANSPARENT`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use crate::service::handed;
use socket2::{Domain, Protocol, Socket, Type};

/// Length of the accept queue; the kernel's own limit may be lower.
const BACKLOG: i32 = 4096;

/// The local address of a connection to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalAddress {
    /// The one that the routing table selects.
    Any,
    /// An address of this host.
    Own(IpAddr),
    /// A client's, which is not this host's, and its port unless another connection has it.
    Client(SocketAddr),
}

impl LocalAddress {
    /// Returns the address, if one is given.
    pub(crate) fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Any => None,
            Self::Own(address) => Some(address),
            Self::Client(client) => Some(client.ip()),
        }
    }
}

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
    connect_prepared(LocalAddress::Client(client), server, |_| Ok(()))
}

/// Starts connecting to `server` from the address `local`, as [`connect_from`] does; `prepare` is
/// applied before the first packet is sent.
pub(crate) fn connect_prepared(
    local: LocalAddress,
    server: SocketAddr,
    prepare: impl Fn(&Socket) -> io::Result<()>,
) -> io::Result<TcpStream> {
    match (connect_once(local, server, &prepare), local) {
        // A client may use one port for several servers, or reuse it immediately.
        (Err(error), LocalAddress::Client(client))
            if client.port() != 0
                && matches!(error.raw_os_error(), Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL)) =>
        {
            let local = LocalAddress::Client(SocketAddr::new(client.ip(), 0));
            connect_once(local, server, &prepare)
        }
        (result, _) => result,
    }
}

fn connect_once(
    local: LocalAddress,
    server: SocketAddr,
    prepare: &impl Fn(&Socket) -> io::Result<()>,
) -> io::Result<TcpStream> {
    let socket = match local {
        LocalAddress::Any => tcp_socket(server.ip())?,
        LocalAddress::Own(address) => {
            let socket = tcp_socket(address)?;
            bind_address(&socket, address)?;
            socket
        }
        LocalAddress::Client(client) => {
            let socket = transparent_socket(client.ip())?;
            match client.port() {
                0 => bind_address(&socket, client.ip())?,
                _ => socket.bind(&client.into())?,
            }
            socket
        }
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

/// Binds to `address` and to no port (`IP_BIND_ADDRESS_NO_PORT`, ip(7)): `connect` selects one, which
/// connections to other servers may have as well.
fn bind_address(socket: &Socket, address: IpAddr) -> io::Result<()> {
    let value: libc::c_int = 1;
    // SAFETY: `value` is valid to read for the length given.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    socket.bind(&SocketAddr::new(address, 0).into())
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
    use crate::intercept::tests::{new_space, with_namespaces};

    #[test]
    fn connections_to_several_servers_share_the_ports_of_a_source_address() {
        with_namespaces(|| {
            let _space = new_space();
            rt::netlink::sysctl("net.ipv4.ip_local_port_range", "40000 40001").unwrap();
            for address in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
                let servers = [50_000, 50_001].map(|port| SocketAddr::new(address, port));
                let _listeners = servers.map(|server| TcpListener::bind(server).unwrap());
                for local in
                    [LocalAddress::Own(address), LocalAddress::Client(SocketAddr::new(address, 0))]
                {
                    let connect = |server| connect_prepared(local, server, |_| Ok(()));
                    let open = [0, 1, 0, 1].map(|at| connect(servers[at]).unwrap());
                    let error = connect(servers[0]).unwrap_err();
                    assert_eq!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL), "{local:?}");
                    // Without a linger time of zero the ports would stay taken.
                    let reset = |open: &TcpStream| {
                        socket2::SockRef::from(open).set_linger(Some(std::time::Duration::ZERO))
                    };
                    open.iter().for_each(|open| reset(open).unwrap());
                }
            }
        });
    }

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
