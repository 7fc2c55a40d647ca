//! Two paths of different round trips.

use super::*;
use crate::{Event, Priority, RelayConfig, ResetReason, StreamId, Target};

mod headers;

const GEO: usize = 0;
const LEO: usize = 1;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// Streams of both sides, with a path of 600 ms and one of 50 ms, of 8 Mbit/s each.
fn pair() -> [Streams; 2] {
    pair_of(&RelayConfig { unsent_limit: 4 << 20, ..RelayConfig::new("x") })
}

fn pair_of(config: &RelayConfig) -> [Streams; 2] {
    [false, true].map(|is_hub| {
        let mut streams = Streams::new(config, is_hub, at(0));
        for (path, millis) in [(GEO, 600), (LEO, 50)] {
            streams.set_path(path, true);
            let rate = BitRate::from_mbps(8);
            streams.set_time(at(0), Some(Span::from_millis(millis)), Some(rate));
        }
        streams
    })
}

fn fresh(streams: &mut Streams, path: usize) -> Option<(Vec<u8>, u64)> {
    streams.set_path(path, true);
    let had = streams.has_fresh();
    let mut room = [0; 1_400];
    let filled = streams.fresh(&mut room).map(|(len, handle)| (room[..len].to_vec(), handle));
    assert!(had || filled.is_none(), "a packet is filled only if there is something for it");
    filled
}

fn open(streams: &mut Streams) -> StreamId {
    streams.open(at(0), Target::name("x", 1), Priority::Normal).expect("opened")
}

/// Marks the stream as one that has sent much.
fn bulk(streams: &mut Streams, bytes: usize) -> StreamId {
    let id = open(streams);
    fresh(streams, LEO).expect("the opening");
    let stream = streams.streams.get_mut(&id).expect("opened");
    stream.lately.add(at(0), 1 << 20);
    stream.send.grant(u64::MAX >> 2);
    assert_eq!(streams.write(at(0), id, &vec![1; bytes]), Ok(bytes));
    id
}

/// RLY-12.3
#[test]
fn rates_and_round_trips_are_those_of_all_paths() {
    let [mut streams, _] = pair();
    assert_eq!(streams.rate, Some(BitRate::from_mbps(16)));
    assert_eq!(streams.round_trip, Span::from_millis(600));
    streams.set_path(GEO, false);
    streams.set_path(LEO, true);
    streams.set_time(at(1), Some(Span::from_millis(40)), Some(BitRate::from_mbps(3)));
    assert_eq!(streams.rate, Some(BitRate::from_mbps(3)));
    assert_eq!(streams.round_trip, Span::from_millis(40));
}

/// RLY-12.3
#[test]
fn a_slow_path_takes_bulk_data_that_the_fast_one_would_send_later() {
    let [mut streams, _] = pair();
    // The fast path sends 275,000 octets before a packet of the slow one arrives.
    bulk(&mut streams, 275_000);
    assert!(fresh(&mut streams, GEO).is_some());
    assert!(fresh(&mut streams, GEO).is_none(), "274 kB wait");
    assert!(fresh(&mut streams, LEO).is_some());
}

/// RLY-12.3
#[test]
fn a_slow_path_takes_neither_control_nor_short_exchanges() {
    let [mut streams, _] = pair();
    let bulk = bulk(&mut streams, 600_000);
    let short = open(&mut streams);
    assert!(fresh(&mut streams, GEO).is_none(), "the opening is next");
    assert!(fresh(&mut streams, LEO).is_some());
    streams.reset(short, ResetReason::Aborted).expect("it is there");
    assert!(fresh(&mut streams, GEO).is_none(), "RESET is next");
    streams.set_path(LEO, false);
    let (packet, _) = fresh(&mut streams, GEO).expect("it is the fastest that answers");
    assert_eq!(packet[0] & 0x3f, 2, "RESET");
    streams.set_path(LEO, true);
    streams.set_path(GEO, true);
    assert!(streams.carries() == Carries::Bulk && streams.has(bulk));
    streams.set_path(GEO, false);
    assert_eq!(streams.carries(), Carries::Own);
    assert!(!streams.has_fresh());
}

/// RLY-12.1
#[test]
fn grants_are_sent_and_received_on_their_path() {
    let [mut terminal, mut hub] = pair();
    hub.set_path(GEO, true);
    hub.grant(BitRate::from_kbps(512));
    assert!(fresh(&mut hub, LEO).is_none());
    let (packet, _) = fresh(&mut hub, GEO).expect("GRANT");
    terminal.set_path(GEO, true);
    terminal.deliver(&packet);
    assert_eq!(terminal.take_granted(), Some(BitRate::from_kbps(512)));
    terminal.set_path(LEO, true);
    assert_eq!(terminal.granted(), None);
    // It is not moved.
    hub.set_path(GEO, false);
    hub.leave_path(GEO);
    assert!(fresh(&mut hub, LEO).is_none());
    hub.remove_path(GEO);
    assert_eq!((hub.controls_out, hub.packets.len()), (0, 0));
}

/// RLY-12.2, RLY-12.4
#[test]
fn what_arrives_on_two_paths_counts_once() {
    let [mut terminal, mut hub] = pair();
    let (id, other) = (open(&mut terminal), open(&mut terminal));
    terminal.write(at(0), id, &[5; 3_000]).expect("written");
    terminal.end(id).expect("ended");
    let mut first = Vec::new();
    while let Some(packet) = fresh(&mut terminal, LEO) {
        first.push(packet);
    }
    terminal.reset(other, ResetReason::Aborted).expect("open");
    terminal.go_away(false);
    first.push(fresh(&mut terminal, LEO).expect("RESET and GOAWAY"));
    terminal.set_path(LEO, false);
    terminal.leave_path(LEO);
    let mut second = Vec::new();
    while let Some(packet) = fresh(&mut terminal, GEO) {
        second.push(packet);
    }
    let octets = |packets: &[(Vec<u8>, u64)]| packets.iter().map(|p| p.0.len()).sum::<usize>();
    assert!(octets(&second) > 3_000 && octets(&second) <= octets(&first), "all of it again");
    // The retransmissions are empty.
    let mut room = [0; 1_400];
    assert!(first.iter().all(|&(_, handle)| terminal.again(handle, &mut room) == 0));
    for (path, packets) in [(GEO, &second), (LEO, &first), (GEO, &second)] {
        hub.set_path(path, true);
        packets.iter().for_each(|(packet, _)| hub.deliver(packet));
    }
    assert_eq!(hub.peek(id), [5; 3_000]);
    let opened = core::iter::from_fn(|| hub.poll_event())
        .filter(|event| matches!(event, Event::Opened { .. }))
        .count();
    assert_eq!((opened, hub.statistics().bad_frames), (1, 0), "RESET has overtaken the other");
    assert_eq!(hub.statistics().resets_received, 1);
    // Either transmission may be acknowledged, and both.
    terminal.set_path(LEO, true);
    first.iter().for_each(|&(_, handle)| terminal.released(handle));
    assert!(terminal.held(id) > 0);
    second.iter().for_each(|&(_, handle)| terminal.released(handle));
    assert_eq!((terminal.held(id), terminal.controls_out), (0, 0));
    assert_eq!(terminal.packets.len(), 0);
}

/// RLY-12.5: a packet that was retransmitted is one of its path, too.
#[test]
fn a_retransmitted_packet_moves_with_its_path() {
    let [mut terminal, _] = pair();
    let id = open(&mut terminal);
    while fresh(&mut terminal, LEO).is_some() {}
    terminal.write(at(0), id, &[5; 1_000]).expect("written");
    terminal.set_path(LEO, false);
    let (packet, handle) = fresh(&mut terminal, GEO).expect("data");
    let mut room = [0; 1_400];
    assert!(terminal.again(handle, &mut room) == packet.len());
    terminal.remove_path(GEO);
    let (moved, _) = fresh(&mut terminal, LEO).expect("the same data");
    assert!(moved.ends_with(&[5; 1_000]));
}

/// RLY-12.8
#[test]
fn what_a_path_delivered_before_it_was_lost_is_not_sent_again() {
    let [mut terminal, mut hub] = pair();
    let id = open(&mut terminal);
    terminal.write(at(0), id, &[5; 9_000]).expect("written");
    terminal.set_path(LEO, false);
    let mut delivered = Vec::new();
    while let Some((packet, _)) = fresh(&mut terminal, GEO) {
        delivered.push(packet);
    }
    hub.set_path(GEO, true);
    delivered[..5].iter().for_each(|packet| hub.deliver(packet));
    terminal.set_path(GEO, false);
    terminal.leave_path(GEO);
    let (first, handle) = fresh(&mut terminal, LEO).expect("the first octets again");
    let (second, _) = fresh(&mut terminal, LEO).expect("the next octets");
    hub.set_path(LEO, true);
    hub.deliver(&first);
    let (answer, told) = fresh(&mut hub, LEO).expect("RECEIVED");
    hub.deliver(&second);
    assert!(fresh(&mut hub, LEO).is_none(), "the first one is not acknowledged");
    let expected = hub.streams.get(&id).expect("open").receive.expected();
    terminal.set_path(LEO, true);
    terminal.deliver(&answer);
    assert_eq!(terminal.held(id), 9_000 - expected);
    let mut room = [0; 1_400];
    assert_eq!(terminal.again(handle, &mut room), 0);
    hub.deliver(&fresh(&mut terminal, LEO).expect("what is missing").0);
    assert!(hub.streams.get(&id).expect("open").receive.expected() > expected);
    // Each acknowledgment permits another one.
    hub.released(told);
    hub.deliver(&second);
    assert!(fresh(&mut hub, LEO).is_some());
    // More than was sent cannot have been received, nor anything of a stream that is not open.
    for frame in [&[0x13, 4, 0, 0xff, 0xff, 3][..], &[0x13, 2, 0, 1], &[0x13, 2, 9, 0]] {
        terminal.deliver(frame);
    }
    assert_eq!((terminal.statistics().bad_frames, terminal.held(id) > 0), (1, true));
}

/// RLY-12.8
#[test]
fn received_is_ignored_with_one_path() {
    let mut terminal = Streams::new(&RelayConfig::new("x"), false, at(0));
    let id = open(&mut terminal);
    terminal.write(at(0), id, &[5; 100]).expect("written");
    while fresh(&mut terminal, GEO).is_some() {}
    let held = terminal.held(id);
    terminal.deliver(&[0x13, 2, 0, 50]);
    assert_eq!((terminal.statistics().bad_frames, terminal.held(id)), (0, held));
}
