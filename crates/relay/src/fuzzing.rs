//! What must hold whatever a peer sends, as functions of octets.
//!
//! The targets in `fuzz/` call these with octets that a fuzzer breeds; the tests below call them
//! with random ones.

use crate::frame::{Frame, Reader, Writer};

pub use crate::streams::fuzzing::streams;

/// Reads a payload's frames, and the same octets as a NOTE. A frame that can be read, when it is
/// written again, reads the same.
///
/// # Panics
/// When it does not.
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
        let mut room = [0; 40];
        let mut writer = Writer::new(&mut room);
        assert!(writer.control(&frame), "no room for {frame:?}");
        let len = writer.written();
        assert_eq!(Reader::new(&room[..len]).frame(), Ok(frame));
    }
    let mut reader = Reader::new(octets);
    while !reader.is_empty() && reader.note().is_ok() {}
}

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
        fn any_script_leaves_the_accounts_in_order(script in vec(any::<u8>(), 0..1500)) {
            super::streams(&script);
        }
    }
}
