//! Outages and backup paths with real programs, and connections without a hub.

use crate::network::{PATIENCE, Setup, TestNetwork, have, pause, read_all};
use crate::path::{change, lay};
use crate::programs::nginx;
use rt::netlink::{Route, sysctl};
use std::fs;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::process::Output;
use std::time::Duration;
use testbed::Satellite;
use testbed::addresses::{HUB_WAN, SERVER, TERMINAL};
use testbed::traffic::{Way, connect};
use units::Span;

/// The ends of the second link between terminal and hub.
const SECOND: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2)];

/// Creates a second link from the terminal to the hub, over which sockets bound to its interface
/// also reach the hub's address.
pub(crate) fn lay_second(net: &Satellite) {
    lay(&net.terminal, "second", SECOND[0], &net.hub, "second", SECOND[1]);
    // A shorter prefix than the first link's, so that it is not used otherwise.
    let mut route = Route::to(Ipv4Addr::new(10, 2, 0, 0).into(), 16).via(SECOND[1].into());
    route.interface = Some("second".into());
    change(&net.terminal, |net| net.add_route(&route));
    for host in [&net.terminal, &net.hub] {
        // Accept packets for an address of the other link.
        for interface in ["all", "second"] {
            let name = format!("net/ipv4/conf/{interface}/rp_filter");
            host.run(|| sysctl(&name, "0")).expect("loose filters");
        }
    }
}

const LARGE: usize = 20_000_000;

/// Downloads the file `name` with curl through interception to `got-NAME`.
fn curl(network: &TestNetwork, name: &str, most_seconds: u32) -> Output {
    let (url, got) = (format!("http://10.3.0.2/{name}"), format!("got-{name}"));
    let most = most_seconds.to_string();
    let args = ["--silent", "--show-error", "--fail", "--max-time", &most, "--output", &got, &url];
    network.run_on_client("curl", &args)
}

fn got(network: &TestNetwork, name: &str) -> Vec<u8> {
    fs::read(network.dir.join(format!("got-{name}"))).unwrap_or_default()
}

/// Runs a download with an outage of so many seconds in its middle.
fn download_with_an_outage(network: &TestNetwork, seconds: u64) -> Output {
    std::thread::scope(|scope| {
        let download = scope.spawn(|| curl(network, "large", 180));
        pause(Duration::from_secs(1));
        network.link.outage(Span::from_secs(seconds)).expect("the emulator listens");
        download.join().expect("curl was run")
    })
}

fn outlasts(name: &str, lengths: &[u64]) {
    if !have(&["nginx", "curl"]) {
        return;
    }
    let Some(network) = TestNetwork::build(name, &Setup::default()) else { return };
    let _nginx = nginx(&network);
    let content = network.file("large", LARGE);
    for &seconds in lengths {
        let output = download_with_an_outage(&network, seconds);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{seconds} s: {said}");
        assert!(got(&network, "large") == content, "{seconds} s: not the file's bytes");
    }
    let (terminal, _) = network.finish();
    assert_eq!(terminal["connections"]["lost_with_peer"], 0);
    assert!(terminal["outages"].as_u64() >= Some(lengths.len() as u64), "{terminal}");
}

#[test]
fn a_download_survives_an_outage() {
    outlasts("outage", &[3]);
}

/// A long test: `cargo test -p bentpipe --test system -- --ignored outage`.
#[test]
#[ignore = "takes minutes"]
fn a_download_survives_outages_of_ten_and_sixty_seconds() {
    outlasts("outages", &[10, 60]);
}

#[test]
fn an_outage_beyond_the_limit_fails_a_download_visibly() {
    if !have(&["nginx", "curl"]) {
        return;
    }
    let setup = Setup { limits: "outage = \"2s\"", ..Setup::default() };
    let Some(network) = TestNetwork::build("beyond", &setup) else { return };
    let _nginx = nginx(&network);
    let content = network.file("large", LARGE);
    let output = download_with_an_outage(&network, 6);
    assert!(!output.status.success(), "a download that was cut short");
    let part = got(&network, "large");
    assert!(part.len() < content.len() && content.starts_with(&part), "{} bytes", part.len());
    // New connections work again.
    pause(Duration::from_secs(5));
    assert!(curl(&network, "large", 30).status.success());
    assert!(got(&network, "large") == content);
}

#[test]
fn new_connections_use_the_backup_path_while_open_ones_wait() {
    if !have(&["nginx", "curl"]) {
        return;
    }
    let tables = "[health]\nhold = \"1s\"\nprobe = \"500ms\"\n";
    let setup = Setup { second: true, terminal_tables: tables, ..Setup::default() };
    let Some(network) = TestNetwork::build("second", &setup) else { return };
    let _nginx = nginx(&network);
    let (large, small) = (network.file("large", LARGE), network.file("small", 100_000));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| curl(&network, "large", 60));
        pause(Duration::from_secs(1));
        network.link.outage(Span::from_secs(12)).expect("the emulator listens");
        pause(Duration::from_secs(1));
        // In seconds; the outage is longer.
        let new = (0..3).any(|_| curl(&network, "small", 2).status.success());
        assert!(new && !running.is_finished(), "by the second link");
        assert!(got(&network, "small") == small);
        assert!(running.join().expect("curl was run").status.success());
    });
    assert!(got(&network, "large") == large);
    let (terminal, _) = network.finish();
    assert_eq!(terminal["connections"]["lost_with_peer"], 0);
    let ways = terminal["peers"].as_array().expect("a list").iter();
    let ways: Vec<_> = ways.filter_map(|way| way["peer"].as_str()).collect();
    assert!(ways.iter().any(|way| way.ends_with(" by lte")), "{ways:?}");
}

#[test]
fn without_a_hub_connections_bypass_the_gateway_until_it_returns() {
    let tables = "[fail]\nunreachable = \"open\"\n[health]\nhold = \"1s\"\nprobe = \"200ms\"\n";
    let setup = Setup { terminal_tables: tables, ..Setup::default() };
    let Some(mut network) = TestNetwork::build("open", &setup) else { return };
    let listener = network.listen(SERVER.0, 9000);
    let by = |network: &TestNetwork| {
        let mut client = network.connect(SERVER.0, 9000);
        let (mut server, seen) = listener.accept().expect("a connection");
        let mut heard = [0; 5];
        client.write_all(b"hello").unwrap();
        server.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"hello");
        (seen, client.local_addr().unwrap())
    };
    assert_eq!(by(&network).0.ip(), HUB_WAN.0, "by way of the hub");
    network.kill_hub();
    // Until the outage is detected they wait.
    pause(Duration::from_secs(3));
    let (seen, own) = by(&network);
    assert_eq!(seen, own, "straight from the client");
    // The proxy connects directly.
    let way = Way::Socks5((testbed::addresses::TERMINAL_LAN.0, 1080).into());
    let address = (SERVER.0, 9000).into();
    let mut client =
        network.net.client.run(|| connect(way, address, PATIENCE)).expect("by the proxy");
    let (mut server, seen) = listener.accept().expect("a connection");
    assert_eq!(seen.ip(), TERMINAL.0, "from the terminal");
    server.write_all(b"direct").unwrap();
    drop(server);
    assert_eq!(read_all(&mut client).0, b"direct");
    network.replace_hub();
    assert!((0..50).any(|_| {
        pause(Duration::from_millis(100));
        by(&network).0.ip() == HUB_WAN.0
    }));
    let (terminal, _) = network.finish();
    assert!(terminal["connections"]["direct"].as_u64() >= Some(1), "{terminal}");
    assert_eq!(terminal["connections"]["bypass_activations"], 1);
}

#[test]
fn without_a_hub_connections_are_refused_if_configured() {
    let tables = "[fail]\nunreachable = \"refuse\"\n[health]\nhold = \"1s\"\nprobe = \"200ms\"\n";
    let setup = Setup { terminal_tables: tables, accept: "confirm", ..Setup::default() };
    let Some(mut network) = TestNetwork::build("refused", &setup) else { return };
    let _listener = network.listen(SERVER.0, 9000);
    network.kill_hub();
    pause(Duration::from_secs(3));
    network.try_connect(SERVER.0, 9000, PATIENCE).expect_err("intercepted: refused at once");
    let way = Way::Socks5((testbed::addresses::TERMINAL_LAN.0, 1080).into());
    let address = (SERVER.0, 9000).into();
    let refused = network.net.client.run(|| connect(way, address, PATIENCE));
    refused.expect_err("by SOCKS5");
    network.drain_terminal();
    let terminal = network.ended_terminal();
    assert!(terminal["connections"]["refused"]["network_unreachable"].as_u64() >= Some(2));
}
