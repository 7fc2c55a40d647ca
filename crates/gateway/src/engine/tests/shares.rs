//! Quotas of the clients of a terminal, and of the terminals of a hub.

use super::harness::*;
use crate::Report;
use relay::{
    Destination, Event, Priority, RefuseReason, Relay, RelayConfig, Target, TransmitBatch,
};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;
use units::RngStream;

/// Connects from another address of this machine.
pub(super) fn open_from(client: &str, to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let client: SocketAddr = format!("{client}:0").parse().unwrap();
    socket.bind(&client.into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let stream: TcpStream = socket.into();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

#[test]
fn one_client_has_its_share_and_no_more() {
    let pair = Pair::with("[limits.client]\nconnections = 3", "");
    let server = echo();
    let held: Vec<_> = (0..3).map(|_| pair.connect(server)).collect();
    let (mut refused, code) = pair.socks(server);
    assert_eq!(code, 1, "general failure");
    assert_eq!(read_all(&mut refused), b"");
    let mut client = open(pair.terminal.addresses.connect[0]);
    write!(client, "CONNECT {server} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let answer = String::from_utf8(read_all(&mut client)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    // Another client has its own quota.
    let other = open_from("127.0.0.2", pair.terminal.addresses.socks5[0]);
    let (mut other, code) = socks_from(other, server);
    assert_eq!(code, 0);
    other.write_all(b"x").unwrap();
    assert_eq!(read_exactly(&mut other, 1), b"x");
    drop(held);
    // The slots of the first client are free when its connections have ended.
    while pair.socks(server).1 != 0 {}
    let report = pair.terminal.stop().connections;
    assert!(report.limited["client_connections"] >= 2 && report.refused["limit"] >= 2);
}

#[test]
fn rejected_requests_are_bounded_too() {
    // A quarter of the connections may be in the proxy handshake.
    let pair = Pair::with("[limits]\nconnections = 120", "");
    let mut silent: Vec<_> = (0..50).map(|_| open(pair.terminal.addresses.socks5[0])).collect();
    for first in &mut silent[..20] {
        assert_eq!(first.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    // Another client has its own share of them, and none of the two is closed for the first one's
    // next.
    let mut other = open_from("127.0.0.2", pair.terminal.addresses.socks5[0]);
    silent.extend((0..50).map(|_| open(pair.terminal.addresses.socks5[0])));
    other.write_all(&[5, 1, 0]).unwrap();
    assert_eq!(read_exactly(&mut other, 2), [5, 0]);
    // It has 27 of 30 at most.
    assert_eq!(silent[72].read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let report = pair.terminal.stop().connections;
    assert_eq!((report.peak_connections, report.reclaimed), (0, 73));
}

#[test]
fn new_connections_come_no_faster_than_allowed() {
    let pair = Pair::with("[limits.client]\nrate = 1\nburst = 5", "");
    let server = echo();
    let codes: Vec<u8> = (0..12).map(|_| pair.socks(server).1).collect();
    assert_eq!(codes[..5], [0; 5]);
    assert!(codes[5..].contains(&1), "{codes:?}");
    assert!(pair.terminal.stop().connections.limited["client_rate"] >= 1);
}

#[test]
fn one_terminal_has_its_share_and_no_more() {
    let hub = hub_at(
        "127.0.0.1:0",
        "[limits.terminal]\nconnections = 5\n[[terminal]]\nname = \"a\"\nconnections = 2\n",
    );
    let accept = "accept = \"confirm\"\n";
    let terminal = |name| terminal_of(&hub, &format!("name = \"{name}\"\n{accept}"));
    let (a, b) = (terminal("a"), terminal("b"));
    let server = echo();
    let connect = |of: &Running| socks_from(open(of.addresses.socks5[0]), server);
    let _held: Vec<_> = (0..2).map(|_| connect(&a)).collect();
    assert_eq!(connect(&a).1, 1);
    let held: Vec<_> = (0..6).map(|_| connect(&b)).collect();
    let codes: Vec<u8> = held.iter().map(|(_, code)| *code).collect();
    assert_eq!(codes, [0, 0, 0, 0, 0, 1]);
    let report: Report = hub.stop();
    assert_eq!(report.connections.limited["terminal_connections"], 2);
}

#[test]
fn a_terminals_own_rules_narrow_the_hubs() {
    let server = echo();
    let hub = format!(
        "[hub]\ndeny = [\"any\"]\nallow = [\"127.0.0.0/8\"]\n[[terminal]]\nname = \"a\"\n\
         deny = [\"127.0.0.1 port {}\"]\n",
        server.port()
    );
    let pair = Pair::with("accept = \"confirm\"\nname = \"a\"", &hub);
    assert_eq!(pair.socks(server).1, 2, "not allowed by ruleset");
    assert_eq!(pair.socks_name("localhost", server.port()).1, 2);
    assert_eq!(pair.socks(echo()).1, 0);
    assert_eq!(pair.socks("192.0.2.1:80".parse().unwrap()).1, 2);
    assert_eq!(pair.hub.stop().connections.refused["policy"], 3);
}

#[test]
fn memory_is_bounded_without_readers() {
    let limits = "[limits]\nmemory = \"1mb\"";
    let pair = Pair::with(limits, limits);
    let listener =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.set_recv_buffer_size(4096).unwrap();
    listener.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    listener.listen(64).unwrap();
    let server = listener.local_addr().unwrap().as_socket().unwrap();
    let mut clients: Vec<_> = (0..20).map(|_| pair.connect(server)).collect();
    let chunk = pattern(64 << 10, 1);
    let (mut offered, mut still) = (0usize, 0);
    for client in &clients {
        client.set_nonblocking(true).unwrap();
    }
    // Until nothing more is accepted for a while.
    while still < 50 {
        let taken: usize = clients.iter_mut().map(|c| c.write(&chunk).unwrap_or(0)).sum();
        offered += taken;
        still = if taken == 0 { still + 1 } else { 0 };
        if taken == 0 {
            let _ = listener.set_read_timeout(Some(Duration::from_millis(10)));
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
    let (terminal, hub) = (pair.terminal.stop().connections, pair.hub.stop().connections);
    let held = terminal.bytes_from_sockets - hub.bytes_to_sockets;
    // The buffer of each gateway, and the minimum of every connection in both.
    let bound = 2 * (1 << 20) + 2 * 20 * (64 << 10);
    assert!(held <= bound, "{held} of {offered} bytes are held; at most {bound} should be");
    assert!(offered as u64 > held && held > 500_000, "{offered} offered, {held} held");
}

#[test]
fn memory_for_one_terminal_may_be_less_than_for_others() {
    let hub = "[[terminal]]\nname = \"a\"\nmemory = \"1mb\"\n";
    let pair = Pair::with("name = \"a\"\n[limits]\nmemory = \"1mb\"", hub);
    let server = serve(|mut stream| {
        let _ = stream.write_all(&pattern(8 << 20, 2));
        let _ = stream.read(&mut [0]);
    });
    let clients: Vec<_> = (0..4).map(|_| pair.connect(server)).collect();
    // Until nothing more arrives for the others, which do not read.
    let mut reader = &clients[0];
    let mut seen = vec![0; 8 << 20];
    reader.read_exact(&mut seen).unwrap();
    assert_eq!(seen, pattern(8 << 20, 2));
    let (terminal, hub) = (pair.terminal.stop().connections, pair.hub.stop().connections);
    let held = hub.bytes_from_sockets - terminal.bytes_to_sockets;
    assert!(held <= 2 * (1 << 20) + 2 * 4 * (64 << 10), "{held} bytes are held");
}

/// A terminal that opens as many streams as it can and ignores limits.
struct Hostile {
    relay: Relay,
    socket: UdpSocket,
    clock: rt::Clock,
}

impl Hostile {
    fn of(hub: &Running) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(hub.addresses.link.unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let clock = rt::Clock::new();
        let config = RelayConfig { max_streams: 100_000, ..RelayConfig::new("hostile") };
        let relay = Relay::terminal(&config, clock.now(), RngStream::new(7, 0, "hostile"));
        Self { relay, socket, clock }
    }

    /// Runs one round; returns its events.
    fn round(&mut self) -> Vec<Event> {
        let now = self.clock.now();
        self.relay.handle_timeout(now);
        let mut buffer = vec![0; 2048];
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        while self.relay.poll_transmit(now, &mut batch).is_some() {
            for datagram in batch.datagrams() {
                let _ = self.socket.send(datagram);
            }
            batch.clear();
        }
        let mut datagram = [0; 2048];
        while let Ok(count) = self.socket.recv(&mut datagram) {
            let _ = self.relay.handle_datagram(now, &mut datagram[..count]);
        }
        std::iter::from_fn(|| self.relay.poll_event()).collect()
    }
}

#[test]
fn a_hostile_terminal_gets_only_its_share() {
    let hub = hub_at("127.0.0.1:0", "[limits]\nconnections = 50\nterminal.connections = 20");
    let mut hostile = Hostile::of(&hub);
    let server = echo();
    let (mut opened, mut refused) = (0, 0);
    let mut limit = 0;
    while refused < 200 {
        let target = Target { destination: Destination::Address(server), source: None };
        while opened < 300 {
            let stream = hostile.relay.open(hostile.clock.now(), target.clone(), Priority::Normal);
            let Ok(stream) = stream else { break };
            let _ = hostile.relay.write(hostile.clock.now(), stream, &[7; 1000]);
            opened += 1;
        }
        for event in hostile.round() {
            if let Event::Refused { reason, .. } = event {
                refused += 1;
                limit += usize::from(reason == RefuseReason::Limit);
            }
        }
    }
    assert_eq!(refused, limit);
    // Others are served meanwhile.
    let other = terminal_of(&hub, "name = \"honest\"\naccept = \"confirm\"");
    assert_eq!(socks_from(open(other.addresses.socks5[0]), server).1, 0);
    let report = hub.stop().connections;
    assert!(report.peak_connections <= 21, "{}", report.peak_connections);
    assert!(report.limited["terminal_connections"] >= 200);
}
