//! Properties that hold for any octets, as functions of them.
//!
//! The targets in `fuzz/` call these functions with the inputs of a fuzzer; the tests below call
//! them with random ones.

mod sessions;

use crate::seq::Seq24;
use crate::wire::{DecodeError, Endpoints, Profile, Segment};
use alloc::vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Decodes a sealed segment; a valid one is encoded to the same octets.
pub fn sealed_segment(octets: &[u8]) {
    if let Ok(segment) = Segment::decode(&Profile::Sealed, octets) {
        walk(&segment);
        let mut out = vec![0; octets.len()];
        assert_eq!(segment.encode(&Profile::Sealed, &mut out), Ok(octets.len()));
        assert_eq!(out, octets);
    }
}

/// Decodes a published segment after correcting its ports and checksum; a valid one is encoded to
/// octets that decode to the same segment.
pub fn published_segment(octets: &[u8]) {
    let end = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let to = Profile::Published(Endpoints { local: end(2), remote: end(1) });
    let from = Profile::Published(Endpoints { local: end(1), remote: end(2) });
    let mut octets = octets.to_vec();
    if let Some(ports) = octets.get_mut(..4) {
        ports.copy_from_slice(&[0, 1, 0, 2]);
    }
    if let Err(DecodeError::Checksum { expected, .. }) = Segment::decode(&to, &octets) {
        octets[10..12].copy_from_slice(&expected.to_be_bytes());
    }
    match Segment::decode(&to, &octets) {
        Ok(segment) => {
            walk(&segment);
            let mut out = vec![0; octets.len()];
            assert_eq!(segment.encode(&from, &mut out), Ok(octets.len()));
            assert_eq!(Segment::decode(&to, &out), Ok(segment));
        }
        Err(DecodeError::Checksum { .. }) => panic!("the checksum was corrected"),
        Err(DecodeError::Ports { .. }) => panic!("the ports were corrected"),
        Err(_) => {}
    }
}

/// Runs a script of packets, POLLs and reports on the receiver and on a reference model.
pub fn receiver(script: &[u8]) {
    crate::session::receiver::check_against_model(script);
}

/// Runs a script of transmissions, STATs and USTATs on the packet table and on a reference model.
pub fn sender(script: &[u8]) {
    crate::session::sender::check_against_model(script);
}

/// Runs a script of packets and losses on encoder and decoder of repair symbols, and compares with
/// an elimination of all symbols.
pub fn repair(script: &[u8]) {
    crate::repair::fuzzing::check_against_elimination(script);
}

/// Runs a script of packets and invented symbols on the decoder of repair symbols.
pub fn repair_hostile(script: &[u8]) {
    crate::repair::fuzzing::check_hostile(script);
}

/// Runs a script on two sessions and a network that loses, duplicates and reorders segments: every
/// packet is delivered once, and all are delivered after the faults end.
pub fn sessions_on_a_faulty_network(script: &[u8]) {
    sessions::faulty(script);
}

/// Runs a script on two sessions that receive modified and invented segments: they do not panic.
pub fn sessions_on_a_hostile_network(script: &[u8]) {
    sessions::hostile(script);
}

/// Checks that lists lie within half of the number space, and alternate.
fn walk(segment: &Segment<'_>) {
    if let Some(stat) = segment.stat_part() {
        let mut total = stat.runs.skip();
        for (index, run) in stat.runs().enumerate() {
            assert_eq!(run.missing, index % 2 == 0);
            assert_eq!(run.start.distance(stat.received_below), total);
            assert!(run.len > 0);
            total += run.len;
        }
        assert!(total <= Seq24::HALF && stat.window <= Seq24::HALF);
    }
    if let Some(ustat) = segment.ustat_part() {
        let mut end = 0;
        let mut gaps = 0;
        for gap in ustat.gaps() {
            let start = gap.start.distance(ustat.received_below());
            assert!(gap.missing && gap.len > 0 && (gaps == 0 || start > end));
            end = start + gap.len;
            gaps += 1;
        }
        assert!(gaps > 0 && end <= Seq24::HALF);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Kinds;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// Octets with a valid combination of types at `at`; half of the other octets are below 8.
    fn segment(at: usize) -> impl Strategy<Value = Vec<u8>> {
        let legal: Vec<u8> = (0..=255).filter(|&bits| Kinds::from_bits(bits).is_some()).collect();
        let octet = prop_oneof![any::<u8>(), 0..8u8];
        (vec(octet, at + 1..90), proptest::sample::select(legal)).prop_map(
            move |(mut octets, kinds)| {
                octets[at] = kinds;
                octets
            },
        )
    }

    proptest! {
        // XSTP-4.1.1
        #[test]
        fn any_octets_are_a_segment_or_an_error(octets in vec(any::<u8>(), 0..90)) {
            sealed_segment(&octets);
            published_segment(&octets);
        }

        #[test]
        fn sealed_encoding_is_canonical(octets in segment(0)) {
            sealed_segment(&octets);
        }

        #[test]
        fn published_segments_survive_encoding(octets in segment(4)) {
            published_segment(&octets);
        }

        #[test]
        fn the_receiver_matches_its_model_for_any_script(script in vec(any::<u8>(), 0..1200)) {
            receiver(&script);
        }

        #[test]
        fn repair_matches_elimination_for_any_script(script in vec(any::<u8>(), 0..300)) {
            repair(&script);
        }

        #[test]
        fn repair_survives_any_symbols(script in vec(any::<u8>(), 0..600)) {
            repair_hostile(&script);
        }

        /// XSTP-7.3.2, XSTP-7.3.3, XSTP-7.4.1, XSTP-7.5.3
        #[test]
        fn the_packet_table_matches_its_model_for_any_script(script in vec(any::<u8>(), 0..1600)) {
            sender(&script);
        }

        #[test]
        fn sessions_deliver_over_any_faulty_network(script in vec(any::<u8>(), 0..600)) {
            sessions_on_a_faulty_network(&script);
        }

        #[test]
        fn sessions_survive_any_hostile_network(script in vec(any::<u8>(), 0..600)) {
            sessions_on_a_hostile_network(&script);
        }
    }
}
