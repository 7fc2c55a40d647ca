//! What the kernel knows about the path to a peer.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Largest IP packet to `peer`, bytes: the first link's, or less where a router has said so.
pub(crate) fn mtu(peer: SocketAddr) -> io::Result<usize> {
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let (socket, level, option) = match peer {
        SocketAddr::V4(_) => {
            (UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?, libc::IPPROTO_IP, libc::IP_MTU)
        }
        SocketAddr::V6(_) => {
            (UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?, libc::IPPROTO_IPV6, libc::IPV6_MTU)
        }
    };
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
            assert!(mtu(peer.parse().unwrap()).unwrap() >= 16_384, "{peer}");
        }
    }
}
