//! Octets that can be verified without being stored.

use core::fmt;

/// An endless sequence of octets per seed: octet `n` is determined by the seed and `n` alone, so
/// that lost, duplicated or displaced octets are detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern(pub u64);

/// An odd number with irregular bits, so that neighbouring words are unrelated.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Pattern {
    /// Fills `out` with the octets from `offset` on.
    pub fn fill(self, offset: u64, out: &mut [u8]) {
        let (head, words, tail) = split(offset);
        let (start, rest) = out.split_at_mut(head.min(out.len()));
        self.fill_bytes(offset, start);
        let (whole, end) = rest.as_chunks_mut::<8>();
        let mut state = self.state(words);
        for chunk in whole.iter_mut() {
            *chunk = scramble(state).to_le_bytes();
            state = state.wrapping_add(STEP);
        }
        self.fill_bytes(tail + 8 * whole.len() as u64, end);
    }

    /// The first offset at which `bytes` at `offset` differ from the pattern.
    pub fn mismatch(self, offset: u64, bytes: &[u8]) -> Option<u64> {
        if self.is_whole(offset, bytes) {
            return None;
        }
        (offset..).zip(bytes).find(|&(place, &byte)| byte != self.at(place)).map(|(place, _)| place)
    }

    /// Whether `bytes` match the pattern, a word at a time and without a branch.
    fn is_whole(self, offset: u64, bytes: &[u8]) -> bool {
        let (head, words, tail) = split(offset);
        let (start, rest) = bytes.split_at(head.min(bytes.len()));
        let (whole, end) = rest.as_chunks::<8>();
        let mut state = self.state(words);
        let mut wrong = 0;
        for &chunk in whole {
            wrong |= u64::from_le_bytes(chunk) ^ scramble(state);
            state = state.wrapping_add(STEP);
        }
        let right = |from: u64, bytes: &[u8]| (from..).zip(bytes).all(|(n, &b)| b == self.at(n));
        wrong == 0 && right(offset, start) && right(tail + 8 * whole.len() as u64, end)
    }

    fn fill_bytes(self, offset: u64, out: &mut [u8]) {
        for (place, byte) in (offset..).zip(out) {
            *byte = self.at(place);
        }
    }

    /// The state of the word at `8 * number`.
    fn state(self, number: u64) -> u64 {
        number.wrapping_add(self.0).wrapping_mul(STEP)
    }

    fn at(self, offset: u64) -> u8 {
        scramble(self.state(offset / 8)).to_le_bytes()[(offset % 8) as usize]
    }
}

fn scramble(state: u64) -> u64 {
    state ^ (state >> 32)
}

/// Octets from `offset` to the next whole word, that word's number, and its offset.
fn split(offset: u64) -> (usize, u64, u64) {
    let word = offset.div_ceil(8);
    ((word * 8 - offset) as usize, word, word * 8)
}

/// Verifies that a stream's octets arrive in order and once.
#[derive(Clone, Copy, Debug)]
pub struct StreamCheck {
    pattern: Pattern,
    received: u64,
}

impl StreamCheck {
    /// A stream of `pattern`.
    pub fn new(pattern: Pattern) -> Self {
        Self { pattern, received: 0 }
    }

    /// Verifies the next octets.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        if let Some(offset) = self.pattern.mismatch(self.received, bytes) {
            return Err(Broken { offset });
        }
        self.received += bytes.len() as u64;
        Ok(())
    }

    /// Octets received so far.
    pub fn received(&self) -> u64 {
        self.received
    }
}

/// An octet differs from the one that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its offset in the stream.
    pub offset: u64,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} of the stream differs from the one that was sent", self.offset)
    }
}

impl std::error::Error for Broken {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_bytes_are_the_same_pattern() {
        let pattern = Pattern(u64::MAX - 3);
        for offset in 0..20 {
            for len in 0..40 {
                let mut bytes = vec![0; len];
                pattern.fill(offset, &mut bytes);
                let single = (offset..offset + len as u64).map(|place| pattern.at(place));
                assert!(single.eq(bytes.iter().copied()), "{offset} {len}");
                assert_eq!(pattern.mismatch(offset, &bytes), None);
                for wrong in 0..len {
                    let mut bytes = bytes.clone();
                    bytes[wrong] ^= 0x10;
                    let found = pattern.mismatch(offset, &bytes);
                    assert_eq!(found, Some(offset + wrong as u64), "{offset} {len}");
                }
            }
        }
    }

    #[test]
    fn lost_duplicated_and_moved_bytes_are_detected() {
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
