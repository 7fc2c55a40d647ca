//! Hostile clients on the LAN, parallel to an honest one.
//!
//! The hostile clients have a separate address. Four kinds follow each other: slow clients, which
//! send a proxy request octet by octet; clients that send random octets; silent clients, which only
//! connect; and SYNs without a sender.

use super::super::load::{Load, LoadConfig, Tally};
use super::super::network::{CONNECT, SOCKS, Setup, Side, TestNetwork};
use super::super::{ProofConfig, Verdict, failed, sleep_ms};
use super::Watch;
use crate::LabError;
use rt::netlink::Netlink;
use rt::packet::headers::complete_checksum;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;
use testbed::addresses;
use units::RngStream;

/// Address of the hostile clients.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 66);
/// Limits of connections per client, of the wait for a request, and of the hub's wait for a server.
const LIMITS: &str = "handshake = \"2s\"\nconnect = \"4s\"\nconnections = 4000\n\
     [limits.client]\nconnections = 400\n";

pub(in super::super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let setup = Setup { accept: "confirm", limits: LIMITS, ..Setup::new(config.seed) };
    let mut network = TestNetwork::new(&setup)?;
    let settled = network
        .net
        .client
        .run(|| Netlink::open().and_then(|mut net| net.add_address("eth0", ADDRESS.into(), 24)));
    settled.map_err(|error| LabError::Proof(error.to_string()))?;
    let load = Load::start(&network, LoadConfig { workers: 10, ..LoadConfig::new(config.seed) });
    sleep_ms(1_500);
    let mut watches =
        [Watch::new(&mut network, Side::Terminal)?, Watch::new(&mut network, Side::Hub)?];
    let many = if config.quick { 500 } else { 2_000 };
    let mut random = RngStream::new(config.seed, 0, "hostile client");

    let kinds: [(&str, Kind); 4] =
        [("slow", slow), ("garbage", garbage), ("silent", silent), ("half_open", half_open)];
    for (name, kind) in kinds {
        let before = load.so_far();
        let attempts = kind(&network, many, &mut random)?;
        for watch in &mut watches {
            watch.look(&mut network)?;
        }
        sleep_ms(500);
        let now = load.so_far();
        verdict.figure(&format!("{name}_attempts"), attempts as f64);
        figures(name, &before, &now, verdict);
    }
    let tally = load.finish(&network);
    verdict.demand(tally.reset == 0, "no honest connection is reset");
    // A SYN that was dropped among thousands is retransmitted after one second.
    verdict.demand(
        tally.refused * 50 <= tally.started,
        "of the honest client's connections 98 % and more are opened",
    );
    verdict.evaluate(tally);
    // Until the last attempts have timed out.
    sleep_ms(if config.quick { 8_000 } else { 15_000 });
    watches.into_iter().try_for_each(|watch| watch.evaluate(&mut network, verdict))
}

/// An attack with a number of attempts; returns the number that it made.
type Kind = fn(&TestNetwork, usize, &mut RngStream) -> Result<usize, LabError>;

fn figures(name: &str, before: &Tally, now: &Tally, verdict: &mut Verdict) {
    let complete = now.complete - before.complete;
    verdict.figure(&format!("{name}_honest_complete"), complete as f64);
    verdict.figure(&format!("{name}_honest_refused"), (now.refused - before.refused) as f64);
    verdict.demand(complete > 0, &format!("the honest client is served meanwhile ({name})"));
}

/// Connects from the hostile address; `None` if refused, which is as acceptable.
fn open(to: SocketAddr) -> Option<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).ok()?;
    socket.bind(&SocketAddr::new(ADDRESS.into(), 0).into()).ok()?;
    socket.connect_timeout(&to.into(), Duration::from_millis(300)).ok()?;
    socket.set_nonblocking(true).ok()?;
    Some(socket.into())
}

fn open_many(network: &TestNetwork, count: usize, to: &[SocketAddr]) -> Vec<TcpStream> {
    network.net.client.run(|| to.iter().cycle().take(count).filter_map(|to| open(*to)).collect())
}

/// Sends requests octet by octet without completing them.
fn slow(network: &TestNetwork, count: usize, _: &mut RngStream) -> Result<usize, LabError> {
    let proxies = [network.proxy(SOCKS), network.proxy(CONNECT)];
    let mut streams = open_many(network, count, &proxies);
    let words: [&[u8]; 2] =
        [b"\x05\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", b"CONNECT a."];
    for round in 0..20 {
        for (number, stream) in streams.iter_mut().enumerate() {
            let word = words[number % 2];
            let _ = stream.write(&word[round % word.len()..][..1]); // The proxy may have closed it.
        }
        sleep_ms(200);
    }
    Ok(count)
}

fn garbage(network: &TestNetwork, count: usize, random: &mut RngStream) -> Result<usize, LabError> {
    let places = [network.proxy(SOCKS), network.proxy(CONNECT), network.server()];
    for chunk in 0..count.div_ceil(50) {
        let mut streams = open_many(network, 50, &places[chunk % 3..][..1]);
        let mut noise = vec![0; 4096];
        for stream in &mut streams {
            noise.iter_mut().for_each(|octet| *octet = random.next_u64() as u8);
            let _ = stream.write(&noise); // A partial write is sufficient.
        }
        sleep_ms(20);
    }
    Ok(count)
}

fn silent(network: &TestNetwork, count: usize, _: &mut RngStream) -> Result<usize, LabError> {
    let places = [network.server(), network.proxy(SOCKS)];
    let streams = open_many(network, count, &places);
    sleep_ms(2_000);
    drop(streams);
    Ok(count)
}

/// Sends SYNs from unused ports and addresses.
fn half_open(
    network: &TestNetwork,
    count: usize,
    random: &mut RngStream,
) -> Result<usize, LabError> {
    let count = count * 10;
    let raw = network.net.client.run(|| {
        // IPPROTO_RAW: the packet includes the IP header.
        Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255)))
    });
    let raw = raw.map_err(failed("a raw socket"))?;
    // A port that refuses, and a host that does not respond, for which the hub waits.
    let [a, b, c, d] = addresses::SERVER.0.octets();
    let places = [SocketAddr::from(([a, b, c, d], 9)), SocketAddr::from(([a, b, c, d + 97], 80))];
    for number in 0..count {
        let to = places[number % 2];
        let from = Ipv4Addr::new(10, 1, 0, 67 + (number % 100) as u8);
        let port = 1024 + random.below(60_000) as u16;
        let _ = raw.send_to(&syn(from, port, to), &to.into()); // A full queue drops it.
        if number % 20 == 19 {
            sleep_ms(1);
        }
    }
    sleep_ms(2_000);
    Ok(count)
}

/// Returns a SYN with IP header and correct checksums.
fn syn(from: Ipv4Addr, port: u16, to: SocketAddr) -> Vec<u8> {
    let IpAddr::V4(server) = to.ip() else { return Vec::new() };
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(from.octets());
    frame.extend(server.octets());
    frame.extend(port.to_be_bytes());
    frame.extend(to.port().to_be_bytes());
    frame.extend([0x12, 0x34, port as u8, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
    complete_checksum(&mut frame);
    frame.split_off(14)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syn_has_forty_octets_and_a_valid_checksum() {
        let packet = syn(ADDRESS, 5000, "10.3.0.2:7000".parse().unwrap());
        assert_eq!(packet.len(), 40);
        assert_eq!(packet[12..20], [10, 1, 0, 66, 10, 3, 0, 2]);
        assert_eq!((packet[33], &packet[22..24]), (2, &7000_u16.to_be_bytes()[..]));
        assert_ne!(packet[36..38], [0, 0]);
    }
}
