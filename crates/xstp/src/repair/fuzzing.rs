//! Scripts for encoder and decoder, and a slow, obvious decoder to compare with.

use super::encoder::Covered;
use super::field::{inverse, multiply};
use super::{Decoder, Encoder, KEYS, MAX_COVERED, MAX_SYMBOLS, coefficient};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Octets of a script: zeros after its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&octet, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(octet)
    }
}

/// Sends packets and symbols over a path that loses what the script says. What the decoder
/// recovers is what was sent, and it recovers everything that the symbols determine.
pub(crate) fn check_against_elimination(script: &[u8]) {
    let mut script = Script(script);
    let first = u64::from(script.next().unwrap_or_default()) * 97 + 1;
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let mut sent: Vec<Vec<u8>> = Vec::new();
    // What a receiver has, and the coefficients of the symbols that arrived.
    let mut received = BTreeMap::new();
    let mut symbols: Vec<Vec<(u64, u8)>> = Vec::new();
    let activation = Covered { first: first - 1, count: 1, key: 0 };
    assert_eq!(decoder.on_symbol(activation, &[0, 0], first..first), Ok(Vec::new()));
    while let Some(octet) = script.next() {
        let (is_symbol, is_lost) = (octet & 3 == 0, octet & 4 != 0);
        let end = first + sent.len() as u64;
        if !is_symbol {
            if sent.len() == MAX_COVERED {
                continue;
            }
            let packet: Vec<u8> = (0..octet >> 3).map(|i| i.wrapping_mul(octet)).collect();
            encoder.push(end, &packet);
            if !is_lost {
                decoder.on_packet(end, &packet);
                received.insert(end, packet.clone());
            }
            sent.push(packet);
            continue;
        }
        encoder.discard_below(first + u64::from(octet >> 5) * 4);
        let Some((covered, symbol)) = encoder.symbol() else { continue };
        if is_lost || symbols.len() == MAX_SYMBOLS {
            continue;
        }
        let range = covered.first..covered.first + covered.count as u64;
        symbols.push(range.map(|seq| (seq, coefficient(covered.key, seq))).collect());
        let highest = received.last_key_value().map_or(first, |(&seq, _)| seq + 1);
        let recovered = decoder.on_symbol(covered, symbol, first..highest);
        for seq in recovered.expect("it was sent by the encoder") {
            let packet = decoder.packet(seq).expect("it was recovered");
            assert_eq!(packet, sent[(seq - first) as usize]);
            received.insert(seq, packet.to_vec());
        }
        assert_eq!(determined(&symbols, &received), [0; 0], "determined, but not recovered");
    }
}

/// Packets that are not received and that the symbols determine, by Gauss-Jordan elimination.
fn determined(symbols: &[Vec<(u64, u8)>], received: &BTreeMap<u64, Vec<u8>>) -> Vec<u64> {
    let mut rows: Vec<BTreeMap<u64, u8>> = Vec::new();
    for symbol in symbols {
        let missing = symbol.iter().copied().filter(|(seq, _)| !received.contains_key(seq));
        rows.push(missing.collect());
    }
    let mut done = 0;
    let mut columns: Vec<u64> = rows.iter().flat_map(|row| row.keys().copied()).collect();
    columns.sort_unstable();
    columns.dedup();
    for column in columns {
        let Some(found) = (done..rows.len()).find(|&i| rows[i].contains_key(&column)) else {
            continue;
        };
        rows.swap(done, found);
        let factor = inverse(rows[done][&column]);
        rows[done].values_mut().for_each(|value| *value = multiply(*value, factor));
        let pivot = rows[done].clone();
        for (i, row) in rows.iter_mut().enumerate() {
            let Some(&factor) = row.get(&column).filter(|_| i != done) else { continue };
            for (&seq, &value) in &pivot {
                *row.entry(seq).or_default() ^= multiply(value, factor);
            }
            row.retain(|_, value| *value != 0);
        }
        done += 1;
    }
    rows.iter().filter(|row| row.len() == 1).filter_map(|row| row.keys().next().copied()).collect()
}

/// Feeds the decoder packets and invented symbols. It does not panic, and what it stores is
/// bounded.
pub(crate) fn check_hostile(script: &[u8]) {
    let mut script = Script(script);
    let mut decoder = Decoder::default();
    let mut received = 1_000..1_000_u64;
    while let Some(octet) = script.next() {
        let len = usize::from(script.next().unwrap_or_default());
        let octets: Vec<u8> = (0..len).map(|i| (i as u8).wrapping_mul(octet)).collect();
        let number = u64::from(script.next().unwrap_or_default());
        if octet & 1 == 0 {
            received.end += number;
            decoder.on_packet(received.end, &octets);
            received.end += 1;
            received.start = received.start.max(received.end.saturating_sub(u64::from(octet)));
            continue;
        }
        let first = (received.end + 128).saturating_sub(number * 3);
        let count = usize::from(octet >> 1) + 1;
        let key = script.next().unwrap_or_default() % KEYS;
        let covered = Covered { first, count, key };
        let symbol: &[u8] = if len < 2 { &[0, 1] } else { &octets };
        if let Ok(recovered) = decoder.on_symbol(covered, symbol, received.clone()) {
            assert!(recovered.len() <= MAX_SYMBOLS);
            for seq in recovered {
                assert!(decoder.packet(seq).is_none_or(|packet| packet.len() < 255));
            }
        }
        decoder.check_bounds();
    }
}
