//! Early accept where a connection fails: a hub without IPv6, and servers that have just refused.

use super::harness::*;
use crate::intercept::tests::{Spaces, enter, with_namespaces};
use rt::netlink::{Netlink, Route};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

const TERMINAL: &str = "role = \"terminal\"\naccept = \"early\"\n\
     [link]\npeer = \"10.3.0.2:7000\"\nround_trip = \"10ms\"\n\
     [intercept]\ninterfaces = [\"lan0\"]\nport = 7900\n\
     [socks5]\nlisten = \"10.1.0.1:1080\"\n[connect]\nlisten = \"10.1.0.1:3128\"\n";
const SOCKS: &str = "10.1.0.1:1080";
const CONNECT: &str = "10.1.0.1:3128";

/// Connects a client in the thread's namespace to `server`; returns what it receives.
fn outcome(server: SocketAddr) -> Result<Vec<u8>, ErrorKind> {
    let mut stream = TcpStream::connect_timeout(&server, Duration::from_secs(20))
        .map_err(|error| error.kind())?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut heard = Vec::new();
    match stream.read_to_end(&mut heard) {
        Ok(_) => Ok(heard),
        // Distinguished from a refused connection.
        Err(_) => Err(ErrorKind::BrokenPipe),
    }
}

fn socks(server: SocketAddr) -> u8 {
    socks_from(open(SOCKS.parse().unwrap()), server).1
}

/// Returns the status of the reply to HTTP CONNECT.
fn status(server: SocketAddr) -> String {
    let mut stream = open(CONNECT.parse().unwrap());
    write!(stream, "CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n").unwrap();
    String::from_utf8(read_exactly(&mut stream, 12)).unwrap()[9..].to_owned()
}

fn greet(mut stream: TcpStream) {
    let _ = stream.write_all(b"here");
}

#[test]
fn a_hub_without_ipv6_refuses_it_and_one_that_gets_it_does_not() {
    with_namespaces(|| {
        let spaces = Spaces::build();
        let default = Route::default_v6("fd00:3::1".parse().unwrap());
        let global: SocketAddr = "[2001:db8:3::2]:8080".parse().unwrap();
        enter(&spaces.server);
        Netlink::open().unwrap().delete_route(&default).unwrap();
        let hub = hub_at("10.3.0.2:7000", "[hub]\nown_addresses = \"allow\"\n");
        let local = serve_on("[fd00:3::2]:8080".parse().unwrap(), greet);
        enter(&spaces.gateway);
        let terminal = Running::start(TERMINAL);
        enter(&spaces.client);
        assert!(soon(|| outcome(global) == Err(ErrorKind::ConnectionRefused)));
        assert_eq!(socks(global), 3, "network unreachable");
        assert_eq!(status(global), "502");
        // Connections to local addresses are decided by the hub.
        assert_eq!(outcome(local), Ok(b"here".to_vec()));
        assert_eq!(socks(local), 0);

        // The hub has an address and no route, so the terminal waits for its reply.
        enter(&spaces.server);
        let mut net = Netlink::open().unwrap();
        net.add_address("eth0", "2001:db8:3::2".parse().unwrap(), 64).unwrap();
        net.await_address("2001:db8:3::2".parse().unwrap()).unwrap();
        serve_on(global, greet);
        enter(&spaces.client);
        assert!(soon(|| outcome(global) == Ok(b"here".to_vec())), "it is reached now");
        assert_eq!(socks(global), 0);
        let elsewhere = "[2001:db8:77::2]:8080".parse().unwrap();
        assert_eq!(outcome(elsewhere), Err(ErrorKind::NetworkUnreachable));

        // With a route, clients are accepted early.
        enter(&spaces.server);
        net.add_route(&default).unwrap();
        enter(&spaces.client);
        assert!(soon(|| outcome(unused_port(global)) == Err(ErrorKind::BrokenPipe)));
        enter(&spaces.gateway);
        terminal.stop();
        hub.stop();
    });
}

/// Returns the same address with a port that was not tried before.
fn unused_port(mut server: SocketAddr) -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(81);
    server.set_port(NEXT.fetch_add(1, Ordering::Relaxed));
    server
}

#[test]
fn a_refusal_defers_the_next_accept() {
    with_namespaces(|| {
        let spaces = Spaces::build();
        enter(&spaces.server);
        let hub = hub_at("10.3.0.2:7000", "[hub]\nown_addresses = \"allow\"\n");
        enter(&spaces.gateway);
        let terminal = Running::start(TERMINAL);
        let at = |port| SocketAddr::from(([10, 3, 0, 2], port));
        enter(&spaces.client);
        // The first attempt is accepted early; the second is refused as by the server.
        for port in [81, 82, 83] {
            let first = match port {
                81 => outcome(at(port)).unwrap_err(),
                82 => match socks_from(open(SOCKS.parse().unwrap()), at(port)) {
                    (mut stream, 0) => stream.read(&mut [0; 1]).unwrap_err().kind(),
                    (_, code) => panic!("refused at once with {code}"),
                },
                _ => {
                    assert_eq!(status(at(port)), "200");
                    // The end of the first one is not awaited.
                    pause_ms(500);
                    ErrorKind::BrokenPipe
                }
            };
            assert!([ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&first));
            assert!(soon(|| outcome(at(port)) == Err(ErrorKind::ConnectionRefused)), "{port}");
            assert_eq!(socks(at(port)), 5, "connection refused");
            assert_eq!(status(at(port)), "502");
        }
        // A server that listens again is reached immediately, in each mode.
        enter(&spaces.server);
        for port in [81, 82, 83] {
            serve_on(at(port), greet);
        }
        enter(&spaces.client);
        assert_eq!(outcome(at(81)), Ok(b"here".to_vec()));
        assert_eq!(socks(at(82)), 0);
        assert_eq!(status(at(83)), "200");
        enter(&spaces.gateway);
        let report = terminal.stop();
        assert!(report.connections.syns_held >= 4, "by the packet filter");
        hub.stop();
    });
}
