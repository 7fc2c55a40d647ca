//! A draining gateway lets running connections finish, accepts no new ones, and reports connections
//! that it had to reset.

use super::harness::*;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::mpsc;

/// Longer than any transfer of these tests.
const LONG: &str = "[limits]\ndrain = \"60s\"";

/// Starts a server that sends half of `data` immediately and the rest on request.
fn in_two_halves(data: Vec<u8>) -> (std::net::SocketAddr, mpsc::Sender<()>) {
    let (go_on, wait) = mpsc::channel::<()>();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (first, second) = data.split_at(data.len() / 2);
        stream.write_all(first).unwrap();
        if wait.recv().is_ok() {
            let _ = stream.write_all(second);
        }
    });
    (address, go_on)
}

#[test]
fn a_draining_terminal_finishes_open_connections_and_accepts_none() {
    let pair = Pair::with(LONG, "");
    let data = pattern(2_000_000, 31);
    let (server, go_on) = in_two_halves(data.clone());
    let mut client = pair.connect(server);
    let mut got = read_exactly(&mut client, 100_000);
    pair.terminal.drain();
    let proxies = &pair.terminal.addresses;
    assert!(soon(|| refuses(proxies.socks5[0]) && refuses(proxies.connect[0])));
    go_on.send(()).unwrap();
    got.extend(read_all(&mut client));
    client.shutdown(Shutdown::Write).unwrap();
    assert!(got == data, "{} bytes", got.len());
    // It ends before its timeout of one minute.
    let report = pair.terminal.join();
    assert_eq!(report.connections.completed, 1);
    assert!(report.seconds < 30.0, "{} s", report.seconds);
}

#[test]
fn a_draining_hub_finishes_open_connections_and_refuses_new_ones() {
    let pair = Pair::with("accept = \"confirm\"", LONG);
    let data = pattern(2_000_000, 32);
    let (server, go_on) = in_two_halves(data.clone());
    let mut client = pair.connect(server);
    let mut got = read_exactly(&mut client, 100_000);
    pair.hub.drain();
    assert!(soon(|| pair.socks(echo()).1 != 0), "new connections are still made");
    go_on.send(()).unwrap();
    got.extend(read_all(&mut client));
    client.shutdown(Shutdown::Write).unwrap();
    assert!(got == data, "{} bytes", got.len());
    let report = pair.hub.join();
    assert!(report.connections.refused["other"] >= 1);
    assert!(report.seconds < 30.0, "{} s", report.seconds);
}

#[test]
fn timeouts_reset_connections_instead_of_truncating_them() {
    let pair = Pair::with("", "[limits]\ndrain = \"200ms\"");
    let (server, _never) = in_two_halves(pattern(2000, 33));
    let mut client = pair.connect(server);
    read_exactly(&mut client, 1000);
    pair.hub.drain();
    pair.hub.join();
    let error = client.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_second_stop_ends_the_drain() {
    let pair = Pair::with(LONG, LONG);
    let (server, _never) = in_two_halves(pattern(2000, 34));
    let mut client = pair.connect(server);
    read_exactly(&mut client, 1000);
    for gateway in [&pair.terminal, &pair.hub] {
        gateway.drain();
        gateway.drain();
    }
    for gateway in [pair.terminal, pair.hub] {
        assert!(gateway.join().seconds < 10.0);
    }
}
