//! The send side of a stream.

use crate::buffer::ChunkBuffer;
use crate::ranges::RangeSet;

/// State of a stream's FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    /// More data may be written.
    Open,
    /// The stream is finished; the FIN was not sent, or needs retransmission.
    Wanted,
    /// The FIN is in a packet.
    Sent,
    /// The FIN was acknowledged.
    Released,
}

/// Credit for streams without a per-stream limit yet; the peer returns it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SharedCredit {
    pub(crate) size: u64,
    /// Bytes sent on it, in total.
    pub(crate) charged: u64,
    /// Bytes of these that the peer returned, in total.
    pub(crate) returned: u64,
}

impl SharedCredit {
    pub(crate) fn left(&self) -> u64 {
        // A peer that returns more than was charged adds no credit.
        self.size.saturating_sub(self.charged - self.returned.min(self.charged))
    }
}

/// A range of bytes for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) charged: bool,
}

/// Bytes of a stream from writing to acknowledgment.
#[derive(Debug)]
pub(crate) struct SendHalf {
    buffer: ChunkBuffer,
    /// One past the last written byte.
    end: u64,
    /// The first byte that was not sent yet.
    next: u64,
    /// Bytes to be packetized again, because their packet became smaller in a retransmission.
    requeued: RangeSet,
    /// Acknowledged bytes above the buffer's base.
    released: RangeSet,
    /// The stream's flow-control limit.
    limit: u64,
    /// Whether the peer granted a per-stream limit; from then on it uses no shared credit.
    granted: bool,
    /// The stream's initial credit.
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

    /// Sets the initial credit, once the peer has announced it.
    pub(crate) fn set_minimum(&mut self, minimum: u64) {
        debug_assert_eq!(self.next, 0, "the peer's limits come before anything is sent");
        self.limit = minimum;
        self.minimum = minimum;
        self.charged_end = minimum;
    }

    pub(crate) fn is_open(&self) -> bool {
        self.finish == Finish::Open
    }

    /// Returns the offset of the first stored byte: all before it were acknowledged.
    pub(crate) fn first_held(&self) -> u64 {
        self.buffer.base()
    }

    /// Returns the number of stored bytes.
    pub(crate) fn held(&self) -> u64 {
        self.end - self.buffer.base()
    }

    /// Returns the number of stored bytes that were not sent yet.
    pub(crate) fn unsent(&self) -> u64 {
        self.end - self.next.max(self.buffer.base())
    }

    /// Returns the number of further bytes that may be sent, with `shared` bytes of shared credit.
    pub(crate) fn credit(&self, shared: u64) -> u64 {
        let shared = if self.granted { 0 } else { shared };
        self.limit.saturating_sub(self.next).saturating_add(shared)
    }

    /// Returns the number of bytes sent: the final offset of a reset.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// Returns the number of bytes sent on shared credit.
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

    /// Raises the limit; returns whether it has changed.
    pub(crate) fn grant(&mut self, limit: u64) -> bool {
        self.granted = true;
        let news = limit > self.limit;
        self.limit = self.limit.max(limit);
        news
    }

    /// Returns whether there is data to send that `shared` bytes of shared credit permit.
    pub(crate) fn is_ready(&self, shared: u64) -> bool {
        self.piece(shared).is_some() || self.wants_end()
    }

    /// Returns whether it is blocked only by a lack of shared credit.
    pub(crate) fn waits_for_shared(&self) -> bool {
        !self.granted && self.next < self.end && self.next >= self.limit && self.requeued.is_empty()
    }

    /// Returns whether only the FIN remains to be sent.
    pub(crate) fn wants_end(&self) -> bool {
        self.finish == Finish::Wanted && self.next == self.end && self.requeued.is_empty()
    }

    /// Returns whether a packet whose data ends at `end` may carry the FIN.
    pub(crate) fn ends_at(&self, end: u64) -> bool {
        // With requeued bytes the FIN would be valid too, but `Sent` means that one packet in
        // flight carries it.
        self.finish == Finish::Wanted && end == self.end
    }

    /// Returns the next range to send, with `shared` bytes of shared credit.
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

    /// Returns whether data may remain to be sent after `piece`.
    pub(crate) fn has_more_than(&self, piece: Piece) -> bool {
        !self.requeued.is_empty() || piece.len < self.unsent()
    }

    /// Returns whether the sent byte at `offset` used shared credit.
    pub(crate) fn is_charged(&self, offset: u64) -> bool {
        (self.minimum..self.charged_end).contains(&offset)
    }

    /// Records that the first `len` bytes of `piece` are in a packet; returns the shared credit
    /// that they used.
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

    /// Records that the FIN is in a packet.
    pub(crate) fn take_end(&mut self) {
        self.finish = Finish::Sent;
    }

    /// Queues bytes that no longer fit into their packet.
    pub(crate) fn requeue(&mut self, offset: u64, end: u64) {
        let offset = offset.max(self.buffer.base());
        if offset < end {
            self.requeued.insert(offset, end);
        }
    }

    /// Queues the FIN again.
    pub(crate) fn requeue_end(&mut self) {
        if self.finish == Finish::Sent {
            self.finish = Finish::Wanted;
        }
    }

    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) {
        self.buffer.read(offset, out);
    }

    /// Handles the acknowledgment of `offset..end`; returns the number of freed bytes.
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

    /// Handles the acknowledgment of the FIN.
    pub(crate) fn release_end(&mut self) {
        if self.finish == Finish::Sent {
            self.finish = Finish::Released;
        }
    }

    /// Returns whether everything was acknowledged, including the FIN.
    pub(crate) fn is_done(&self) -> bool {
        self.finish == Finish::Released && self.buffer.base() == self.end
    }

    /// Discards all bytes; returns their number.
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
    fn shared_credit_is_used_after_the_minimum_and_before_a_grant() {
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
    fn requeued_bytes_precede_others_and_keep_their_charge() {
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
    fn acknowledged_memory_is_freed_in_order() {
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
    fn returns_above_the_charge_add_no_credit() {
        let credit = SharedCredit { size: 10, charged: 4, returned: 100 };
        assert_eq!(credit.left(), 10);
    }
}
