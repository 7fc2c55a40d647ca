//! Pseudo-random files that can be regenerated, with checksums of any prefix.

use xxhash_rust::xxh3::Xxh3;

/// The content of the file `seed`: octet `n` is determined by `seed` and `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    seed: u64,
}

impl Content {
    /// The file `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Fills `out` with the octets from `offset` on.
    pub fn fill(&self, offset: u64, out: &mut [u8]) {
        let skip = (offset % 8) as usize;
        let mut word = offset / 8;
        let (head, rest) = out.split_at_mut(if skip == 0 { 0 } else { (8 - skip).min(out.len()) });
        if !head.is_empty() {
            let bytes = self.word(word).to_le_bytes();
            head.copy_from_slice(&bytes[skip..skip + head.len()]);
            word += 1;
        }
        for chunk in rest.chunks_mut(8) {
            chunk.copy_from_slice(&self.word(word).to_le_bytes()[..chunk.len()]);
            word += 1;
        }
    }

    /// The checksum of the first `length` octets.
    pub fn checksum(&self, length: u64) -> u64 {
        let mut sum = Checksum::default();
        let mut block = vec![0; 64 << 10];
        let mut offset = 0;
        while offset < length {
            let take = block.len().min(usize::try_from(length - offset).unwrap_or(usize::MAX));
            self.fill(offset, &mut block[..take]);
            sum.update(&block[..take]);
            offset += take as u64;
        }
        sum.value()
    }

    /// A word of the file: the counter through a bijective mixing function (the finaliser of
    /// SplitMix64).
    /// finaliser of SplitMix64).
    fn word(&self, index: u64) -> u64 {
        let mut z = (self.seed ^ index.rotate_left(32)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) ^ index
    }
}

/// A running checksum (XXH3, 64 bits).
#[derive(Clone, Default)]
pub struct Checksum {
    state: Xxh3,
}

impl Checksum {
    /// Adds the next octets.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    /// The checksum of all octets so far.
    pub fn value(&self) -> u64 {
        self.state.digest()
    }
}

impl std::fmt::Debug for Checksum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Checksum({:016x})", self.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_does_not_depend_on_the_piece_size() {
        let file = Content::new(7);
        let mut whole = vec![0; 1000];
        file.fill(0, &mut whole);
        for (offset, length) in [(0, 1), (1, 3), (5, 11), (7, 1), (8, 8), (13, 900), (999, 1)] {
            let mut piece = vec![0; length];
            file.fill(offset as u64, &mut piece);
            assert_eq!(piece, whole[offset..offset + length], "{length} bytes from {offset}");
        }
    }

    #[test]
    fn checksum_of_a_prefix() {
        let file = Content::new(9);
        let mut bytes = vec![0; 200_001];
        file.fill(0, &mut bytes);
        let mut sum = Checksum::default();
        bytes.chunks(777).for_each(|chunk| sum.update(chunk));
        assert_eq!(sum.value(), file.checksum(bytes.len() as u64));
        bytes[123_456] ^= 1;
        let mut other = Checksum::default();
        other.update(&bytes);
        assert_ne!(other.value(), sum.value());
        assert_ne!(Content::new(8).checksum(200_001), sum.value());
    }
}
