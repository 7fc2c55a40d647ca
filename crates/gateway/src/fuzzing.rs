//! What must hold for whatever clients, operators' files and the kernel hand a gateway, as
//! functions of octets. (What a proxy's client says is in [`crate::proxy`].)
//!
//! The targets in `fuzz/` call these with octets that a fuzzer breeds; the tests below call them
//! with random ones.

use crate::Config;
use crate::forward::packet::Ends;
use crate::intercept::{Prefix, Syn, Unreachable, logged_packets};
use crate::observe::{play_control, play_metrics, read_question, read_request};

/// Reads a configuration: all is well, or every mistake has a key and says what was expected.
///
/// # Panics
/// When a mistake is told without one of them, or the text is taken and nothing can be said of it.
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

/// Reads a line of the control socket's.
///
/// # Panics
/// When it is refused without a reason.
pub fn control_line(octets: &[u8]) {
    if let Err(reason) = read_question(octets) {
        assert!(reason.len() > "not understood: ".len());
    }
}

/// Reads the head of a scraper's request, as it comes octet by octet.
///
/// # Panics
/// When what was whole is not whole any more with more behind it.
pub fn metrics_request(octets: &[u8]) {
    let mut whole = false;
    for end in 0..=octets.len() {
        let now = read_request(&octets[..end]);
        assert!(now || !whole, "{end} bytes are less than those before");
        whole |= now;
    }
}

/// Plays a script, three octets a step, to the control socket: clients that come, ask whole lines
/// and parts of them, read or do not, and go.
///
/// # Panics
/// When a question has no answer or more than one, or a bound of clients, octets or time is passed.
pub fn control(script: &[u8]) {
    play_control(script);
}

/// As [`control`], to the metrics.
///
/// # Panics
/// When what comes is no answer, or a bound of clients, octets or time is passed.
pub fn metrics(script: &[u8]) {
    play_metrics(script);
}

/// Reads messages of the kernel's log, and what is in them as clients' first packets.
///
/// # Panics
/// When a packet is taken whose answer would not be one.
pub fn kernel_log(octets: &[u8]) {
    logged_packets(octets, &mut |packet, _| syn(packet));
}

/// Reads a packet as a client's SYN, as one that is to be carried as it is, and as a frame.
///
/// # Panics
/// When a SYN is taken whose answer would not be one.
pub fn packet(octets: &[u8]) {
    if let Some(ends) = Ends::of(octets) {
        assert_eq!(ends.source.is_ipv4(), ends.destination.is_ipv4());
        let _ = ends.is_between_hosts();
    }
    syn(octets);
    // With the checksum that hardware would have been left, so that more of them pass.
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

    /// A SYN of IPv4 and one of IPv6, without checksums.
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
        fn whatever_clients_of_the_observer_do(script in vec(any::<u8>(), 0..400)) {
            super::control(&script);
            super::metrics(&script);
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(octets in vec(any::<u8>(), 0..200)) {
            super::control_line(&octets);
            super::metrics_request(&octets);
            super::kernel_log(&octets);
            super::packet(&octets);
        }

        #[test]
        fn any_packet_nearly_right_is_taken_or_not(
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
