//! Intercepted clients while no hub responds, in separate network namespaces.

use super::harness::*;
use crate::intercept::tests::{Spaces, enter, with_namespaces};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Returns the value of a metric without labels at the terminal.
pub(super) fn metric(terminal: &Running, name: &str) -> u64 {
    let mut stream = open(terminal.addresses.metrics.unwrap());
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

#[test]
fn held_syns_bypass_the_gateway_when_the_bypass_starts() {
    with_namespaces(|| {
        let spaces = Spaces::build();
        let server: SocketAddr = "10.3.0.2:8080".parse().unwrap();
        enter(&spaces.server);
        let listener = TcpListener::bind(server).unwrap();
        enter(&spaces.gateway);
        let terminal = Running::start(
            "role = \"terminal\"\naccept = \"confirm\"\n\
             [link]\npeer = \"10.3.0.2:7000\"\nround_trip = \"10ms\"\n\
             [health]\nhold = \"200ms\"\nprobe = \"200ms\"\n[fail]\nunreachable = \"open\"\n\
             [intercept]\ninterfaces = [\"lan0\"]\nport = 7900\n\
             [metrics]\nlisten = \"127.0.0.1:0\"\n",
        );
        assert_eq!(metric(&terminal, "bentpipe_bypass_active"), 0);
        // Its first SYN precedes the detection of the outage; its next SYNs follow a second later
        // and more.
        let space = spaces.client.try_clone().unwrap();
        let client = std::thread::spawn(move || {
            enter(&space);
            TcpStream::connect_timeout(&server, Duration::from_secs(20))
        });
        assert!(soon(|| metric(&terminal, "bentpipe_connections") == 1), "no SYN is held");
        assert!((0..4).any(|_| soon(|| metric(&terminal, "bentpipe_bypass_active") == 1)));
        assert_eq!(metric(&terminal, "bentpipe_connections"), 0, "forgotten");
        let (_, seen) = listener.accept().unwrap();
        assert_eq!(seen.ip(), "10.1.0.2".parse::<IpAddr>().unwrap(), "straight from the client");
        let _past = client.join().unwrap().expect("a connection");
        // A new hub receives no stream for a client that has given up.
        enter(&spaces.server);
        let hub = hub_at("10.3.0.2:7000", "");
        enter(&spaces.gateway);
        assert!(soon(|| metric(&terminal, "bentpipe_bypass_active") == 0), "taken again");
        pause_ms(300);
        assert_eq!(hub.stop().connections.opened, 0);
        assert_eq!(metric(&terminal, "bentpipe_bypass_activations_total"), 1);
        terminal.stop();
    });
}
