//! Putting together what did not fit into one packet.

use crate::ranges::RangeSet;
use std::collections::VecDeque;
use units::{Instant, Span};

/// Packets that are put together at a time; the one begun first makes room.
const MOST: usize = 32;
/// How long one may take: a large packet over a narrow way.
const LONGEST: Span = Span::from_secs(30);

/// A packet of which pieces are there.
#[derive(Debug)]
struct Partial {
    number: u16,
    data: Vec<u8>,
    have: RangeSet,
    /// Bytes that are not there.
    missing: u64,
    begun: Instant,
}

/// All packets of which pieces are there.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    partials: VecDeque<Partial>,
    /// Packets that were given up.
    pub(super) lost: u64,
}

impl Pieces {
    /// Takes a piece of the packet `number`, of `total` bytes; returns the packet when that was
    /// the last one. The piece lies within the packet.
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
    fn pieces_make_a_packet_in_any_order_and_are_bounded() {
        let mut pieces = Pieces::default();
        let now = Instant::ZERO;
        assert_eq!(pieces.take(now, 1, 5, 3, b"lo"), None);
        assert_eq!(pieces.take(now, 1, 5, 3, b"lo"), None, "twice is once");
        assert_eq!(pieces.take(now, 1, 5, 0, b"hel"), Some(b"hello".to_vec()));
        // The number came round: another size is another packet.
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
