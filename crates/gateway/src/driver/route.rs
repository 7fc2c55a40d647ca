//! Information from the kernel's routes: path MTU, source addresses, and reachable address
//! families.

use crate::engine::Route;
use crate::intercept::is_global;
use relay::{Families, FamilyReach};
use socket2::SockRef;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Addresses for route lookups: those of a root name server (a.root-servers.net). Nothing is sent
/// to them.
const PROBES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 41, 0, 4)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 2, 0x30)),
];
/// Any port, since nothing is sent.
const PORT: u16 = 53;

/// Returns the address families with which this host reaches the Internet (RLY-9).
pub(super) fn families() -> Families {
    let [ipv4, ipv6] = PROBES.map(reach);
    Families { ipv4, ipv6 }
}

/// Returns the maximum size of an IP packet on `route` in bytes: the MTU of the first link, or the
/// path MTU that a router has reported.
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
    // Nothing is sent; the kernel only looks up the route.
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

/// Returns how far this host reaches the address family of `probe`.
fn reach(probe: IpAddr) -> FamilyReach {
    match source_for(SocketAddr::new(probe, PORT)) {
        // With a private IPv4 address there is a NAT. With a unique local IPv6 address (RFC 4193)
        // there rarely is one, and programs prefer IPv4 then (RFC 6724 §10.6).
        Ok(source) if is_usable(source) && (source.is_ipv4() || is_global(source)) => {
            FamilyReach::Global
        }
        Ok(source) if is_usable(source) => FamilyReach::Partial,
        Ok(_) | Err(_) if has_address(probe) => FamilyReach::Partial,
        Ok(_) | Err(_) => FamilyReach::None,
    }
}

/// Returns the source address that the kernel selects for `destination`. Connecting a UDP socket
/// looks up the route and sends nothing.
pub(super) fn source_for(destination: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match destination {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(destination)?;
    Ok(socket.local_addr()?.ip())
}

/// Returns whether replies to this source address can arrive from the Internet, possibly through a
/// NAT.
fn is_usable(source: IpAddr) -> bool {
    match source {
        IpAddr::V4(v4) => !(v4.is_loopback() || v4.is_link_local() || v4.is_unspecified()),
        IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unspecified()),
    }
}

/// Returns whether an interface has an address for global destinations in the family of `probe`: a
/// global IPv6 address, or an IPv4 address that is neither loopback nor link-local.
fn has_address(probe: IpAddr) -> bool {
    let Ok(all) = nix::ifaddrs::getifaddrs() else { return true };
    let mut addresses = all.filter_map(|one| {
        let address = one.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    addresses.any(|address| {
        address.is_ipv4() == probe.is_ipv4()
            && is_usable(address)
            && (address.is_ipv4() || is_global(address))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intercept::tests::with_namespaces;
    use rt::netlink::{self, Netlink, VethEnd};

    /// RLY-9.1
    #[test]
    fn families_follow_from_routes_and_addresses() {
        with_namespaces(|| {
            let mut net = Netlink::open().unwrap();
            net.set_up("lo").unwrap();
            let none = Families { ipv4: FamilyReach::None, ipv6: FamilyReach::None };
            assert_eq!(families(), none, "loopback alone reaches nothing");
            net.create_veth(&VethEnd::new("wan0"), &VethEnd::new("peer0")).unwrap();
            for end in ["wan0", "peer0"] {
                net.set_up(end).unwrap();
            }
            let mut add = |address: &str, prefix| {
                net.add_address("wan0", address.parse().unwrap(), prefix).unwrap();
                net.await_address(address.parse().unwrap()).unwrap();
            };
            add("10.3.0.1", 24);
            add("fd00:3::1", 64);
            let found = families();
            assert_eq!((found.ipv4, found.ipv6), (FamilyReach::Partial, FamilyReach::None));
            let default = netlink::Route::default_v6("fd00:3::2".parse().unwrap());
            net.add_route(&default).unwrap();
            let found = families();
            assert_eq!(found.ipv6, FamilyReach::Partial, "a route and no global address");
            net.add_address("wan0", "2001:db8:3::1".parse().unwrap(), 64).unwrap();
            net.await_address("2001:db8:3::1".parse().unwrap()).unwrap();
            net.add_route(&netlink::Route::default_v4("10.3.0.2".parse().unwrap())).unwrap();
            assert_eq!(families(), Families::default());
            net.delete_route(&default).unwrap();
            let found = families();
            assert_eq!(found.ipv6, FamilyReach::Partial, "a global address and no route");
        });
    }

    #[test]
    fn the_kernel_selects_the_source() {
        let source = source_for("127.0.0.1:9".parse().unwrap()).unwrap();
        assert_eq!(source, IpAddr::from([127, 0, 0, 1]));
    }

    #[test]
    fn loopback_has_a_large_mtu() {
        for peer in ["127.0.0.1:9", "[::1]:9", "[::ffff:127.0.0.1]:9"] {
            assert!(mtu(&Route::to(peer.parse().unwrap())).unwrap() >= 16_384, "{peer}");
        }
    }
}
