//! Windows, rates and what they do to the schedule.

use super::pipe::{Faults, World};
use super::*;
use crate::congestion::Controller;
use crate::wire::{Poll, Profile};

const FULL: usize = 1444;

/// The window controller in the sealed profile, with a window that does not grow much.
fn newreno(initial_window: u32) -> SessionConfig {
    SessionConfig {
        controller: Controller::NewReno,
        max_rate: None,
        initial_window,
        stp: StpPolicy { spread: Spread::Enabled, ..gateway().stp },
        ..gateway()
    }
}

/// Times at which the client sent data, from when it was established on.
fn sent(world: &World) -> Vec<Instant> {
    let data = world.log.iter().filter(|entry| {
        entry.from == 0
            && Segment::decode(&Profile::Sealed, &entry.octets).unwrap().payload().is_some()
    });
    data.map(|entry| entry.at).collect()
}

/// An established pair at 200 ms round trip with `count` full packets to be sent.
fn world(config: &SessionConfig, count: u32) -> World {
    let faults = Faults::clean(Span::from_millis(100));
    let mut world = World::pair(config, &gateway(), faults);
    world.run(at(1_000), |_| false);
    world.ends[0].upper.push_many(count, FULL);
    world.ends[0].session.wake();
    world
}

/// The longest and the shortest pause between packets.
fn pauses(times: &[Instant]) -> (Span, Span) {
    let all: Vec<Span> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    (*all.iter().min().unwrap(), *all.iter().max().unwrap())
}

/// XSTP-8.2.1
#[test]
fn a_window_is_spread_over_the_round_trip() {
    let mut world = world(&newreno(20), 20);
    world.run(at(1_199), |_| false);
    let times = sent(&world);
    assert_eq!(times.len(), 20);
    assert_eq!(pauses(&times), (Span::from_millis(10), Span::from_millis(10)));
}

/// XSTP-8.2.2
#[test]
fn intervals_stay_between_what_the_rates_allow() {
    // Ten packets would be 20 ms apart. 1500 bytes at 300 kbit/s take 40 ms, at 1.2 Mbit/s 10.
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
fn without_a_maximum_rate_what_is_missing_goes_at_once() {
    for (max_rate, at_once) in [(None, true), (Some(BitRate::from_mbps(1)), false)] {
        let config = SessionConfig { max_rate, ustat_hold: Span::ZERO, ..newreno(40) };
        let mut world = world(&config, 40);
        world.faults.outage = Some((at(1_000), at(1_025)));
        world.run(at(60_000), |ends| ends[1].upper.delivered.len() == 40);
        assert_eq!(world.ends[1].upper.delivered.len(), 40);
        let again = world.ends[0].session.statistics().data_retransmitted;
        assert!(again >= 3, "{again}");
        let mut times = sent(&world);
        times.sort_unstable();
        let together = times.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert_eq!(together > 0, at_once, "{times:?}");
    }
}

/// XSTP-9.1.1
#[test]
fn loss_does_not_slow_fixed_down() {
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
fn until_the_peer_speaks_its_window_is_assumed() {
    let config = SessionConfig { initial_peer_window: 3, ..gateway() };
    let mut client = Hand::client(&config);
    client.upper.push_many(5, 100);
    let mut now = at(0);
    while now < at(600) {
        client.send(now);
        now = client.session.poll_timeout().unwrap().max(now);
    }
    assert_eq!(client.session.outstanding_numbers(), 3);
    let mut server = Hand::server(&SessionConfig { receive_window: 4, ..gateway() });
    let mut first = Hand::client(&config);
    first.upper.push_many(5, 100);
    server.hear_all(at(300), &first.send(at(0)));
    let answer = server.send(at(300));
    client.hear_all(at(650), &answer);
    // Four from number 1 on, as the STAT that came with BGNAK says.
    let mut now = at(650);
    while now < at(700) {
        client.send(now);
        now = client.session.poll_timeout().unwrap().max(now);
    }
    assert_eq!(client.session.outstanding_numbers(), 4);
    assert_eq!(client.upper.waiting.len(), 0);
}

/// XSTP-4.1.2
#[test]
fn a_poll_counts_the_packet_that_it_rides_on() {
    let (mut client, _) = established(&gateway());
    let poll = Poll { seq: 1, next: Seq24::new(1) };
    client.hear(at(700), &Segment::data(Seq24::ZERO, b"x").and_poll(0, poll)).unwrap();
    assert_eq!(client.said(at(700)), ["STAT have<1"]);
}

/// XSTP-8.1.5: both directions at once, each at its own rate.
#[test]
fn a_full_upload_does_not_slow_the_download() {
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
