//! Hashes of runs.

use units::Instant;

/// A running hash of events: equal for equal runs; others differ with high probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHash(u64);

impl TraceHash {
    /// The hash of no events.
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds an event: its time, kind and octets.
    pub fn event(&mut self, at: Instant, kind: u64, bytes: &[u8]) {
        self.bytes(&at.as_nanos().to_le_bytes());
        self.bytes(&kind.to_le_bytes());
        self.bytes(&(bytes.len() as u64).to_le_bytes());
        self.bytes(bytes);
    }

    /// The hash so far.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// FNV-1a over eight octets at a time.
    fn bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3);
            self.0 ^= self.0 >> 29;
        }
    }
}

impl Default for TraceHash {
    fn default() -> Self {
        Self::new()
    }
}
