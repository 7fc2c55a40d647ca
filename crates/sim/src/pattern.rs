//! Bytes that can be checked without being kept.

use core::fmt;

/// An endless run of bytes, one for each seed: byte `n` follows from the seed and `n` alone, and
/// a byte that is lost, doubled or out of place does not go unnoticed for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern(pub u64);

impl Pattern {
    /// Fills `out` with the bytes from `offset` on.
    pub fn fill(self, offset: u64, out: &mut [u8]) {
        for (index, byte) in out.iter_mut().enumerate() {
            *byte = self.at(offset + index as u64);
        }
    }

    /// Where `bytes`, which should stand at `offset`, first differ from what they should be.
    pub fn mismatch(self, offset: u64, bytes: &[u8]) -> Option<u64> {
        (offset..).zip(bytes).find(|&(place, &byte)| byte != self.at(place)).map(|(place, _)| place)
    }

    fn at(self, offset: u64) -> u8 {
        let word = (offset / 8).wrapping_add(self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (word ^ (word >> 32)).to_le_bytes()[(offset % 8) as usize]
    }
}

/// Checks that a stream's bytes arrive each once, in order, and no more than were sent.
#[derive(Clone, Copy, Debug)]
pub struct StreamCheck {
    pattern: Pattern,
    received: u64,
}

impl StreamCheck {
    /// A stream that should carry `pattern`.
    pub fn new(pattern: Pattern) -> Self {
        Self { pattern, received: 0 }
    }

    /// Takes the next bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        if let Some(offset) = self.pattern.mismatch(self.received, bytes) {
            return Err(Broken { offset });
        }
        self.received += bytes.len() as u64;
        Ok(())
    }

    /// Bytes received so far.
    pub fn received(&self) -> u64 {
        self.received
    }
}

/// A byte is not the one that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Where in the stream.
    pub offset: u64,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} of the stream is not the one that was sent", self.offset)
    }
}

impl std::error::Error for Broken {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_doubled_and_moved_bytes_are_found() {
        let pattern = Pattern(3);
        let mut sent = vec![0; 4_096];
        pattern.fill(0, &mut sent);
        let mut check = StreamCheck::new(pattern);
        assert_eq!(check.take(&sent[..1_000]), Ok(()));
        assert_eq!(check.take(&sent[1_000..2_000]), Ok(()));
        assert_eq!(check.received(), 2_000);
        assert!(check.take(&sent[2_001..2_100]).is_err(), "lost");
        assert!(check.take(&sent[1_999..2_100]).is_err(), "doubled");
        assert!(check.take(&sent[3_000..3_100]).is_err(), "moved");
        assert!(StreamCheck::new(Pattern(4)).take(&sent[..100]).is_err(), "another stream's");
    }
}
