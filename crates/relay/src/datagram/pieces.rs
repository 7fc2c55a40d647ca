//! Reassembly of packets from pieces.

use crate::ranges::RangeSet;
use std::collections::VecDeque;
use units::{Instant, Span};

/// Maximum number of incomplete packets; the oldest one is discarded for another.
const MOST: usize = 32;
/// Reassembly timeout, long enough for a large packet on a low-rate path.
const LONGEST: Span = Span::from_secs(30);

/// An incomplete packet.
#[derive(Debug)]
struct Partial {
    number: u16,
    data: Vec<u8>,
    have: RangeSet,
    /// Number of missing bytes.
    missing: u64,
    begun: Instant,
}

/// All incomplete packets.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    partials: VecDeque<Partial>,
    /// Number of discarded packets.
    pub(super) lost: u64,
}

impl Pieces {
    /// Adds a piece of the packet `number`, of `total` bytes; returns the packet when it is
    /// complete. The piece lies within the packet.
    pub(super) fn take(
        &mut self,
        now: Instant,
        number: u16,
        total: usize,
        offset: usize,
        piece: &[u8],
    ) -> Option<Vec<u8>> {
        let before = self.partials.len();
        self.partials.retain(|partial| {
            now.since(partial.begun) < LONGEST
                && (partial.number != number || partial.data.len() == total)
        });
        self.lost += (before - self.partials.len()) as u64;
        let known = self.partials.iter().position(|partial| partial.number == number);
        let at = known.unwrap_or_else(|| {
            if self.partials.len() >= MOST {
                self.partials.pop_front();
                self.lost += 1;
            }
            let (data, have) = (vec![0; total], RangeSet::default());
            let missing = total as u64;
            self.partials.push_back(Partial { number, data, have, missing, begun: now });
            self.partials.len() - 1
        });
        let partial = &mut self.partials[at];
        partial.data[offset..offset + piece.len()].copy_from_slice(piece);
        partial.missing -= partial.have.insert(offset as u64, (offset + piece.len()) as u64);
        if partial.missing > 0 {
            return None;
        }
        self.partials.remove(at).map(|partial| partial.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RLY-6.4
    #[test]
    fn pieces_are_reassembled_in_any_order_and_bounded() {
        let mut pieces = Pieces::default();
        let now = Instant::ZERO;
        assert_eq!(pieces.take(now, 1, 5, 3, b"lo"), None);
        assert_eq!(pieces.take(now, 1, 5, 3, b"lo"), None, "twice is once");
        assert_eq!(pieces.take(now, 1, 5, 0, b"hel"), Some(b"hello".to_vec()));
        // The number was reused: another size is another packet.
        assert_eq!(pieces.take(now, 2, 5, 0, b"hel"), None);
        assert_eq!(pieces.take(now, 2, 4, 2, b"lo"), None);
        assert_eq!((pieces.lost, pieces.partials.len()), (1, 1));
        for number in 100..200 {
            pieces.take(now, number, 60_000, 0, b"x");
        }
        assert_eq!((pieces.lost, pieces.partials.len()), (70, MOST));
        pieces.take(now + LONGEST, 1, 2, 0, b"x");
        assert_eq!((pieces.lost, pieces.partials.len()), (102, 1));
    }
}
