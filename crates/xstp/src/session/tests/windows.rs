//! Windows, rates, and the schedules that result.

use super::pipe::{Faults, World};
use super::*;
use crate::congestion::Controller;
use crate::wire::{Poll, Profile};

const FULL: usize = 1444;

/// `newreno` in the sealed profile.
fn newreno(initial_window: u32) -> SessionConfig {
    SessionConfig {
        controller: Controller::NewReno,
        max_rate: None,
        initial_window,
        stp: StpPolicy { spread: Spread::Enabled, ..gateway().stp },
        ..gateway()
    }
}

/// Times at which the client sent data.
fn sent(world: &World) -> Vec<Instant> {
    let data = world.log.iter().filter(|entry| {
        entry.from == 0
            && Segment::decode(&Profile::Sealed, &entry.octets).unwrap().payload().is_some()
    });
    data.map(|entry| entry.at).collect()
}

/// An established pair with an RTT of 200 ms and `count` queued full packets.
fn world(config: &SessionConfig, count: u32) -> World {
    let faults = Faults::clean(Span::from_millis(100));
    let mut world = World::pair(config, &gateway(), faults);
    world.run(at(1_000), |_| false);
    world.ends[0].upper.push_many(count, FULL);
    world.ends[0].session.wake();
    world
}

/// Minimum and maximum interval between packets.
fn pauses(times: &[Instant]) -> (Span, Span) {
    let all: Vec<Span> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    (*all.iter().min().unwrap(), *all.iter().max().unwrap())
}

/// XSTP-8.2.1
#[test]
fn a_window_is_spread_over_one_rtt() {
    let mut world = world(&newreno(20), 20);
    world.run(at(1_199), |_| false);
    let times = sent(&world);
    assert_eq!(times.len(), 20);
    assert_eq!(pauses(&times), (Span::from_millis(10), Span::from_millis(10)));
}

/// XSTP-8.2.2
#[test]
fn intervals_are_bounded_by_the_configured_rates() {
    // Ten packets per RTT are 20 ms apart. 1500 octets take 40 ms at 300 kbit/s, and 10 ms at
    // 1.2 Mbit/s.
    let slow = SessionConfig {
        max_rate: Some(BitRate::from_kbps(300)),
        headroom_millionths: 0,
        ..newreno(10)
    };
    let mut slow = world(&slow, 10);
    slow.run(at(1_390), |_| false);
    let (shortest, _) = pauses(&sent(&slow));
    assert_eq!(shortest, Span::from_millis(40));
    let fast = SessionConfig { min_rate: Some(BitRate::from_kbps(1_200)), ..newreno(10) };
    let mut fast = world(&fast, 10);
    fast.run(at(1_190), |_| false);
    let (_, longest) = pauses(&sent(&fast));
    assert!(longest <= Span::from_millis(10), "{longest}");
}

/// XSTP-8.2.3
#[test]
fn without_a_maximum_rate_retransmissions_are_not_paced() {
    for (max_rate, has_burst) in [(None, true), (Some(BitRate::from_mbps(1)), false)] {
        let config = SessionConfig { max_rate, ustat_hold: Span::ZERO, ..newreno(40) };
        let mut world = world(&config, 40);
        world.faults.outage = Some((at(1_000), at(1_025)));
        world.run(at(60_000), |ends| ends[1].upper.delivered.len() == 40);
        assert_eq!(world.ends[1].upper.delivered.len(), 40);
        let retransmitted = world.ends[0].session.statistics().data_retransmitted;
        assert!(retransmitted >= 3, "{retransmitted}");
        let mut times = sent(&world);
        times.sort_unstable();
        let burst = times.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert_eq!(burst > 0, has_burst, "{times:?}");
    }
}

/// XSTP-9.1.1
#[test]
fn loss_does_not_reduce_the_rate_of_fixed() {
    let mut world = world(&gateway(), 3_000);
    world.faults.loss = 0.3;
    world.run(at(4_000), |_| false);
    assert_eq!(world.ends[0].session.congestion_window(), None);
    let octets = world.bytes_from(0, at(1_000));
    let bound = BitRate::from_mbps(10).bytes_in(Span::from_secs(3));
    assert!(octets > bound * 98 / 100 && octets <= bound, "{octets} of {bound}");
}

/// XSTP-7.1.1, XSTP-7.1.2
#[test]
fn the_initial_peer_window_applies_until_bgnak() {
    let config = SessionConfig { initial_peer_window: 3, ..gateway() };
    let mut client = Peer::client(&config);
    client.upper.push_many(5, 100);
    let mut now = at(0);
    while now < at(600) {
        client.send(now);
        now = client.session.poll_timeout().unwrap().max(now);
    }
    assert_eq!(client.session.outstanding_packets(), 3);
    let mut server = Peer::server(&SessionConfig { receive_window: 4, ..gateway() });
    let mut first = Peer::client(&config);
    first.upper.push_many(5, 100);
    server.receive_all(at(300), &first.send(at(0)));
    let response = server.send(at(300));
    client.receive_all(at(650), &response);
    // The STAT with BGNAK advertises four packets from number 1 on.
    let mut now = at(650);
    while now < at(700) {
        client.send(now);
        now = client.session.poll_timeout().unwrap().max(now);
    }
    assert_eq!(client.session.outstanding_packets(), 4);
    assert_eq!(client.upper.waiting.len(), 0);
}

/// XSTP-4.1.2
#[test]
fn a_poll_covers_the_packet_that_carries_it() {
    let (mut client, _) = established(&gateway());
    let poll = Poll { seq: 1, next: Seq24::new(1) };
    client.receive(at(700), &Segment::data(Seq24::ZERO, b"x").and_poll(0, poll)).unwrap();
    assert_eq!(client.send_text(at(700)), ["STAT have<1"]);
}

/// XSTP-8.1.5
#[test]
fn both_directions_use_their_full_rates() {
    let up = SessionConfig::gateway(BitRate::from_mbps(1));
    let faults = Faults::clean(Span::from_millis(300));
    let mut world = World::pair(&up, &gateway(), faults);
    world.run(at(1_000), |_| false);
    world.ends[0].upper.push_many(2_000, FULL);
    world.ends[1].upper.push_many(20_000, FULL);
    world.ends.iter_mut().for_each(|end| end.session.wake());
    world.run(at(11_000), |_| false);
    for (from, mbps) in [(0, 1), (1, 10)] {
        let octets = world.bytes_from(from, at(1_000));
        let bound = BitRate::from_mbps(mbps).bytes_in(Span::from_secs(10));
        assert!(octets > bound * 99 / 100 && octets <= bound, "{octets} of {bound}");
    }
}
