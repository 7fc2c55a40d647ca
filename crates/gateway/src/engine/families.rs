//! The address families that a hub reaches, looked up in its routes again and again (RLY-9).

use crate::intercept::is_global;
use relay::{Families, FamilyReach};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use units::{Instant, Span};

/// Interval between looks.
const INTERVAL: Span = Span::from_secs(2);
/// Addresses of the Internet to which routes are looked up: those of a root name server
/// (a.root-servers.net). Nothing is sent to them.
const PROBES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 41, 0, 4)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 2, 0x30)),
];
/// Any port will do, since nothing is sent.
const PORT: u16 = 53;

/// The look-ups of a hub.
#[derive(Debug, Default)]
pub(super) struct FamilyWatch {
    next: Instant,
    found: Families,
}

impl FamilyWatch {
    /// The families that are reached, when it is time to look and they have changed.
    pub(super) fn look(&mut self, now: Instant) -> Option<Families> {
        if now < self.next {
            return None;
        }
        self.next = now + INTERVAL;
        let [ipv4, ipv6] = PROBES.map(reach);
        let found = Families { ipv4, ipv6 };
        if found == self.found {
            return None;
        }
        self.found = found;
        tracing::info!(?ipv4, ?ipv6, "address families that are reached");
        Some(found)
    }

    pub(super) fn next(&self) -> Instant {
        self.next
    }
}

/// How much of the family of `probe` this host reaches.
fn reach(probe: IpAddr) -> FamilyReach {
    match source_towards(probe) {
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

/// The source address that the routes choose towards `destination`. Connecting a UDP socket looks
/// up the route and sends nothing.
fn source_towards(destination: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match destination {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(SocketAddr::new(destination, PORT))?;
    Ok(socket.local_addr()?.ip())
}

/// Whether answers to this source address can come from the Internet, perhaps by a NAT.
fn is_usable(source: IpAddr) -> bool {
    match source {
        IpAddr::V4(v4) => !(v4.is_loopback() || v4.is_link_local() || v4.is_unspecified()),
        IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unspecified()),
    }
}

/// Whether an interface has an address with which global destinations of the family of `probe`
/// could be reached, if there were a route: of IPv6 a global one, of IPv4 any that is not local to
/// this host or link.
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
    use rt::netlink::{Netlink, Route, VethEnd};

    /// RLY-9.1
    #[test]
    fn routes_and_addresses_decide_what_is_reached() {
        with_namespaces(|| {
            let now = |seconds| Instant::ZERO + Span::from_secs(seconds);
            let mut net = Netlink::open().unwrap();
            net.set_up("lo").unwrap();
            let mut watch = FamilyWatch::default();
            let none = Families { ipv4: FamilyReach::None, ipv6: FamilyReach::None };
            assert_eq!(watch.look(now(0)), Some(none), "loopback alone reaches nothing");
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
            assert_eq!(watch.look(now(1)), None, "not yet");
            let found = watch.look(now(2)).unwrap();
            assert_eq!((found.ipv4, found.ipv6), (FamilyReach::Partial, FamilyReach::None));
            let default = Route::default_v6("fd00:3::2".parse().unwrap());
            net.add_route(&default).unwrap();
            let found = watch.look(now(4)).unwrap();
            assert_eq!(found.ipv6, FamilyReach::Partial, "a route and no global address");
            net.add_address("wan0", "2001:db8:3::1".parse().unwrap(), 64).unwrap();
            net.await_address("2001:db8:3::1".parse().unwrap()).unwrap();
            net.add_route(&Route::default_v4("10.3.0.2".parse().unwrap())).unwrap();
            assert_eq!(watch.look(now(6)), Some(Families::default()));
            assert_eq!(watch.look(now(8)), None, "nothing has changed");
            net.delete_route(&default).unwrap();
            let found = watch.look(now(10)).unwrap();
            assert_eq!(found.ipv6, FamilyReach::Partial, "a global address and no route");
        });
    }
}
