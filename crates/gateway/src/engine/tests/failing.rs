//! Treatment of new connections while no hub responds, and above the limit on connections.

use super::harness::*;
use super::line::Line;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};

/// Starts a terminal over `line`, with `fail` and `limits`.
fn terminal(line: SocketAddr, fail: &str, limits: &str) -> Running {
    Running::start(&format!(
        "role = \"terminal\"\naccept = \"early\"\n\
         [link]\npeer = \"{line}\"\nlisten = \"127.0.0.1:0\"\nmtu = 1400\n\
         rate_up = \"50mbit\"\nrate_down = \"50mbit\"\nround_trip = \"10ms\"\n\
         [health]\nhold = \"1s\"\nprobe = \"200ms\"\n[fail]\n{fail}\n[limits]\n{limits}\n\
         [socks5]\nlisten = \"127.0.0.1:0\"\n[connect]\nlisten = \"127.0.0.1:0\"\n"
    ))
}

/// Returns a client of the SOCKS5 proxy and the code of its reply for `target`.
fn asked(terminal: &Running, target: SocketAddr) -> (std::net::TcpStream, u8) {
    socks_from(open(terminal.addresses.socks5[0]), target)
}

#[test]
fn a_proxy_connects_by_itself_while_no_hub_answers() {
    let hub = hub_at("127.0.0.1:0", "");
    let line = Line::to(hub.addresses.link.unwrap());
    let terminal = terminal(line.address, "unreachable = \"open\"", "");
    let content = pattern(3_000_000, 9);
    let sent = content.clone();
    let server = serve(move |mut stream| {
        // All data of the client, and its FIN, precede the response.
        assert_eq!(read_all(&mut stream).len(), 2_000_000);
        stream.write_all(&sent).unwrap();
    });
    line.cut();
    // A terminal that has just started waits; here without a limit.
    let went_direct = soon(|| {
        pause_ms(200);
        let (mut client, code) = asked(&terminal, echo());
        client.set_read_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
        code == 0 && client.write_all(b"?").is_ok() && client.read_exact(&mut [0]).is_ok()
    });
    assert!(went_direct);
    let (mut client, code) = asked(&terminal, server);
    assert_eq!(code, 0);
    let mut half = client.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            half.write_all(&pattern(2_000_000, 8)).unwrap();
            half.shutdown(Shutdown::Write).unwrap();
        });
        assert!(read_all(&mut client) == content);
    });
    // The client receives the server's refusal.
    assert_eq!(asked(&terminal, nobody()).1, 5, "connection refused");
    let (mut named, code) = {
        let mut request = vec![5, 1, 0, 3, 9];
        request.extend(b"localhost");
        request.extend(echo().port().to_be_bytes());
        socks_request(open(terminal.addresses.socks5[0]), &request)
    };
    assert_eq!(code, 0);
    named.write_all(b"by name").unwrap();
    assert_eq!(read_exactly(&mut named, 7), b"by name");
    // A reset by the server is not reported as an end.
    let server = serve(|mut stream| {
        read_exactly(&mut stream, 1);
        abort(stream);
    });
    let (mut broken, code) = asked(&terminal, server);
    assert_eq!(code, 0);
    broken.write_all(b"?").unwrap();
    assert_eq!(broken.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    line.mend();
    // After the hold time connections are relayed again.
    for _ in 0..10 {
        pause_ms(400);
        let (mut client, _) = asked(&terminal, echo());
        client.write_all(b"?").unwrap();
        read_exactly(&mut client, 1);
    }
    let report = terminal.stop();
    assert!(report.connections.direct >= 4, "{:?}", report.connections);
    assert!(hub.stop().connections.opened >= 1, "and by the hub again");
}

#[test]
fn clients_are_refused_at_once_where_that_is_wanted() {
    let hub = hub_at("127.0.0.1:0", "");
    let line = Line::to(hub.addresses.link.unwrap());
    let terminal = terminal(line.address, "unreachable = \"refuse\"", "");
    let echo = echo();
    assert!(soon(|| asked(&terminal, echo).1 == 0));
    line.cut();
    assert!(soon(|| asked(&terminal, echo).1 == 3), "network unreachable");
    let mut client = open(terminal.addresses.connect[0]);
    write!(client, "CONNECT {echo} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let answer = String::from_utf8(read_all(&mut client)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 50"), "{answer}");
    line.mend();
    assert!(soon(|| asked(&terminal, echo).1 == 0), "as soon as it answers");
    let report = terminal.stop();
    assert!(report.connections.refused["network_unreachable"] >= 2);
    assert_eq!((report.connections.direct, report.connections.bypass_activations), (0, 0));
}

#[test]
fn direct_connections_are_idle_only_while_they_move_no_byte() {
    let hub = hub_at("127.0.0.1:0", "");
    let line = Line::to(hub.addresses.link.unwrap());
    let terminal = terminal(line.address, "unreachable = \"open\"", "idle = \"1s\"");
    line.cut();
    let mut client = None;
    assert!(soon(|| {
        pause_ms(200);
        let (mut stream, code) = asked(&terminal, echo());
        stream.set_read_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
        let went_direct =
            code == 0 && stream.write_all(b"?").is_ok() && stream.read_exact(&mut [0]).is_ok();
        client = went_direct.then_some(stream);
        went_direct
    }));
    let mut client = client.unwrap();
    client.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    for _ in 0..12 {
        pause_ms(250);
        client.write_all(b"?").unwrap();
        read_exactly(&mut client, 1);
    }
    // Nothing more is sent.
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(terminal.stop().connections.idle >= 1);
}

#[test]
fn how_often_an_idle_path_is_tried_changes_on_a_reload() {
    let hub = hub_at("127.0.0.1:0", "");
    let line = Line::to(hub.addresses.link.unwrap());
    // No fallback depends on the path, so its probes are rare.
    let terminal = terminal(line.address, "unreachable = \"wait\"", "");
    let echo = echo();
    let (mut client, code) = asked(&terminal, echo);
    assert_eq!((code, client.write_all(b"?").is_ok()), (0, true));
    read_exactly(&mut client, 1);
    drop(client);
    let other = nobody();
    terminal.reload(|text| {
        let text = text.replace("unreachable = \"wait\"", "unreachable = \"refuse\"");
        let connect = "[connect]\nlisten = \"127.0.0.1:0\"";
        text.replace(connect, &format!("[connect]\nlisten = \"{other}\""))
    });
    assert!(soon(|| !refuses(other)), "the new configuration is not in force");
    line.cut();
    pause_ms(2_500);
    // Nothing was sent over it meanwhile.
    assert_eq!(asked(&terminal, echo).1, 3, "network unreachable");
}

/// Starts a server that sends `len` bytes, waits until they are acknowledged, and resets because of
/// unread data. Reports the reset.
fn hasty(len: usize) -> (SocketAddr, std::sync::mpsc::Receiver<()>) {
    let (sender, result) = std::sync::mpsc::channel();
    let server = serve(move |mut stream| {
        stream.write_all(&pattern(len, 5)).unwrap();
        assert!(soon(|| crate::driver::unacknowledged(&stream) == 0), "not all taken");
        drop(stream);
        sender.send(()).unwrap();
    });
    (server, result)
}

#[test]
fn an_answer_that_a_reset_follows_is_whole_without_a_hub() {
    let line = Line::to(nobody());
    let terminal = terminal(line.address, "unreachable = \"open\"", "");
    let echo = echo();
    assert!(soon(|| {
        pause_ms(200);
        let (mut client, _) = asked(&terminal, echo);
        client.set_read_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
        client.write_all(b"?").is_ok() && client.read_exact(&mut [0]).is_ok()
    }));
    const LEN: usize = 150_000;
    let (server, result) = hasty(LEN);
    // The client's buffer is small: most of the response waits in the gateway when the server
    // resets.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.connect(&terminal.addresses.socks5[0].into()).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let (mut client, code) = socks_from(socket.into(), server);
    assert_eq!(code, 0);
    client.write_all(b"a request that nobody reads").unwrap();
    result.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    pause_ms(300);
    let mut got = Vec::new();
    let error = client.read_to_end(&mut got).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "which is no end");
    assert!(got == pattern(LEN, 5), "{} bytes", got.len());

    // A client that has sent everything and vanishes: its server is notified.
    let (sender, result) = std::sync::mpsc::channel();
    let server = serve(move |mut stream| {
        assert_eq!(read_all(&mut stream), b"all");
        let broke = soon(|| stream.take_error().unwrap().is_some());
        sender.send(broke).unwrap();
    });
    let (mut client, _) = asked(&terminal, server);
    client.write_all(b"all").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    pause_ms(200);
    abort(client);
    assert!(result.recv_timeout(std::time::Duration::from_secs(20)).unwrap(), "no notification");
}

#[test]
fn beyond_the_limit_clients_are_refused() {
    let hub = hub_at("127.0.0.1:0", "");
    let line = Line::to(hub.addresses.link.unwrap());
    let limits = "connections = 2\n[limits.client]\nconnections = 2";
    // The default.
    let terminal = terminal(line.address, "", limits);
    let echo = echo();
    let two = [(); 2].map(|()| asked(&terminal, echo).0);
    assert_eq!(asked(&terminal, echo).1, 1, "refused immediately by the proxy");
    drop(two);
    assert!(soon(|| asked(&terminal, echo).1 == 0));
    assert!(terminal.stop().connections.refused["limit"] >= 1);
}
