//! What the kernel knows about the path to a peer.

use socket2::SockRef;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// A way out of this machine to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Where it leads.
    pub(crate) peer: SocketAddr,
    /// The address that packets carry; what the routes say when it is unspecified.
    pub(crate) source: IpAddr,
    /// The interface that they go by; what the routes say when `None`.
    pub(crate) interface: Option<String>,
}

impl Route {
    /// As the routes say.
    pub(crate) fn to(peer: SocketAddr) -> Self {
        Self { peer, source: Ipv4Addr::UNSPECIFIED.into(), interface: None }
    }
}

/// Tells `relay` what the kernel believes that the route to its peer takes.
pub(crate) fn tell(relay: &mut relay::Relay, route: &Route) {
    match mtu(route) {
        Ok(mtu) => relay.hint_mtu(mtu),
        Err(error) => tracing::debug!(peer = %route.peer, %error, "the path's MTU is not known"),
    }
}

/// Largest IP packet by `route`, bytes: the first link's, or less where a router has said so.
pub(crate) fn mtu(route: &Route) -> io::Result<usize> {
    let peer = SocketAddr::new(route.peer.ip().to_canonical(), route.peer.port());
    let source = route.source.to_canonical();
    let usual = !source.is_unspecified() && source.is_ipv4() == peer.is_ipv4();
    let (any, level, option): (IpAddr, _, _) = match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), libc::IPPROTO_IP, libc::IP_MTU),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    let socket = UdpSocket::bind((if usual { source } else { any }, 0))?;
    if let Some(interface) = &route.interface {
        SockRef::from(&socket).bind_device(Some(interface.as_bytes()))?;
    }
    // Nothing is sent: the kernel only looks for the route.
    socket.connect(peer)?;
    let mut mtu: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `mtu` is valid for writes of `len` bytes, and `len` for a read and a write.
    let status = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut mtu).cast(), &raw mut len)
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    usize::try_from(mtu).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_takes_large_packets() {
        for peer in ["127.0.0.1:9", "[::1]:9", "[::ffff:127.0.0.1]:9"] {
            assert!(mtu(&Route::to(peer.parse().unwrap())).unwrap() >= 16_384, "{peer}");
        }
    }
}
