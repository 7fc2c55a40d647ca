//! One terminal more than its hub has slots: its clients wait, or bypass the hub.

use super::harness::*;
use super::passing::metric;
use crate::intercept::tests::{Spaces, enter, with_namespaces};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Starts a hub with one slot, and the terminal that uses it.
fn full() -> (Running, Running) {
    let hub = hub_at("127.0.0.1:0", "[limits]\nterminals = 1\n");
    let first = terminal_of(&hub, "name = \"first\"\naccept = \"early\"\n");
    assert_eq!(answered(&first, echo(), 20_000), Ok(()), "it has the place");
    (hub, first)
}

/// Checks whether a client of a terminal receives its server's data within this time.
fn answered(of: &Running, server: SocketAddr, millis: u64) -> Result<(), ErrorKind> {
    read_response(&mut asking(of, server), millis)
}

/// Opens a client that has sent a request.
fn asking(of: &Running, server: SocketAddr) -> TcpStream {
    let (mut client, code) = socks_from(open(of.addresses.socks5[0]), server);
    assert_eq!(code, 0, "clients are answered early");
    client.write_all(b"?").unwrap();
    client
}

fn read_response(client: &mut TcpStream, millis: u64) -> Result<(), ErrorKind> {
    client.set_read_timeout(Some(Duration::from_millis(millis))).unwrap();
    let answer = client.read_exact(&mut [0]);
    answer.map_err(|error| error.kind())
}

#[test]
fn a_terminal_above_the_limit_waits_and_is_counted() {
    let (hub, mut first) = full();
    let second = terminal_of(&hub, "name = \"second\"\naccept = \"early\"\n");
    let mut waiting = asking(&second, echo());
    assert_eq!(read_response(&mut waiting, 7_000), Err(ErrorKind::WouldBlock), "it waits");
    first.halt();
    assert_eq!(read_response(&mut waiting, 30_000), Ok(()), "its place is free");
    assert_eq!(second.stop().connections.direct, 0);
    let dropped = hub.stop().association.dropped;
    assert!(dropped["full"] >= 3, "{dropped:?}");
}

#[test]
fn bypassing_during_a_drain_is_configurable() {
    let (hub, mut first) = full();
    let fail = "name = \"second\"\naccept = \"early\"\n\
                [health]\nhold = \"1s\"\nprobe = \"200ms\"\n[fail]\nunreachable = \"open\"\n";
    let second = terminal_of(&hub, fail);
    let server = echo();
    // A terminal that has just started waits for its hub.
    assert!(soon(|| answered(&second, server, 500).is_ok()), "by itself");
    for _ in 0..3 {
        assert_eq!(answered(&second, server, 500), Ok(()));
    }
    first.halt();
    // Relayed again; the hub's next report shows it.
    pause_ms(8_000);
    for _ in 0..3 {
        assert_eq!(answered(&second, server, 20_000), Ok(()));
    }
    let direct = second.stop().connections.direct;
    assert!(direct >= 4, "{direct}");
    let report = hub.stop();
    let dropped = report.association.dropped;
    assert!(dropped["full"] >= 3, "{dropped:?}");
    // One of the first terminal's, and those of the second that waited before it was refused.
    assert!(report.connections.opened >= 4, "{:?}", report.connections);
}

#[test]
fn intercepted_clients_bypass_the_gateway_during_an_outage() {
    with_namespaces(|| {
        let spaces = Spaces::build();
        enter(&spaces.server);
        let server = serve_on("10.3.0.2:8080".parse().unwrap(), |mut stream| {
            let seen = stream.peer_addr().unwrap().ip().to_string();
            stream.write_all(seen.as_bytes()).unwrap();
        });
        let more = "[hub]\nallow = [\"10.3.0.2 port 8080\"]\n[limits]\nterminals = 1\n";
        let hub = hub_at("10.3.0.2:7000", more);
        let first = "role = \"terminal\"\nname = \"first\"\naccept = \"confirm\"\n\
                     [link]\npeer = \"10.3.0.2:7000\"\nround_trip = \"10ms\"\n\
                     [socks5]\nlisten = \"127.0.0.1:0\"\n";
        let mut first = Running::start(first);
        assert_eq!(socks_from(open(first.addresses.socks5[0]), server).1, 0);
        enter(&spaces.gateway);
        let second = Running::start(
            "role = \"terminal\"\nname = \"second\"\naccept = \"confirm\"\n\
             [link]\npeer = \"10.3.0.2:7000\"\nround_trip = \"10ms\"\n\
             [health]\nhold = \"200ms\"\nprobe = \"200ms\"\n[fail]\nunreachable = \"open\"\n\
             [intercept]\ninterfaces = [\"lan0\"]\nport = 7900\n\
             [metrics]\nlisten = \"127.0.0.1:0\"\n",
        );
        assert!((0..4).any(|_| soon(|| metric(&second, "bentpipe_bypass_active") == 1)));
        enter(&spaces.client);
        assert_eq!(read_all(&mut open(server)), b"10.1.0.2", "straight from the client");
        enter(&spaces.gateway);
        assert_eq!(metric(&second, "bentpipe_bypass_activations_total"), 1);
        first.halt();
        assert!((0..4).any(|_| soon(|| metric(&second, "bentpipe_bypass_active") == 0)));
        enter(&spaces.client);
        assert_eq!(read_all(&mut open(server)), b"10.3.0.2", "from the hub");
        enter(&spaces.gateway);
        assert_eq!(metric(&second, "bentpipe_bypass_activations_total"), 1);
        second.stop();
        let report = hub.stop();
        assert!(report.association.dropped["full"] >= 3);
        assert_eq!(report.connections.opened, 2);
    });
}
