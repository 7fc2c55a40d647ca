//! Servers by name, and names with several addresses.

use super::harness::*;
use crate::driver::resolving::NameServer;
use socket2::{Domain, Socket, Type};
use std::net::{SocketAddr, TcpStream};

/// Starts a pair whose hub queries `names`, with a connect timeout of 40 s.
fn pair(names: &NameServer) -> Pair {
    let hub =
        format!("[limits]\nconnect = \"40s\"\n[resolver]\nnameservers = \"{}\"\n", names.address());
    Pair::with("accept = \"confirm\"", &hub)
}

#[test]
fn a_name_that_does_not_exist_is_refused_and_one_that_does_is_reached() {
    let names = NameServer::start();
    let pair = pair(&names);
    assert_eq!(pair.socks_name("www.none.test", 80).1, 4);
    assert_eq!(pair.socks_name("one.loop.test", echo().port()).1, 0);
    assert_eq!(names.queries_for("one.loop.test."), 2, "once for each family");
}

#[test]
fn an_address_that_refuses_is_followed_by_the_next_one() {
    let names = NameServer::start();
    let pair = pair(&names);
    // Its first address is 127.0.0.9, where nothing listens.
    assert_eq!(pair.socks_name("two.loop.test", echo().port()).1, 0);
    let report = pair.hub.stop();
    assert_eq!((report.connections.connect_attempts, report.connections.connected), (2, 1));
}

/// RFC 8305: sequential attempts would use half of the 40 s for the first.
#[test]
fn a_filtered_address_does_not_delay_the_next() {
    let names = NameServer::start();
    let server = echo();
    let silent = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 9], server.port()));
    silent.bind(&address.into()).unwrap();
    silent.listen(0).unwrap();
    // With a full accept queue the kernel drops further SYNs.
    let _waits = TcpStream::connect(address).unwrap();
    let pair = pair(&names);
    assert_eq!(pair.socks_name("two.loop.test", server.port()).1, 0);
    assert_eq!(pair.hub.stop().connections.connect_attempts, 2);
}
