//! Connection opening with cached data of the peer.

use super::wire::Wire;
use crate::segment::{ConnectionCount, FastOpen};
use crate::{HostCache, Opening, Ports, Segment, State, TcpConfig};
use std::vec::Vec;
use units::{Instant, Span};

const ONE_WAY: Span = Span::from_millis(50);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

fn transaction() -> TcpConfig {
    TcpConfig { opening: Opening::Transaction, ..TcpConfig::reno() }
}

fn fast_open() -> TcpConfig {
    TcpConfig { opening: Opening::FastOpen, ..TcpConfig::reno() }
}

/// Two hosts with consecutive connections.
struct Hosts {
    config: TcpConfig,
    caches: [HostCache; 2],
    port: u16,
}

impl Hosts {
    fn new(config: TcpConfig) -> Self {
        Self { config, caches: [HostCache::new(1), HostCache::new(2)], port: 1_000 }
    }

    fn wire(&mut self) -> Wire {
        self.port += 1;
        let ports = Ports { from: self.port, to: 80 };
        let [here, there] = &mut self.caches;
        let client = here.connect(2, &self.config, ports, 1);
        let server = there.listen(1, &self.config, 80, 2);
        Wire::between(client, server, ONE_WAY)
    }

    fn learn(&mut self, wire: &mut Wire) {
        self.caches[0].learn(2, &mut wire.client);
        self.caches[1].learn(1, &mut wire.server);
    }

    /// A request of 200 octets with a response of 300; returns when the response had arrived.
    fn exchange(&mut self, wire: &mut Wire) -> f64 {
        wire.client.write(200);
        wire.client.close();
        wire.answer = Some(300);
        wire.run_until(at(20_000));
        assert_eq!((wire.read, wire.got), (200, 300));
        self.learn(wire);
        wire.answered.expect("an answer").as_secs_f64()
    }
}

fn flags(sent: &[(Instant, Segment)]) -> Vec<(bool, bool, u32)> {
    sent.iter().map(|(_, s)| (s.flags.syn, s.flags.fin, s.payload.len)).collect()
}

#[test]
fn a_second_transaction_is_three_segments_and_one_round_trip() {
    let mut hosts = Hosts::new(transaction());
    let mut first = hosts.wire();
    // The server has no count: it answers the SYN only, and keeps the request until the third
    // segment. Two round trips.
    assert_eq!(hosts.exchange(&mut first), 0.2);
    assert_eq!(first.sent[0].1.options.count, Some(ConnectionCount::New(1)));
    let answer = &first.answers[0].1;
    assert_eq!((answer.acknowledgement, answer.options.count_echo), (Some(1), Some(1)));
    let mut second = hosts.wire();
    assert_eq!(hosts.exchange(&mut second), 0.1);
    assert_eq!(second.sent[0].1.options.count, Some(ConnectionCount::Count(2)));
    assert_eq!(flags(&second.sent), [(true, true, 200), (false, false, 0)]);
    assert_eq!(flags(&second.answers), [(true, true, 300)]);
    // SYN, 200 octets and FIN; the transaction was shorter than MSL, so TIME-WAIT is eight RTOs and
    // not a minute (RFC 1644, section 2.4).
    assert_eq!(second.answers[0].1.acknowledgement, Some(202));
    assert_eq!((second.client.state(), second.server.state()), (State::Closed, State::Closed));
}

#[test]
fn syn_of_an_old_connection_is_rejected() {
    let mut hosts = Hosts::new(transaction());
    for _ in 0..2 {
        let mut wire = hosts.wire();
        hosts.exchange(&mut wire);
    }
    // The second SYN is repeated: its count, 2, is not above the cached one.
    let mut wire = hosts.wire();
    wire.client.write(200);
    let mut old = wire.client.poll_transmit(at(0)).unwrap();
    old.options.count = Some(ConnectionCount::Count(2));
    wire.server.handle_segment(at(0), &old);
    assert_eq!((wire.server.state(), wire.server.readable()), (State::SynReceived, 0));
    let answer = wire.server.poll_transmit(at(0)).unwrap();
    assert_eq!((answer.acknowledgement, answer.options.count_echo), (Some(1), Some(2)));
    // Its echo is not the client's, which drops it: the data is never read.
    wire.client.handle_segment(at(50), &answer);
    assert_eq!(wire.client.state(), State::SynSent);
}

#[test]
fn counts_are_in_every_segment_and_optional_at_the_peer() {
    let mut wire = Hosts::new(transaction()).wire();
    wire.client.write(5_000);
    wire.run_until(at(1_000));
    assert!(wire.sent.iter().all(|(_, segment)| segment.options.count.is_some()));
    // 1460 less 8 for the count; on the SYN the rest of 536.
    assert_eq!(wire.client.snapshot().segment, 1_452);
    assert_eq!(wire.sent[0].1.payload.len + wire.sent[0].1.options.len() as u32, 536);
    let client = crate::Endpoint::connect(&transaction(), Ports { from: 9, to: 80 }, 1);
    let server = crate::Endpoint::listen(&TcpConfig::reno(), 80, 2);
    let mut wire = Wire::between(client, server, ONE_WAY);
    wire.client.write(5_000);
    wire.run_until(at(1_000));
    assert_eq!((wire.read, wire.client.snapshot().segment), (5_000, 1_460));
    assert!(wire.sent[2].1.options.count.is_none());
}

#[test]
fn fast_open_sends_data_on_the_syn_once_it_has_a_cookie() {
    let mut hosts = Hosts::new(fast_open());
    let mut first = hosts.wire();
    assert_eq!(hosts.exchange(&mut first), 0.2);
    assert_eq!(first.sent[0].1.options.fast_open, Some(FastOpen::Request));
    let given = first.answers[0].1.options.fast_open;
    assert!(matches!(given, Some(FastOpen::Cookie(_))) && first.sent[0].1.payload.len == 0);
    let mut second = hosts.wire();
    assert_eq!(hosts.exchange(&mut second), 0.1);
    assert_eq!((second.sent[0].1.options.fast_open, second.sent[0].1.payload.len), (given, 200));
    // The server acknowledges SYN and data, then sends its own without waiting (RFC 7413, section
    // 4.2.1).
    assert_eq!(flags(&second.answers)[..2], [(true, false, 0), (false, true, 300)]);
}

#[test]
fn invalid_cookie_costs_a_round_trip() {
    let mut hosts = Hosts::new(fast_open());
    let mut first = hosts.wire();
    hosts.exchange(&mut first);
    hosts.caches[1] = HostCache::new(99);
    let mut second = hosts.wire();
    assert_eq!(
        hosts.exchange(&mut second),
        0.2,
        "the data is retransmitted with the third segment"
    );
    assert_eq!(second.client.counters().retransmitted_bytes, 200);
    let mut third = hosts.wire();
    assert_eq!(hosts.exchange(&mut third), 0.1, "the new cookie is cached");
}

#[test]
fn lost_syn_is_retransmitted_without_data() {
    let mut hosts = Hosts::new(fast_open());
    let mut first = hosts.wire();
    hosts.exchange(&mut first);
    let mut second = hosts.wire().losing(|count, _| count == 0);
    // 1 s for the SYN (RFC 6298, rule 2.1), then as without Fast Open.
    assert_eq!(hosts.exchange(&mut second), 1.2);
    assert_eq!(flags(&second.sent)[1], (true, false, 0));
    assert_eq!(second.sent[1].1.options.fast_open, None);
}

#[test]
fn fast_open_pauses_toward_a_port_where_it_failed() {
    let mut hosts = Hosts::new(fast_open());
    let mut first = hosts.wire();
    hosts.exchange(&mut first);
    let mut second = hosts.wire().losing(|count, _| count == 0);
    hosts.exchange(&mut second);
    // A middlebox may drop data on SYNs: three-way handshakes for a time.
    let mut third = hosts.wire();
    third.now = at(300_000);
    third.client.write(200);
    let syn = third.client.poll_transmit(third.now).unwrap();
    assert_eq!((syn.options.fast_open, syn.payload.len), (None, 0));
    hosts.learn(&mut third);
    // Another port of the same host is not affected, and the pause ends after ten minutes.
    for (port, millis, carries) in [(81, 300_000, 200), (80, 599_000, 0), (80, 602_000, 200)] {
        let ports = Ports { from: 7, to: port };
        let mut client = hosts.caches[0].connect(2, &hosts.config, ports, 1);
        client.write(200);
        let syn = client.poll_transmit(at(millis)).unwrap();
        assert_eq!(syn.payload.len, carries, "port {port} after {millis} ms");
    }
}

#[test]
fn unaccepted_data_is_a_failure_as_well() {
    let mut hosts = Hosts::new(fast_open());
    let mut first = hosts.wire();
    hosts.exchange(&mut first);
    let mut second = hosts.wire();
    second.client.write(200);
    let syn = second.client.poll_transmit(at(0)).unwrap();
    assert_eq!(syn.payload.len, 200);
    // A server without Fast Open answers the SYN only, and returns no cookie.
    let mut plain = crate::Endpoint::listen(&TcpConfig::reno(), 80, 2);
    plain.handle_segment(at(50), &syn);
    let answer = plain.poll_transmit(at(50)).unwrap();
    second.client.handle_segment(at(100), &answer);
    hosts.learn(&mut second);
    let mut third = hosts.wire();
    third.client.write(200);
    assert_eq!(third.client.poll_transmit(at(200)).unwrap().payload.len, 0);
}

#[test]
fn data_of_a_lost_syn_is_retransmitted_by_every_recovery() {
    for base in [TcpConfig::linux_cubic(), TcpConfig::bbr(), TcpConfig::vegas()] {
        for opening in [Opening::FastOpen, Opening::Transaction] {
            let mut hosts = Hosts::new(TcpConfig { opening, ..base.clone() });
            let mut first = hosts.wire();
            hosts.exchange(&mut first);
            // SYN and its data; then SYN,ACK, in the second with data.
            let mut second = hosts.wire().losing(|count, _| count == 0);
            assert!(hosts.exchange(&mut second) < 2.0);
            let mut third = hosts.wire().losing_answers(|count, _| count == 0);
            assert!(hosts.exchange(&mut third) < 4.0);
            // The server has no cached cookie and does not accept the data.
            hosts.caches[1] = HostCache::new(99);
            let mut fourth = hosts.wire();
            assert!(hosts.exchange(&mut fourth) < 2.0);
        }
    }
}

#[test]
fn path_mtu_is_discovered_and_used_by_the_next_connection() {
    for base in [TcpConfig::sack_reno(), TcpConfig::linux(), TcpConfig::bbr()] {
        let mut hosts = Hosts::new(TcpConfig { path_mtu: true, ..base });
        let mut first = hosts.wire();
        first.mtu = Some((1_100, true));
        first.client.write(100_000);
        first.run_until(at(10_000));
        let options = u64::from(first.sent.last().unwrap().1.options.len() as u32);
        assert_eq!((first.read, first.client.snapshot().segment), (100_000, 1_060 - options));
        let counters = first.client.counters();
        assert_eq!((counters.timeouts, counters.recoveries), (0, 0), "no congestion (RFC 1191)");
        hosts.learn(&mut first);
        let mut second = hosts.wire();
        second.mtu = Some((1_100, true));
        second.client.write(100_000);
        second.run_until(at(10_000));
        assert_eq!(second.client.counters().retransmitted_segments, 0, "from the cache");
    }
    // Ten minutes later the full size is tried again (RFC 1191, section 6.3).
    let mut hosts = Hosts::new(TcpConfig { path_mtu: true, ..TcpConfig::sack() });
    let mut first = hosts.wire();
    first.mtu = Some((1_100, true));
    first.client.write(2_000);
    first.run_until(at(10_000));
    hosts.learn(&mut first);
    let mut later = hosts.wire();
    later.now = at(620_000);
    later.client.write(2_000);
    later.run_until(at(630_000));
    assert_eq!(later.client.snapshot().segment, 1_460);
}

#[test]
fn a_black_hole_is_found_by_its_timeouts() {
    let config = TcpConfig { path_mtu: true, ..TcpConfig::sack() };
    let mut wire = Hosts::new(config).wire();
    wire.mtu = Some((1_100, false));
    wire.client.write(20_000);
    wire.run_until(at(60_000));
    // Two timeouts, 1 s and 2 s; then segments of 1024 − 40.
    assert_eq!((wire.read, wire.client.snapshot().segment), (20_000, 984));
    assert_eq!(wire.client.counters().timeouts, 2);
    // ICMP messages about data that is not outstanding are ignored.
    wire.client.handle_too_big(wire.now, 99_999, 100);
    assert_eq!(wire.client.snapshot().segment, 984);
}
