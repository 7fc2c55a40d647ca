//! What Probe and ProbeAck say.
//!
//! ```text
//! Probe                                ProbeAck
//!   0  number, 4 bytes                   0  number of the Probe, 4 bytes
//!   4  zeros up to the size              4  the Probe as it arrived: UDP payload, bytes, 4 bytes
//! ```

/// Bytes of a ProbeAck's payload; a Probe has at least 4.
pub(crate) const ANSWER: usize = 8;

/// The number of a Probe; `None` for one that is too short to have one.
pub(super) fn probe_number(payload: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*payload.first_chunk()?))
}

/// Writes a Probe over all of `payload`.
pub(super) fn write_probe(number: u32, payload: &mut [u8]) {
    payload.fill(0);
    payload[..4].copy_from_slice(&number.to_be_bytes());
}

/// The number and the size of a ProbeAck.
pub(super) fn answer(payload: &[u8]) -> Option<(u32, usize)> {
    let word: &[u8; ANSWER] = payload.first_chunk()?;
    let [a, b, c, d, size @ ..] = *word;
    let size = usize::try_from(u32::from_be_bytes(size)).ok()?;
    Some((u32::from_be_bytes([a, b, c, d]), size))
}

/// Writes a ProbeAck.
pub(super) fn write_answer(number: u32, size: usize, payload: &mut [u8]) {
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    payload[..4].copy_from_slice(&number.to_be_bytes());
    payload[4..ANSWER].copy_from_slice(&size.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RLY-5.1
    #[test]
    fn words_on_the_wire() {
        let mut probe = [7; 9];
        write_probe(0x0102_0304, &mut probe);
        assert_eq!(probe, [1, 2, 3, 4, 0, 0, 0, 0, 0]);
        assert_eq!(probe_number(&probe), Some(0x0102_0304));
        assert_eq!(probe_number(&[1, 2, 3]), None);
        let mut word = [0; ANSWER];
        write_answer(0x0102_0304, 1472, &mut word);
        assert_eq!(word, [1, 2, 3, 4, 0, 0, 0x05, 0xc0]);
        assert_eq!(answer(&word), Some((0x0102_0304, 1472)));
        assert_eq!(answer(&word[..7]), None);
    }
}
