//! Clients with IPv6 and IPv4 addresses of a server, and early accept: a hub that receives its IPv6
//! address later, and servers that refuse.
//!
//! The server has a global IPv6 and an IPv4 address. The client tries IPv6 first and uses the first
//! connection that is accepted, as programs do (RFC 8305): if that is reset, it has failed.

use super::network::{SOCKS, Setup, TestNetwork};
use super::{ProofConfig, Verdict, failed, sleep_ms};
use crate::LabError;
use rt::Clock;
use rt::netlink::{Netlink, NetlinkError, Route};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;
use testbed::traffic::{self, Way};
use testbed::{Host, addresses};
use units::Span;

/// Addresses of the server, and of the hub when it has IPv6; prefix length and port.
const SERVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 2);
const HUB: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);
const PREFIX: u8 = 64;
const PORT: u16 = 7100;
/// Ports on which a server listens later.
const LATER: [u16; 2] = [7101, 7102];
/// Time limit of a client's operations.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time within which a terminal learns of a change at its hub.
const KNOWN: Span = Span::from_secs(15);

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let mut network = TestNetwork::without_gateways(&Setup::new(config.seed))?;
    let [by_client, by_hub] = [addresses::TERMINAL.1, SERVER].map(Route::default_v6);
    change(&network.net.hub, |net| net.delete_route(&by_client))?;
    change(&network.net.server, |net| give(net, "eth0", SERVER))?;
    serve(&network, PORT)?;
    network.start_both()?;

    let ways = [("interception", Way::Direct), ("socks5", Way::Socks5(network.proxy(SOCKS)))];
    for (name, way) in ways {
        let chosen = soon(&network, || choose(way, PORT).ok().filter(SocketAddr::is_ipv4));
        let served = chosen == Some(SocketAddr::new(addresses::HUB_WAN.0.into(), 0));
        verdict.demand(served, &format!("without IPv6 at the hub IPv4 is used, by {name}"));
    }
    let served = curl(&network, verdict);
    verdict.demand(served, "so does curl");
    let refused = network.net.client.run(|| timed(|| connect(Way::Direct, SERVER.into(), PORT)));
    verdict.figure("ipv6_refused_after_s", refused.1);
    verdict.demand(
        refused.0.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused),
        "IPv6 is refused before it is accepted",
    );

    change(&network.net.hub, |net| {
        give(net, "wan", HUB)?;
        net.add_route(&by_hub)
    })?;
    for (name, way) in ways {
        let chosen = soon(&network, || choose(way, PORT).ok().filter(SocketAddr::is_ipv6));
        let served = chosen == Some(SocketAddr::new(HUB.into(), 0));
        verdict.demand(served, &format!("with IPv6 at the hub IPv6 is used, by {name}"));
    }

    for ((name, way), port) in ways.into_iter().zip(LATER) {
        refusals(&network, name, way, port, verdict)?;
    }
    network.check()
}

/// Tests a server that first refuses and later listens.
fn refusals(
    network: &TestNetwork,
    name: &str,
    way: Way,
    port: u16,
    verdict: &mut Verdict,
) -> Result<(), LabError> {
    let server = addresses::SERVER.0.into();
    let attempt = || network.net.client.run(|| connect(way, server, port));
    let first = attempt().and_then(|stream| greeted(&stream));
    verdict.demand(first.is_err(), &format!("the first connection is refused, by {name}"));
    // The refusal takes one round trip to the terminal.
    sleep_ms(1_000);
    let second = attempt();
    verdict.demand(
        second.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused),
        &format!("the second attempt is refused as the server does it, by {name}"),
    );
    serve(network, port)?;
    let third = attempt().and_then(|stream| greeted(&stream));
    verdict.demand(
        third.is_ok(),
        &format!("a server that listens again is reached immediately, by {name}"),
    );
    Ok(())
}

/// Starts a server for both address families, which sends each client its address.
fn serve(network: &TestNetwork, port: u16) -> Result<(), LabError> {
    let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
    let listener = network.net.server.run(|| TcpListener::bind(any)).map_err(failed("a server"))?;
    // The thread ends with the process.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Ok(client) = stream.peer_addr() else { continue };
            let text = format!("HTTP/1.0 200 OK\r\n\r\n{}\n", client.ip().to_canonical());
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(text.as_bytes());
        }
    });
    Ok(())
}

fn give(net: &mut Netlink, interface: &str, address: Ipv6Addr) -> Result<(), NetlinkError> {
    net.add_address(interface, address.into(), PREFIX)?;
    net.await_address(address.into())
}

fn change(
    host: &Host,
    work: impl FnOnce(&mut Netlink) -> Result<(), NetlinkError> + Send,
) -> Result<(), LabError> {
    let changed = host.run(|| work(&mut Netlink::open()?));
    changed.map_err(|error| LabError::Proof(error.to_string()))
}

/// Connects by IPv6, and if that fails by IPv4; returns the address that the server has seen.
fn choose(way: Way, port: u16) -> io::Result<SocketAddr> {
    let stream = connect(way, SERVER.into(), port)
        .or_else(|_| connect(way, addresses::SERVER.0.into(), port))?;
    greeted(&stream)
}

/// Connects; converts a proxy's refusal into the kernel's error.
fn connect(way: Way, server: IpAddr, port: u16) -> io::Result<TcpStream> {
    let stream = traffic::connect(way, SocketAddr::new(server, port), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn greeted(mut stream: &TcpStream) -> io::Result<SocketAddr> {
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let seen = text.lines().last().and_then(|line| line.parse::<IpAddr>().ok());
    seen.map(|seen| SocketAddr::new(seen, 0)).ok_or_else(|| ErrorKind::InvalidData.into())
}

/// Repeats `attempt` at the client until it succeeds.
fn soon<T: Send>(network: &TestNetwork, attempt: impl Fn() -> Option<T> + Sync) -> Option<T> {
    let clock = Clock::new();
    let from = clock.now();
    loop {
        let found = network.net.client.run(&attempt);
        if found.is_some() || clock.now().since(from) > KNOWN {
            return found;
        }
        sleep_ms(100);
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let clock = Clock::new();
    let from = clock.now();
    let done = work();
    (done, clock.now().since(from).as_secs_f64())
}

/// Returns true if curl, with both addresses, receives a response, or is not installed.
fn curl(network: &TestNetwork, verdict: &mut Verdict) -> bool {
    let resolve = format!("server.test:{PORT}:[{SERVER}],{}", addresses::SERVER.0);
    let url = format!("http://server.test:{PORT}/");
    let output = network.net.client.run(|| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "5", "--resolve", &resolve, &url]);
        curl.output()
    });
    match output {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if !output.status.success() {
                verdict.note(format!("curl: {}", String::from_utf8_lossy(&output.stderr).trim()));
            }
            said == addresses::HUB_WAN.0.to_string()
        }
        Err(error) => {
            verdict.note(format!("no curl: {error}"));
            error.kind() == ErrorKind::NotFound
        }
    }
}
