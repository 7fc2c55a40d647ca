//! Half-close, reset and refusal of one side appear at the other.

use super::harness::*;
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;

#[test]
fn each_half_ends_by_itself() {
    let pair = Pair::early();
    // The client finishes first, and still receives everything.
    let mut client = pair.connect(echo());
    client.write_all(b"all that I have").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut client), b"all that I have");
    // The server finishes first, and still receives everything.
    let (sender, result) = mpsc::channel();
    let server = serve(move |mut stream| {
        stream.write_all(b"bye").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        sender.send(read_all(&mut stream)).unwrap();
    });
    let mut client = pair.connect(server);
    assert_eq!(read_all(&mut client), b"bye");
    client.write_all(b"one last word").unwrap();
    drop(client);
    assert_eq!(result.recv().unwrap(), b"one last word");
    let report = pair.terminal.stop();
    assert_eq!(report.connections.reset_by_sockets, 0);
}

#[test]
fn a_server_may_speak_first() {
    for pair in [Pair::early(), Pair::confirm()] {
        let server = serve(|mut stream| {
            stream.write_all(b"220 ready\r\n").unwrap();
            echo_one(stream);
        });
        let mut client = pair.connect(server);
        assert_eq!(read_exactly(&mut client, 11), b"220 ready\r\n");
        client.write_all(b"QUIT\r\n").unwrap();
        assert_eq!(read_exactly(&mut client, 6), b"QUIT\r\n");
    }
}

#[test]
fn a_refused_port_is_a_refusal_when_confirmed() {
    let pair = Pair::confirm();
    let (mut client, code) = pair.socks(nobody());
    assert_eq!(code, 5, "connection refused");
    assert_eq!(read_all(&mut client), b"");

    let mut client = open(pair.terminal.addresses.connect[0]);
    write!(client, "CONNECT {} HTTP/1.1\r\nHost: x\r\n\r\n", nobody()).unwrap();
    let answer = String::from_utf8(read_all(&mut client)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let report = pair.terminal.stop();
    assert_eq!(report.connections.refused["connection_refused"], 2);
}

#[test]
fn a_refused_port_is_a_reset_when_answered_early() {
    let pair = Pair::early();
    let (mut client, code) = pair.socks(nobody());
    assert_eq!(code, 0);
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn names_without_addresses_are_reported() {
    let pair = Pair::confirm();
    let (_, code) = pair.socks_name("no.such.name.invalid", 80);
    assert_eq!(code, 4, "host unreachable");
}

#[test]
fn denied_destinations_are_reported() {
    let pair = Pair::with("accept = \"confirm\"", "[hub]\ndeny = [\"127.0.0.0/8\"]");
    let (_, code) = pair.socks(echo());
    assert_eq!(code, 2, "not allowed by ruleset");
    let (_, code) = pair.socks_name("localhost", echo().port());
    assert_ne!(code, 0);
}

#[test]
fn a_client_that_resets_resets_the_server() {
    let pair = Pair::early();
    let (sender, result) = mpsc::channel();
    let server = serve(move |mut stream| {
        assert_eq!(read_exactly(&mut stream, 2), b"hi");
        sender.send(None).unwrap();
        sender.send(stream.read(&mut [0]).err().map(|error| error.kind())).unwrap();
    });
    let mut client = pair.connect(server);
    client.write_all(b"hi").unwrap();
    assert_eq!(result.recv().unwrap(), None);
    abort(client);
    assert_eq!(result.recv().unwrap(), Some(ErrorKind::ConnectionReset));
}

#[test]
fn a_server_that_resets_resets_the_client() {
    let pair = Pair::early();
    let server = serve(|mut stream| {
        read_exactly(&mut stream, 2);
        abort(stream);
    });
    let mut client = pair.connect(server);
    client.write_all(b"hi").unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn bytes_before_a_reset_arrive_before_it() {
    // A server that responds and closes with part of the request unread resets the connection; so
    // does a client that closes with a response unread.
    let pair = Pair::early();
    let answer = pattern(20_000, 3);
    let server = serve(move |mut stream| {
        read_exactly(&mut stream, 1);
        stream.write_all(&pattern(20_000, 3)).unwrap();
    });
    let mut client = pair.connect(server);
    client.write_all(&[1; 5_000]).unwrap();
    assert_eq!(read_exactly(&mut client, answer.len()), answer);
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);

    let (sender, result) = mpsc::channel();
    let server = serve(move |mut stream| {
        stream.write_all(b"unread").unwrap();
        let words = read_exactly(&mut stream, 20_000);
        sender.send((words, stream.read(&mut [0]).err().map(|error| error.kind()))).unwrap();
    });
    let mut client = pair.connect(server);
    client.peek(&mut [0]).unwrap();
    client.write_all(&pattern(20_000, 4)).unwrap();
    drop(client);
    assert_eq!(result.recv().unwrap(), (pattern(20_000, 4), Some(ErrorKind::ConnectionReset)));
}

#[test]
fn a_slow_end_gets_all_that_came_before_a_reset() {
    // At the reset the end of the shorter stream is in the kernel's buffer, and most of the longer
    // one in the stream's.
    for len in [40_000, 400_000] {
        let pair = Pair::early();
        let server = serve(move |mut stream| {
            read_exactly(&mut stream, 1);
            send_and_abort(stream, len);
        });
        let mut client = slow_to(pair.terminal.addresses.socks5[0]);
        client = socks_from(client, server).0;
        client.write_all(&[1; 5_000]).unwrap();
        read_until_reset(&mut client, len);
        let report = pair.terminal.stop();
        assert_eq!((report.connections.reset_by_peer, report.connections.vanished), (1, 0));

        // And in the other direction.
        let (sender, result) = mpsc::channel();
        let listener = slow_listener();
        let server = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            read_until_reset(&mut stream, len);
            sender.send(()).unwrap();
        });
        let pair = Pair::early();
        let client = pair.connect(server);
        send_and_abort(client, len);
        result.recv().expect("the server has received everything");
    }
}

/// Sends `len` bytes, and resets when the remote kernel has received them.
fn send_and_abort(mut stream: TcpStream, len: usize) {
    stream.write_all(&pattern(len, 9)).unwrap();
    assert!(soon(|| crate::driver::unacknowledged(&stream) == 0));
    abort(stream);
}

/// Reads nothing for a while, then slowly all bytes that arrived before a reset.
fn read_until_reset(stream: &mut TcpStream, len: usize) {
    pause_ms(500);
    let mut came = Vec::new();
    let mut some = [0; 8_192];
    let error = loop {
        match stream.read(&mut some) {
            Ok(0) => panic!("an orderly end after {} bytes", came.len()),
            Ok(count) => came.extend_from_slice(&some[..count]),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(came == pattern(len, 9), "{} bytes of {len}", came.len());
}

fn few_bytes_wait() -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket
}

fn slow_to(address: SocketAddr) -> TcpStream {
    let socket = few_bytes_wait();
    socket.connect(&address.into()).unwrap();
    socket.into()
}

fn slow_listener() -> TcpListener {
    let socket = few_bytes_wait();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(8).unwrap();
    socket.into()
}

#[test]
fn a_reset_is_noticed_while_nothing_is_read() {
    // The server reads nothing, so the client's bytes stop in the terminal's socket; the reset
    // after them must be detected nevertheless.
    let pair = Pair::early();
    let (sender, result) = mpsc::channel();
    let server = serve(move |mut stream| {
        stream.write_all(b"x").unwrap();
        report_reset(&sender, stream);
    });
    let mut client = pair.connect(server);
    read_exactly(&mut client, 1);
    client.set_nonblocking(true).unwrap();
    let block = [7; 65_536];
    let mut idle = 0;
    while idle < 200 {
        idle = if client.write(&block).is_ok_and(|count| count > 0) { 0 } else { idle + 1 };
        std::thread::yield_now();
    }
    abort(client);
    assert!(result.recv().unwrap(), "the server's socket broke");
}

/// Reports when the socket is reset, without reading from it.
fn report_reset(sender: &mpsc::Sender<bool>, stream: TcpStream) {
    let mut poll = mio::Poll::new().unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut stream = mio::net::TcpStream::from_std(stream);
    poll.registry().register(&mut stream, mio::Token(0), mio::Interest::WRITABLE).unwrap();
    let mut events = mio::Events::with_capacity(4);
    for _ in 0..20 {
        poll.poll(&mut events, Some(std::time::Duration::from_secs(1))).unwrap();
        if events.iter().any(mio::event::Event::is_error) {
            sender.send(true).unwrap();
            return;
        }
    }
    sender.send(false).unwrap();
}

#[test]
fn malformed_proxy_requests_are_reported() {
    let pair = Pair::early();
    let mut client = open(pair.terminal.addresses.connect[0]);
    client.write_all(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").unwrap();
    let answer = String::from_utf8(read_all(&mut client)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 5"), "{answer}");
    let mut client = open(pair.terminal.addresses.socks5[0]);
    client.write_all(&[9; 100]).unwrap();
    let _ = client.read(&mut [0]);
    assert_eq!(pair.terminal.stop().connections.bad_requests, 2);
}

#[test]
fn stopping_resets_open_connections() {
    let pair = Pair::early();
    let server = serve(|mut stream| {
        stream.write_all(b"x").unwrap();
        let _ = stream.read(&mut [0]);
    });
    let mut client = pair.connect(server);
    read_exactly(&mut client, 1);
    let report = pair.terminal.stop();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!((report.role, report.connections.opened), ("terminal", 1));
}

#[test]
fn a_restarted_hub_serves_again() {
    let Pair { hub, terminal } = Pair::early();
    let address = hub.addresses.link.unwrap().to_string();
    let server = echo();
    let pair = Pair { hub, terminal };
    let mut old = pair.connect(server);
    old.write_all(b"x").unwrap();
    read_exactly(&mut old, 1);
    let Pair { hub, terminal } = pair;
    hub.stop();
    assert_eq!(old.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    // A stream opened now waits for the new hub.
    let hub = hub_at(&address, "");
    let pair = Pair { hub, terminal };
    let mut new = pair.connect(server);
    new.write_all(b"z").unwrap();
    assert_eq!(read_exactly(&mut new, 1), b"z");
    let report = pair.terminal.stop();
    assert_eq!((report.connections.lost_with_peer, report.traffic.sessions), (1, 2));
}
