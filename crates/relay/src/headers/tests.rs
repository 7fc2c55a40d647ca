//! Tests of header compression, without a session.

use super::codec::{Context, crc};
use super::fuzzing::{Fields, Pair, packet, take};
use super::*;
use crate::datagram::{Answer, Datagrams};
use proptest::prelude::*;
use units::RngStream;

/// A voice flow of 20 ms frames.
fn voice(v6: bool, at: u16) -> Fields {
    Fields {
        v6,
        port: 16_384,
        id: at.wrapping_add(500),
        service: 46 << 2,
        ssrc: Some(0x1234_5678),
        number: at.wrapping_add(65_500),
        timestamp: u32::from(at) * 160,
        ..Fields::default()
    }
}

/// Octets of a payload with the `at`-th packet of a voice flow without loss.
fn octets_of_voice(v6: bool, at: u16) -> usize {
    let mut pair = Pair::new(true);
    for number in 0..at {
        pair.send(&packet(voice(v6, number), &[7; 20]));
        pair.settle();
    }
    let before = pair.octets;
    pair.send(&packet(voice(v6, at), &[7; 20]));
    pair.settle();
    pair.octets - before
}

/// HDR-3.6: the check value of CRC-8/ROHC.
#[test]
fn crc_is_that_of_rohc() {
    assert_eq!(crc(b"123456789"), 0xd0);
}

/// HDR-2.1, HDR-2.4, HDR-3.1
#[test]
fn voice_has_five_octets_of_header() {
    for v6 in [false, true] {
        let whole = packet(voice(v6, 0), &[7; 20]).len();
        assert_eq!(octets_of_voice(v6, 0), 1 + whole, "the first is sent as it is");
        assert_eq!(octets_of_voice(v6, 1), 1 + whole + 6, "the second defines a context");
        for at in [2, 3, 100, 300, 1_000] {
            assert_eq!(octets_of_voice(v6, at), 5 + 20, "packet {at}");
        }
    }
}

/// HDR-2.3: without an answer of the peer nothing is compressed, and definitions are few.
#[test]
fn an_old_peer_gets_packets_as_they_are() {
    let mut pair = Pair::new(true);
    let mut sent = 0;
    for at in 0..3_000 {
        let packet = packet(Fields { port: 1_000 + at % 50, ..voice(false, at / 50) }, &[1; 20]);
        sent += 1 + packet.len();
        pair.send(&packet);
        pair.deliver(0);
        pair.acknowledge(0);
    }
    assert_eq!(pair.octets - sent, 16 * 6);
    assert_eq!(pair.sender().statistics().headers_compressed, 0);
    let mut off = Pair::new(false);
    for at in 0..100 {
        off.send(&packet(voice(false, at), &[1; 20]));
        off.settle();
    }
    assert_eq!(off.octets, 100 * 61);
}

/// HDR-2.2, HDR-2.4: packets before the acknowledgement are sent as they are, and a context whose
/// definition was lost is defined again.
#[test]
fn a_context_is_used_once_it_is_acknowledged() {
    let mut pair = Pair::new(true);
    let size = |pair: &mut Pair, at| {
        let before = pair.octets;
        pair.send(&packet(voice(false, at), &[1; 20]));
        pair.octets - before
    };
    assert_eq!([0, 1, 2, 3].map(|at| size(&mut pair, at)), [61, 67, 61, 61]);
    // The definition is lost, and the others arrive.
    pair.lose(1);
    assert_eq!(size(&mut pair, 4), 67, "defined again");
    pair.settle();
    assert_eq!(size(&mut pair, 5), 25);
    assert_eq!(size(&mut pair, 6), 25);
    pair.settle();
    // Between them is what HDR-2.5 permits only when nothing is in flight: another context.
    assert_eq!(pair.sender().statistics().headers_compressed, 2);
}

/// HDR-3.2, HDR-3.3, HDR-3.4, HDR-3.5: every field that may change.
#[test]
fn changed_fields_are_written() {
    let rule = Rule { profile: Profile::Rtp, id: IdRule::Sequential, stride: 160 };
    let base = packet(voice(false, 0), &[1; 20]);
    let context = Context::new(rule, &base).expect("a context");
    let fields = voice(false, 1);
    let check = |fields: Fields, expected: usize| {
        let packet = packet(fields, b"payload");
        let header = context.compress(5, &packet).expect("of the context");
        assert_eq!(header.octets.len(), expected, "{fields:?}");
        assert_eq!(header.octets[0] & 0x7f, 5);
        let mut content = header.octets[1..].to_vec();
        content.extend_from_slice(&packet[header.replaced..]);
        let restored = context.restore(header.octets[0] & 0x80 != 0, &content);
        assert_eq!(restored.as_ref(), Some(&packet), "{fields:?}");
    };
    check(fields, 3);
    check(Fields { service: 0, ..fields }, 5);
    check(Fields { marker: true, ..fields }, 5);
    check(Fields { id: 9, ..fields }, 6);
    check(Fields { no_checksum: true, ..fields }, 6);
    check(Fields { timestamp: 161, ..fields }, 5);
    check(Fields { timestamp: 0x8000_0000, ..fields }, 9);
    check(voice(false, 255), 3);
    check(voice(false, 256), 5);
    // From before the definition.
    check(voice(false, 65_535), 5 + 4);
    let other = packet(Fields { ssrc: Some(1), ..fields }, b"payload");
    assert_eq!(context.compress(5, &other), None);
    // Bits that are not defined for the rule, and the one that never is.
    for form in [0x80, 0x88] {
        assert_eq!(context.restore(true, &[form, 0, 1, 0, 0]), None);
    }
}

/// HDR-1.2, HDR-3.6: the vectors of `docs/spec/vectors/frames.json`.
#[test]
fn vectors_are_restored() {
    let octets = |text: &str| -> Vec<u8> {
        let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
        let octet = |pair: &[char]| pair.iter().collect::<String>();
        let parse = |pair: &[char]| u8::from_str_radix(&octet(pair), 16).expect("digits");
        digits.chunks(2).map(parse).collect()
    };
    let first = "45b8002c01f440004011240e0a0100020a030002 4000138c00180000 \
                 80120001000000a012345678 aabbccdd";
    let mut receiver = Datagrams::new(false, false);
    let defining = octets(&format!("14 04 03 06 a001 05 {first}"));
    assert_eq!(take(&mut receiver, &defining), [Answer::Contexts]);
    assert_eq!(receiver.take(), Some(octets(first)));
    for compressed in ["15 07 03 f4 01 aabbccdd", "15 0a 83 21 bf 02 00 20 aabbccdd"] {
        assert!(take(&mut receiver, &octets(compressed)).is_empty());
        let packet = receiver.take().expect("it is restored");
        assert_eq!(packet[40..], [0xaa, 0xbb, 0xcc, 0xdd]);
    }
    assert_eq!(receiver.statistics().headers_restored, 2);
    // Without the DATAGRAM there is no context.
    let mut other = Datagrams::new(false, false);
    take(&mut other, &octets("14 04 03 06 a001 11 00"));
    assert_eq!(take(&mut other, &octets("15 07 03 f4 01 aabbccdd")), [Answer::Invalid(3)]);
}

/// HDR-1.3: packets whose header cannot be restored exactly are sent as they are.
#[test]
fn irregular_packets_are_left_alone() {
    let whole = packet(voice(false, 0), &[1; 20]);
    for (at, octet) in [(0, 0x46), (3, 0), (7, 1), (6, 0x20), (10, whole[10] ^ 1)] {
        let mut odd = whole.clone();
        odd[at] = octet;
        assert_eq!(layout::Layout::of(&odd), None, "octet {at}");
    }
    for len in 0..whole.len() {
        let _ = layout::Layout::of(&whole[..len]);
    }
    let mut longer = whole.clone();
    longer[25] += 1;
    assert_eq!(layout::Layout::of(&longer).map(|layout| layout.profile), Some(Profile::Ip));
}

/// HDR-2.6, HDR-3.6: a damaged packet is dropped, and the peer is notified once.
#[test]
fn damage_is_detected_and_reported_once() {
    let mut receiver = Datagrams::new(false, false);
    let unknown = [0x15, 5, 9, 0, 1, 2, 3];
    assert_eq!(take(&mut receiver, &unknown), [Answer::Invalid(9)]);
    assert!(take(&mut receiver, &unknown).is_empty());
    receiver.refusal_known(9);
    assert_eq!(take(&mut receiver, &unknown), [Answer::Invalid(9)]);
    assert_eq!(receiver.statistics().headers_damaged, 3);
    assert!(receiver.take().is_none());

    let mut pair = Pair::new(true);
    for at in 0..10 {
        pair.send(&packet(voice(false, at), &[1; 20]));
        pair.settle();
    }
    let compressed = pair.sender().statistics().headers_compressed;
    pair.sender().receive_invalid(0);
    for at in 10..80 {
        pair.send(&packet(voice(false, at), &[1; 20]));
        pair.settle();
    }
    let more = pair.sender().statistics().headers_compressed - compressed;
    assert!((40..70).contains(&more), "{more}: it is defined again, not at once");
}

/// HDR-2.5, HDR-2.7: contexts are bounded, and more flows than contexts do no harm.
#[test]
fn flows_beyond_the_contexts_are_sent_as_they_are() {
    let mut pair = Pair::new(true);
    for at in 0..6_000_u16 {
        let fields = Fields { port: at % 300, ..voice(at & 1 != 0, at / 300) };
        pair.send(&packet(fields, &[1; 20]));
        if at % 7 == 0 {
            pair.settle();
        }
    }
    pair.settle();
    // A flow that remains gets a context again.
    for at in 0..700 {
        pair.send(&packet(voice(false, at), &[1; 20]));
        pair.settle();
    }
    let before = pair.octets;
    pair.send(&packet(voice(false, 700), &[1; 20]));
    assert_eq!(pair.octets - before, 25);
}

/// HDR-2.5: whatever is lost, late or out of order, each packet that arrives is the one that was
/// sent.
#[test]
fn loss_and_reordering_damage_nothing() {
    let mut rng = RngStream::new(1, 1, "headers");
    let mut pair = Pair::new(true);
    for at in 0..20_000_u16 {
        // A pause every 1,000 packets: the timestamp goes on.
        let fields = voice(at & 1 != 0, at / 2);
        let timestamp = fields.timestamp + u32::from(at / 1_000) * 4_000;
        pair.send(&packet(Fields { timestamp, ..fields }, &[at as u8; 20]));
        while pair.in_flight() > 40 {
            let some = rng.next_u64() as usize % 20;
            match rng.next_u64() % 10 {
                0 => pair.lose(some),
                1 => pair.answer(),
                2..=5 => pair.deliver(some),
                _ => pair.acknowledge(some),
            }
        }
    }
    pair.settle();
    let statistics = pair.sender().statistics();
    let share = statistics.headers_compressed * 100 / statistics.sent;
    assert!(share > 80, "{share} % compressed");
}

proptest! {
    /// HDR-3.6: any content is a packet or damage.
    #[test]
    fn any_content_is_restored_or_damaged(
        content in proptest::collection::vec(any::<u8>(), 0..100),
        profile in 0..3_u8,
        id in 0..3_u8,
        v6: bool,
        form: bool,
    ) {
        let rule = Rule::from_octet(profile | id << 2, 160).expect("a rule");
        if let Some(context) = Context::new(rule, &packet(voice(v6, 0), &[1; 20])) {
            let packet = context.restore(form, &content);
            prop_assert!(packet.is_none_or(|packet| packet.len() < content.len() + 64));
        }
    }
}
