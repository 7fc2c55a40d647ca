//! What a hostile network does beyond what a satellite does.

use units::RngStream;

/// Faults between the link and the receiver. The link has its own losses, outages, duplicates
/// and reordering; these damage what is inside a datagram. Shares from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Share of the datagrams in which one bit is flipped.
    pub corrupt: f64,
    /// Share that loses some of its end.
    pub truncate: f64,
    /// Share that is delivered twice at once.
    pub duplicate: f64,
    /// Share after which some earlier datagram of that direction comes once more.
    pub replay: f64,
}

/// How many earlier datagrams may come again.
const REMEMBERED: usize = 64;

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

    /// What the receiver gets when `datagram` arrives.
    pub(crate) fn strike(&mut self, faults: &Faults, datagram: Vec<u8>) -> Vec<Vec<u8>> {
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
        if self.past.len() < REMEMBERED {
            self.past.push(datagram.to_vec());
        } else {
            let place = self.rng.below(REMEMBERED as u64) as usize;
            self.past[place] = datagram.to_vec();
        }
    }
}
