//! Outages of a link, shorter and longer than the timeout.

use super::harness::*;
use super::line::Line;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;

/// Starts a pair over an interruptible path; both have this outage timeout.
fn over_a_line(seconds: u32) -> (Line, Pair) {
    let limits = format!("[limits]\noutage = \"{seconds}s\"\n");
    let hub = hub_at("127.0.0.1:0", &limits);
    let line = Line::to(hub.addresses.link.unwrap());
    let terminal = Running::start(&format!(
        "role = \"terminal\"\naccept = \"early\"\n\
         [link]\npeer = \"{}\"\nlisten = \"127.0.0.1:0\"\nmtu = 1400\n\
         rate_up = \"50mbit\"\nrate_down = \"50mbit\"\nround_trip = \"10ms\"\n\
         [socks5]\nlisten = \"127.0.0.1:0\"\n{limits}",
        line.address
    ));
    (line, Pair { hub, terminal })
}

/// Starts a server of `bytes` that sends them in several pieces.
fn slow_server(bytes: Vec<u8>) -> std::net::SocketAddr {
    serve(move |mut stream| {
        for piece in bytes.chunks(200_000) {
            if stream.write_all(piece).is_err() {
                return;
            }
            pause_ms(50);
        }
    })
}

fn read_all_or_error(client: &mut TcpStream) -> (Vec<u8>, std::io::Result<usize>) {
    let mut bytes = Vec::new();
    let result = client.read_to_end(&mut bytes);
    (bytes, result)
}

#[test]
fn transfers_continue_after_an_outage() {
    let (line, pair) = over_a_line(10);
    let content = pattern(4_000_000, 1);
    let mut client = pair.connect(slow_server(content.clone()));
    let mut got = read_exactly(&mut client, 500_000);
    line.cut();
    pause_ms(2_500);
    line.mend();
    got.extend(read_all(&mut client));
    assert!(got == content, "{} bytes", got.len());
    let report = pair.terminal.stop();
    assert_eq!((report.connections.lost_with_peer, report.connections.reset_by_peer), (0, 0));
    assert!(report.traffic.outages >= 1);
}

#[test]
fn an_outage_beyond_the_limit_is_a_reset_and_never_a_truncation() {
    let (line, pair) = over_a_line(1);
    let mut client = pair.connect(slow_server(pattern(40_000_000, 2)));
    read_exactly(&mut client, 500_000);
    line.cut();
    let (got, end) = read_all_or_error(&mut client);
    assert!(got.len() < 39_500_000);
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    line.mend();
    // New connections work.
    let mut client = pair.connect(echo());
    client.write_all(b"here again").unwrap();
    assert_eq!(read_exactly(&mut client, 10), b"here again");
    assert_eq!(pair.terminal.stop().connections.lost_with_peer, 1);
}

#[test]
fn the_last_bytes_of_a_client_that_broke_outlast_an_outage() {
    let (line, pair) = over_a_line(20);
    let (sender, result) = mpsc::channel();
    let server = serve(move |mut stream| {
        let mut greeting = [0; 5];
        stream.read_exact(&mut greeting).unwrap();
        let (got, end) = read_all_or_error(&mut stream);
        sender.send((got.len(), end.map_err(|error| error.kind()))).unwrap();
    });
    let mut client = pair.connect(server);
    client.write_all(b"hello").unwrap();
    pause_ms(300);
    line.cut();
    client.write_all(&[7; 100_000]).unwrap();
    pause_ms(200);
    abort(client);
    // Longer than the timeout for data without progress.
    pause_ms(4_000);
    line.mend();
    let (count, end) = result.recv().unwrap();
    assert_eq!((count, end), (100_000, Err(ErrorKind::ConnectionReset)));
}
