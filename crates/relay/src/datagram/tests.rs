//! Tests of the queues of packets, without a session.

use super::*;
use crate::frame::{Frame, Reader};
use crate::scheduler::Class;

const MBIT: Option<BitRate> = Some(BitRate::from_mbps(1));

/// Returns a UDP packet of `len` bytes from `port` with a DSCP.
fn packet(port: u8, dscp: u8, len: usize) -> Vec<u8> {
    let mut packet = vec![0x45, dscp << 2, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.extend([10, 1, 0, 2, 10, 3, 0, 2, 0x10, port, 0, 53]);
    packet.resize(len, port);
    packet
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// Queues a packet that is classified by its DSCP.
fn push(
    datagrams: &mut Datagrams,
    now: Instant,
    packet: &[u8],
    rate: Option<BitRate>,
) -> Option<(Class, usize)> {
    datagrams
        .push(now, packet, rate, (Owner::default(), None))
        .map(|(place, flow)| (place.class, flow))
}

/// Fills one packet of `room` bytes from the flow; returns the result and the packets in it.
fn fill(datagrams: &mut Datagrams, now: Instant, flow: usize, room: usize) -> (Filled, Vec<u8>) {
    let mut bytes = vec![0; room];
    let mut writer = Writer::new(&mut bytes);
    let mut alone = true;
    let ended = loop {
        match datagrams.fill(now, flow, MBIT, &mut writer, (alone, false)) {
            Filled::Sent => alone = false,
            ended => break ended,
        }
    };
    let len = writer.written();
    bytes.truncate(len);
    (ended, bytes)
}

fn deliver(to: &mut Datagrams, now: Instant, bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        match reader.frame().expect("a frame") {
            Frame::Datagram { packet } => to.receive(now, packet.to_vec()),
            Frame::Piece { number, total, offset, piece } => {
                to.receive_piece(now, (number, total, offset), piece);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// RLY-6.1, RLY-6.4
#[test]
fn packets_of_any_size_arrive_unchanged() {
    let (mut from, mut to) = (Datagrams::default(), Datagrams::default());
    let sizes = [1, 20, 100, 100, 1_400, 1_500, 9_000, 65_535, 40];
    let mut got = Vec::new();
    for size in sizes {
        let pushed = push(&mut from, at(0), &packet(1, 0, size), Some(BitRate::from_mbps(100)));
        let flow = pushed.expect("a flow to schedule").1;
        loop {
            let (ended, bytes) = fill(&mut from, at(0), flow, 1_444);
            deliver(&mut to, at(0), &bytes);
            if ended == Filled::Idle {
                break;
            }
        }
        assert_eq!(from.finish_turn(at(0), flow), None);
        got.push(to.take().expect("it is whole").len());
    }
    assert_eq!(got, sizes);
    assert_eq!(from.waiting, 0);
    assert!(
        push(&mut from, at(0), &[], MBIT).is_none()
            && push(&mut from, at(0), &[0; 65_536], MBIT).is_none()
    );
    assert_eq!(from.statistics().no_room, 2);
    assert_eq!(to.statistics().received, sizes.len() as u64);
}

/// RLY-6.3
#[test]
fn expired_packets_are_dropped_from_the_front() {
    let mut from = Datagrams::default();
    let (_, flow) = push(&mut from, at(0), &packet(1, 0, 200), MBIT).expect("a flow");
    for wait in [100, 200, 301] {
        assert!(push(&mut from, at(wait), &packet(1, 0, 200), MBIT).is_none(), "it is scheduled");
    }
    let (_, bytes) = fill(&mut from, at(401), flow, 1_444);
    assert_eq!(bytes.len(), 2 * 203 - 2, "two of four, the last without a length");
    assert_eq!((from.statistics().late, from.statistics().sent), (2, 2));
    let (class, voice) = push(&mut from, at(500), &packet(2, 46, 200), MBIT).expect("a flow");
    assert_eq!(class, Class::Urgent);
    assert_eq!(fill(&mut from, at(651), voice, 1_444).0, Filled::Idle);
    // On a low-rate path the time of two full packets is permitted.
    let slow = Some(BitRate::from_kbps(10));
    let (_, flow) = push(&mut from, at(1_000), &packet(3, 0, 200), slow).expect("a flow");
    let mut bytes = [0; 300];
    let mut writer = Writer::new(&mut bytes);
    let filled = from.fill(at(3_300), flow, slow, &mut writer, (true, false));
    assert_eq!(filled, Filled::Sent);
}

/// RLY-6.3
#[test]
fn the_longest_queue_is_shortened() {
    let mut from = Datagrams::default();
    push(&mut from, at(0), &packet(1, 0, 100), MBIT);
    for _ in 0..1_000 {
        push(&mut from, at(0), &packet(2, 0, 1_000), MBIT);
        assert!(from.waiting <= LEAST_BYTES);
    }
    let longest = from.queues.iter().map(|queue| queue.packets.len()).max();
    assert_eq!(longest, Some(65), "64 KB less the other's");
    assert_eq!(from.queues.iter().filter(|queue| queue.packets.len() == 1).count(), 1);
    assert_eq!(from.statistics().no_room, 935);
}

/// RLY-6.2
#[test]
fn class_follows_from_dscp_and_sparseness() {
    let class = |dscp: u8, sent: usize| {
        let mut from = Datagrams::default();
        let mut flow = 0;
        for _ in 0..sent {
            let (_, at_queue) =
                push(&mut from, at(0), &packet(1, dscp, 1_000), MBIT).expect("a flow");
            flow = at_queue;
            fill(&mut from, at(0), flow, 1_444);
            from.finish_turn(at(0), flow);
        }
        let (class, again) = push(&mut from, at(0), &packet(1, dscp, 1_000), MBIT).expect("a flow");
        assert!(sent == 0 || flow == again);
        class
    };
    assert_eq!((class(46, 0), class(46, 70)), (Class::Urgent, Class::Interactive));
    assert_eq!((class(0, 0), class(0, 70)), (Class::Interactive, Class::Bulk));
    assert_eq!(class(8, 0), Class::Background);
}

/// RLY-6.5
#[test]
fn received_packets_are_bounded() {
    let mut to = Datagrams::default();
    for _ in 0..10_000 {
        to.receive(at(0), vec![0; 60]);
    }
    assert_eq!(to.statistics().received, MOST_RECEIVED as u64);
    while to.take().is_some() {}
    for _ in 0..100 {
        to.receive(at(0), vec![0; 65_000]);
    }
    assert!(to.received_bytes <= MOST_RECEIVED_BYTES);
}

/// An acknowledgement of TCP in IPv4, with its checksum, or with a SACK block.
fn tcp_ack(number: u32, sack: bool) -> Vec<u8> {
    let (source, destination) = (([10, 1, 0, 2], 4_000).into(), ([10, 3, 0, 2], 80).into());
    let sack = if sack { &[(900_000, 901_000)][..] } else { &[] };
    crate::pep::fuzzing::acknowledgement(source, destination, number, sack)
}

/// PEP-5.1: of the acknowledgements in a queue those remain that say something that the last one
/// does not, and they keep their place.
#[test]
fn superseded_acknowledgements_are_replaced_in_the_queue() {
    for filters in [false, true] {
        let mut datagrams = Datagrams::new(filters, false);
        let mut flow = None;
        let numbers = [1, 2, 3, 3, 3, 4, 5, 6, 7, 8, 9];
        for (at_ms, number) in numbers.into_iter().enumerate() {
            let ack = tcp_ack(number * 1_000, number == 6);
            flow = push(&mut datagrams, at(at_ms as u64), &ack, MBIT).or(flow);
        }
        push(&mut datagrams, at(20), &packet(1, 0, 100), MBIT);
        let mut received = Datagrams::default();
        while datagrams.waiting() > 100 {
            let (_, bytes) = fill(&mut datagrams, at(21), flow.expect("a flow").1, 1_400);
            deliver(&mut received, at(21), &bytes);
        }
        let mut seen = Vec::new();
        while let Some(packet) = received.take() {
            seen.push(u32::from_be_bytes(packet[28..32].try_into().expect("four octets")));
        }
        assert_eq!(datagrams.statistics().acks_filtered, 11 - seen.len() as u64);
        if filters {
            assert_eq!(seen, [3_000, 3_000, 3_000, 6_000, 9_000], "duplicates, and a SACK block");
        } else {
            assert_eq!(seen.len(), 11);
        }
    }
}
