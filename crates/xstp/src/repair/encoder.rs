//! Encoder: the packets that repair symbols may cover, and the symbols.

use super::field::Sum;
use super::{KEYS, LENGTH_OCTETS, MAX_COVERED, coefficient};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The packets that the next repair symbol covers: the most recent ones, at most [`MAX_COVERED`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Encoder {
    /// Extended sequence number of the first one.
    first: u64,
    packets: VecDeque<Vec<u8>>,
    /// Buffers of packets that were discarded.
    spare: Vec<Vec<u8>>,
    key: u8,
    sum: Sum,
}

/// What precedes a symbol in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Covered {
    /// Extended sequence number of the first packet.
    pub(crate) first: u64,
    /// Number of packets, 1 to [`MAX_COVERED`].
    pub(crate) count: usize,
    /// Key of the coefficients, below [`KEYS`].
    pub(crate) key: u8,
}

impl Encoder {
    /// Adds packet `seq`, which is transmitted for the first time. Packets that do not precede it
    /// without a gap are discarded.
    pub(crate) fn push(&mut self, seq: u64, payload: &[u8]) {
        if seq != self.end() {
            self.discard_below(u64::MAX);
            self.first = seq;
        }
        if self.packets.len() == MAX_COVERED {
            self.discard_below(self.first + 1);
        }
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.clear();
        packet.extend_from_slice(payload);
        self.packets.push_back(packet);
    }

    /// Discards the packets below `seq`.
    pub(crate) fn discard_below(&mut self, seq: u64) {
        while self.first < seq
            && let Some(packet) = self.packets.pop_front()
        {
            self.first += 1;
            self.spare.push(packet);
        }
    }

    /// Discards all packets, and the memory for them.
    pub(crate) fn clear(&mut self) {
        self.packets = VecDeque::new();
        self.spare = Vec::new();
        self.sum = Sum::default();
    }

    /// Extended sequence number of the first packet.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Extended sequence number after the last packet.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Computes a symbol over all packets; `None` if there are none.
    pub(crate) fn symbol(&mut self) -> Option<(Covered, &[u8])> {
        let longest = self.packets.iter().map(Vec::len).max()?;
        let key = self.key;
        self.key = (key + 1) % KEYS;
        self.sum.begin(LENGTH_OCTETS + longest);
        for (seq, packet) in (self.first..).zip(&self.packets) {
            self.sum.add_packet(coefficient(key, seq), packet);
        }
        let covered = Covered { first: self.first, count: self.packets.len(), key };
        Some((covered, self.sum.total()))
    }
}
