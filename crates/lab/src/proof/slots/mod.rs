//! Clients that open as many connections as possible, parallel to a client that needs few.
//!
//! Two and then twenty clients, and a terminal with many clients at its hub, hold all connections
//! that they get and continuously request more. Meanwhile a new client opens connections, one after
//! the other, and keeps them. At the end the terminal has no free descriptors either.

mod hoard;

use super::network::{PORT, SOCKS, Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, failed, sleep_ms};
use crate::LabError;
use crate::live::Gateway;
use hoard::{Hoard, Route, echo_server, silent_server};
use rt::Clock;
use rt::netlink::Netlink;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use testbed::{Host, addresses};
use units::Span;

/// Ports of the server that holds connections, and of the one that echoes.
const SILENT: u16 = 7100;
const ECHO: u16 = 7200;
/// Round trip of the link, and time limit of the new client's first response, without a
/// retransmitted SYN.
const ROUND_TRIP: Span = Span::from_millis(500);
const PATIENCE: Span = Span::from_millis(950);
/// Connection slots of both gateways.
const LIMITS: &str = "connections = 1000\n";

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let control = std::env::temp_dir().join(format!("bentpipe-{}-slots.sock", std::process::id()));
    let setup = Setup {
        link: "delay 250ms rate 20mbit limit 2bdp",
        rates: "rate_up = \"20mbit\"\nrate_down = \"20mbit\"\nround_trip = \"500ms\"",
        limits: LIMITS,
        terminal_tables: format!("[control]\nsocket = {:?}\n", control.display().to_string()),
        ..Setup::new(config.seed)
    };
    let mut network = TestNetwork::new(&setup)?;
    let clients = addressed(&network)?;
    silent_server(&network.net.server, SILENT)?;
    echo_server(&network.net.server, ECHO)?;
    verdict.figure("round_trip_s", ROUND_TRIP.as_secs_f64());
    let count = if config.quick { 4 } else { 12 };
    let proxy = Route::Socks(network.proxy(SOCKS));
    let (two, twenty) = (&clients.hostile[..2], &clients.hostile[..]);
    for (name, hostile, route) in [
        ("two", two, Route::Intercepted),
        ("two_socks", two, proxy),
        ("twenty", twenty, Route::Intercepted),
        ("twenty_socks", twenty, proxy),
    ] {
        let silent = SocketAddr::new(server(), SILENT);
        let hoard = Hoard::start(&network.net.client, hostile, route, silent);
        newcomer(&network, &clients, route, (name, count), verdict);
        finish(hoard, name, verdict)?;
        network.check()?;
    }
    another_terminal(&mut network, &clients, count, verdict)?;
    without_descriptors(&mut network, &clients, &control, verdict)?;
    let said = network.said(Side::Terminal);
    verdict.demand(said.contains("limit="), "the log has refused clients and the limit");
    Ok(())
}

fn server() -> IpAddr {
    addresses::SERVER.0.into()
}

/// Addresses of the hostile clients, and of the new client.
struct Clients {
    hostile: Vec<IpAddr>,
    newcomer: IpAddr,
}

/// Assigns all these addresses to the client's host.
fn addressed(network: &TestNetwork) -> Result<Clients, LabError> {
    let clients = Clients {
        hostile: (66..86).map(|last| Ipv4Addr::new(10, 1, 0, last).into()).collect(),
        newcomer: Ipv4Addr::new(10, 1, 0, 99).into(),
    };
    let settled = network.net.client.run(|| {
        let mut net = Netlink::open()?;
        let mut all = clients.hostile.iter().chain([&clients.newcomer]);
        all.try_for_each(|address| net.add_address("eth0", *address, 24))
    });
    settled.map_err(|error| LabError::Proof(error.to_string()))?;
    Ok(clients)
}

/// Waits until the hostile clients have as many connections as possible; then the new client opens
/// some, which must all stay open.
fn newcomer(
    network: &TestNetwork,
    clients: &Clients,
    route: Route,
    (name, count): (&str, usize),
    verdict: &mut Verdict,
) {
    sleep_ms(6_000);
    let (mut kept, mut times) = (Vec::new(), Vec::new());
    let mut refused = 0;
    for _ in 0..count {
        match network.net.client.run(|| answered(route, clients.newcomer)) {
            Ok((stream, time)) => {
                kept.push(stream);
                times.push(time);
            }
            Err(error) => {
                refused += 1;
                verdict.note(format!("{name}: the new client is not connected: {error}"));
            }
        }
        sleep_ms(300);
    }
    sleep_ms(1_000);
    let lost = kept.iter_mut().filter_map(|stream| echo(stream).err()).count();
    times.sort_unstable();
    let seconds = |time: Option<&Span>| time.map_or(f64::NAN, |time| time.as_secs_f64());
    verdict.figure(&format!("{name}_newcomer_s"), seconds(times.get(times.len() / 2)));
    verdict.figure(&format!("{name}_newcomer_worst_s"), seconds(times.last()));
    verdict.demand(refused == 0, &format!("the new client gets its connections ({name})"));
    verdict.demand(lost == 0, &format!("the new client keeps its connections ({name})"));
    let in_time = times.len() == count && times.iter().all(|time| *time <= PATIENCE);
    verdict.demand(in_time, &format!("the new client has its response in a round trip ({name})"));
}

/// A connection with the server's first response, and the time until then.
fn answered(route: Route, client: IpAddr) -> std::io::Result<(TcpStream, Span)> {
    let clock = Clock::new();
    let from = clock.now();
    let patience = Duration::from_secs(8);
    let mut stream = route.open(client, SocketAddr::new(server(), ECHO), patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_nodelay(true)?;
    let mut answer = vec![0; route.answer_len()];
    stream.read_exact(&mut answer)?;
    if answer.get(3).is_some_and(|code| *code != 0) {
        return Err(std::io::Error::other(format!("the proxy says {}", answer[3])));
    }
    echo(&mut stream)?;
    Ok((stream, clock.now().since(from)))
}

fn echo(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"?")?;
    stream.read_exact(&mut [0])
}

fn finish(hoard: Hoard, name: &str, verdict: &mut Verdict) -> Result<(), LabError> {
    let (held, attempts) = hoard.finish()?;
    verdict.figure(&format!("{name}_hostile_held"), held as f64);
    verdict.figure(&format!("{name}_hostile_attempts"), attempts as f64);
    verdict.demand(held >= 500, &format!("the others hold most of the slots ({name})"));
    // Until the connections have ended at both ends.
    sleep_ms(3_000);
    Ok(())
}

/// Starts a second terminal whose twenty clients use all slots of the hub.
fn another_terminal(
    network: &mut TestNetwork,
    clients: &Clients,
    count: usize,
    verdict: &mut Verdict,
) -> Result<(), LabError> {
    let proxy = SocketAddr::from(([127, 0, 0, 1], SOCKS));
    let text = format!(
        "role = \"terminal\"\nprivate_key = \"{}\"\naccept = \"early\"\n\
         [link]\npeer = \"{}:{PORT}\"\npeer_public_key = \"{}\"\nround_trip = \"10ms\"\n\
         [socks5]\nlisten = \"{proxy}\"\n[limits]\ndrain = \"0s\"\nconnections = 4000\n",
        network.wild_key.to_text(),
        addresses::HUB.0,
        network.hub_key.public(),
    );
    let host: &Host = &network.net.server;
    let _second = Gateway::start(Some(host), "terminal", &text)?;
    sleep_ms(1_000);
    let hostile: Vec<IpAddr> = (2..22).map(|last| Ipv4Addr::new(127, 0, 0, last).into()).collect();
    let silent = SocketAddr::new(server(), SILENT);
    let hoard = Hoard::start(host, &hostile, Route::Socks(proxy), silent);
    newcomer(network, clients, Route::Intercepted, ("at_the_hub", count), verdict);
    finish(hoard, "at_the_hub", verdict)?;
    network.check()
}

/// Limits the terminal to a few more descriptors than it uses, which two clients take.
fn without_descriptors(
    network: &mut TestNetwork,
    clients: &Clients,
    control: &Path,
    verdict: &mut Verdict,
) -> Result<(), LabError> {
    let process = network.process(Side::Terminal);
    let most = network.usage(Side::Terminal)?.descriptors + 100;
    let limit = format!("--nofile={most}:{most}");
    let set = Command::new("prlimit").args(["--pid", &process.to_string(), &limit]).status();
    let set = set.map_err(failed("prlimit"))?;
    verdict.demand(set.success(), "the number of descriptors is bounded");
    let silent = SocketAddr::new(server(), SILENT);
    let hoard =
        Hoard::start(&network.net.client, &clients.hostile[..2], Route::Intercepted, silent);
    newcomer(network, clients, Route::Intercepted, ("without_descriptors", 3), verdict);
    let used = network.usage(Side::Terminal)?.descriptors;
    verdict.figure("descriptors", used as f64);
    verdict.demand(used + 4 >= most, "the terminal has no descriptors left");
    let status = status(control);
    verdict.demand(status.is_ok(), "the control socket answers without descriptors");
    match status {
        Ok(status) => {
            let number = |value: Option<&Value>| value.and_then(Value::as_f64).unwrap_or(0.0);
            let limited = find(&status, "limited").and_then(|found| found.get("connections"));
            verdict.figure("reclaimed", number(find(&status, "reclaimed")));
            verdict.figure("refused", number(limited));
        }
        Err(error) => verdict.note(format!("bentpipe status: {error}")),
    }
    hoard.finish().map(|_| ())
}

/// Returns the first value of this name in the objects of `value`.
fn find<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let object = value.as_object()?;
    object.get(name).or_else(|| object.values().find_map(|inner| find(inner, name)))
}

/// Queries a control socket as `bentpipe status` does.
fn status(control: &Path) -> std::io::Result<Value> {
    let mut socket = UnixStream::connect(PathBuf::from(control))?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    socket.write_all(b"{\"ask\": \"status\"}\n")?;
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}
