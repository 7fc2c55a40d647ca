//! Contexts of compressed headers, which are common to the paths.

use super::*;
use crate::Owner;
use crate::headers::fuzzing::{Fields, packet};

const DATAGRAM: u8 = 0x05;
const DEFINE: u8 = 0x14;
const COMPRESSED: u8 = 0x15;
const CONTEXTS: u8 = 0x16;
const INVALID: [u8; 3] = [0x17, 1, 9];
/// A COMPRESSED for a context that was not defined.
const UNKNOWN: [u8; 7] = [COMPRESSED, 5, 9, 0, 1, 2, 3];

/// As [`pair`], with header compression.
fn compressing() -> [Streams; 2] {
    let config = RelayConfig { compress_headers: true, ..RelayConfig::new("x") };
    pair_of(&config).map(|mut streams| {
        streams.set_peer(config.limits(), false);
        streams
    })
}

/// The packet `number` of a voice flow from `port`.
fn voice(port: u16, number: u16) -> Vec<u8> {
    let timestamp = u32::from(number) * 160;
    let fields = Fields { port, number, timestamp, ssrc: Some(7), ..Fields::default() };
    packet(fields, &[number as u8; 20])
}

/// Sends a packet in a payload of its own on `path`, which is to be the fastest that answers;
/// returns the payload and its handle.
fn send(streams: &mut Streams, path: usize, packet: &[u8]) -> (Vec<u8>, u64) {
    streams.send_datagram(at(0), packet, (Owner::default(), None));
    fresh(streams, path).expect("the packet")
}

/// Delivers a payload that arrives on `path`.
fn deliver(streams: &mut Streams, path: usize, payload: &[u8]) {
    streams.set_path(path, true);
    streams.deliver(payload);
}

/// The path does not answer any more.
fn leave(streams: &mut Streams, path: usize) {
    streams.set_path(path, false);
    streams.leave_path(path);
}

/// HDR-2.3, HDR-2.7, RLY-12.4: the answer to a DEFINE follows on another path if its own fails, and a
/// context is used on another path than that of its definition.
#[test]
fn contexts_are_defined_on_one_path_and_used_on_another() {
    let [mut terminal, mut hub] = compressing();
    let (first, _) = send(&mut terminal, LEO, &voice(1, 0));
    let (second, defining) = send(&mut terminal, LEO, &voice(1, 1));
    assert_eq!((first[0] & 0x1f, second[0]), (DATAGRAM, DEFINE));
    for payload in [&first, &second] {
        deliver(&mut hub, LEO, payload);
    }
    let (lost, _) = fresh(&mut hub, LEO).expect("the answer");
    leave(&mut hub, LEO);
    let (moved, _) = fresh(&mut hub, GEO).expect("the answer again");
    assert_eq!((moved[0], &moved), (CONTEXTS, &lost));
    terminal.released(defining);
    deliver(&mut terminal, GEO, &moved);
    leave(&mut terminal, LEO);
    let (compressed, _) = send(&mut terminal, GEO, &voice(1, 2));
    assert_eq!(compressed[0], COMPRESSED);
    deliver(&mut hub, GEO, &compressed);
    let received: Vec<_> = core::iter::from_fn(|| hub.datagrams.take()).collect();
    assert_eq!(received, [0, 1, 2].map(|number| voice(1, number)));
    assert_eq!(hub.statistics().bad_frames, 0);
}

/// HDR-2.2, HDR-2.5, HDR-2.7: a definition on a path that fails is lost, and its number is free when
/// the session of the path has ended.
#[test]
fn a_definition_is_lost_with_its_path() {
    let [mut terminal, _] = compressing();
    let defined = |payload: &[u8]| (payload[0] == DEFINE).then(|| payload[2]);
    let define = |terminal: &mut Streams, path, port| {
        send(terminal, path, &voice(port, 0));
        send(terminal, path, &voice(port, 1))
    };
    let (first, handle) = define(&mut terminal, LEO, 1);
    assert_eq!(defined(&first), Some(0));
    deliver(&mut terminal, LEO, &[CONTEXTS, 2, 0x80, 1]);
    leave(&mut terminal, LEO);
    let (second, _) = send(&mut terminal, GEO, &voice(1, 2));
    assert_eq!(defined(&second), Some(1), "the packet with the first may still arrive");
    let mut room = [0; 1_400];
    assert_eq!(terminal.again(handle, &mut room), 0);
    assert_eq!(defined(&define(&mut terminal, GEO, 2).0), Some(2));
    terminal.remove_path(LEO);
    assert_eq!(defined(&define(&mut terminal, GEO, 3).0), Some(0));
    assert_eq!(terminal.controls_out, 0);
}

/// HDR-2.6, RLY-12.4: INVALID follows on another path if its own fails, and there is one at a time.
#[test]
fn an_invalid_context_is_reported_once_over_all_paths() {
    let [_, mut hub] = compressing();
    deliver(&mut hub, LEO, &UNKNOWN);
    let (report, first) = fresh(&mut hub, LEO).expect("INVALID");
    assert_eq!(report, INVALID);
    deliver(&mut hub, LEO, &UNKNOWN);
    assert!(fresh(&mut hub, LEO).is_none(), "the first one is not acknowledged");
    leave(&mut hub, LEO);
    let (moved, second) = fresh(&mut hub, GEO).expect("INVALID again");
    assert_eq!(moved, INVALID);
    // The packet of the other path has nothing any more.
    hub.released(first);
    deliver(&mut hub, GEO, &UNKNOWN);
    assert!(fresh(&mut hub, GEO).is_none());
    hub.released(second);
    deliver(&mut hub, GEO, &UNKNOWN);
    assert_eq!(fresh(&mut hub, GEO).expect("a new one").0, INVALID);
    assert_eq!((hub.datagrams.statistics().headers_damaged, hub.controls_out), (4, 1));
}
