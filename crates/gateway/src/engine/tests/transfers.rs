//! All bytes arrive in order with any number of connections.

use super::harness::*;
use std::io::{Read, Write};
use std::net::{Ipv6Addr, Shutdown, TcpStream};

/// Sends `data` and finishes, while reading to the end.
fn exchange(stream: TcpStream, data: Vec<u8>) -> Vec<u8> {
    let mut writer = stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        writer.write_all(&data).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut stream = stream;
    let received = read_all(&mut stream);
    sender.join().unwrap();
    received
}

#[test]
fn large_transfers_run_in_both_directions() {
    let pair = Pair::early();
    let down = pattern(5_000_000, 1);
    let up = pattern(5_000_000, 2);
    let (sent, wanted) = (down.clone(), up.clone());
    let (sender, result) = std::sync::mpsc::channel();
    let server = serve(move |stream| {
        sender.send(exchange(stream, sent.clone()) == wanted).unwrap();
    });
    let received = exchange(pair.connect(server), up);
    assert!(received == down, "the download differs");
    assert!(result.recv().unwrap(), "the upload differs");
    let report = pair.hub.stop();
    assert_eq!(report.connections.bytes_from_sockets, 5_000_000);
    assert_eq!(report.connections.bytes_to_sockets, 5_000_000);
    assert_eq!(report.connections.completed, 1);
}

#[test]
fn two_hundred_connections_at_once() {
    let pair = Pair::early();
    let server = echo();
    let clients: Vec<TcpStream> = (0..200).map(|_| pair.connect(server)).collect();
    let threads: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(number, client)| {
            std::thread::spawn(move || {
                let data = pattern(20_000, number as u64);
                assert!(exchange(client, data.clone()) == data, "connection {number}");
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let report = pair.hub.stop();
    assert_eq!(report.connections.connected, 200);
    assert!(report.connections.peak_connections >= 150, "{}", report.connections.peak_connections);
}

#[test]
fn a_slow_reader_does_not_delay_others() {
    let pair = Pair::early();
    let data = pattern(3_000_000, 3);
    let sent = data.clone();
    let server = serve(move |mut stream| {
        let _ = stream.write_all(&sent);
    });
    let mut slow = pair.connect(server);
    read_exactly(&mut slow, 1000);
    // The slow one stops reading; others receive everything.
    for _ in 0..3 {
        let mut quick = pair.connect(server);
        assert!(read_all(&mut quick) == data);
    }
    let rest = read_all(&mut slow);
    assert!(rest == data[1000..], "the slow one got {} bytes", rest.len());
}

#[test]
fn ipv6_and_names_are_reached() {
    let pair = Pair::confirm();
    let server = serve_on((Ipv6Addr::LOCALHOST, 0).into(), echo_one);
    let data = pattern(100_000, 4);
    assert!(exchange(pair.connect(server), data.clone()) == data);
    let (stream, code) = pair.socks_name("localhost", echo().port());
    assert_eq!(code, 0);
    assert!(exchange(stream, data.clone()) == data);
}

#[test]
fn data_after_a_connect_request_is_relayed() {
    for pair in [Pair::early(), Pair::confirm()] {
        let mut client = open(pair.terminal.addresses.connect[0]);
        write!(client, "CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\nearly bird", echo()).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let answer = String::from_utf8(read_all(&mut client)).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.ends_with("\r\n\r\nearly bird"), "{answer}");
    }
}

#[test]
fn one_byte_at_a_time_is_not_held_back() {
    let pair = Pair::early();
    let mut client = pair.connect(echo());
    for byte in 0..100u8 {
        client.write_all(&[byte]).unwrap();
        let mut back = [0];
        client.read_exact(&mut back).unwrap();
        assert_eq!(back, [byte]);
    }
}
