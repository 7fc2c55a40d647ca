//! Formats of Probe and ProbeAck.
//!
//! ```text
//! Probe                                ProbeAck
//!   0  number, 4 bytes                   0  number of the Probe, 4 bytes
//!   4  zeros up to the size              4  the Probe as it arrived: UDP payload, bytes, 4 bytes
//! ```

/// Octets of a ProbeAck's payload; a Probe has at least 4.
pub(crate) const ANSWER: usize = 8;

/// Returns the number of a Probe; `None` if it is too short.
pub(super) fn probe_number(payload: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*payload.first_chunk()?))
}

/// Writes a Probe that fills `payload`.
pub(super) fn write_probe(number: u32, payload: &mut [u8]) {
    payload.fill(0);
    payload[..4].copy_from_slice(&number.to_be_bytes());
}

/// Returns the number and the size of a ProbeAck.
pub(super) fn answer(payload: &[u8]) -> Option<(u32, usize)> {
    let message: &[u8; ANSWER] = payload.first_chunk()?;
    let [a, b, c, d, size @ ..] = *message;
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
    fn probe_and_probe_ack_encoding() {
        let mut probe = [7; 9];
        write_probe(0x0102_0304, &mut probe);
        assert_eq!(probe, [1, 2, 3, 4, 0, 0, 0, 0, 0]);
        assert_eq!(probe_number(&probe), Some(0x0102_0304));
        assert_eq!(probe_number(&[1, 2, 3]), None);
        let mut message = [0; ANSWER];
        write_answer(0x0102_0304, 1472, &mut message);
        assert_eq!(message, [1, 2, 3, 4, 0, 0, 0x05, 0xc0]);
        assert_eq!(answer(&message), Some((0x0102_0304, 1472)));
        assert_eq!(answer(&message[..7]), None);
    }
}
