use super::*;
use crate::published::radio_session;
use std::net::Ipv4Addr;

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

fn host(last: u8) -> Connections {
    Connections::new(radio_session(), address(last), 7, 0)
}

fn peer(last: u8) -> Peer {
    address(last).into()
}

/// Two hosts, 1 and 2, and the time.
struct Pair {
    now: Instant,
    hosts: [Connections; 2],
}

impl Pair {
    fn new() -> Self {
        let mut pair = Self { now: Instant::ZERO, hosts: [host(1), host(2)] };
        pair.hosts[1].listen(21).expect("a free port");
        pair
    }

    /// Connects and returns the number at the client.
    fn connect(&mut self, port: u16) -> u64 {
        self.hosts[0].connect(self.now, peer(2), port).expect("a connection")
    }

    /// Exchanges segments with 100 ms of delay until nothing is due for 5 s.
    fn run(&mut self) {
        let end = self.now + Span::from_secs(5);
        while self.now < end {
            for from in [0, 1] {
                self.hosts[from].handle_timeout(self.now);
                while let Some(outgoing) = self.hosts[from].poll_transmit(self.now) {
                    assert_eq!(outgoing.peer, peer(2 - from as u8));
                    let source = peer(1 + from as u8);
                    self.hosts[1 - from].handle_segment(self.now, source, &outgoing.segment);
                }
            }
            for host in &mut self.hosts {
                host.handle_events(self.now);
            }
            self.now += Span::from_millis(100);
        }
    }

    fn read(&mut self, at: usize, number: u64) -> io::Result<Vec<u8>> {
        let mut buffer = [0; 100];
        let len = self.hosts[at].entry(number)?.read(&mut buffer)?;
        Ok(buffer[..len].to_vec())
    }
}

/// A BGN of host 1 to `port` of host 2.
fn begin(local: u16, port: u16) -> Vec<u8> {
    let mut client = host(1);
    client.port = local;
    client.connect(Instant::ZERO, peer(2), port).expect("a connection");
    client.poll_transmit(Instant::ZERO).expect("a BGN").segment
}

#[test]
fn connections_carry_data_and_close() {
    let mut pair = Pair::new();
    let number = pair.connect(21);
    assert_eq!(pair.hosts[0].entry(number).unwrap().write(b"request").unwrap(), 7);
    pair.run();
    let (accepted, from, _) = pair.hosts[1].accept(21).expect("a connection");
    assert_eq!(from, peer(1));
    assert_eq!(pair.read(1, accepted).unwrap(), b"request");
    assert_eq!(pair.read(1, accepted).unwrap_err().kind(), ErrorKind::WouldBlock);
    pair.hosts[1].entry(accepted).unwrap().write(b"response").unwrap();
    pair.hosts[1].drop_stream(pair.now, accepted);
    pair.run();
    assert_eq!(pair.read(0, number).unwrap(), b"response");
    assert_eq!(pair.read(0, number).unwrap(), b"");
    assert!(!pair.hosts[0].is_drained());
    pair.hosts[0].drop_stream(pair.now, number);
    pair.run();
    assert!(pair.hosts.iter().all(Connections::is_drained));
    assert_eq!(pair.hosts[1].entries.len(), 1, "it answers late segments");
    pair.now += LINGER;
    pair.run();
    assert!(pair.hosts.iter().all(|host| host.entries.is_empty() && host.keys.is_empty()));
    assert_eq!(pair.hosts[1].counters, Counters::default());
}

/// RAD-3.1
#[test]
fn a_port_without_listener_refuses() {
    let mut pair = Pair::new();
    let number = pair.connect(80);
    pair.run();
    assert_eq!(pair.read(0, number).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(pair.hosts[1].counters.refused_connections, 1);
    assert!(pair.hosts[1].entries.is_empty());
}

#[test]
fn a_stream_that_is_dropped_with_unread_data_is_reset() {
    let mut pair = Pair::new();
    let number = pair.connect(21);
    pair.run();
    let (accepted, ..) = pair.hosts[1].accept(21).expect("a connection");
    pair.hosts[1].drop_stream(pair.now, accepted);
    pair.hosts[0].entry(number).unwrap().write(b"data").unwrap();
    pair.run();
    let error = pair.hosts[0].entry(number).unwrap().write(b"data").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// RAD-3.1
#[test]
fn connections_that_are_not_accepted_are_bounded_for_all_and_for_one_peer() {
    let mut server = host(2);
    server.listen(21).unwrap();
    let now = Instant::ZERO;
    for local in 0..200 {
        server.handle_segment(now, peer(1), &begin(local, 21));
    }
    assert_eq!(server.entries.len(), MAX_BACKLOG.min(MAX_WITH_PEER));
    assert_eq!(server.counters.refused_connections, 200 - MAX_BACKLOG as u64);
    // Accepted ones still count for their peer.
    while server.accept(21).is_ok() {}
    server.handle_segment(now, peer(1), &begin(300, 21));
    assert_eq!(server.entries.len(), MAX_WITH_PEER);
    // Refusals are bounded as well.
    for local in 0..200 {
        server.handle_segment(now, peer(1), &begin(local, 80));
    }
    assert_eq!(server.refusals.len(), MAX_REFUSALS);
}

/// RAD-2.2
#[test]
fn segments_of_strangers_have_no_effect() {
    let mut pair = Pair::new();
    let number = pair.connect(21);
    pair.run();
    let other = Peer { station: "M0ABC".parse().ok(), ..peer(2) };
    pair.hosts[0].entry(number).unwrap().write(b"data").unwrap();
    let data = pair.hosts[0].poll_transmit(pair.now).expect("data").segment;
    let entries = pair.hosts[1].entries.len();
    for (from, segment) in [
        (peer(9), &data[..]),
        (Peer { station: other.station, ..peer(1) }, &data),
        (peer(1), &data[..data.len() - 1]),
        (peer(1), &[]),
        (peer(1), &[0; 3]),
        (peer(9), &[0; 16]),
    ] {
        pair.hosts[1].handle_segment(pair.now, from, segment);
    }
    assert_eq!(pair.hosts[1].counters.refused, 6);
    assert_eq!(pair.hosts[1].entries.len(), entries);
    let (accepted, ..) = pair.hosts[1].accept(21).expect("a connection");
    assert_eq!(pair.read(1, accepted).unwrap_err().kind(), ErrorKind::WouldBlock);
    pair.hosts[1].handle_segment(pair.now, peer(1), &data);
    assert_eq!(pair.read(1, accepted).unwrap(), b"data");
}

#[test]
fn a_peer_that_restarts_replaces_its_connection() {
    let mut pair = Pair::new();
    pair.connect(21);
    pair.run();
    let (accepted, ..) = pair.hosts[1].accept(21).expect("a connection");
    // The same ports, and the next incarnation.
    let mut restarted = host(1);
    restarted.incarnation = 8;
    pair.hosts[0] = restarted;
    let number = pair.connect(21);
    pair.run();
    assert_eq!(pair.read(1, accepted).unwrap_err().kind(), ErrorKind::ConnectionReset);
    pair.hosts[1].drop_stream(pair.now, accepted);
    let (second, ..) = pair.hosts[1].accept(21).expect("a connection");
    pair.hosts[1].entry(second).unwrap().write(b"hello").unwrap();
    pair.run();
    assert_eq!(pair.read(0, number).unwrap(), b"hello");
    assert_eq!(pair.hosts[1].entries.len(), 1);
}

#[test]
fn a_listener_that_ends_resets_what_was_not_accepted() {
    let mut pair = Pair::new();
    let number = pair.connect(21);
    pair.hosts[0].entry(number).unwrap().write(b"data").unwrap();
    pair.run();
    pair.hosts[1].unlisten(pair.now, 21);
    pair.run();
    assert_eq!(pair.read(0, number).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(pair.hosts[1].listen(21).is_ok());
}
