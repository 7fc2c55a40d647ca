//! Ports of a hub's connections to servers, in a separate network namespace.

use super::harness::*;
use crate::intercept::tests::with_namespaces;
use crate::intercept::{LocalAddress, connect_prepared};
use rt::netlink::{Netlink, sysctl};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Requests a connection from a client's address of its own, so that clients need no ports of the
/// hub's addresses; returns it with the code of the reply.
fn request(pair: &Pair, client: u8, server: SocketAddr) -> (TcpStream, u8) {
    let local = LocalAddress::Own(Ipv4Addr::new(127, 0, 1, client).into());
    let proxy = pair.terminal.addresses.socks5[0];
    // Without TIME_WAIT the client's address has its ports again immediately.
    let prepare = |socket: &socket2::Socket| socket.set_linger(Some(Duration::ZERO));
    let stream = connect_prepared(local, proxy, prepare).unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socks_from(stream, server)
}

#[test]
fn connections_beyond_the_ports_of_all_source_addresses_are_refused() {
    with_namespaces(|| {
        Netlink::open().unwrap().set_up("lo").unwrap();
        let addresses = "[hub]\nsource_addresses = [\"127.0.0.2\", \"127.0.0.3\", \"192.0.2.1\"]";
        let pair = Pair::with("accept = \"confirm\"", addresses);
        let [server, other] = [echo(), echo()];
        // Two ports of each address; the third address is not this host's.
        sysctl("net.ipv4.ip_local_port_range", "40000 40001").unwrap();
        let open: Vec<TcpStream> = (1..=4)
            .map(|client| {
                let (stream, code) = request(&pair, client, server);
                assert_eq!(code, 0, "client {client}");
                stream
            })
            .collect();
        // A general failure: the hub has no port left.
        assert_eq!(request(&pair, 5, server).1, 1);
        assert_eq!(request(&pair, 6, other).1, 0, "another server has the same ports");
        drop(open);
        let reached = soon(|| request(&pair, 7, server).1 == 0);
        assert!(reached, "ports of connections that were reset are free after a pause");
        let report = pair.hub.stop();
        assert!(report.connections.limited["ports"] >= 1);
    });
}
