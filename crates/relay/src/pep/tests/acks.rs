//! Acknowledgements: filtered, regenerated, spaced.

use super::super::filter::PlainAck;
use super::super::segment::{ACK, Bare, Block, Segment};
use super::super::serial::distance;
use super::{PacketPep, SPOOF, Toward, Verdict, ends, packet, shake_hands};
use crate::pep::PepConfig;
use units::{Instant, Span};

fn ack(number: u32, sack: &[Block]) -> PlainAck {
    let (source, destination) = ends(1);
    let flags = ACK;
    let bare = Bare {
        source,
        destination,
        seq: 7,
        ack: number,
        flags,
        window: 500,
        timestamps: Some((1, 2)),
        sack,
    };
    PlainAck::of(&bare.build()).expect("a pure acknowledgement")
}

/// PEP-5.1, PEP-5.2: only what a later one contains is redundant.
#[test]
fn only_redundant_acknowledgements_are_superseded() {
    assert!(ack(2_000, &[]).supersedes(&ack(1_000, &[])));
    assert!(!ack(1_000, &[]).supersedes(&ack(2_000, &[])), "an older one");
    assert!(!ack(1_000, &[]).supersedes(&ack(1_000, &[])), "a duplicate");
    assert!(ack(1_000, &[]).is_duplicate_of(&ack(1_000, &[(3_000, 4_000)])));
    let holes = ack(1_000, &[(3_000, 4_000)]);
    assert!(!ack(2_000, &[]).supersedes(&holes), "its SACK block would be lost");
    assert!(ack(2_000, &[(2_500, 4_000)]).supersedes(&holes) && ack(4_000, &[]).supersedes(&holes));
    assert!(!ack(2_000, &[]).supersedes(&ack(1_000, &[(500, 900)])), "a report of a duplicate");
    assert!(ack(100, &[]).supersedes(&ack(u32::MAX - 5, &[])), "past zero");
}

/// PEP-5.2: marks and feedback of ECN, other flags, unknown options, damage and data.
#[test]
fn acknowledgements_that_say_more_are_left_alone() {
    let original = packet(1, Toward::Far, ACK, (1, 1_000), &[]);
    assert!(PlainAck::of(&original).is_some());
    let sealed = |mut packet: Vec<u8>| {
        super::super::segment::finish(&mut packet, 20);
        packet
    };
    for (at, bits) in [(33, 0x40), (33, 0x80), (33, 0x01), (33, 0x04), (32, 0x01), (1, 0x03)] {
        let mut changed = original.clone();
        changed[at] |= bits;
        assert_eq!(PlainAck::of(&sealed(changed)), None, "octet {at}, {bits:#x}");
    }
    let accurate = packet(1, Toward::Far, ACK, (1, 1_000), &[172, 5, 0, 0, 1]);
    let data = sealed([&original[..], &[7]].concat());
    let mut damaged = original;
    damaged[27] ^= 1;
    assert!([accurate, data, damaged].iter().all(|packet| PlainAck::of(packet).is_none()));
}

/// PEP-5.3: one acknowledgement of many segments becomes one for each two of them, spread over the
/// time since the one before.
#[test]
fn a_stretch_acknowledgement_is_regenerated_and_spaced() {
    let config = PepConfig { spoof: false, space_acks: true, ..SPOOF };
    let mut pep = PacketPep::new(config);
    shake_hands(&mut pep, 1, &[]);
    let mut now = Instant::ZERO + Span::from_secs(1);
    for number in 0..20 {
        let mut data = packet(1, Toward::Far, ACK, (100 + number * 1_000, 500), &[]);
        super::extend(&mut data, &[], &[7; 1_000]);
        assert_eq!(pep.handle(now, Toward::Far, &mut data), Verdict::Pass);
    }
    let acked = |number: u32| packet(1, Toward::Near, ACK, (500, 100 + number), &[]);
    assert_eq!(pep.handle(now, Toward::Near, &mut acked(2_000)), Verdict::Pass);
    now += Span::from_millis(80);
    assert_eq!(pep.handle(now, Toward::Near, &mut acked(18_000)), Verdict::Taken);
    let mut seen = Vec::new();
    while let Some(at) = pep.poll_timeout().filter(|at| *at < now + Span::from_secs(1)) {
        pep.handle_timeout(at);
        while let Some((toward, packet)) = pep.poll_output(at, |_, _| false) {
            let segment = Segment::parse(&packet).expect("a segment");
            assert!(toward == Toward::Near && segment.is_intact(&packet));
            seen.push((at.since(now).as_millis(), distance(100, segment.ack)));
        }
    }
    let expected: Vec<(u64, u32)> = (0..8).map(|n| (n * 10, 4_000 + n as u32 * 2_000)).collect();
    assert_eq!(seen, expected);
    assert_eq!(pep.statistics().regenerated, 7);
    // A later segment that says as much ends what is left.
    assert_eq!(pep.handle(now, Toward::Near, &mut acked(18_500)), Verdict::Pass);
    assert_eq!(pep.poll_timeout().map(|at| at > now + Span::from_secs(1)), Some(true));
}
