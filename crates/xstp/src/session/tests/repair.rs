//! Repair: recovery at the end of flights, and what it must never do.

use super::pipe::{Faults, World};
use super::*;
use crate::wire::Repair;

const DELAY: Span = Span::from_millis(300);
/// A packet whose symbol fits into a segment.
const SIZE: usize = 1_440;

fn repairing(percent: Option<u32>) -> SessionConfig {
    let mut config = gateway();
    config.gateway.repair_percent = percent;
    config
}

fn geo(loss: f64) -> Faults {
    Faults { loss, rate: Some(BitRate::from_mbps(10)), ..Faults::clean(DELAY) }
}

/// A pair that has just been established.
fn fresh(percent: Option<u32>, faults: Faults, seed: u64) -> World {
    let config = repairing(percent);
    let ends = [Peer::client(&config), Peer::server(&config)];
    let mut world = World::new(ends, faults, seed).without_log();
    world.ends[0].upper.push(b"give");
    assert!(world.run(at(100_000), |ends| !ends[1].upper.delivered.is_empty()));
    world.run(world.now + Span::from_secs(2), |_| false);
    world
}

/// An established pair whose server has measured the loss by 3,000 packets.
fn measured(percent: Option<u32>, faults: Faults, seed: u64) -> World {
    let mut world = fresh(percent, faults, seed);
    world.ends[1].upper.push_many(3_000, SIZE);
    world.ends[1].session.wake();
    assert!(world.run(at(200_000), |ends| ends[0].upper.delivered.len() == 3_000));
    world.run(world.now + Span::from_secs(5), |_| false);
    world
}

/// Sends `count` packets with numbers from `first` on, and returns how long all of them take.
fn flight(world: &mut World, first: u32, count: u32, size: usize) -> Span {
    let start = world.now;
    world.ends[0].upper.delivered.clear();
    for n in first..first + count {
        let mut packet = alloc::vec![n as u8; size];
        packet[..4].copy_from_slice(&n.to_be_bytes());
        world.ends[1].upper.push(&packet);
    }
    world.ends[1].session.wake();
    let all = |ends: &[Peer; 2]| ends[0].upper.delivered.len() as u32 == count;
    assert!(world.run(start + Span::from_secs(60), all), "a packet was not delivered");
    let took = world.now.since(start);
    assert_eq!(world.ends[0].upper.delivered_sorted(), (first..first + count).collect::<Vec<_>>());
    world.run(world.now + Span::from_secs(2), |_| false);
    took
}

/// XSTP-15.3.3
#[test]
fn packets_lost_at_the_end_of_a_flight_wait_for_no_retransmission() {
    // 70 packets take 84 ms, and the symbols of one that is lost 30 ms more.
    let late = Span::from_millis(450);
    let late_flights = |percent| {
        let mut world = measured(percent, geo(0.02), 7);
        let took = (0..100).map(|n| flight(&mut world, n * 100, 70, SIZE));
        let late = took.filter(|&took| took > late).count();
        (late, world.ends[0].session.statistics().packets_recovered)
    };
    let (without, recovered) = late_flights(None);
    assert!(without > 60 && recovered == 0, "{without} of 100 flights wait without repair");
    let (with, recovered) = late_flights(Some(10));
    assert!(with <= 2 && recovered > 100, "{with} of 100 flights wait, {recovered} recovered");
}

/// XSTP-15.1.2, XSTP-15.2.2, XSTP-15.2.5, XSTP-15.3.2: the coder never uses the payload of a retransmission, which is another one here.
#[test]
fn recovered_packets_have_the_payload_of_their_first_transmission() {
    for seed in 0..20 {
        let jitter = Span::from_millis(seed % 4 * 10);
        let faults = Faults { jitter, duplicate: 0.02, ..geo(0.1) };
        let mut world = measured(Some(50), faults, seed);
        world.ends[1].upper.shrink_to = Some(4);
        for n in 0..30 {
            let size = 100 + n as usize * 13;
            let (first, count) = (n * 1_000, 1 + n * 7 % 90);
            flight(&mut world, first, count, size);
            for (_, payload) in &world.ends[0].upper.delivered {
                let number = u32::from_be_bytes(payload[..4].try_into().unwrap());
                assert!(payload.len() == size || payload.len() == 4, "{} octets", payload.len());
                assert!(payload[4..].iter().all(|&octet| octet == number as u8), "seed {seed}");
            }
        }
        let seen = world.ends[0].session.statistics();
        let (recovered, errors) = (seen.packets_recovered, seen.repair_errors);
        assert!(
            recovered > 0 && errors == 0,
            "seed {seed}: {recovered} recovered, {errors} errors"
        );
    }
}

/// XSTP-15.2.4, XSTP-15.3.5
#[test]
fn a_clean_path_has_neither_symbols_nor_shorter_packets() {
    let mut world = measured(Some(10), geo(0.0), 1);
    flight(&mut world, 0, 70, SIZE + 4);
    assert_eq!(world.ends[1].session.statistics().repairs_sent, 0);
}

/// XSTP-15.2.4
#[test]
fn the_first_flight_of_a_session_is_covered() {
    let late_flights = |percent| {
        let late = Span::from_millis(500);
        let flights = (0..100).map(|seed| {
            let mut world = fresh(percent, geo(0.02), seed);
            flight(&mut world, 0, 30, SIZE)
        });
        flights.filter(|&took| took > late).count()
    };
    let (without, with) = (late_flights(None), late_flights(Some(10)));
    assert!(without > 30 && with <= 5, "{without} of 100 flights wait without repair, {with} with");
}

#[test]
fn a_path_without_loss_counts_as_clean_after_some_packets() {
    let mut world = fresh(Some(10), geo(0.0), 1);
    let mut symbols = [0; 2];
    for n in 0..60 {
        flight(&mut world, n * 10, 5, SIZE);
        symbols[n as usize / 40] = world.ends[1].session.statistics().repairs_sent;
    }
    assert!(symbols[0] > 0 && symbols[0] == symbols[1], "{symbols:?}");
}

#[test]
fn symbols_take_at_most_their_share_of_the_rate() {
    let mut world = measured(Some(1), geo(0.1), 3);
    let before = *world.ends[1].session.statistics();
    let start = world.now;
    for n in 0..20 {
        flight(&mut world, n * 10, 3, SIZE);
    }
    let seen = world.ends[1].session.statistics();
    let symbols = seen.repairs_sent - before.repairs_sent;
    let share = BitRate::from_kbps(100).bytes_in(world.now.since(start) + Span::from_secs(2));
    assert!(symbols > 0 && symbols * 1_500 <= share, "{symbols} symbols, {share} octets");
}

/// XSTP-15.2.4: flights that follow each other without a pause are one.
#[test]
fn a_bulk_transfer_has_no_symbols_before_its_end() {
    let mut world = measured(Some(50), geo(0.02), 5);
    let before = world.ends[1].session.statistics().repairs_sent;
    world.ends[1].upper.push_many(20_000, SIZE);
    world.ends[1].session.wake();
    world.run(world.now + Span::from_secs(20), |_| false);
    assert_eq!(world.ends[1].session.statistics().repairs_sent, before);
}

/// XSTP-15.2.6
#[test]
fn a_window_controller_sends_no_symbols() {
    let mut config = repairing(Some(50));
    config.controller = Controller::NewReno;
    let mut world = World::new([Peer::client(&config), Peer::server(&config)], geo(0.05), 4);
    for n in 0..20 {
        world.ends[0].upper.push_many(20, 500);
        world.ends[0].session.wake();
        world.run(at(5_000 * (n + 1)), |_| false);
    }
    let seen = world.ends[0].session.statistics();
    assert!(seen.data_retransmitted > 0 && seen.repairs_sent == 0);
}

/// A packet that the upper layer cannot split, and whose symbol would not fit.
#[test]
fn a_packet_that_cannot_be_covered_is_sent() {
    let mut world = measured(Some(10), geo(0.02), 9);
    for n in 0..20 {
        flight(&mut world, n * 10, 5, SIZE + 4);
    }
    assert_eq!(world.ends[1].session.statistics().repairs_sent, 0);
}

/// XSTP-15.2.1, XSTP-15.3.1
#[test]
fn a_session_without_the_capability_rejects_symbols() {
    let repair = Repair { count: 1, key: 0, symbol: &[0, 1, 7] };
    let segment = Segment::repair(Seq24::ZERO, repair);
    let (mut client, _) = established(&gateway());
    assert!(matches!(client.receive(at(700), &segment), Err(ReceiveError::Malformed(_))));
    assert_eq!(client.session.statistics().malformed, 1);
    let (mut client, _) = established(&repairing(Some(10)));
    assert_eq!(client.receive(at(700), &segment), Ok(()));
    assert_eq!(client.session.statistics().repairs_received, 1);
}

/// XSTP-15.3.4
#[test]
fn a_symbol_that_is_no_packet_is_counted() {
    let (mut client, _) = established(&repairing(Some(10)));
    // A length of more than the symbol has, whatever the coefficient is.
    let repair = Repair { count: 1, key: 9, symbol: &[255, 255] };
    assert_eq!(client.receive(at(700), &Segment::repair(Seq24::ZERO, repair)), Ok(()));
    assert_eq!(client.session.statistics().repair_errors, 1);
    assert!(client.upper.delivered.is_empty());
}
