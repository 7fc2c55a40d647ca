//! Limits hold; connections above them wait or are refused.

use super::harness::*;
use std::io::{Read, Write};

#[test]
fn clients_beyond_the_limit_wait_for_their_turn_where_that_is_wanted() {
    let waits = "accept = \"early\"\n[fail]\nfull = \"wait\"\n[limits]\nconnections = 4";
    let pair = Pair::with(waits, "");
    let server = echo();
    let held: Vec<_> = (0..4).map(|_| pair.connect(server)).collect();
    // The fifth is in the listener's queue; its proxy handshake proceeds when another has closed.
    let mut fifth = open(pair.terminal.addresses.socks5[0]);
    fifth.write_all(&[5, 1, 0]).unwrap();
    fifth.set_nonblocking(true).unwrap();
    for _ in 0..100 {
        std::thread::yield_now();
        assert!(fifth.read(&mut [0]).is_err());
    }
    fifth.set_nonblocking(false).unwrap();
    drop(held);
    assert_eq!(read_exactly(&mut fifth, 2), [5, 0]);
    assert!(pair.terminal.stop().connections.accept_pauses >= 1);
}

#[test]
fn the_hub_refuses_connections_above_its_limit() {
    let pair = Pair::with("accept = \"confirm\"", "[limits]\nconnections = 2");
    let server = echo();
    let _held: Vec<_> = (0..2).map(|_| pair.connect(server)).collect();
    let (_, code) = pair.socks(server);
    assert_eq!(code, 1, "general failure");
}

#[test]
fn a_silent_proxy_client_is_disconnected() {
    let pair = Pair::with("[limits]\nhandshake = \"50ms\"", "");
    let mut client = open(pair.terminal.addresses.socks5[0]);
    assert!(client.read(&mut [0]).is_err(), "a reset");
    assert_eq!(pair.terminal.stop().connections.bad_requests, 1);
}

#[test]
fn silent_proxy_clients_do_not_block_others() {
    // Sixteen may be in the proxy handshake at the same time.
    let pair = Pair::with("[limits]\nconnections = 4\nhandshake = \"1h\"", "");
    let mut silent: Vec<_> = (0..20).map(|_| open(pair.terminal.addresses.socks5[0])).collect();
    let server = echo();
    let mut client = pair.connect(server);
    client.write_all(b"x").unwrap();
    assert_eq!(read_exactly(&mut client, 1), b"x");
    // The first are closed.
    let error = silent[0].read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    // Fifty more do not affect open connections.
    silent.extend((0..50).map(|_| open(pair.terminal.addresses.socks5[0])));
    client.write_all(b"y").unwrap();
    assert_eq!(read_exactly(&mut client, 1), b"y");
    assert!(pair.terminal.stop().connections.bad_requests >= 9);
}

#[test]
fn a_server_that_never_answers_is_a_time_out() {
    // A full backlog: the kernel drops further SYNs, as for a missing host.
    let listener =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let mut fill = Vec::new();
    for _ in 0..4 {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        let _ = socket.connect(&address.into());
        fill.push(socket);
    }
    let pair = Pair::with("accept = \"confirm\"", "[limits]\nconnect = \"300ms\"");
    let (_, code) = pair.socks(address);
    assert_eq!(code, 6, "the code of RFC 1928 that is nearest to a time-out");
}

#[test]
fn idle_gateways_sleep() {
    let pair = Pair::early();
    let server = serve(|mut stream| {
        let _ = stream.write_all(&pattern(1_000_000, 5));
        let _ = stream.read(&mut [0]);
    });
    // One stream is full because its client does not read, another is idle, and a refused proxy
    // client does not close.
    let mut stuck = pair.connect(server);
    let mut idle = pair.connect(echo());
    idle.write_all(b"x").unwrap();
    read_exactly(&mut idle, 1);
    let mut told_off = open(pair.terminal.addresses.connect[0]);
    told_off.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    read_all(&mut told_off);
    read_exactly(&mut stuck, 1);
    stuck.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    idle.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    assert!(idle.read(&mut [0]).is_err(), "nothing comes");
    for report in [pair.terminal.stop(), pair.hub.stop()] {
        let rounds = report.connections.rounds;
        assert!(rounds < 5_000, "{}: {rounds} rounds", report.role);
    }
}
