//! Reordering buffer of delivery in order.

use crate::seq::Seq24;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// Byte stream that is assembled from packets received in any order.
///
/// It stores at most `capacity` packets if its receiver advertises at most
/// [`ReceiveCache::free`] packets from VR(R) on.
#[derive(Clone, Debug)]
pub struct ReceiveCache {
    /// Capacity in packets.
    capacity: u32,
    /// Next packet of the stream.
    next: u64,
    /// Received packets after `next`.
    out_of_order: BTreeMap<u64, Vec<u8>>,
    /// Packets in order; `taken` octets of the first one were read.
    ready: VecDeque<Vec<u8>>,
    taken: usize,
    /// Octets of all stored packets, less those that were read.
    bytes: usize,
    /// Buffers of packets that were read, for later ones.
    spare: Vec<Vec<u8>>,
}

/// Maximum number of buffers that are kept for later packets.
const SPARE: usize = 64;

impl ReceiveCache {
    /// An empty cache for `capacity` packets, the first of them numbered `first`.
    pub fn new(first: Seq24, capacity: u32) -> Self {
        let next = u64::from(Seq24::MODULUS) + u64::from(first.value());
        Self {
            capacity,
            next,
            out_of_order: BTreeMap::new(),
            ready: VecDeque::new(),
            taken: 0,
            bytes: 0,
            spare: Vec::new(),
        }
    }

    /// Stores a packet that the receiver accepted as new.
    ///
    /// # Panics
    /// When the packet was stored before, or precedes one that was.
    pub fn insert(&mut self, number: Seq24, payload: &[u8]) {
        let seq = number.extend(self.next).expect("extended sequence numbers start at 2^24");
        assert!(seq >= self.next, "packet {number} was delivered already");
        self.bytes += payload.len();
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(payload);
        if seq == self.next {
            self.advance(buffer);
            while let Some(next) = self.out_of_order.first_entry().filter(|e| *e.key() == self.next)
            {
                let buffer = next.remove();
                self.advance(buffer);
            }
        } else {
            let before = self.out_of_order.insert(seq, buffer);
            assert!(before.is_none(), "packet {number} was stored already");
        }
    }

    /// The next packet of the stream was received.
    fn advance(&mut self, payload: Vec<u8>) {
        self.next += 1;
        if !payload.is_empty() {
            self.ready.push_back(payload);
        }
    }

    /// Next octets of the stream that are contiguous in memory; empty if none are ready.
    pub fn peek(&self) -> &[u8] {
        self.ready.front().map_or(&[], |first| &first[self.taken..])
    }

    /// Removes the first `count` octets.
    ///
    /// # Panics
    /// When fewer octets are ready.
    pub fn consume(&mut self, mut count: usize) {
        while count > 0 {
            let first = self.ready.front().expect("at least `count` octets are ready");
            let len = (first.len() - self.taken).min(count);
            count -= len;
            self.pass(len);
        }
    }

    /// The next `len` octets of the first packet were read.
    fn pass(&mut self, len: usize) {
        self.taken += len;
        self.bytes -= len;
        if self.ready.front().is_some_and(|first| self.taken == first.len()) {
            self.taken = 0;
            if let Some(read) = self.ready.pop_front()
                && self.spare.len() < SPARE
            {
                self.spare.push(read);
            }
        }
    }

    /// Moves octets of the stream into `out`; returns their number, zero if none are ready.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < out.len() {
            let left = self.peek();
            let len = left.len().min(out.len() - filled);
            if len == 0 {
                break;
            }
            out[filled..filled + len].copy_from_slice(&left[..len]);
            filled += len;
            self.pass(len);
        }
        filled
    }

    /// Stored octets, ready or not.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether no octets are ready.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Number of stored packets.
    pub fn len(&self) -> usize {
        self.out_of_order.len() + self.ready.len()
    }

    /// Number of packets from VR(R) on for which there is room.
    pub fn free(&self) -> u32 {
        let ready = u32::try_from(self.ready.len()).unwrap_or(u32::MAX);
        self.capacity.saturating_sub(ready)
    }
}
