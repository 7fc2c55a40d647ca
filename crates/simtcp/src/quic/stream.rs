//! The octets of a connection's stream, in both directions.

use crate::ranges::Ranges;
use crate::segment::Block;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// The send side: octets are kept until they are acknowledged.
#[derive(Clone, Debug)]
pub(super) struct SendSide {
    /// Octets from `base` on.
    bytes: VecDeque<u8>,
    base: u64,
    capacity: u64,
    /// First octet never sent.
    next: u64,
    acknowledged: Ranges,
    /// Octets in lost packets, and in packets that a probe repeats.
    lost: Ranges,
    /// MAX_STREAM_DATA of the peer.
    limit: u64,
    ended: bool,
    /// The FIN: to be sent, and acknowledged.
    fin_due: bool,
    fin_acknowledged: bool,
}

impl SendSide {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            bytes: VecDeque::new(),
            base: 0,
            capacity,
            next: 0,
            acknowledged: Ranges::default(),
            lost: Ranges::default(),
            limit: 0,
            ended: false,
            fin_due: false,
            fin_acknowledged: false,
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        if self.ended {
            return 0;
        }
        let taken = bytes.len().min(self.room() as usize);
        self.bytes.extend(&bytes[..taken]);
        taken
    }

    pub(super) fn room(&self) -> u64 {
        self.capacity.saturating_sub(self.bytes.len() as u64)
    }

    pub(super) fn end(&mut self) {
        self.fin_due |= !self.ended;
        self.ended = true;
    }

    fn written(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    pub(super) fn allow(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Octets written and never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.written() - self.next
    }

    /// The next octets to send, at most `room`, and whether the FIN follows them; lost ones first.
    pub(super) fn next(&self, room: u64) -> Option<(Block, bool)> {
        let block = match self.lost.first() {
            Some((start, end)) => (start, end.min(start + room)),
            None => (self.next, self.written().min(self.limit).min(self.next + room)),
        };
        let fin = self.fin_due && block.1 == self.written();
        (block.0 < block.1 || fin).then_some((block, fin))
    }

    /// Whether there is something that was never sent.
    pub(super) fn has_new(&self) -> bool {
        self.next < self.written().min(self.limit)
    }

    /// Whether the octet at `offset` was sent before.
    pub(super) fn is_old(&self, offset: u64) -> bool {
        offset < self.next
    }

    pub(super) fn on_sent(&mut self, (_, end): Block, fin: bool) {
        if self.lost.first().is_some() {
            self.lost.remove_below(end);
        }
        self.next = self.next.max(end);
        self.fin_due &= !fin;
    }

    pub(super) fn on_acknowledged(&mut self, block: Option<Block>, fin: bool) {
        self.fin_acknowledged |= fin;
        let Some(block) = block else { return };
        self.acknowledged.insert(block);
        let Some((start, end)) = self.acknowledged.first() else { return };
        if start <= self.base && end > self.base {
            self.bytes.drain(..(end - self.base) as usize);
            self.base = end;
            self.lost.remove_below(end);
        }
    }

    /// Marks octets for retransmission, but those that are acknowledged.
    pub(super) fn on_lost(&mut self, block: Option<Block>, fin: bool) {
        self.fin_due |= fin && !self.fin_acknowledged;
        let Some((start, end)) = block else { return };
        let mut from = start.max(self.base);
        while let Some(gap) = self.acknowledged.gap_from(from, end).filter(|gap| gap.0 < end) {
            self.lost.insert(gap);
            from = gap.1;
        }
    }

    /// Copies the octets from `offset` on into `out`.
    pub(super) fn fill(&self, offset: u64, out: &mut [u8]) {
        let start = (offset - self.base) as usize;
        let (first, second) = self.bytes.as_slices();
        let head = first.len().saturating_sub(start).min(out.len());
        if head > 0 {
            out[..head].copy_from_slice(&first[start..start + head]);
        }
        let start = (start + head).saturating_sub(first.len());
        let rest = out.len() - head;
        out[head..].copy_from_slice(&second[start..start + rest]);
    }

    /// Whether everything and the FIN are acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.fin_acknowledged && self.bytes.is_empty()
    }
}

/// The receive side.
#[derive(Clone, Debug)]
pub(super) struct ReceiveSide {
    /// Octets out of order, by offset.
    ahead: BTreeMap<u64, Vec<u8>>,
    /// Octets in order; those up to `taken` are consumed.
    ready: Vec<u8>,
    taken: usize,
    /// Offset of the end of `ready`.
    front: u64,
    /// Length of the stream, by the FIN.
    length: Option<u64>,
    window: u64,
    /// The announced limit.
    limit: u64,
}

impl ReceiveSide {
    pub(super) fn new(window: u64) -> Self {
        let (ahead, ready, length) = (BTreeMap::new(), Vec::new(), None);
        Self { ahead, ready, taken: 0, front: 0, length, window, limit: window }
    }

    /// Handles a STREAM frame; octets beyond the announced limit are not accepted.
    pub(super) fn on_stream(&mut self, offset: u64, bytes: &[u8], fin: bool) {
        let Some(end) = offset.checked_add(bytes.len() as u64).filter(|&end| end <= self.limit)
        else {
            return;
        };
        if fin {
            self.length.get_or_insert(end);
        }
        if end <= self.front || bytes.is_empty() {
            return;
        }
        let longer = self.ahead.get(&offset).is_none_or(|old| old.len() < bytes.len());
        if offset <= self.front {
            self.append(offset, bytes);
        } else if longer {
            self.ahead.insert(offset, bytes.to_vec());
        }
        while let Some(entry) = self.ahead.first_entry().filter(|entry| *entry.key() <= self.front)
        {
            let (offset, bytes) = entry.remove_entry();
            self.append(offset, &bytes);
        }
    }

    fn append(&mut self, offset: u64, bytes: &[u8]) {
        let skip = (self.front - offset) as usize;
        if skip < bytes.len() {
            self.ready.extend_from_slice(&bytes[skip..]);
            self.front = offset + bytes.len() as u64;
        }
    }

    pub(super) fn peek(&self) -> &[u8] {
        &self.ready[self.taken..]
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.taken = (self.taken + count).min(self.ready.len());
        if 2 * self.taken >= self.ready.len() {
            self.ready.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// The limit to announce, once half of the window is consumed (RFC 9000, section 4.2).
    pub(super) fn new_limit(&self) -> Option<u64> {
        let consumed = self.front - self.peek().len() as u64;
        let limit = consumed + self.window;
        (limit >= self.limit + self.window / 2).then_some(limit)
    }

    pub(super) fn announce(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether all octets up to the FIN were consumed.
    pub(super) fn is_finished(&self) -> bool {
        self.length == Some(self.front) && self.peek().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_octets_are_sent_first_and_acknowledged_ones_not_again() {
        let mut side = SendSide::new(1_000);
        assert_eq!(side.write(&[7; 1_500]), 1_000);
        side.allow(800);
        side.on_sent(side.next(500).unwrap().0, false);
        assert_eq!(side.next(500), Some(((500, 800), false)), "flow control");
        side.on_acknowledged(Some((200, 300)), false);
        side.on_lost(Some((100, 400)), false);
        assert_eq!(side.next(500), Some(((100, 200), false)));
        side.on_sent((100, 200), false);
        assert_eq!(side.next(500), Some(((300, 400), false)));
        side.on_acknowledged(Some((0, 200)), false);
        assert_eq!((side.base, side.room()), (300, 300));
    }

    #[test]
    fn octets_are_delivered_in_order_and_within_the_limit() {
        let mut side = ReceiveSide::new(100);
        side.on_stream(3, b"def", true);
        side.on_stream(101, b"x", false);
        assert!(side.peek().is_empty());
        side.on_stream(0, b"abcd", false);
        assert_eq!(side.peek(), b"abcdef");
        assert!(!side.is_finished());
        side.consume(6);
        assert!(side.is_finished());
        assert_eq!(side.new_limit(), None);
    }
}
