//! Framing of datagrams on a stream: a length of 16 bits, and the datagram.

/// Minimum length of a datagram of an association, in octets (ASC-1.1).
pub(crate) const MIN_DATAGRAM: usize = 24;
/// Maximum length of a datagram in octets: the largest MTU that can be configured.
pub(crate) const MAX_DATAGRAM: usize = 9_000;
/// Octets before each datagram.
pub(super) const LENGTH: usize = 2;

/// A length that no datagram of an association has: the peer is not a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("length of a frame: found {found}, expected {MIN_DATAGRAM} to {MAX_DATAGRAM}")]
pub(crate) struct FrameError {
    pub(crate) found: usize,
}

/// Returns the length field for a datagram, or `None` if a frame cannot carry it.
pub(crate) fn length_field(datagram: &[u8]) -> Option<[u8; LENGTH]> {
    let fits = (MIN_DATAGRAM..=MAX_DATAGRAM).contains(&datagram.len());
    u16::try_from(datagram.len()).ok().filter(|_| fits).map(u16::to_be_bytes)
}

/// Splits the octets of a stream into datagrams. Between calls it holds less than one frame.
#[derive(Debug, Default)]
pub(crate) struct Deframer {
    partial: Vec<u8>,
}

impl Deframer {
    /// Passes the datagrams that are complete with `bytes` to `deliver`.
    ///
    /// # Errors
    /// At the first invalid length; the stream cannot be used any more.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        deliver: &mut dyn FnMut(&[u8]),
    ) -> Result<(), FrameError> {
        self.partial.extend_from_slice(bytes);
        let mut rest = &self.partial[..];
        while let Some((length, after)) = rest.split_first_chunk::<LENGTH>() {
            let found = usize::from(u16::from_be_bytes(*length));
            if !(MIN_DATAGRAM..=MAX_DATAGRAM).contains(&found) {
                return Err(FrameError { found });
            }
            let Some((datagram, after)) = after.split_at_checked(found) else { break };
            deliver(datagram);
            rest = after;
        }
        let done = self.partial.len() - rest.len();
        self.partial.drain(..done);
        Ok(())
    }

    /// Returns the octets that wait for the rest of their frame.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn held(&self) -> usize {
        self.partial.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framed(datagrams: &[Vec<u8>]) -> Vec<u8> {
        datagrams.iter().flat_map(|one| [&length_field(one).unwrap()[..], one].concat()).collect()
    }

    fn push(deframer: &mut Deframer, bytes: &[u8]) -> Result<Vec<Vec<u8>>, FrameError> {
        let mut got = Vec::new();
        deframer.push(bytes, &mut |datagram| got.push(datagram.to_vec()))?;
        Ok(got)
    }

    proptest! {
        /// TLS-1.1
        #[test]
        fn datagrams_survive_any_division(
            lengths in prop::collection::vec(MIN_DATAGRAM..=MAX_DATAGRAM, 0..8),
            cut in 1_usize..4_000,
        ) {
            let datagrams: Vec<Vec<u8>> =
                lengths.iter().enumerate().map(|(n, &length)| vec![n as u8; length]).collect();
            let mut deframer = Deframer::default();
            let mut got = Vec::new();
            for piece in framed(&datagrams).chunks(cut) {
                got.extend(push(&mut deframer, piece).unwrap());
                prop_assert!(deframer.held() < LENGTH + MAX_DATAGRAM);
            }
            prop_assert_eq!((got, deframer.held()), (datagrams, 0));
        }
    }

    /// TLS-1.2
    #[test]
    fn invalid_lengths_end_the_stream() {
        for found in [0, 1, MIN_DATAGRAM - 1, MAX_DATAGRAM + 1, 0x4854, 0xffff] {
            let mut deframer = Deframer::default();
            let first = vec![7; MIN_DATAGRAM];
            let stream = [&framed(std::slice::from_ref(&first))[..], &(found as u16).to_be_bytes()];
            let mut got = Vec::new();
            let result = deframer.push(&stream.concat(), &mut |one| got.push(one.to_vec()));
            assert_eq!((result, got), (Err(FrameError { found }), vec![first]));
        }
    }

    /// TLS-1.3
    #[test]
    fn a_truncated_frame_is_not_delivered() {
        let mut deframer = Deframer::default();
        let stream = framed(&[vec![7; 100]]);
        assert_eq!(push(&mut deframer, &stream[..stream.len() - 1]), Ok(Vec::new()));
        assert_eq!(deframer.held(), stream.len() - 1);
    }

    #[test]
    fn only_lengths_of_datagrams_are_framed() {
        for length in [0, MIN_DATAGRAM - 1, MAX_DATAGRAM + 1, 70_000] {
            assert_eq!(length_field(&vec![0; length]), None);
        }
        assert_eq!(length_field(&[0; MIN_DATAGRAM]), Some([0, 24]));
    }
}
