//! Randomness as an argument.

use core::fmt;
use units::RngStream;

/// Source of randomness of an association: for keys, indices and cookie secrets. A gateway passes
/// the operating system's generator. A seeded stream is for simulation: its seed determines every
/// key.
pub trait Entropy: fmt::Debug + Send {
    /// Fills `out` with random octets.
    fn fill(&mut self, out: &mut [u8]);
}

/// For simulation and tests: the seed determines every octet.
impl Entropy for RngStream {
    fn fill(&mut self, out: &mut [u8]) {
        for room in out.chunks_mut(8) {
            let word = self.next_u64().to_be_bytes();
            room.copy_from_slice(&word[..room.len()]);
        }
    }
}

/// Returns `N` random octets.
pub(crate) fn draw<const N: usize>(entropy: &mut dyn Entropy) -> [u8; N] {
    let mut out = [0; N];
    entropy.fill(&mut out);
    out
}
