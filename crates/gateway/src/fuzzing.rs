//! Properties of the gateway that hold for any input from clients, operators' files and the kernel,
//! as functions of octets. (Those of proxy clients are in [`crate::proxy`].)
//!
//! The targets in `fuzz/` call these functions with the octets of a fuzzer; the tests below call
//! them with random octets.

use crate::Config;
use crate::forward::packet::Ends;
use crate::intercept::{Prefix, Syn, Unreachable, logged_packets};
use crate::observe::{play_control, play_metrics, read_question, read_request};
use crate::tls::frame::{Deframer, MAX_DATAGRAM, MIN_DATAGRAM};

/// Reads a configuration: it is valid, or every mistake has a key and an expected value.
///
/// # Panics
/// Panics if a mistake lacks one of them, or a valid configuration has no summary.
pub fn config_text(octets: &[u8]) {
    let Ok(text) = str::from_utf8(octets) else { return };
    match Config::parse("fuzz.toml", text) {
        Ok(config) => assert!(!format!("{config:?}").is_empty()),
        Err(error) => {
            assert!(!error.mistakes.is_empty(), "refused without a reason");
            for mistake in &error.mistakes {
                assert!(!mistake.expected.is_empty(), "{mistake:?}");
            }
        }
    }
    let _ = text.parse::<Prefix>();
}

/// Reads messages of DNS clients and name servers.
///
/// # Panics
/// As `dns::fuzzing::messages`.
pub fn dns_messages(octets: &[u8]) {
    crate::dns::fuzzing::messages(octets);
}

/// Plays a script to the DNS forwarder.
///
/// # Panics
/// As `dns::fuzzing::forwarder`.
pub fn dns_forwarder(script: &[u8]) {
    crate::dns::fuzzing::forwarder(script);
}

/// Splits a stream of TLS into datagrams, in pieces whose length the first octet determines.
///
/// # Panics
/// Panics if a datagram has an invalid length, more than one frame is held, or the division of the
/// stream changes the result.
pub fn tls_frames(octets: &[u8]) {
    let Some((&first, stream)) = octets.split_first() else { return };
    let split = |size: usize| {
        let (mut deframer, mut datagrams) = (Deframer::default(), Vec::new());
        let result = stream.chunks(size).try_for_each(|piece| {
            let deliver = &mut |datagram: &[u8]| {
                assert!((MIN_DATAGRAM..=MAX_DATAGRAM).contains(&datagram.len()));
                datagrams.push(datagram.to_vec());
            };
            let result = deframer.push(piece, deliver);
            assert!(result.is_err() || deframer.held() < 2 + MAX_DATAGRAM);
            result
        });
        (result, datagrams)
    };
    assert_eq!(split(usize::from(first) + 1), split(stream.len().max(1)));
}

/// Reads one line of the control socket.
///
/// # Panics
/// Panics if a request is rejected without a reason.
pub fn control_line(octets: &[u8]) {
    if let Err(reason) = read_question(octets) {
        assert!(reason.len() > "not understood: ".len());
    }
}

/// Reads the head of a scraper's request, octet by octet.
///
/// # Panics
/// Panics if a complete head is incomplete with further octets behind it.
pub fn metrics_request(octets: &[u8]) {
    let mut whole = false;
    for end in 0..=octets.len() {
        let now = read_request(&octets[..end]);
        assert!(now || !whole, "{end} bytes are less than those before");
        whole |= now;
    }
}

/// Plays a script of three octets per step to the control socket: clients connect, send requests in
/// whole lines and fragments, read or do not read, and disconnect.
///
/// # Panics
/// Panics if a request has no response or more than one, or if a limit on clients, octets or time
/// is exceeded.
pub fn control(script: &[u8]) {
    play_control(script);
}

/// Plays a script as [`control`] does, to the metrics listener.
///
/// # Panics
/// Panics if a response is malformed, or if a limit on clients, octets or time is exceeded.
pub fn metrics(script: &[u8]) {
    play_metrics(script);
}

/// Reads messages of the kernel's log, and the packets in them as clients' SYNs.
///
/// # Panics
/// Panics if a SYN is accepted whose reset would be malformed.
pub fn kernel_log(octets: &[u8]) {
    logged_packets(octets, &mut |packet, _| syn(packet));
}

/// Reads a packet as a client's SYN, as a packet to forward, and as a frame.
///
/// # Panics
/// Panics if a SYN is accepted whose reset would be malformed.
pub fn packet(octets: &[u8]) {
    if let Some(ends) = Ends::of(octets) {
        assert_eq!(ends.source.is_ipv4(), ends.destination.is_ipv4());
        let _ = ends.is_between_hosts();
    }
    syn(octets);
    // The checksum is completed as hardware does it, so that more packets are valid.
    let mut packet = octets.to_vec();
    let tcp = match octets.first().map(|byte| byte >> 4) {
        Some(4) => usize::from(octets[0] & 15) * 4,
        Some(_) | None => 40,
    };
    let mut frame = vec![0; 12];
    frame.extend(if tcp == 40 { [0x86, 0xdd] } else { [8, 0] });
    frame.extend_from_slice(octets);
    let _ = rt::packet::headers::frame_flow(&frame);
    let _ = rt::packet::headers::mark_frame(&mut frame);
    assert!(rt::packet::headers::network_len(&frame) <= octets.len());
    if rt::packet::headers::complete_checksum(&mut frame) {
        packet.copy_from_slice(&frame[14..]);
        syn(&packet);
    }
}

fn syn(packet: &[u8]) {
    let Some(syn) = Syn::parse(packet) else { return };
    assert!(syn.packet().len() <= packet.len());
    assert_eq!(syn.client.is_ipv4(), syn.server.is_ipv4());
    let reset = Ends::of(&syn.reset()).expect("a reset is a packet");
    assert_eq!((reset.source, reset.destination), (syn.server.ip(), syn.client));
    for what in [Unreachable::Network, Unreachable::Host, Unreachable::Prohibited] {
        assert!(syn.unreachable(what).len() <= 528);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Returns a SYN of IPv4 or IPv6 without checksums.
    fn syn(v4: bool) -> Vec<u8> {
        let mut packet = if v4 {
            vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 1, 0, 2, 10, 3, 0, 2]
        } else {
            let mut packet = vec![0x60, 0, 0, 0, 0, 20, 6, 64];
            packet.extend([0xfd; 32]);
            packet
        };
        packet.extend([0x80, 1, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
        packet
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn observer_clients_stay_within_limits(script in vec(any::<u8>(), 0..400)) {
            super::control(&script);
            super::metrics(&script);
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_accepted_or_rejected(octets in vec(any::<u8>(), 0..200)) {
            super::control_line(&octets);
            super::metrics_request(&octets);
            super::kernel_log(&octets);
            super::packet(&octets);
            super::tls_frames(&octets);
        }

        #[test]
        fn almost_valid_packets_are_accepted_or_rejected(
            v4 in any::<bool>(),
            changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let mut packet = syn(v4);
            for (at, byte) in changes {
                let at = at.index(packet.len());
                packet[at] = byte;
            }
            super::packet(&packet);
        }

        #[test]
        fn any_text_is_a_configuration_or_a_list_of_mistakes(
            lines in vec(
                (
                    "(role|accept|listen|peer|rate_up|drain|users|interfaces|private_key|deny)?",
                    " ?= ?",
                    "(\"[a-z0-9.:/%]{0,9}\"|[0-9.-]{1,4}|true|\\[\\]|\\[\"a\", 4\\]|\\{\\})",
                    "(\\n|\\n\\[(link|limits|hub|intercept|forward|log|single|security)\\]\\n)",
                ),
                0..12,
            ),
        ) {
            let text: String = lines
                .into_iter()
                .map(|(key, is, value, end)| [key, is, value, end].concat())
                .collect();
            super::config_text(text.as_bytes());
        }
    }
}
