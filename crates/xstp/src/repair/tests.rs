//! The code as a whole: what the decoder recovers is what the encoder was given.

use super::decoder::Rejected;
use super::*;
use std::vec::Vec;
use units::RngStream;

/// XSTP-15.1.3, XSTP-15.2.3: any r symbols with the same window recover any r packets: 32 of 128 full packets.
#[test]
fn as_many_packets_as_symbols_are_recovered() {
    let mut rng = RngStream::new(1, 0, "repair");
    for missing in [1, 2, 7, MAX_SYMBOLS] {
        let mut encoder = Encoder::default();
        let mut decoder = Decoder::default();
        let base = 1 << 24;
        let packets: Vec<Vec<u8>> = (0..MAX_COVERED)
            .map(|_| (0..rng.below(1_400)).map(|_| rng.below(256) as u8).collect())
            .collect();
        encoder.push(base - 1, b"");
        let (covered, symbol) = encoder.symbol().expect("a packet");
        assert_eq!(decoder.on_symbol(covered, symbol, base..base), Ok(Vec::new()));
        let mut lost: Vec<u64> = Vec::new();
        while lost.len() < missing {
            let seq = base + rng.below(MAX_COVERED as u64);
            if !lost.contains(&seq) {
                lost.push(seq);
            }
        }
        for (seq, packet) in (base..).zip(&packets) {
            encoder.push(seq, packet);
            if !lost.contains(&seq) {
                decoder.on_packet(seq, packet);
            }
        }
        let end = (base..base + MAX_COVERED as u64).rev().find(|seq| !lost.contains(seq));
        let mut recovered = Vec::new();
        for _ in 0..missing {
            assert!(recovered.is_empty());
            let (covered, symbol) = encoder.symbol().expect("packets");
            let result = decoder.on_symbol(covered, symbol, base..end.map_or(base, |end| end + 1));
            recovered = result.expect("a symbol of the encoder");
        }
        recovered.sort_unstable();
        lost.sort_unstable();
        assert_eq!(recovered, lost);
        for seq in lost {
            assert_eq!(decoder.packet(seq), Some(&*packets[(seq - base) as usize]));
        }
    }
}

#[test]
fn a_symbol_that_contradicts_a_packet_is_rejected() {
    let mut decoder = Decoder::default();
    let covered = |first, count| Covered { first, count, key: 5 };
    assert_eq!(decoder.on_symbol(covered(10, 1), &[0, 9], 10..10), Err(Rejected), "its length");
    decoder.on_packet(10, b"four");
    assert_eq!(decoder.on_symbol(covered(10, 2), &[0; 5], 10..11), Err(Rejected), "too short");
    assert_eq!(decoder.on_symbol(covered(10, 2), &[0; 6], 10..11), Err(Rejected), "no length");
}

/// XSTP-15.3.5
#[test]
fn packets_are_stored_at_the_start_and_for_some_time_after_a_symbol() {
    let mut decoder = Decoder::default();
    let mut stored = |from: u64| {
        let mut last = None;
        for seq in from..from + 100_000 {
            decoder.on_packet(seq, b"packet");
            last = decoder.packet(seq).map(|_| seq - from).or(last);
        }
        assert!(decoder.packet(from + 99_999).is_none(), "it stores still");
        let covered = Covered { first: from + 100_000, count: 1, key: 0 };
        let received = from + 100_000 + u64::from(from > 0)..from + 100_001;
        decoder.on_symbol(covered, &[0, 0], received).expect("a valid symbol");
        last
    };
    assert_eq!(stored(0), Some(1_022), "from the start");
    assert_eq!(stored(200_000), Some(65_534), "the packet of the symbol was missing");
    assert_eq!(stored(400_000), Some(1_022), "it was received");
}

/// XSTP-15.1.2, XSTP-15.1.3: the symbols of docs/spec/vectors/segments.json.
#[test]
fn symbols_are_those_of_the_vectors() {
    let three: [&[u8]; 3] = [b"payload", b"", b"frames"];
    let symbol = |first: u64, key, payloads: &[&[u8]]| {
        let mut encoder = Encoder::default();
        for (seq, payload) in (first..).zip(payloads) {
            encoder.push(seq, payload);
        }
        for _ in 0..key {
            let _ = encoder.symbol();
        }
        let (covered, symbol) = encoder.symbol().expect("packets");
        assert_eq!(covered, Covered { first, count: payloads.len(), key });
        symbol.iter().fold(0_u64, |number, &octet| number << 8 | u64::from(octet))
    };
    assert_eq!(symbol(7, 5, &three[..1]), 0x4074_17b4_6997_1708);
    assert_eq!(symbol(0xff_ffff, 127, &three), 0x58f0_1054_bc46_6ea5);
    assert_eq!(symbol(0xff_ffff, 0, &three), 0x2c1f_ede8_7afa_b9b4);
}
