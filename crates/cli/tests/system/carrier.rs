//! TLS where a network blocks UDP.

use crate::network::{PATIENCE, Setup, TestNetwork, have, pause};
use crate::programs::nginx;
use std::fs;
use std::io::{Read, Write};
use std::process::Command;
use std::time::Duration;
use testbed::Host;
use testbed::addresses::SERVER;

/// Drops all UDP between `host` and others.
const BLOCK: &str = "table inet blocked {
    chain in { type filter hook input priority 0; iifname != \"lo\" meta l4proto udp drop; }
    chain out { type filter hook output priority 0; oifname != \"lo\" meta l4proto udp drop; }
}";

fn nft(host: &Host, rules: &str) {
    let mut command = Command::new("nft");
    command.arg(rules);
    let mut process = host.start(command).expect("nft is installed");
    assert!(process.wait().expect("nft ends").success(), "{rules}");
}

/// Number of TLS connections that the hub has.
fn tls_connections(network: &TestNetwork) -> usize {
    let table = network.net.hub.run(|| fs::read_to_string("/proc/thread-self/net/tcp"));
    let is_tls = |line: &&str| {
        let mut fields = line.split_whitespace();
        fields.nth(1).is_some_and(|local| local.ends_with(":01BB")) && fields.nth(1) == Some("01")
    };
    table.expect("a table of the kernel").lines().filter(is_tls).count()
}

#[test]
fn tls_carries_the_link_while_udp_is_blocked() {
    let rates = "rate_up = \"10mbit\"\nrate_down = \"10mbit\"\nround_trip = \"80ms\"";
    block_and_unblock("carrier", rates, "", None);
}

#[test]
fn tls_carries_the_link_to_a_hub_with_shards() {
    // A hub with shards has no rate of its own.
    block_and_unblock("carrier-shards", "round_trip = \"80ms\"", "shards = 2", None);
}

/// TLS-5.4
#[test]
fn the_port_that_answers_a_probe_is_used() {
    let rates = "round_trip = \"80ms\"\nports = [4500, 443]";
    block_and_unblock("carrier-ports", rates, "", Some("7000, 443"));
}

/// Blocks UDP, and then only the ports of `still`.
fn block_and_unblock(name: &str, rates: &str, hub: &str, still: Option<&str>) {
    if !have(&["nginx", "curl", "nft"]) {
        return;
    }
    let setup = Setup {
        link: "delay 40ms rate 10mbit limit 2bdp",
        rates,
        terminal_tables: "[tls]\n",
        hub,
        hub_tables: "[tls]\n",
        ..Setup::default()
    };
    let Some(network) = TestNetwork::build(name, &setup) else { return };
    let _nginx = nginx(&network);
    let content = network.file("large", 12_000_000);
    let listener = network.listen(SERVER.0, 9000);
    let clock = rt::Clock::new();
    let echo = || {
        let began = clock.now();
        let mut client = network.connect(SERVER.0, 9000);
        client.write_all(b"hello").unwrap();
        let (mut server, _) = listener.accept().expect("a connection");
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut octets = [0; 5];
        server.read_exact(&mut octets).unwrap();
        server.write_all(&octets).unwrap();
        client.read_exact(&mut octets).unwrap();
        clock.now().since(began).as_secs_f64()
    };
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let args = ["-sSf", "--max-time", "90", "--output", "got", "http://10.3.0.2/large"];
            network.run_on_client("curl", &args)
        });
        pause(Duration::from_secs(3));
        assert_eq!(tls_connections(&network), 0);
        nft(&network.net.hub, BLOCK);
        let first = echo();
        assert!(first < 5.0, "a new connection took {first} s");
        assert!(!running.is_finished());
        assert_eq!(tls_connections(&network), 1);
        let output = running.join().expect("curl was run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
    assert!(fs::read(network.dir.join("got")).unwrap() == content, "not the file's octets");
    nft(&network.net.hub, "delete table inet blocked");
    if let Some(ports) = still {
        nft(&network.net.hub, &block_ports(ports));
    }
    let began = clock.now();
    while tls_connections(&network) > 0 {
        echo();
        assert!(clock.now().since(began) < units::Span::from_secs(60), "TLS is still used");
        pause(Duration::from_millis(200));
    }
    echo();
    let (terminal, _) = network.finish();
    assert_eq!(terminal["connections"]["lost_with_peer"], 0);
}

/// Drops UDP to these ports of `host`, and from them.
fn block_ports(ports: &str) -> String {
    format!(
        "table inet blocked {{
    chain in {{ type filter hook input priority 0; iifname != \"lo\" udp dport {{ {ports} }} drop; }}
    chain out {{ type filter hook output priority 0; oifname != \"lo\" udp sport {{ {ports} }} drop; }}
}}"
    )
}

/// TLS-5.1, TLS-5.2
#[test]
fn the_next_port_is_used_while_one_is_blocked() {
    the_next_port("ports", "");
}

/// TLS-5.1, TLS-5.2
#[test]
fn the_next_port_of_a_hub_with_shards_is_used_while_one_is_blocked() {
    the_next_port("ports-shards", "shards = 2");
}

fn the_next_port(name: &str, hub: &str) {
    if !have(&["nft"]) {
        return;
    }
    let setup = Setup {
        link: "delay 40ms rate 10mbit limit 2bdp",
        rates: "round_trip = \"80ms\"\nports = [4500, 443]",
        hub,
        ..Setup::default()
    };
    let Some(mut network) = TestNetwork::build(name, &setup) else { return };
    let listener = network.listen(SERVER.0, 9000);
    let mut client = network.connect(SERVER.0, 9000);
    let (mut server, _) = listener.accept().expect("a connection");
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let clock = rt::Clock::new();
    let mut exchange = || {
        let began = clock.now();
        client.write_all(b"hello").unwrap();
        let mut octets = [0; 5];
        server.read_exact(&mut octets).unwrap();
        server.write_all(&octets).unwrap();
        client.read_exact(&mut octets).unwrap();
        clock.now().since(began).as_secs_f64()
    };
    exchange();
    // The connection continues, in both directions.
    for blocked in ["7000", "4500", "7000, 443"] {
        nft(&network.net.hub, &block_ports(blocked));
        let seconds = exchange();
        assert!(seconds < 10.0, "{seconds} s with {blocked} blocked");
        nft(&network.net.hub, "delete table inet blocked");
    }
    // A terminal that starts while the first port is blocked.
    nft(&network.net.hub, &block_ports("7000"));
    let began = clock.now();
    network.replace_terminal();
    let seconds = clock.now().since(began).as_secs_f64();
    assert!(seconds < 20.0, "connected after {seconds} s");
    let (terminal, _) = network.finish();
    assert_eq!(terminal["connections"]["lost_with_peer"], 0);
}
