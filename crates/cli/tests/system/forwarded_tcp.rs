//! TCP that is forwarded unsplit: spoofing, and filtering of acknowledgements
//! (`docs/guide/forwarded-tcp.md`). The figures of its guide are printed by
//! `cargo test -p bentpipe --test system -- --ignored --nocapture forwarded_tcp`.

use crate::network::{PATIENCE, Setup, TestNetwork};
use serde_json::Value;
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::thread;
use std::time::Duration;
use testbed::addresses::SERVER;
use testbed::content::{Checksum, Content};

/// The port that is not intercepted.
const PORT: u16 = 9_100;

/// Builds gateways that forward connections to [`PORT`], with these keys in `[forward]`.
fn build(name: &str, (link, rates): (&str, &str), keys: &str) -> Option<TestNetwork> {
    if let Err(error) = std::fs::metadata("/dev/net/tun") {
        eprintln!("skipped: /dev/net/tun: {error}");
        return None;
    }
    let setup = Setup {
        link,
        rates,
        intercept: "exclude_ports = [9100]",
        terminal_tables: &format!("[forward]\ninterfaces = [\"lan\"]\n{keys}\n"),
        hub_tables: &format!("[forward]\nnetworks = [\"10.1.0.0/24\", \"fd00:1::/64\"]\n{keys}\n"),
        ..Setup::default()
    };
    TestNetwork::build(name, &setup)
}

/// Sends `length` octets with the congestion control `cubic`, and waits for their end.
fn send(mut stream: TcpStream, length: u64) {
    SockRef::from(&stream).set_tcp_congestion(b"cubic").expect("the kernel has cubic");
    let content = Content::new(7);
    let mut chunk = vec![0; 16 << 10];
    let mut sent = 0;
    while sent < length {
        let part = (length - sent).min(chunk.len() as u64) as usize;
        content.fill(sent, &mut chunk[..part]);
        stream.write_all(&chunk[..part]).expect("a receiver");
        sent += part as u64;
    }
    stream.shutdown(std::net::Shutdown::Write).expect("an open connection");
    // The receiver closes after the last octet.
    let _ = stream.read(&mut [0]);
}

/// Receives until the end, and checks the content.
fn receive(mut stream: TcpStream, length: u64) {
    let (mut checksum, mut received) = (Checksum::default(), 0);
    let mut chunk = vec![0; 64 << 10];
    loop {
        let count = stream.read(&mut chunk).expect("data in time");
        if count == 0 {
            break;
        }
        checksum.update(&chunk[..count]);
        received += count as u64;
    }
    assert_eq!((received, checksum.value()), (length, Content::new(7).checksum(length)));
}

/// Transfers `length` octets to the client, or from it; returns the seconds from the connection on.
fn transfer(network: &TestNetwork, server: IpAddr, length: u64, is_upload: bool) -> f64 {
    let listener = network.listen(server, PORT);
    let clock = rt::Clock::new();
    let begin = clock.now();
    let client = network.connect(server, PORT);
    let (server, from) = listener.accept().expect("a connection");
    assert_eq!(from, client.local_addr().expect("an address"), "it was split");
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(PATIENCE * 10)).expect("a time above zero");
    }
    let (sender, receiver) = if is_upload { (client, server) } else { (server, client) };
    let sending = thread::spawn(move || send(sender, length));
    receive(receiver, length);
    let seconds = clock.now().since(begin).as_secs_f64();
    sending.join().expect("the sender");
    seconds
}

fn counter(report: &Value, name: &str) -> u64 {
    report["connections"]["forwarded"]["tcp"][name].as_u64().expect("a counter")
}

/// The kernel's TCP in both directions and over both protocols, with losses: everything arrives,
/// repaired by the gateways.
#[test]
fn spoofed_connections_deliver_everything() {
    let link = ("delay 40ms rate 20mbit limit 2bdp loss 2%", "round_trip = \"80ms\"");
    let keys = "spoof = true\nspace_acks = true\nfilter_acks = true";
    let Some(network) = build("spoofed", link, keys) else { return };
    for (server, is_upload) in [(IpAddr::from(SERVER.0), false), (SERVER.1.into(), true)] {
        transfer(&network, server, 2_000_000, is_upload);
    }
    let (terminal, hub) = network.finish();
    for report in [&terminal, &hub] {
        assert_eq!(counter(report, "opened"), 2, "{report}");
        assert_eq!(counter(report, "spoofed"), 1, "{report}");
        assert!(
            counter(report, "retransmitted") > 2 && counter(report, "suppressed") > 50,
            "{report}"
        );
        assert_eq!(counter(report, "aborted"), 0, "{report}");
    }
}

/// A sender whose data is stored is reset when the gateway stops.
#[test]
fn a_gateway_that_stops_resets_spoofed_senders() {
    let link =
        ("delay 40ms rate 100kbit limit 2bdp", "rate_up = \"100kbit\"\nrate_down = \"100kbit\"");
    let Some(network) = build("spoofed-stop", link, "spoof = true") else { return };
    let listener = network.listen(SERVER.0, PORT);
    let _client = network.connect(SERVER.0, PORT);
    let (mut server, _) = listener.accept().expect("a connection");
    server.set_write_timeout(Some(Duration::from_millis(300))).expect("a time above zero");
    // More than the link takes, so that some is stored.
    while server.write_all(&[7; 4_096]).is_ok() {}
    let (_, hub) = network.finish();
    assert_eq!(counter(&hub, "aborted"), 1, "{hub}");
    let error = server.take_error().expect("a socket").expect("it was reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

/// Prints what spoofing and filtering change.
#[test]
#[ignore = "takes minutes"]
fn figures() {
    let lossy = |loss| format!("delay 300ms rate 20mbit limit 2bdp loss {loss}%");
    let rates = "rate_up = \"20mbit\"\nrate_down = \"20mbit\"\nround_trip = \"600ms\"";
    for (loss, length) in [(0.0, 100_000), (0.0, 2_000_000), (0.5, 100_000), (0.5, 2_000_000)] {
        for keys in ["", "spoof = true"] {
            let link = lossy(loss);
            let Some(network) = build("figures", (&link, rates), keys) else { return };
            let seconds = transfer(&network, SERVER.0.into(), length, false);
            println!(
                "download, cubic, 20 Mbit/s, 600 ms, loss {loss} %, {length} octets, [{keys}]: {seconds:.2} s"
            );
            network.finish();
        }
    }
    let narrow = "delay 300ms rate 20mbit limit 2bdp return rate 32kbit limit 2bdp";
    let rates = "rate_up = \"32kbit\"\nrate_down = \"20mbit\"\nround_trip = \"600ms\"";
    for keys in ["", "filter_acks = true", "spoof = true", "spoof = true\nfilter_acks = true"] {
        let Some(network) = build("figures", (narrow, rates), keys) else { return };
        let seconds = transfer(&network, SERVER.0.into(), 4_000_000, false);
        let (terminal, _) = network.finish();
        let filtered = &terminal["acks_filtered"];
        let keys = keys.replace('\n', ", ");
        println!(
            "download, cubic, 20 Mbit/s, 600 ms, return link 32 kbit/s, 4000000 octets, [{keys}]: {seconds:.2} s, {filtered} filtered"
        );
    }
}
