//! Two-segment splitting: one gateway at the hub, and nothing at the terminal.

use crate::bed::{self, PATIENCE, content, exchange, pause, read_all};
use rt::emulator::Handle;
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;
use testbed::addresses::{CLIENT, HUB_WAN, SERVER};
use testbed::{Process, Satellite, SatelliteConfig};

/// Client, plain router, link, gateway and server, at work.
struct Bed {
    net: Satellite,
    link: Handle,
    gateway: Process,
    emulator: Option<JoinHandle<()>>,
}

impl Bed {
    /// Builds everything and waits until the gateway takes connections; `None`, and a word on
    /// standard error, where the machine does not allow it. `keys` are those of `[single]`.
    fn build(link: &str, keys: &str) -> Option<Self> {
        if let Err(refusal) = testbed::permission::check() {
            eprintln!("skipped: {refusal}");
            return None;
        }
        let net = Satellite::new(&SatelliteConfig::default()).expect("namespaces and wires");
        let (link, emulator) = bed::emulate(&net, link);
        let config = format!("role = \"single\"\n[single]\nsatellite = [\"sat\"]\n{keys}");
        let gateway = bed::gateway(&net.hub, &config);
        let mut bed = Self { net, link, gateway, emulator: Some(emulator) };
        bed.await_gateway();
        Some(bed)
    }

    /// The gateway answers before it knows that nobody listens; without it the server refuses.
    fn await_gateway(&mut self) {
        let nobody = SocketAddr::new(SERVER.0.into(), 9);
        for _ in 0..100 {
            assert!(!self.gateway.has_ended(), "the gateway has ended by itself");
            if self.net.client.run(|| TcpStream::connect_timeout(&nobody, PATIENCE)).is_ok() {
                return;
            }
            pause(Duration::from_millis(50));
        }
        panic!("the gateway takes no connections");
    }

    fn listen(&self, port: u16) -> TcpListener {
        let address = SocketAddr::new(SERVER.0.into(), port);
        self.net.server.run(|| TcpListener::bind(address)).expect("a free port")
    }

    fn connect(&self, port: u16) -> TcpStream {
        let address = SocketAddr::new(SERVER.0.into(), port);
        let stream = self.net.client.run(|| TcpStream::connect_timeout(&address, PATIENCE));
        let stream = stream.expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time above zero");
        stream
    }

    fn finish(mut self) -> Value {
        bed::report_of(&mut self.gateway)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.link.stop();
        if let Some(emulator) = self.emulator.take() {
            let _ = emulator.join();
        }
    }
}

const LINK: &str = "delay 40ms rate 40mbit limit 2bdp";
const OWN: &str = "source = \"own\"\nrate = \"38mbit\"\nround_trip = \"80ms\"\n";

#[test]
fn bytes_are_whole_both_ways_and_halves_end_by_themselves() {
    let Some(bed) = Bed::build(LINK, OWN) else { return };
    let listener = bed.listen(9000);
    let client = bed.connect(9000);
    let (server, seen) = listener.accept().unwrap();
    assert_eq!(seen.ip(), IpAddr::V4(HUB_WAN.0), "by way of the gateway");
    exchange(client, server, 4_000_000);
    let report = bed.finish();
    assert_eq!(report["role"], "single");
    assert!(report["single"]["bytes_to_satellite"].as_u64() >= Some(4_000_000), "{report}");
    assert!(report["connections"]["completed"].as_u64() >= Some(1), "{report}");
}

#[test]
fn the_server_sees_the_client_and_a_reset_is_a_reset() {
    let keys = "congestion = \"cubic\"\ninitial_window = 32\nnetworks = [\"10.1.0.0/24\"]\n";
    let Some(bed) = Bed::build(LINK, keys) else { return };
    let listener = bed.listen(9000);
    let mut client = bed.connect(9000);
    let (mut server, seen) = listener.accept().unwrap();
    assert_eq!(seen.ip(), IpAddr::V4(CLIENT.0));
    client.write_all(b"asked").unwrap();
    let mut heard = [0; 5];
    server.read_exact(&mut heard).unwrap();
    // An answer, and then a close with bytes of the client's unread: that is a reset, and what
    // was answered before must come.
    let answer = content(3, 20_000);
    client.write_all(b"more that nobody reads").unwrap();
    pause(Duration::from_millis(200));
    server.write_all(&answer).unwrap();
    pause(Duration::from_millis(200));
    drop(server);
    let (got, end) = read_all(&mut client);
    assert!(got == answer, "{} bytes", got.len());
    assert_eq!(end.expect_err("not a clean end").kind(), ErrorKind::ConnectionReset);
    let report = bed.finish();
    assert_eq!(report["single"]["congestion"], "cubic");
    assert!(report["connections"]["reset_by_sockets"].as_u64() >= Some(1), "{report}");
}

#[test]
fn a_refusal_reaches_the_client_as_a_reset() {
    let Some(bed) = Bed::build(LINK, OWN) else { return };
    let mut client = bed.connect(9999);
    let (got, end) = read_all(&mut client);
    assert!(got.is_empty());
    assert_eq!(end.expect_err("nobody listens").kind(), ErrorKind::ConnectionReset);
    let report = bed.finish();
    assert_eq!(report["connections"]["refused"]["connection_refused"], 2, "{report}");
}

#[test]
fn two_hundred_connections_at_once_are_all_whole() {
    let Some(bed) = Bed::build(LINK, OWN) else { return };
    let listener = bed.listen(9000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..200 {
                let (mut server, _) = listener.accept().unwrap();
                scope.spawn(move || {
                    let mut seed = [0];
                    server.read_exact(&mut seed).unwrap();
                    server.write_all(&content(u64::from(seed[0]), 40_000)).unwrap();
                });
            }
        });
        for seed in 0..200_u8 {
            let bed = &bed;
            scope.spawn(move || {
                let mut client = bed.connect(9000);
                client.write_all(&[seed]).unwrap();
                let (got, end) = read_all(&mut client);
                end.expect("a clean end");
                assert!(got == content(u64::from(seed), 40_000), "{seed}: {}", got.len());
            });
        }
    });
    let report = bed.finish();
    assert!(report["connections"]["most_at_once"].as_u64() > Some(50), "{report}");
}
