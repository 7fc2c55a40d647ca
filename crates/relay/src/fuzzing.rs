//! Properties that hold for any input from a peer, as functions of octets.
//!
//! The targets in `fuzz/` call these functions with the octets of a fuzzer; the tests below call
//! them with random octets.

use crate::PathReport;
use crate::config::MIN_MTU;
use crate::datagram::{Datagrams, Filled};
use crate::frame::{Frame, Reader, Writer};
use crate::path_mtu::{Conditions, PathMtu};
use crate::report::{MAX_REPORT, TerminalReport};
use association::Sealed;
use units::{BitRate, Instant, Span};

pub use crate::coding::fuzzing::coding;
pub use crate::headers::fuzzing::headers;
pub use crate::hub::fuzzing::hub;
pub use crate::pep::fuzzing::packets as pep_packets;
pub use crate::streams::fuzzing::streams;

/// Decodes a payload's frames, and the same octets as a NOTE. A frame that was decoded, encoded and
/// decoded again is equal.
///
/// # Panics
/// Panics if it is not.
pub fn frames(octets: &[u8]) {
    let mut reader = Reader::new(octets);
    while !reader.is_empty() {
        let Ok(frame) = reader.frame() else { break };
        if let Frame::Stream { data, .. } = frame {
            assert!(data.len() < octets.len());
            continue;
        }
        if let Frame::Datagram { packet: data } | Frame::Piece { piece: data, .. } = frame {
            assert!(data.len() < octets.len());
            continue;
        }
        if let Frame::Report { content, .. } = frame {
            report(content);
            continue;
        }
        if let Frame::Define { .. } | Frame::Compressed { .. } = frame {
            continue;
        }
        if let Frame::Unknown { .. } | Frame::BadOpening { .. } | Frame::Padding = frame {
            continue;
        }
        let mut room = [0; 40];
        let mut writer = Writer::new(&mut room);
        assert!(writer.control(&frame), "no room for {frame:?}");
        let len = writer.written();
        assert_eq!(Reader::new(&room[..len]).frame(), Ok(frame));
    }
    let mut reader = Reader::new(octets);
    while !reader.is_empty() && reader.note().is_ok() {}
}

/// Decodes a terminal's report and a path report. One that was decoded and encoded is bounded and
/// stays the same.
///
/// # Panics
/// Panics if it does not.
pub fn report(octets: &[u8]) {
    let encoded = TerminalReport::decode(octets).encode();
    assert!(encoded.len() <= MAX_REPORT);
    assert_eq!(TerminalReport::decode(&encoded).encode(), encoded);
    let path = PathReport::decode(octets);
    assert_eq!(PathReport::decode(&path.encode()), path);
}

/// Plays a script of packets, lost and duplicate payloads, and time to two ends that forward
/// packets; then `script` itself, as a payload of frames, to one of them.
///
/// # Panics
/// Panics if a packet arrives that was not sent, or if sending does not end.
pub fn datagrams(script: &[u8]) {
    let (mut sender, mut receiver) = (Datagrams::default(), Datagrams::default());
    let mut now = Instant::ZERO;
    let rate = BitRate::new(10_000_000);
    let mut sent: Vec<Vec<u8>> = Vec::new();
    for step in script.chunks(8) {
        let [kind, a, b, ref rest @ ..] = *step else { break };
        // One packet of the script's octets, which repeat after the header.
        let len = usize::from(a) * 12;
        let seed = [&[kind, a, b][..], rest].concat();
        let mut packet = seed.repeat(len.div_ceil(seed.len()));
        packet.truncate(len);
        let Some((_, flow)) = sender.push(now, &packet, rate, (crate::Owner::default(), None))
        else {
            continue;
        };
        sent.push(packet);
        let mut rounds = 0;
        loop {
            rounds += 1;
            assert!(rounds < 1_000, "no end to a packet of {len} bytes");
            let mut room = vec![0; 100 + usize::from(b) * 5];
            let mut writer = Writer::new(&mut room);
            if sender.fill(now, flow, rate, &mut writer, (true, kind & 1 != 0)) != Filled::Sent {
                break;
            }
            let written = writer.written();
            // Some are lost, some arrive twice.
            for _ in 0..[1, 1, 2, 0][usize::from(kind >> 1 & 3)] {
                take_frames(&mut receiver, now, &room[..written]);
            }
        }
        let _ = sender.finish_turn(now, flow);
        now += Span::from_millis(u64::from(kind >> 3));
        while let Some(packet) = receiver.take() {
            assert!(sent.contains(&packet), "{} bytes that nobody sent", packet.len());
        }
    }
    take_frames(&mut receiver, now, script);
    while receiver.take().is_some() {}
}

/// Passes the frames with packets to the receiver.
fn take_frames(receiver: &mut Datagrams, now: Instant, payload: &[u8]) {
    let mut reader = Reader::new(payload);
    while !reader.is_empty() {
        match reader.frame() {
            Ok(Frame::Datagram { packet }) => receiver.receive(now, packet.to_vec()),
            Ok(Frame::Piece { number, total, offset, piece }) => {
                receiver.receive_piece(now, (number, total, offset), piece);
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// Plays a script of Probes, ProbeAcks, refusals, hints, data and time to the path MTU discovery.
///
/// # Panics
/// Panics if its size exceeds its bounds, or if it sends too many Probes at one instant.
pub fn path_mtu(script: &[u8]) {
    let mut search = PathMtu::new(MOST);
    let mut now = Instant::ZERO;
    let mut way = Conditions {
        round_trip: Span::from_millis(600),
        rate: BitRate::new(10_000_000),
        back: None,
        overhead: 52,
    };
    search.begin(MOST);
    for step in script.chunks_exact(5) {
        let size = usize::from(u16::from_be_bytes([step[1], step[2]]));
        match step[0] % 10 {
            0 => drop(search.handle(now, Sealed::Probe, &step[1..], size)),
            // Responses to outstanding Probes are as likely as invented ones.
            1 | 2 => {
                let word = [0, 0, 0, step[4], step[1], step[2], 0, 0];
                let _ = search.handle(now, Sealed::ProbeAck, &word, 60);
            }
            3 => search.on_emsgsize(size),
            4 => search.set_hint(size),
            5 => search.on_path_change(),
            6 => search.data_sent(now, size),
            7 => search.data_acknowledged(size),
            8 => now += Span::from_millis(u64::from(step[1]) * u64::from(step[2])),
            _ => {
                way.rate = BitRate::new(u64::from(step[1]) << (step[2] % 32));
                way.back = BitRate::new(u64::from(step[3]) << (step[4] % 32));
            }
        }
        let mut asked = 0;
        while let Some(outgoing) = search.poll_transmit(now, &way) {
            asked += 1;
            assert!(asked < 16, "{asked} words at one instant");
            let mut payload = vec![0; PathMtu::room(outgoing, way.overhead)];
            assert!(payload.len() <= MOST);
            let _ = PathMtu::write(outgoing, &mut payload);
        }
        let _ = search.poll_timeout();
        let current = search.current();
        assert!((MIN_MTU..=MOST).contains(&current), "{current} bytes");
    }
}

/// Maximum size of a packet in [`path_mtu`], bytes.
const MOST: usize = 9000;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_payload_is_frames_or_an_error(octets in vec(any::<u8>(), 0..200)) {
            super::frames(&octets);
        }

        #[test]
        fn any_packets_leave_the_proxy_in_order(script in vec(any::<u8>(), 0..1500)) {
            super::pep_packets(&script);
        }

        #[test]
        fn any_report_is_bounded(octets in vec(any::<u8>(), 0..600)) {
            super::report(&octets);
        }

        #[test]
        fn any_coded_half_is_decoded_or_damaged(octets in vec(any::<u8>(), 0..600)) {
            super::coding(&octets);
        }

        #[test]
        fn any_packets_survive_header_compression(script in vec(any::<u8>(), 0..1500)) {
            super::headers(&script);
        }

        #[test]
        fn any_script_leaves_the_accounts_in_order(script in vec(any::<u8>(), 0..1500)) {
            super::streams(&script);
        }

        #[test]
        fn a_hub_serves_whatever_terminals_announce(script in vec(any::<u8>(), 0..400)) {
            super::hub(&script);
        }

        #[test]
        fn packets_are_carried_as_they_are(script in vec(any::<u8>(), 0..300)) {
            super::datagrams(&script);
        }

        #[test]
        fn no_peer_leads_the_search_astray(script in vec(any::<u8>(), 0..600)) {
            super::path_mtu(&script);
        }
    }
}
