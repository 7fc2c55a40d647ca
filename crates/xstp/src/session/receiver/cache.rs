//! Packets that wait for their turn, when delivery is in order.

use crate::Seq24;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// One stream of bytes, put together from packets in any order.
///
/// It holds no more packets than its capacity as long as its receiver offers no more than
/// [`ReceiveCache::free`] numbers from VR(R) on.
#[derive(Clone, Debug)]
pub struct ReceiveCache {
    /// In packets.
    capacity: u32,
    /// The number that the stream waits for.
    next: u64,
    waiting: BTreeMap<u64, Vec<u8>>,
    /// In order; of the first one `taken` bytes have been read.
    ready: VecDeque<Vec<u8>>,
    taken: usize,
    /// Of all packets here, less what was read.
    bytes: usize,
    /// Memory of packets that were read, for those that come.
    spare: Vec<Vec<u8>>,
}

/// Buffers that are kept for later packets, at most.
const SPARE: usize = 64;

impl ReceiveCache {
    /// An empty cache for `capacity` packets, the first of them numbered `first`.
    pub fn new(first: Seq24, capacity: u32) -> Self {
        let next = u64::from(Seq24::MODULUS) + u64::from(first.value());
        Self {
            capacity,
            next,
            waiting: BTreeMap::new(),
            ready: VecDeque::new(),
            taken: 0,
            bytes: 0,
            spare: Vec::new(),
        }
    }

    /// Puts in a packet that the receiver reported as new.
    ///
    /// # Panics
    /// When the packet was put in before, or comes before one that was.
    pub fn insert(&mut self, number: Seq24, payload: &[u8]) {
        let count = number.extend(self.next).expect("counts start one turn up");
        assert!(count >= self.next, "packet {number} was delivered already");
        self.bytes += payload.len();
        let mut held = self.spare.pop().unwrap_or_default();
        held.clear();
        held.extend_from_slice(payload);
        if count == self.next {
            self.advance(held);
            while let Some(next) = self.waiting.first_entry().filter(|e| *e.key() == self.next) {
                let held = next.remove();
                self.advance(held);
            }
        } else {
            let before = self.waiting.insert(count, held);
            assert!(before.is_none(), "packet {number} came twice");
        }
    }

    /// The packet that the stream waited for is here.
    fn advance(&mut self, payload: Vec<u8>) {
        self.next += 1;
        if !payload.is_empty() {
            self.ready.push_back(payload);
        }
    }

    /// Bytes of the stream that come next, as many as stand together; empty when none are ready.
    pub fn peek(&self) -> &[u8] {
        self.ready.front().map_or(&[], |first| &first[self.taken..])
    }

    /// Drops the first `count` bytes.
    ///
    /// # Panics
    /// When fewer are ready.
    pub fn consume(&mut self, mut count: usize) {
        while count > 0 {
            let first = self.ready.front().expect("as many bytes as are consumed");
            let len = (first.len() - self.taken).min(count);
            count -= len;
            self.pass(len);
        }
    }

    /// The next `len` bytes of the first packet have been read.
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

    /// Moves bytes of the stream into `out`; returns how many, zero when none are ready.
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

    /// Bytes held here, ready or not.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether no bytes are ready.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Packets that it holds.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.ready.len()
    }

    /// How many numbers from VR(R) on there is room for.
    pub fn free(&self) -> u32 {
        let ready = u32::try_from(self.ready.len()).unwrap_or(u32::MAX);
        self.capacity.saturating_sub(ready)
    }
}
