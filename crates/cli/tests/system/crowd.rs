//! Connections do not delay each other, and survive an outage.

use crate::network::{Setup, TestNetwork, content, exchange, read_all};
use std::io::{Read, Write};
use std::time::Duration;
use testbed::addresses::SERVER;
use units::Span;

#[test]
fn a_slow_reader_delays_no_other_connection() {
    let Some(network) = TestNetwork::build("slow", &Setup::default()) else { return };
    let listener = network.listen(SERVER.0, 9000);
    let slow = network.connect(SERVER.0, 9000);
    let (mut stuck, _) = listener.accept().unwrap();
    stuck.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    // The transfer stops without a reader, because memory is bounded.
    let block = content(1, 1 << 20);
    let written = (0..200).take_while(|_| stuck.write_all(&block).is_ok()).count();
    assert!(written < 200, "200 MB went somewhere");

    let bytes = content(2, 2_000_000);
    let mut client = network.connect(SERVER.0, 9000);
    let (mut server, _) = listener.accept().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            server.write_all(&bytes).unwrap();
            drop(server);
        });
        let (got, end) = read_all(&mut client);
        end.expect("a clean end");
        assert!(got == bytes, "{} bytes", got.len());
    });
    // The blocked connection continues when it is read.
    let mut slow = slow;
    let mut first = vec![0; 1 << 20];
    slow.read_exact(&mut first).unwrap();
    assert!(first == block);
}

#[test]
fn simultaneous_data_in_both_directions_is_complete() {
    let Some(network) = TestNetwork::build("duplex", &Setup::default()) else { return };
    let listener = network.listen(SERVER.1, 9000);
    let client = network.connect(SERVER.1, 9000);
    let (server, _) = listener.accept().unwrap();
    exchange(client, server, 3_000_000);
}

#[test]
fn connections_survive_an_outage_of_ten_seconds() {
    let Some(network) = TestNetwork::build("outage", &Setup::default()) else { return };
    let listener = network.listen(SERVER.0, 9000);
    let bytes = content(1, 20_000_000);
    let mut client = network.connect(SERVER.0, 9000);
    let (mut server, _) = listener.accept().unwrap();
    let idle = network.connect(SERVER.0, 9000);
    let (mut idle_server, _) = listener.accept().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            server.write_all(&bytes).unwrap();
            drop(server);
        });
        // In the middle of the transfer.
        let mut got = vec![0; 2_000_000];
        client.read_exact(&mut got).unwrap();
        network.link.outage(Span::from_secs(10)).unwrap();
        let (rest, end) = read_all(&mut client);
        end.expect("a clean end");
        got.extend_from_slice(&rest);
        assert!(got == bytes, "{} bytes", got.len());
    });
    // An idle connection still works.
    let mut idle = idle;
    idle.write_all(b"still here").unwrap();
    let mut heard = [0; 10];
    idle_server.set_read_timeout(Some(crate::network::PATIENCE)).unwrap();
    idle_server.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"still here");
    // A new connection after the outage works.
    let _new = network.connect(SERVER.0, 9000);
    listener.accept().unwrap();
}
