//! Compressed halves from a peer.

use super::*;

/// A payload of one frame of a coded half.
fn coded(id: StreamId, offset: u64, data: &[u8]) -> Vec<u8> {
    let mut payload = stream(id, offset, data, false, false);
    payload[0] |= 1;
    payload
}

/// RLY-13.5
#[test]
fn coded_halves_that_cannot_be_decompressed_are_reset() {
    let stored = [1, 6, b'a', b'b', b'c'];
    let cases: [&[Vec<u8>]; 4] = [
        &[stream(theirs(0), 0, &[], false, false), coded(theirs(0), 0, &[2, 6, b'a'])],
        &[coded(theirs(0), 0, &stored), coded(theirs(0), 5, &[0xff; 4])],
        &[coded(theirs(0), 0, &stored), stream(theirs(0), 5, &stored, false, false)],
        &[stream(theirs(0), 0, &stored, false, false), coded(theirs(0), 5, &stored)],
    ];
    for payloads in cases {
        let mut hub = hub();
        for payload in payloads {
            hub.deliver(payload);
            if hub.peek(theirs(0)) == b"abc" {
                hub.consume(hub.now, theirs(0), 3).unwrap();
            }
        }
        assert_violated(&mut hub, theirs(0));
        assert_eq!(hub.statistics().coding.damaged, 1);
    }
}

/// RLY-13.5
#[test]
fn a_coded_half_that_ends_within_a_chunk_is_reset() {
    let mut hub = hub();
    hub.deliver(&stream(theirs(0), 0, &[], false, false));
    let mut payload = coded(theirs(0), 0, &[1, 6, b'a']);
    payload[0] |= 8;
    hub.deliver(&payload);
    assert_violated(&mut hub, theirs(0));
}

/// RLY-13.5
#[test]
fn a_reset_follows_the_chunks_that_have_arrived() {
    let mut hub = hub();
    hub.deliver(&coded(theirs(0), 0, &[1, 6, b'a', b'b', b'c', 6, b'd', b'e', b'f', 6, b'g']));
    hub.deliver(&control(&Frame::Reset { id: theirs(0), final_offset: 11, charged: 0, code: 0 }));
    for expected in [&b"abc"[..], b"def"] {
        assert_eq!(hub.peek(theirs(0)), expected);
        assert!(!events(&mut hub).iter().any(|event| matches!(event, Event::Reset { .. })));
        hub.consume(hub.now, theirs(0), 3).unwrap();
    }
    let reset = |event: &Event| matches!(event, Event::Reset { .. });
    assert!(events(&mut hub).iter().any(reset));
    audit(&hub);
}

/// RLY-13.6
#[test]
fn decoders_are_bounded() {
    let streams = RelayConfig { max_streams: 1_000, ..config() };
    let mut hub = Streams::new(&streams, true, Instant::ZERO + Span::from_secs(1));
    for number in 0..=256 {
        hub.deliver(&coded(theirs(number), 0, &[1, 6, b'a', b'b', b'c']));
    }
    assert_eq!((hub.peek(theirs(255)), hub.statistics().coding.damaged), (&b"abc"[..], 1));
    assert!(hub.receive_allocated() < 257 * (64 << 10));
    assert_eq!(hub.statistics().resets_sent, 1);
}
