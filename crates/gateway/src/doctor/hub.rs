//! The way to the hubs: name, route, MTU, UDP, key.

use super::{Diagnosis, Status};
use crate::config::LinkSection;
use crate::enrolment::exchange::{Response, exchange, socket_to, unless_transient, wait};
use crate::enrolment::register::addresses;
use crate::{Config, PathSection, Role, TerminalSection, driver};
use relay::Security;
use rt::Clock;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use units::Span;

/// Time for a response to a Hello, and for one to a datagram of another version.
const LIMITS: [Span; 2] = [Span::from_secs(5), Span::from_secs(3)];
/// Time for a response by TCP.
const TLS_LIMIT: Duration = Duration::from_secs(5);
/// Interval of the datagrams of another version.
const INTERVAL: Span = Span::from_secs(1);
/// A datagram of the last version that the header can have: a hub responds to it without a key
/// (ASC-1.5), if it is as long as the response.
const OTHER_VERSION: [u8; 32] = {
    let mut datagram = [0; 32];
    datagram[0] = 0xf1;
    datagram
};

pub(super) fn check(diagnosis: &mut Diagnosis, config: &Config) {
    for path in config.effective_paths() {
        mtu(diagnosis, &path);
        check_path(diagnosis, &path);
        if let Role::Terminal(TerminalSection { tls: Some(tls), .. }) = &config.role {
            check_tls(diagnosis, &path, tls.port);
        }
    }
}

/// Connects to the hub's TCP port for TLS.
fn check_tls(diagnosis: &mut Diagnosis, path: &PathSection, port: u16) {
    let Some(Ok(found)) = path.link.peer.as_ref().map(addresses) else { return };
    let Some(address) = found.first().map(|first| SocketAddr::new(first.ip(), port)) else {
        return;
    };
    match TcpStream::connect_timeout(&address, TLS_LIMIT) {
        Ok(_) => diagnosis.add("tls", Status::Ok, format!("{address} accepts connections")),
        Err(error) => diagnosis.advise(
            "tls",
            Status::Warning,
            format!("{address}: {error}"),
            "check that the hub has [tls], and that its firewall permits this TCP port",
        ),
    }
}

fn mtu(diagnosis: &mut Diagnosis, path: &PathSection) {
    let LinkSection { mtu: wanted, peer, .. } = &path.link;
    let Some(address) = peer.as_ref().and_then(|hub| addresses(hub).ok()?.first().copied()) else {
        return;
    };
    let Some(route) = crate::relay_settings::route(path) else { return };
    let route = crate::engine::Route { peer: address, ..route };
    match driver::mtu(&route) {
        Ok(found) if found < 576 => {
            let remedy = "a link needs 576 octets; check the interface's MTU: ip link";
            diagnosis.advise("mtu", Status::Failed, format!("{found} octets"), remedy);
        }
        Ok(found) if found < *wanted as usize => {
            let found =
                format!("the interface takes {found} of link.mtu = {wanted}; found by itself");
            diagnosis.add("mtu", Status::Ok, found);
        }
        Ok(found) => {
            diagnosis.add("mtu", Status::Ok, format!("the interface takes {found} octets"));
        }
        // The check of the machine has the route.
        Err(_) => {}
    }
}

fn check_path(diagnosis: &mut Diagnosis, path: &PathSection) {
    let Some(hub) = &path.link.peer else { return };
    let addresses = match addresses(hub) {
        Ok(addresses) => addresses,
        Err(error) => {
            let remedy = "check /etc/resolv.conf: it must work without the gateway";
            return diagnosis.advise("hub", Status::Failed, error.to_string(), remedy);
        }
    };
    let mut last = None;
    for address in addresses {
        let result = ask(path, address);
        let works = matches!(result, Ok(Reach::Connected(_)));
        last = Some((address, result));
        if works {
            break;
        }
    }
    let Some((address, result)) = last else { return };
    let name = if path.name.is_empty() { String::new() } else { format!("path {}: ", path.name) };
    let hub = format!("{name}{hub} at {address}");
    match result {
        Ok(Reach::Connected(time)) => {
            diagnosis.add("hub", Status::Ok, format!("{hub} accepts this key, after {time}"));
        }
        Ok(Reach::Responds) => diagnosis.advise(
            "hub",
            Status::Failed,
            format!("{hub} is reachable by UDP, and does not accept this terminal's key"),
            "compare link.peer_public_key with `bentpipe key show` at the hub; at the hub see \
             `bentpipe site list`, its log (unknown terminal key), and whether it was reloaded",
        ),
        Ok(Reach::Refused) => diagnosis.advise(
            "hub",
            Status::Failed,
            format!("{hub} refuses datagrams: no program receives on that port"),
            "start the hub, or correct the port in link.peer",
        ),
        Ok(Reach::Silent) => diagnosis.advise(
            "hub",
            Status::Failed,
            format!("{hub} does not respond"),
            format!(
                "check that the hub runs, that its firewall and the networks between let UDP port \
                 {} pass in both directions, and that the address is right: ping {}; where a \
                 network blocks UDP, [tls] helps",
                address.port(),
                address.ip()
            ),
        ),
        Err(error) => diagnosis.advise(
            "hub",
            Status::Failed,
            format!("datagrams to {hub}: {error}"),
            "check the route (ip route get) and this machine's firewall for outgoing UDP",
        ),
    }
}

/// How far datagrams come.
enum Reach {
    /// The hub has responded to a Hello after this time.
    Connected(Span),
    /// The hub responds to datagrams, and not to Hellos.
    Responds,
    /// An ICMP error says that no program receives.
    Refused,
    Silent,
}

fn ask(path: &PathSection, address: SocketAddr) -> io::Result<Reach> {
    let clock = Clock::new();
    let [hello, version] = LIMITS;
    let security = path.security().unwrap_or_default();
    if let Security::Noise(_) = &security {
        let wall_clock_ns = clock.epoch_unix_ns();
        let config =
            association::Config { security, wall_clock_ns, ..association::Config::new("") };
        let start = clock.now();
        if exchange(clock, address, &config, hello)? == Response::Connected {
            return Ok(Reach::Connected(clock.now().since(start)));
        }
    }
    respond(clock, address, version)
}

/// Sends datagrams of another version until the hub responds.
fn respond(clock: Clock, hub: SocketAddr, limit: Span) -> io::Result<Reach> {
    let socket = socket_to(hub)?;
    let until = clock.now() + limit;
    let mut buffer = [0; 1500];
    while clock.now() < until {
        let now = clock.now();
        socket.set_read_timeout(Some(wait(now, until.min(now + INTERVAL))))?;
        let received = socket.send(&OTHER_VERSION).and_then(|_| socket.recv(&mut buffer));
        if received.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return Ok(Reach::Refused);
        }
        let received = unless_transient(received)?;
        if received.is_some_and(|length| buffer[..length].get(1..8) == Some(&OTHER_VERSION[1..8])) {
            return Ok(Reach::Responds);
        }
    }
    Ok(Reach::Silent)
}
