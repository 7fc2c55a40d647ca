//! Two-segment splitting: one gateway at the hub, and none at the terminal.

use crate::network::{self, PATIENCE, content, exchange, pause, read_all};
use rt::emulator::Handle;
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::thread::JoinHandle;
use std::time::Duration;
use testbed::addresses::{CLIENT, HUB_WAN, SERVER};
use testbed::{Host, Process, Satellite, SatelliteConfig};

/// Running client, router, link, gateway and server.
struct TestNetwork {
    net: Satellite,
    link: Handle,
    gateway: Process,
    emulator: Option<JoinHandle<()>>,
}

impl TestNetwork {
    /// Builds everything and waits until the gateway accepts connections; `None`, with a message on
    /// standard error, where the machine does not allow it. `keys` are those of `[single]`.
    fn build(link: &str, keys: &str) -> Option<Self> {
        let config = format!("role = \"single\"\n[single]\nsatellite = [\"sat\"]\n{keys}");
        Self::build_with(link, |hub| network::gateway(hub, &config))
    }

    /// As [`TestNetwork::build`], with the gateway that `start` starts on the hub.
    fn build_with(link: &str, start: impl FnOnce(&Host) -> Process) -> Option<Self> {
        if let Err(refusal) = testbed::permission::check() {
            eprintln!("skipped: {refusal}");
            return None;
        }
        let net = Satellite::new(&SatelliteConfig::default()).expect("namespaces and wires");
        let (link, emulator) = network::emulate(&net, link);
        let gateway = start(&net.hub);
        let mut network = Self { net, link, gateway, emulator: Some(emulator) };
        network.await_gateway();
        Some(network)
    }

    /// The gateway accepts before it connects to the server; without it the server would refuse.
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
        network::report_of(&mut self.gateway)
    }
}

impl Drop for TestNetwork {
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
fn data_is_complete_in_both_directions_and_half_closes_are_independent() {
    let Some(network) = TestNetwork::build(LINK, OWN) else { return };
    let listener = network.listen(9000);
    let client = network.connect(9000);
    let (server, seen) = listener.accept().unwrap();
    assert_eq!(seen.ip(), IpAddr::V4(HUB_WAN.0), "by way of the gateway");
    exchange(client, server, 4_000_000);
    let report = network.finish();
    assert_eq!(report["role"], "single");
    assert!(report["single"]["bytes_to_satellite"].as_u64() >= Some(4_000_000), "{report}");
    assert!(report["connections"]["completed"].as_u64() >= Some(1), "{report}");
}

#[test]
fn the_server_sees_the_client_and_a_reset_is_forwarded() {
    let keys = "congestion = \"cubic\"\ninitial_window = 32\nnetworks = [\"10.1.0.0/24\"]\n";
    let Some(network) = TestNetwork::build(LINK, keys) else { return };
    let listener = network.listen(9000);
    let mut client = network.connect(9000);
    let (mut server, seen) = listener.accept().unwrap();
    assert_eq!(seen.ip(), IpAddr::V4(CLIENT.0));
    client.write_all(b"asked").unwrap();
    let mut heard = [0; 5];
    server.read_exact(&mut heard).unwrap();
    // A response followed by a close with unread data of the client is a reset; the response must
    // arrive first.
    let answer = content(3, 20_000);
    client.write_all(b"more that nobody reads").unwrap();
    pause(Duration::from_millis(200));
    server.write_all(&answer).unwrap();
    pause(Duration::from_millis(200));
    drop(server);
    let (got, end) = read_all(&mut client);
    assert!(got == answer, "{} bytes", got.len());
    assert_eq!(end.expect_err("not a clean end").kind(), ErrorKind::ConnectionReset);
    let report = network.finish();
    assert_eq!(report["single"]["congestion"], "cubic");
    assert!(report["connections"]["reset_by_sockets"].as_u64() >= Some(1), "{report}");
}

#[test]
fn a_refusal_is_forwarded_as_a_reset() {
    let Some(network) = TestNetwork::build(LINK, OWN) else { return };
    let mut client = network.connect(9999);
    let (got, end) = read_all(&mut client);
    assert!(got.is_empty());
    assert_eq!(end.expect_err("nobody listens").kind(), ErrorKind::ConnectionReset);
    let report = network.finish();
    assert_eq!(report["connections"]["refused"]["connection_refused"], 2, "{report}");
}

#[test]
fn two_hundred_parallel_connections_are_complete() {
    let Some(network) = TestNetwork::build(LINK, OWN) else { return };
    let listener = network.listen(9000);
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
            let network = &network;
            scope.spawn(move || {
                let mut client = network.connect(9000);
                client.write_all(&[seed]).unwrap();
                let (got, end) = read_all(&mut client);
                end.expect("a clean end");
                assert!(got == content(u64::from(seed), 40_000), "{seed}: {}", got.len());
            });
        }
    });
    let report = network.finish();
    assert!(report["connections"]["peak_connections"].as_u64() > Some(50), "{report}");
}

/// Returns the gateway's status.
fn ask(socket: &Path, what: &str) -> Value {
    let mut stream = UnixStream::connect(socket).expect("a control socket");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time above zero");
    writeln!(stream, "{{\"ask\":\"{what}\"}}").expect("a question");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("an answer");
    serde_json::from_str(&line).expect("an answer in JSON")
}

#[test]
fn it_reports_its_status_and_reloads_its_limits() {
    let folder = std::env::temp_dir().join(format!("bentpipe-{}-single", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (file, socket) = (folder.join("single.toml"), folder.join("control.sock"));
    let config = |connections: u32| {
        format!(
            "role = \"single\"\n[control]\nsocket = \"{}\"\n[limits]\n\
             connections = {connections}\n[single]\nsatellite = [\"sat\"]\n{OWN}",
            socket.display()
        )
    };
    let start = |hub: &Host| {
        network::write_secret(&file, &config(50));
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bentpipe"));
        command.args(["gateway", "--config"]).arg(&file);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        hub.start(command).expect("the gateway starts")
    };
    let Some(mut network) = TestNetwork::build_with(LINK, start) else { return };
    let listener = network.listen(9000);
    let client = network.connect(9000);
    let (server, _) = listener.accept().unwrap();
    let status = ask(&socket, "status");
    assert_eq!(status["gateway"]["role"], "single", "{status}");
    assert!(status["open"] == 1 && status["limit"] == 50, "{status}");
    assert!(status["single"]["bytes_to_satellite"].is_u64(), "{status}");
    let page = ask(&socket, "connections");
    let one = &page["connections"][0];
    assert!(one["state"] == "open" && one["number"].is_u64(), "{page}");
    let refusal = ask(&socket, "capture");
    assert!(refusal["error"].as_str().is_some_and(|text| text.contains("inner traffic")));
    // An invalid file changes nothing, a valid one what can be changed.
    let reload = |network: &mut TestNetwork, text: String| {
        std::fs::write(&file, text).expect("room on the disk");
        let pid = network.gateway.child().id().to_string();
        let sent = std::process::Command::new("kill").args(["-HUP", &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIGHUP was not sent");
    };
    let limit_is = |limit: u64| {
        (0..200).any(|_| {
            pause(Duration::from_millis(50));
            ask(&socket, "status")["limit"] == limit
        })
    };
    reload(&mut network, "role = \"single\"\n".into());
    pause(Duration::from_millis(300));
    assert!(limit_is(50));
    reload(&mut network, config(7));
    assert!(limit_is(7));
    // An upgrade is refused, with a line in the log.
    let pid = network.gateway.child().id().to_string();
    let mut log = BufReader::new(network.gateway.child().stderr.take().expect("the log"));
    let sent = std::process::Command::new("kill").args(["-USR2", &pid]).status();
    assert!(sent.is_ok_and(|status| status.success()), "SIGUSR2 was not sent");
    let mut line = String::new();
    while !line.contains("upgrade refused: with role = \"single\"") {
        line.clear();
        assert!(log.read_line(&mut line).expect("the log") > 0, "the gateway has ended");
    }
    // The open connection continues.
    exchange(client, server, 100_000);
    network.finish();
    let _ = std::fs::remove_dir_all(&folder);
}
