//! The half of a stream that this side writes.

use crate::buffer::ChunkBuffer;
use crate::ranges::RangeSet;

/// How far the end of a half has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    /// More may be written.
    Open,
    /// Nothing more will be; the end has not been sent, or has to be sent anew.
    Wanted,
    /// The end is in a packet.
    Sent,
    /// The peer has it.
    Released,
}

/// Credit that young streams draw on before they have some of their own; the peer returns it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SharedCredit {
    pub(crate) size: u64,
    /// Bytes sent on it, ever.
    pub(crate) charged: u64,
    /// Bytes of those that the peer gave back, ever.
    pub(crate) returned: u64,
}

impl SharedCredit {
    pub(crate) fn left(&self) -> u64 {
        // A peer that returns more than was charged gives nothing by it.
        self.size.saturating_sub(self.charged - self.returned.min(self.charged))
    }
}

/// Bytes that may go into a packet together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) charged: bool,
}

/// Bytes from when they are written until the peer has them.
#[derive(Debug)]
pub(crate) struct SendHalf {
    buffer: ChunkBuffer,
    /// One past the last byte written.
    end: u64,
    /// The first byte that was never in a packet.
    next: u64,
    /// Bytes to be put into packets again, because theirs shrank.
    requeued: RangeSet,
    /// Bytes above the buffer's base that the peer has.
    released: RangeSet,
    /// Bytes that the peer surely takes.
    limit: u64,
    /// Whether the peer gave this stream credit of its own; from then on it draws on no other's.
    granted: bool,
    /// The credit that it had from the start.
    minimum: u64,
    /// Bytes from `minimum` to here were sent on shared credit.
    charged_end: u64,
    finish: Finish,
}

impl SendHalf {
    pub(crate) fn new(minimum: u64) -> Self {
        Self {
            buffer: ChunkBuffer::default(),
            end: 0,
            next: 0,
            requeued: RangeSet::default(),
            released: RangeSet::default(),
            limit: minimum,
            granted: false,
            minimum,
            charged_end: minimum,
            finish: Finish::Open,
        }
    }

    /// Sets the credit that the stream has from the start, once the peer has said it.
    pub(crate) fn set_minimum(&mut self, minimum: u64) {
        debug_assert_eq!(self.next, 0, "the peer's limits come before anything is sent");
        self.limit = minimum;
        self.minimum = minimum;
        self.charged_end = minimum;
    }

    pub(crate) fn is_open(&self) -> bool {
        self.finish == Finish::Open
    }

    /// Bytes in memory.
    pub(crate) fn held(&self) -> u64 {
        self.end - self.buffer.base()
    }

    /// Bytes in memory that were never in a packet.
    pub(crate) fn unsent(&self) -> u64 {
        self.end - self.next.max(self.buffer.base())
    }

    /// Bytes beyond what was sent that may be sent, given `shared` bytes of shared credit.
    pub(crate) fn credit(&self, shared: u64) -> u64 {
        let shared = if self.granted { 0 } else { shared };
        self.limit.saturating_sub(self.next).saturating_add(shared)
    }

    /// What was sent: the final offset of a reset.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// Bytes sent on shared credit.
    pub(crate) fn charged(&self) -> u64 {
        self.charged_end - self.minimum
    }

    pub(crate) fn write(&mut self, data: &[u8]) {
        debug_assert!(self.is_open());
        self.buffer.write(self.end, data);
        self.end += data.len() as u64;
    }

    pub(crate) fn finish(&mut self) {
        debug_assert!(self.is_open());
        self.finish = Finish::Wanted;
    }

    /// Raises the limit; true when that was news.
    pub(crate) fn grant(&mut self, limit: u64) -> bool {
        self.granted = true;
        let news = limit > self.limit;
        self.limit = self.limit.max(limit);
        news
    }

    /// Whether there is something to send that `shared` bytes of shared credit allow.
    pub(crate) fn is_ready(&self, shared: u64) -> bool {
        self.piece(shared).is_some() || self.wants_end()
    }

    /// Whether only the want of shared credit keeps it from sending.
    pub(crate) fn waits_for_shared(&self) -> bool {
        !self.granted && self.next < self.end && self.next >= self.limit && self.requeued.is_empty()
    }

    /// Whether the end is all that is left to send.
    pub(crate) fn wants_end(&self) -> bool {
        self.finish == Finish::Wanted && self.next == self.end && self.requeued.is_empty()
    }

    /// Whether a piece that ends at `end` may carry the stream's end.
    pub(crate) fn ends_at(&self, end: u64) -> bool {
        // With something requeued the end would still be true, and could be repeated at no cost;
        // but `Sent` must mean that one packet in flight carries it.
        self.finish == Finish::Wanted && end == self.end
    }

    /// What goes next, given `shared` bytes of shared credit.
    pub(crate) fn piece(&self, shared: u64) -> Option<Piece> {
        if let Some((offset, end)) = self.requeued.first() {
            let bound = [self.minimum, self.charged_end].into_iter().find(|&bound| bound > offset);
            let end = bound.map_or(end, |bound| bound.min(end));
            return Some(Piece { offset, len: end - offset, charged: self.is_charged(offset) });
        }
        let (allowed, charged) = if self.next < self.limit {
            (self.limit - self.next, false)
        } else if !self.granted {
            (shared, true)
        } else {
            (0, false)
        };
        let len = allowed.min(self.unsent());
        (len > 0).then_some(Piece { offset: self.next, len, charged })
    }

    /// Whether something may be left to send after `piece`.
    pub(crate) fn has_more_than(&self, piece: Piece) -> bool {
        !self.requeued.is_empty() || piece.len < self.unsent()
    }

    /// Whether the byte at `offset`, which was sent, was sent on shared credit.
    pub(crate) fn is_charged(&self, offset: u64) -> bool {
        (self.minimum..self.charged_end).contains(&offset)
    }

    /// Notes that the first `len` bytes of `piece` are in a packet; returns how much shared
    /// credit that took.
    pub(crate) fn take(&mut self, piece: Piece, len: u64) -> u64 {
        let end = piece.offset + len;
        if piece.offset < self.next {
            let (_, range_end) = self.requeued.first().unwrap_or((piece.offset, end));
            self.requeued.remove_below(end.min(range_end));
            return 0;
        }
        self.next = end;
        if piece.charged {
            self.charged_end = end;
            return len;
        }
        0
    }

    /// Notes that the end is in a packet.
    pub(crate) fn take_end(&mut self) {
        self.finish = Finish::Sent;
    }

    /// Puts bytes that a packet lost room for back among those to be sent.
    pub(crate) fn requeue(&mut self, offset: u64, end: u64) {
        self.requeued.insert(offset.max(self.buffer.base()), end);
    }

    /// Puts the end back among what is to be sent.
    pub(crate) fn requeue_end(&mut self) {
        if self.finish == Finish::Sent {
            self.finish = Finish::Wanted;
        }
    }

    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) {
        self.buffer.read(offset, out);
    }

    /// The peer has `offset..end`; returns how many bytes of memory that freed.
    pub(crate) fn release(&mut self, offset: u64, end: u64) -> u64 {
        let base = self.buffer.base();
        if offset > base {
            self.released.insert(offset, end);
            return 0;
        }
        let mut to = end.max(base);
        self.released.remove_below(to);
        while let Some((start, stop)) = self.released.first() {
            if start > to {
                break;
            }
            to = to.max(stop);
            self.released.remove_below(to);
        }
        self.requeued.remove_below(to);
        self.buffer.advance(to, to == self.end);
        to - base
    }

    /// The peer has the end.
    pub(crate) fn release_end(&mut self) {
        if self.finish == Finish::Sent {
            self.finish = Finish::Released;
        }
    }

    /// Whether the peer has everything, the end included.
    pub(crate) fn is_done(&self) -> bool {
        self.finish == Finish::Released && self.buffer.base() == self.end
    }

    /// Forgets all bytes; returns how many there were.
    pub(crate) fn discard(&mut self) -> u64 {
        let held = self.held();
        self.buffer.advance(self.end, true);
        self.requeued = RangeSet::default();
        self.released = RangeSet::default();
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: u64, len: u64, charged: bool) -> Option<Piece> {
        Some(Piece { offset, len, charged })
    }

    /// RLY-4.2
    #[test]
    fn a_young_stream_uses_its_own_credit_then_the_shared_and_never_again_after_a_grant() {
        let mut half = SendHalf::new(1_000);
        half.write(&[0; 5_000]);
        assert_eq!(half.piece(2_000), piece(0, 1_000, false));
        assert_eq!(half.take(half.piece(2_000).unwrap(), 1_000), 0);
        assert_eq!(half.piece(2_000), piece(1_000, 2_000, true));
        assert_eq!(half.take(half.piece(2_000).unwrap(), 1_500), 1_500);
        assert_eq!(half.charged(), 1_500);
        assert!(!half.is_ready(0));
        assert!(half.waits_for_shared());
        assert!(!half.grant(500), "less than it has, and still a grant");
        assert_eq!(half.piece(2_000), None);
        assert!(half.grant(3_000));
        assert_eq!(half.piece(2_000), piece(2_500, 500, false));
    }

    #[test]
    fn what_is_requeued_goes_first_and_keeps_its_charge() {
        let mut half = SendHalf::new(1_000);
        half.write(&[0; 3_000]);
        half.take(half.piece(9_000).unwrap(), 1_000);
        half.take(half.piece(9_000).unwrap(), 1_000);
        half.requeue(800, 1_200);
        assert_eq!(half.piece(0), piece(800, 200, false), "one piece has one kind of credit");
        assert_eq!(half.take(half.piece(0).unwrap(), 200), 0);
        assert_eq!(half.piece(0), piece(1_000, 200, true));
        assert_eq!(half.take(half.piece(0).unwrap(), 150), 0);
        assert_eq!(half.piece(0), piece(1_150, 50, true));
        half.release(0, 2_000);
        assert_eq!(half.piece(9_000), piece(2_000, 1_000, true));
    }

    #[test]
    fn memory_is_freed_from_below_and_all_of_it_in_the_end() {
        let mut half = SendHalf::new(100);
        half.write(&[0; 100]);
        half.finish();
        let all = half.piece(0).unwrap();
        assert!(half.ends_at(all.offset + all.len));
        half.take(all, 100);
        half.take_end();
        assert_eq!(half.release(50, 100), 0);
        assert_eq!(half.release(20, 50), 0);
        assert_eq!(half.release(0, 20), 100);
        assert!(!half.is_done());
        half.release_end();
        assert!(half.is_done());
        assert_eq!(half.held(), 0);
    }

    #[test]
    fn returns_beyond_what_was_charged_are_worth_nothing() {
        let credit = SharedCredit { size: 10, charged: 4, returned: 100 };
        assert_eq!(credit.left(), 10);
    }
}
