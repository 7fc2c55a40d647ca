//! The end of a connection at one side appears at the other as the same kind of end.

use crate::network::{PATIENCE, Setup, TestNetwork, content, have, pause, read_all};
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use testbed::addresses::SERVER;

fn accepted(listener: &std::net::TcpListener) -> TcpStream {
    SockRef::from(listener).set_read_timeout(Some(PATIENCE)).unwrap();
    let (stream, _) = listener.accept().expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Makes closing the socket reset its connection (SO_LINGER of zero).
fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
}

#[test]
fn a_half_closed_connection_stays_open_in_the_other_direction() {
    let Some(network) = TestNetwork::build("half", &Setup::default()) else { return };
    let listener = network.listen(SERVER.0, 9000);
    let request = content(1, 200_000);
    let answer = content(2, 300_000);
    for client_first in [true, false] {
        let client = network.connect(SERVER.0, 9000);
        let server = accepted(&listener);
        let (mut first, mut second) =
            if client_first { (client, server) } else { (server, client) };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                first.write_all(&request).unwrap();
                first.shutdown(Shutdown::Write).unwrap();
                let (got, end) = read_all(&mut first);
                end.expect("a clean end");
                assert!(got == answer, "{} bytes of the answer", got.len());
            });
            // The response starts after the end of the request.
            let (got, end) = read_all(&mut second);
            end.expect("a clean end");
            assert!(got == request, "{} bytes of the request", got.len());
            second.write_all(&answer).unwrap();
            second.shutdown(Shutdown::Write).unwrap();
        });
    }
    let (terminal, hub) = network.finish();
    for report in [terminal, hub] {
        assert!(report["connections"]["completed"].as_u64() >= Some(2), "{report}");
        assert_eq!(report["connections"]["reset_by_peer"], 0);
    }
}

#[test]
fn data_arrives_after_the_sender_has_closed() {
    let Some(network) = TestNetwork::build("last", &Setup::default()) else { return };
    let listener = network.listen(SERVER.0, 9000);
    let bytes = content(3, 1_000_000);
    for _ in 0..5 {
        let mut client = network.connect(SERVER.0, 9000);
        let mut server = accepted(&listener);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                server.write_all(&bytes).unwrap();
                drop(server);
            });
            let (got, end) = read_all(&mut client);
            end.expect("a clean end");
            assert!(got == bytes, "{} bytes", got.len());
        });
    }
}

#[test]
fn a_reset_is_forwarded_as_a_reset() {
    let Some(network) = TestNetwork::build("reset", &Setup::default()) else { return };
    let listener = network.listen(SERVER.0, 9000);
    for by_client in [true, false] {
        let mut client = network.connect(SERVER.0, 9000);
        client.write_all(b"hello").unwrap();
        let mut server = accepted(&listener);
        server.read_exact(&mut [0; 5]).unwrap();
        let mut other = if by_client {
            reset(client);
            server
        } else {
            reset(server);
            client
        };
        let (_, end) = read_all(&mut other);
        let error = end.expect_err("not a clean end");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "by the client: {by_client}");
    }
}

#[test]
fn a_refused_connection_is_reset_with_early_accept() {
    let Some(network) = TestNetwork::build("refused", &Setup::default()) else { return };
    let mut client = network.connect(SERVER.0, 9);
    let (_, end) = read_all(&mut client);
    assert_eq!(end.expect_err("a refusal").kind(), ErrorKind::ConnectionReset);
    let (terminal, hub) = network.finish();
    assert_eq!(terminal["connections"]["refused"]["connection_refused"], 1, "{terminal}");
    assert_eq!(hub["connections"]["refused"]["connection_refused"], 1, "{hub}");
}

#[test]
fn a_refusal_is_forwarded_with_deferred_accept() {
    if !have(&["curl"]) {
        return;
    }
    let setup = Setup { accept: "confirm", limits: "connect = \"6s\"", ..Setup::default() };
    let Some(network) = TestNetwork::build("confirm", &setup) else { return };
    for (server, socks, http) in [
        ("10.3.0.2:9", "(5)", "502"),             // no listener
        ("10.3.0.77:9", "(4)", "502"),            // no host
        ("no.such.name.invalid:9", "(4)", "502"), // no such name
    ] {
        let address = format!("http://{server}/");
        let args = ["--silent", "--show-error", "--max-time", "20", &address];
        let said = |proxy: &[&str]| {
            let output = network.run_on_client("curl", &[&args, proxy].concat());
            assert!(!output.status.success(), "{server} answers");
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        let answer = said(&["--proxy", "socks5h://10.1.0.1:1080"]);
        assert!(answer.contains(socks), "{server} by SOCKS5: {answer}");
        let answer = said(&["--proxy", "http://10.1.0.1:3128", "--proxytunnel"]);
        assert!(answer.contains(http), "{server} by CONNECT: {answer}");
    }
    // An existing server is reached.
    let listener = network.listen(SERVER.0, 9000);
    let answering = std::thread::spawn(move || {
        let mut stream = accepted(&listener);
        let _ = stream.read(&mut [0; 1024]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes").unwrap();
    });
    let args = ["--silent", "--proxy", "socks5h://10.1.0.1:1080", "http://10.3.0.2:9000/"];
    assert_eq!(network.succeed_on_client("curl", &args), "yes");
    answering.join().unwrap();
}

#[test]
fn an_unresponsive_client_is_removed() {
    let limits = "keepalive = \"1s\"\nvanished = \"3s\"";
    let Some(network) = TestNetwork::build("vanish", &Setup { limits, ..Setup::default() }) else {
        return;
    };
    let listener = network.listen(SERVER.0, 9000);
    let mut client = network.connect(SERVER.0, 9000);
    client.write_all(b"hello").unwrap();
    let mut server = accepted(&listener);
    server.read_exact(&mut [0; 5]).unwrap();
    let set = |up: bool| {
        network.net.client.run(|| {
            let mut net = rt::netlink::Netlink::open().unwrap();
            if up { net.set_up("eth0") } else { net.set_down("eth0") }.unwrap();
        });
    };
    set(false);
    let (_, end) = read_all(&mut server);
    assert_eq!(end.expect_err("a reset").kind(), ErrorKind::ConnectionReset);
    set(true);
    pause(Duration::from_millis(100));
    let (terminal, _) = network.finish();
    let connections = &terminal["connections"];
    let gone = connections["vanished"].as_u64().max(connections["reset_by_sockets"].as_u64());
    assert!(gone >= Some(1), "{terminal}");
}
