//! Properties that must hold for any link description and for any compressed frames.
//!
//! The targets in `fuzz/` generate the input; the tests use random input.

use crate::compression::{Compressor, Decompressor};
use crate::tnc::ax25::UiFrame;
use crate::tnc::kiss::{self, Command, Decoder};
use crate::{Direction, Link, words};
use alloc::vec;
use alloc::vec::Vec;
use units::{Instant, Span};

/// Parses `text` as a link description. A link that it describes is used for 2 s and must account
/// for every frame.
///
/// # Panics
/// If packet conservation is violated or the link does not become empty.
pub fn words(text: &[u8]) {
    let Ok(text) = core::str::from_utf8(text) else { return };
    if let Ok(star) = words::parse_star(text) {
        // An invalid description is an error without other effects.
        drop(star.with_terminals(&["a".into(), "b".into()]));
    }
    let Ok(config) = words::parse_file(text) else { return };
    let Ok(mut link) = Link::<Vec<u8>>::new(&config, 1, 0) else { return };
    for step in 0..40u64 {
        let now = Instant::ZERO + Span::from_millis(50 * step);
        let direction = Direction::BOTH[step as usize % 2];
        link.offer(now, direction, vec![0; 40 + 36 * step as usize]);
        link.handle_timeout(now);
        while link.poll_delivery(now).is_some() {}
        assert!(link.audit(), "frames are unaccounted for");
    }
    while link.poll_delivery(Instant::FAR_FUTURE).is_some() {}
    for direction in Direction::BOTH {
        assert_eq!(link.counters(direction).held.packets, 0, "frames never left");
    }
}

/// Takes `octets` as length-prefixed frames that arrive at one end of a link with header
/// compression. The restored packets are sent over another such link and must be restored
/// unchanged; requests are answered.
///
/// # Panics
/// If a packet is not restored unchanged.
pub fn compression(mut octets: &[u8]) {
    let mut attacked = Decompressor::new();
    let (mut compressor, mut decompressor) = (Compressor::new(), Decompressor::new());
    while let Some((&length, rest)) = octets.split_first() {
        let (frame, rest) = rest.split_at(usize::from(length).min(rest.len()));
        octets = rest;
        compressor.handle_request(frame);
        // The input is arbitrary, and everything that decompresses is a packet.
        let packet = attacked.decompress(frame).unwrap_or_else(|_| frame.to_vec());
        if let Some(request) = attacked.poll_request() {
            compressor.handle_request(&request);
        }
        let frame = compressor.compress(&packet);
        assert_eq!(decompressor.decompress(&frame), Ok(packet), "it came out otherwise");
    }
}

/// Takes `octets` as a line to or from a TNC. Data frames of an AX.25 frame are written to another
/// line and must be read from it unchanged.
///
/// # Panics
/// If a frame is changed, or longer than the limit.
pub fn tnc(mut octets: &[u8]) {
    const LIMIT: usize = 330;
    let (mut attacked, mut decoder) = (Decoder::new(LIMIT), Decoder::new(LIMIT));
    while let Some(frame) = attacked.next(&mut octets) {
        assert!(frame.content.len() <= LIMIT, "a frame is longer than the limit");
        let Some(ui) = UiFrame::decode(frame.content) else { continue };
        let (mut encoded, mut line) = (Vec::new(), Vec::new());
        ui.encode(&[], &mut encoded);
        kiss::encode(frame.port, Command::Data, &encoded, &mut line);
        let mut rest = &line[..];
        let read = decoder.next(&mut rest).expect("the frame that was written");
        assert_eq!((read.port, read.command), (frame.port, Ok(Command::Data)));
        assert_eq!(UiFrame::decode(read.content), Some(ui), "it came out otherwise");
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const WORDS: [&str; 42] = [
        "delay",
        "rate",
        "loss",
        "random",
        "gemodel",
        "ber",
        "queue",
        "red",
        "fair",
        "codel",
        "fq-codel",
        "drop-tail",
        "outage",
        "at",
        "for",
        "every",
        "fade",
        "limit",
        "reorder",
        "duplicate",
        "jitter",
        "ecn",
        "forward",
        "return",
        "both",
        "profile",
        "geo",
        "leo",
        "framing",
        "aal5",
        "#",
        "\n",
        "0",
        "1",
        "1%",
        "50%",
        "100%",
        "10ms",
        "2s",
        "1mbit",
        "20p",
        "1bdp",
    ];

    /// A frame with a repeater, and octets that are special in KISS.
    const FRAME: &[u8] = b"\xC0\0\x9A\x60\xB0\xB2\xB4\x40\xE4\x9A\x60\x82\x84\x86\x40\x62\
        \x9A\x60\x82\x84\x86\x40\xE3\x03\xCC\xDB\xDC\xDB\xDD\xC0";

    proptest! {
        #[test]
        fn any_line_of_a_tnc_is_read(
            pieces in vec((0..4usize, vec(any::<u8>(), 0..400)), 0..8),
            flip in 0..FRAME.len(),
        ) {
            let mut line = Vec::new();
            for (kind, octets) in pieces {
                let mut frame = FRAME.to_vec();
                frame[flip] ^= octets.first().copied().unwrap_or(0);
                line.extend([FRAME, &frame, &octets, &[0xC0]][kind]);
            }
            super::tnc(&line);
        }

        #[test]
        fn any_words_make_a_link_that_counts(
            words in vec(proptest::sample::select(&WORDS[..]), 0..24),
        ) {
            super::words(words.join(" ").as_bytes());
        }

        #[test]
        fn any_octets_are_a_link_or_an_error(text in vec(any::<u8>(), 0..80)) {
            super::words(&text);
        }

        #[test]
        fn words_with_values_make_a_link_that_counts(
            directions in vec((0..3usize, 0..2000u32, 1..9000u32, 0..100u32, 1..50u32), 1..4),
        ) {
            let lines: Vec<_> = directions
                .into_iter()
                .map(|(scope, delay, rate, loss, limit)| {
                    let scope = ["forward", "return", "both"][scope];
                    std::format!(
                        "{scope} delay {delay}ms rate {rate}kbit loss {loss}% limit {limit}p"
                    )
                })
                .collect();
            super::words(lines.join("\n").as_bytes());
        }
    }
}
