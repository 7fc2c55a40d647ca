//! How connections open that know each other.

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

/// Two hosts, and connections between them one after the other.
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

    /// A request of 200 bytes, which is answered by 300; returns when the answer was there.
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
    // The server knows no count: it answers SYN alone, and keeps the request until the third
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
    // SYN, 200 bytes and FIN; the whole transaction was shorter than MSL, so that TIME-WAIT is
    // eight timers and not a minute (RFC 1644, section 2.4).
    assert_eq!(second.answers[0].1.acknowledgement, Some(202));
    assert_eq!((second.client.state(), second.server.state()), (State::Closed, State::Closed));
}

#[test]
fn a_syn_of_an_old_connection_is_not_believed() {
    let mut hosts = Hosts::new(transaction());
    for _ in 0..2 {
        let mut wire = hosts.wire();
        hosts.exchange(&mut wire);
    }
    // The second's SYN comes again: its count, 2, is not above what the cache has.
    let mut wire = hosts.wire();
    wire.client.write(200);
    let mut old = wire.client.poll_transmit(at(0)).unwrap();
    old.options.count = Some(ConnectionCount::Count(2));
    wire.server.handle_segment(at(0), &old);
    assert_eq!((wire.server.state(), wire.server.readable()), (State::SynReceived, 0));
    let answer = wire.server.poll_transmit(at(0)).unwrap();
    assert_eq!((answer.acknowledgement, answer.options.count_echo), (Some(1), Some(2)));
    // Its echo is none of the client's, which drops it: the data is never read.
    wire.client.handle_segment(at(50), &answer);
    assert_eq!(wire.client.state(), State::SynSent);
}

#[test]
fn counts_go_with_every_segment_and_a_peer_without_them_is_no_obstacle() {
    let mut wire = Hosts::new(transaction()).wire();
    wire.client.write(5_000);
    wire.run_until(at(1_000));
    assert!(wire.sent.iter().all(|(_, segment)| segment.options.count.is_some()));
    // 1460 less 8 for the count; with SYN what is left of 536.
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
fn fast_open_sends_with_syn_once_it_has_a_cookie() {
    let mut hosts = Hosts::new(fast_open());
    let mut first = hosts.wire();
    assert_eq!(hosts.exchange(&mut first), 0.2);
    assert_eq!(first.sent[0].1.options.fast_open, Some(FastOpen::Request));
    let given = first.answers[0].1.options.fast_open;
    assert!(matches!(given, Some(FastOpen::Cookie(_))) && first.sent[0].1.payload.len == 0);
    let mut second = hosts.wire();
    assert_eq!(hosts.exchange(&mut second), 0.1);
    assert_eq!((second.sent[0].1.options.fast_open, second.sent[0].1.payload.len), (given, 200));
    // The server answers SYN and data, then sends its own without waiting (RFC 7413,
    // section 4.2.1).
    assert_eq!(flags(&second.answers)[..2], [(true, false, 0), (false, true, 300)]);
}

#[test]
fn a_cookie_that_the_server_does_not_know_costs_a_round_trip() {
    let mut hosts = Hosts::new(fast_open());
    let mut first = hosts.wire();
    hosts.exchange(&mut first);
    hosts.caches[1] = HostCache::new(99);
    let mut second = hosts.wire();
    assert_eq!(hosts.exchange(&mut second), 0.2, "the data goes again with the third segment");
    assert_eq!(second.client.counters().retransmitted_bytes, 200);
    let mut third = hosts.wire();
    assert_eq!(hosts.exchange(&mut third), 0.1, "and the new cookie was learnt");
}

#[test]
fn a_syn_that_was_lost_goes_again_alone() {
    let mut hosts = Hosts::new(fast_open());
    let mut first = hosts.wire();
    hosts.exchange(&mut first);
    let mut second = hosts.wire().losing(|count, _| count == 0);
    // 1 s for SYN (RFC 6298, rule 2.1), then as ever.
    assert_eq!(hosts.exchange(&mut second), 1.2);
    assert_eq!(flags(&second.sent)[1], (true, false, 0));
    assert_eq!(second.sent[1].1.options.fast_open, None);
}
