//! The format in constructed frames, and the effect of losses.

use super::header::{Fields, meant};
use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;
use std::vec;

/// A packet of flow `flow`: 60 bytes of IPv4 with a source route, 16 of XSTP, and a payload.
#[derive(Clone, Copy, Debug)]
struct Made {
    flow: u8,
    identification: u16,
    kinds: u8,
    number: u32,
    window: u16,
    timestamp: u32,
    payload: usize,
}

const MADE: Made = Made {
    flow: 1,
    identification: 0x1234,
    kinds: 1,
    number: 5,
    window: 0,
    timestamp: 1_000,
    payload: 3,
};

impl Made {
    fn packet(self) -> Vec<u8> {
        let mut packet = vec![0; 60];
        packet[0] = 0x4f;
        packet[2..4].copy_from_slice(&(76 + self.payload as u16).to_be_bytes());
        packet[4..6].copy_from_slice(&self.identification.to_be_bytes());
        packet[8..10].copy_from_slice(&[64, 253]);
        packet[12..20].copy_from_slice(&[44, 135, 0, 1, 44, 135, 0, self.flow]);
        packet[20..23].copy_from_slice(&[131, 39, 4]);
        let words = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
        let sum = words.sum::<u32>();
        let sum = (sum & 0xffff) + (sum >> 16);
        packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        packet.extend_from_slice(&[0, 21, 0, 21, self.kinds]);
        packet.extend_from_slice(&self.number.to_be_bytes()[1..]);
        packet.extend_from_slice(&self.window.to_be_bytes());
        packet.extend_from_slice(&[0xab, 0xcd]);
        packet.extend_from_slice(&self.timestamp.to_be_bytes());
        packet.extend((0..self.payload).map(|byte| byte as u8));
        packet
    }
}

/// A compressor and a decompressor after the two full frames of one flow.
fn established() -> (Compressor, Decompressor) {
    let (mut compressor, mut decompressor) = (Compressor::new(), Decompressor::new());
    for _ in 0..2 {
        let frame = compressor.compress(&MADE.packet());
        assert_eq!(decompressor.decompress(&frame), Ok(MADE.packet()));
    }
    (compressor, decompressor)
}

/// CMP-2.1.1, CMP-2.2.1, CMP-2.2.4, CMP-3.1.2
#[test]
fn first_two_frames_are_full_and_the_third_has_ten_octets() {
    let (mut compressor, mut decompressor) = established();
    assert_eq!(Compressor::new().compress(&MADE.packet())[0], 0b0100_0000);
    let next = Made { identification: 0x1235, number: 6, timestamp: 1_500, ..MADE }.packet();
    let frame = compressor.compress(&next);
    // Kind 2, no whole fields and no window, SD, 0x35, 6, 1,500, the checksum; CRC; payload.
    assert_eq!(frame[..9], [0x80, 0, 1, 0x35, 6, 0x05, 0xdc, 0xab, 0xcd]);
    assert_eq!(frame[10..], [0, 1, 2]);
    // x⁸ + x² + x + 1, initial value all ones, bit by bit.
    let mut register = 0xff_u32;
    for bit in next[..76].iter().flat_map(|octet| (0..8).rev().map(move |at| octet >> at & 1)) {
        let top = register >> 7 & 1;
        register = register << 1 & 0xff;
        if top != u32::from(bit) {
            register ^= 0b111;
        }
    }
    assert_eq!(u32::from(frame[9]), register);
    assert_eq!(decompressor.decompress(&frame), Ok(next));
}

/// CMP-2.2.2
#[test]
fn large_changes_are_encoded_in_full() {
    let (mut compressor, mut decompressor) = established();
    let far =
        Made { identification: 0x9999, number: 0x12_3456, window: 64, timestamp: 1 << 30, ..MADE };
    let frame = compressor.compress(&far.packet());
    assert_eq!(frame[1], 0b1110_1000);
    assert_eq!(frame[3..9], [0x99, 0x99, 0x12, 0x34, 0x56, 64]);
    assert_eq!(frame.len() - 3, 16);
    assert_eq!(decompressor.decompress(&frame), Ok(far.packet()));
    let wide = Made { window: 0x0102, ..far }.packet();
    let frame = compressor.compress(&wide);
    assert_eq!(frame[1] >> 3 & 3, 2);
    assert_eq!(decompressor.decompress(&frame), Ok(wide));
    for flags in [0b0001_1000, 1, 2, 4] {
        let malformed = [0x80, flags, 1, 0x35, 6, 5, 0xdc, 0xab, 0xcd, 0, 0, 0, 0, 0, 0];
        assert_eq!(decompressor.decompress(&malformed), Err(Refused::Malformed));
    }
}

/// CMP-2.2.3
#[test]
fn low_bits_select_the_value_near_the_last_one() {
    assert_eq!(meant(1_000, 1_001 & 0xff, 8, 24), 1_001);
    assert_eq!(meant(1_000, (1_000 - 64) & 0xff, 8, 24), 936, "a quarter behind");
    assert_eq!(meant(1_000, (1_000 + 191) & 0xff, 8, 24), 1_191, "three quarters ahead");
    assert_eq!(meant(1_000, (1_000 + 192) & 0xff, 8, 24), 936, "one more is far behind");
    assert_eq!(meant(0xff_ffff, 0, 8, 24), 0, "fields wrap");
    assert_eq!(meant(0, 0xff, 8, 24), 0xff_ffff, "both ways");
    assert_eq!(meant(u32::MAX, 5, 16, 32), 5);
}

/// CMP-1.1.1, CMP-3.1.1
#[test]
fn incompressible_packets_are_sent_unchanged() {
    let good = MADE.packet();
    let mut others = vec![vec![], vec![0x45; 10], good[..75].to_vec()];
    // Version, length, fragment, protocol, header checksum.
    for at in [0, 2, 6, 7, 9, 10, 30] {
        let mut other = good.clone();
        other[at] ^= 1;
        others.push(other);
    }
    let mut longer = good.clone();
    longer.push(0);
    others.push(longer);
    for packet in others {
        assert_eq!(Fields::of(&packet), None);
        let frame = Compressor::new().compress(&packet);
        assert_eq!(frame[0], 0);
        assert_eq!(Decompressor::new().decompress(&frame), Ok(packet));
    }
}

/// CMP-1.1.2
#[test]
fn length_and_checksum_are_restored() {
    let (mut compressor, mut decompressor) = established();
    for payload in [0, 1, 162, 1_000] {
        let packet = Made { payload, identification: 0x1200 + payload as u16, ..MADE }.packet();
        let frame = compressor.compress(&packet);
        assert!(frame.len() <= 16 + payload);
        assert_eq!(decompressor.decompress(&frame), Ok(packet));
    }
}

/// CMP-1.1.3, CMP-1.1.4, CMP-4.1.1
#[test]
fn ninth_flow_replaces_the_oldest_context_with_another_generation() {
    let (mut compressor, mut decompressor) = (Compressor::new(), Decompressor::new());
    let mut send = |flow| {
        let packet = Made { flow, ..MADE }.packet();
        let frame = compressor.compress(&packet);
        (frame.clone(), decompressor.decompress(&frame) == Ok(packet))
    };
    for flow in (0..8).chain([0]) {
        assert!(send(flow).1);
    }
    // Flow 1 is the oldest now.
    let (frame, _) = send(8);
    assert_eq!(frame[0], 0b0100_1001, "full, context 1, generation 1");
    // Flow 1 is used again and replaces flow 2.
    let (frame, _) = send(1);
    assert_eq!(frame[0], 0b0101_0001);
}

/// CMP-2.1.2
#[test]
fn malformed_frames_are_dropped() {
    let mut decompressor = Decompressor::new();
    for frame in [&[][..], &[1, 2], &[0x40, 1, 2, 3], &[0xc0, 1]] {
        assert_eq!(decompressor.decompress(frame), Err(Refused::Malformed));
    }
    assert_eq!(decompressor.decompress(&[0xc0]), Err(Refused::Request));
    assert_eq!(decompressor.decompress(&[0]), Ok(vec![]), "an empty packet");
    let (_, mut decompressor) = established();
    assert_eq!(decompressor.decompress(&[0x80, 0, 1, 2]), Err(Refused::Malformed));
}

/// CMP-3.1.2
#[test]
fn full_headers_are_repeated_with_growing_spacing() {
    let mut compressor = Compressor::new();
    let full: Vec<usize> =
        (0..300).filter(|_| compressor.compress(&MADE.packet())[0] >> 6 == 1).collect();
    assert_eq!(full[..6], [0, 1, 6, 15, 32, 65]);
    assert_eq!(full[6..], [130, 195, 260]);
}

/// CMP-3.1.3, CMP-4.1.2, CMP-4.1.4
#[test]
fn missing_context_is_requested() {
    let (mut compressor, _) = established();
    let mut late = Decompressor::new();
    let mut requests = Vec::new();
    let short = compressor.compress(&MADE.packet());
    for _ in 0..9 {
        let frame = short.clone();
        assert_eq!(late.decompress(&frame), Err(Refused::Context { number: 0 }));
        requests.extend(late.poll_request());
    }
    assert_eq!(requests, [[0b1100_0000]; 2], "once, and again at the ninth");
    assert!(!compressor.handle_request(&[0x80]) && !compressor.handle_request(&[]));
    assert!(compressor.handle_request(&[0b1100_0001]), "of another generation");
    assert_eq!(compressor.clone().compress(&MADE.packet())[0] >> 6, 2);
    assert!(compressor.handle_request(&requests[0]));
    let frame = compressor.compress(&MADE.packet());
    assert_eq!(late.decompress(&frame), Ok(MADE.packet()));
    let mut other = compressor.compress(&MADE.packet());
    other[0] |= 1;
    assert_eq!(late.decompress(&other), Err(Refused::Context { number: 0 }));
    assert_eq!(late.poll_request(), Some([0b1100_0001]));
}

/// CMP-4.1.3
#[test]
fn three_wrong_crcs_damage_a_context() {
    let (mut compressor, mut decompressor) = established();
    let mut wrong = compressor.compress(&MADE.packet());
    wrong[9] ^= 1;
    for _ in 0..3 {
        assert!(matches!(decompressor.decompress(&wrong), Err(Refused::Crc { .. })));
    }
    assert_eq!(decompressor.poll_request(), Some([0b1100_0000]));
    let good = compressor.compress(&MADE.packet());
    assert_eq!(decompressor.decompress(&good), Err(Refused::Context { number: 0 }));
    compressor.handle_request(&[0b1100_0000]);
    let full = compressor.compress(&MADE.packet());
    assert_eq!(decompressor.decompress(&full), Ok(MADE.packet()));
    let good = compressor.compress(&MADE.packet());
    assert_eq!(decompressor.decompress(&good), Ok(MADE.packet()));
}

fn any_made() -> impl Strategy<Value = Made> {
    (0_u8..10, 0_u16..4, any::<u8>(), 0_u32..40, any::<u16>(), 0_u32..30_000, 0_usize..200)
        .prop_map(|(flow, identification, kinds, number, window, timestamp, payload)| Made {
            flow,
            identification,
            kinds,
            number,
            window: window >> (kinds % 16),
            timestamp,
            payload,
        })
}

proptest! {
    /// CMP-3.1.4: up to fifteen consecutive losses cost only the lost packets once a context is
    /// set. Fields move by random steps, sequence numbers back by up to three.
    #[test]
    fn losses_damage_no_other_packet(
        steps in prop::collection::vec((any_made(), 0_u8..16, any::<bool>()), 1..200),
    ) {
        let (mut compressor, mut decompressor) = established();
        let (mut at, mut lost) = (MADE, 0);
        for (step, back, lose) in steps {
            at.identification = at.identification.wrapping_add(step.identification);
            at.number = at.number.wrapping_add(step.number).wrapping_sub(back.into()) & 0xff_ffff;
            at.timestamp = at.timestamp.wrapping_add(step.timestamp);
            at = Made { kinds: step.kinds, window: step.window, payload: step.payload, ..at };
            let frame = compressor.compress(&at.packet());
            prop_assert!(frame.len() <= at.packet().len() + LONGEST_ADDED);
            if lose && lost < 15 {
                lost += 1;
                continue;
            }
            lost = 0;
            prop_assert_eq!(decompressor.decompress(&frame), Ok(at.packet()));
        }
    }

    /// Without loss every packet is restored, for any number of flows.
    #[test]
    fn every_packet_is_restored(packets in prop::collection::vec(any_made(), 1..200)) {
        let (mut compressor, mut decompressor) = (Compressor::new(), Decompressor::new());
        for made in packets {
            let wild = Made { timestamp: made.timestamp.wrapping_mul(0x9e37_79b9), ..made };
            let frame = compressor.compress(&wild.packet());
            prop_assert_eq!(decompressor.decompress(&frame), Ok(wild.packet()));
        }
        prop_assert_eq!(decompressor.poll_request(), None);
    }

    /// CMP-4.1.5: no input makes either end panic, or exceed its contexts. Half of the frames start
    /// with a packet's octets, so that contexts are set and used.
    #[test]
    fn invalid_frames_are_rejected(frames in prop::collection::vec(
        (any::<bool>(), 0x40_u8..0xc0, prop::collection::vec(any::<u8>(), 0..40)), 0..60,
    )) {
        let mut octets = Vec::new();
        for (real, first, nonsense) in frames {
            let packet = if real { MADE.packet() } else { nonsense };
            octets.push(packet.len() as u8 + 1);
            octets.push(first);
            octets.extend(packet);
        }
        crate::fuzzing::compression(&octets);
        crate::fuzzing::compression(&octets[octets.len().min(1)..]);
        prop_assert!(size_of::<Decompressor>() <= CONTEXTS * 128 + 16);
    }
}
