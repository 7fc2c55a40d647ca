//! Parts of a hub: each has the associations of some of the terminals and runs on its own.
//!
//! ```text
//!   Hello ─────────────────────▶ part 0 ──terminal of part p──▶ part p ──▶ Welcome
//!   sealed, index i ───────────▶ part i mod count
//! ```
//!
//! All parts have the address and the private key of the hub. Part 0 limits the rate of Hellos for
//! all of them, and each part chooses indices from which its number can be computed.

use crate::recent_senders::VerifiedSenders;
use crate::wire::{INDEX_MASK, VERSION};

/// One of the parts of a hub.
#[derive(Clone, Debug)]
pub struct Part {
    number: u32,
    count: u32,
    /// Addresses from which terminals of any part were received; `None` if there is one part.
    verified: Option<VerifiedSenders>,
}

impl Default for Part {
    /// Returns the only part of a hub.
    fn default() -> Self {
        Self { number: 0, count: 1, verified: None }
    }
}

impl Part {
    /// Returns `count` parts, at least one; `seed` is the key of the hashes of senders' addresses.
    pub fn all(count: u32, seed: u64) -> Vec<Self> {
        let verified = (count > 1).then(|| VerifiedSenders::new(seed));
        let one = |number| Self { number, count: count.max(1), verified: verified.clone() };
        (0..count.max(1)).map(one).collect()
    }

    /// Returns its number, from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the number of parts.
    pub fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn verified(&self) -> Option<VerifiedSenders> {
        self.verified.clone()
    }

    /// Turns a random number into an index of this part, if that gives one.
    pub(crate) fn index(&self, random: u32) -> Option<u32> {
        let index = random & INDEX_MASK;
        let index = index - index % self.count + self.number;
        (index != 0 && index <= INDEX_MASK).then_some(index)
    }
}

/// Returns the number of the part, of `count`, that processes `datagram`: the one with the index of
/// a sealed datagram, and part 0 for everything else.
pub fn part_of(datagram: &[u8], count: u32) -> u32 {
    match *datagram {
        [first, a, b, c, ..] if SEALED.contains(&first) => {
            u32::from_be_bytes([0, a, b, c]) % count.max(1)
        }
        _ => 0,
    }
}

/// First octets of sealed datagrams: version and kind.
pub const SEALED: [u8; 3] = [VERSION << 4 | 3, VERSION << 4 | 6, VERSION << 4 | 7];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Header, Kind, OVERHEAD};

    #[test]
    fn indices_of_a_part_lead_to_it() {
        for count in [1, 2, 3, 64] {
            for part in Part::all(count, 1) {
                for random in [0, 1, 63, 64, 0x00ab_cdef, INDEX_MASK - 1, u32::MAX] {
                    let Some(index) = part.index(random) else { continue };
                    let mut datagram = vec![0; OVERHEAD];
                    Header { kind: Kind::Data, index, counter: 7 }.encode(&mut datagram);
                    assert_eq!(part_of(&datagram, count), part.number());
                }
                assert!(part.index(0x00ab_cdef).is_some());
            }
        }
    }

    #[test]
    fn only_sealed_datagrams_are_found_by_their_index() {
        let kinds = [
            (Kind::Hello, 0),
            (Kind::Welcome, 0),
            (Kind::Data, 1),
            (Kind::Unknown, 0),
            (Kind::Cookie, 0),
            (Kind::Probe, 1),
            (Kind::ProbeAck, 1),
        ];
        for (kind, part) in kinds {
            let mut datagram = vec![0; OVERHEAD];
            Header { kind, index: 5, counter: 0 }.encode(&mut datagram);
            assert_eq!(part_of(&datagram, 2), part, "{kind:?}");
            datagram[0] ^= 0x30;
            assert_eq!(part_of(&datagram, 2), 0, "another version");
        }
        assert_eq!(part_of(&[0x13, 0, 0], 2), 0, "too short");
    }
}
