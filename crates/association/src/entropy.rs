//! Randomness, handed in.

use core::fmt;
use units::RngStream;

/// Where an association takes its randomness from: keys, indices, secrets for cookies.
///
/// A gateway hands in the operating system's generator. A seeded stream is for simulation: whoever
/// knows the seed knows every key.
pub trait Entropy: fmt::Debug + Send {
    /// Fills `out` with random bytes.
    fn fill(&mut self, out: &mut [u8]);
}

/// For simulation and tests: every byte can be foretold from the seed.
impl Entropy for RngStream {
    fn fill(&mut self, out: &mut [u8]) {
        for room in out.chunks_mut(8) {
            let word = self.next_u64().to_be_bytes();
            room.copy_from_slice(&word[..room.len()]);
        }
    }
}

/// `N` random bytes.
pub(crate) fn draw<const N: usize>(entropy: &mut dyn Entropy) -> [u8; N] {
    let mut out = [0; N];
    entropy.fill(&mut out);
    out
}
