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
}

impl ReceiveCache {
    /// An empty cache for `capacity` packets, the first of them numbered `first`.
    pub fn new(first: Seq24, capacity: u32) -> Self {
        let next = u64::from(Seq24::MODULUS) + u64::from(first.value());
        Self { capacity, next, waiting: BTreeMap::new(), ready: VecDeque::new(), taken: 0 }
    }

    /// Puts in a packet that the receiver reported as new.
    ///
    /// # Panics
    /// When the packet was put in before, or comes before one that was.
    pub fn insert(&mut self, number: Seq24, payload: &[u8]) {
        let count = number.extend(self.next).expect("counts start one turn up");
        assert!(count >= self.next, "packet {number} was delivered already");
        let before = self.waiting.insert(count, payload.to_vec());
        assert!(before.is_none(), "packet {number} came twice");
        while let Some(payload) = self.waiting.remove(&self.next) {
            self.next += 1;
            if !payload.is_empty() {
                self.ready.push_back(payload);
            }
        }
    }

    /// Moves bytes of the stream into `out`; returns how many, zero when none are ready.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < out.len()
            && let Some(first) = self.ready.front()
        {
            let left = &first[self.taken..];
            let len = left.len().min(out.len() - filled);
            out[filled..filled + len].copy_from_slice(&left[..len]);
            filled += len;
            self.taken += len;
            if self.taken == first.len() {
                self.ready.pop_front();
                self.taken = 0;
            }
        }
        filled
    }

    /// Whether no bytes are ready.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// How many numbers from VR(R) on there is room for.
    pub fn free(&self) -> u32 {
        let ready = u32::try_from(self.ready.len()).unwrap_or(u32::MAX);
        self.capacity.saturating_sub(ready)
    }
}
