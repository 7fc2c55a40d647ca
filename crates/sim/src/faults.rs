//! Network faults other than those of a satellite link.

use units::RngStream;

/// Faults between link and receiver, which damage or repeat datagrams. The link itself has loss,
/// outages, duplication and reordering. Probabilities are from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Probability that one bit of a datagram is flipped.
    pub corrupt: f64,
    /// Probability of truncation.
    pub truncate: f64,
    /// Probability of an immediate duplicate.
    pub duplicate: f64,
    /// Probability that an earlier datagram of that direction is replayed afterwards.
    pub replay: f64,
}

/// Number of earlier datagrams kept for replay.
const HISTORY: usize = 64;

/// Draws faults for one direction.
#[derive(Debug)]
pub(crate) struct FaultSource {
    rng: RngStream,
    past: Vec<Vec<u8>>,
}

impl FaultSource {
    pub(crate) fn new(rng: RngStream) -> Self {
        Self { rng, past: Vec::new() }
    }

    /// The datagrams that the receiver gets when `datagram` arrives.
    pub(crate) fn apply(&mut self, faults: &Faults, datagram: Vec<u8>) -> Vec<Vec<u8>> {
        if *faults == Faults::default() {
            return vec![datagram];
        }
        let mut out = Vec::new();
        if self.rng.chance(faults.replay) && !self.past.is_empty() {
            out.push(self.past[self.rng.below(self.past.len() as u64) as usize].clone());
        }
        self.remember(&datagram);
        let copies = 1 + usize::from(self.rng.chance(faults.duplicate));
        for _ in 0..copies {
            let mut copy = datagram.clone();
            if self.rng.chance(faults.truncate) {
                copy.truncate(self.rng.below(copy.len() as u64 + 1) as usize);
            }
            if self.rng.chance(faults.corrupt) && !copy.is_empty() {
                let bit = self.rng.below(copy.len() as u64 * 8);
                copy[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
            out.push(copy);
        }
        out
    }

    fn remember(&mut self, datagram: &[u8]) {
        if self.past.len() < HISTORY {
            self.past.push(datagram.to_vec());
        } else {
            let place = self.rng.below(HISTORY as u64) as usize;
            self.past[place] = datagram.to_vec();
        }
    }
}
