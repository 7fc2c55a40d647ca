//! Decoder: recovers missing packets from received ones and repair symbols.
//!
//! Symbols whose missing packets cannot be recovered yet are kept as the rows of a matrix in
//! reduced echelon form: the first missing packet of each row occurs in no other row. A row with
//! one missing packet is that packet.

use super::encoder::Covered;
use super::field::{Sum, inverse, multiply};
use super::{LENGTH_OCTETS, MAX_COVERED, MAX_SYMBOLS, coefficient};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

/// Number of packets that are stored at the start of a session, and after each symbol, if no further
/// symbol arrives.
const PACKETS_STORED: u32 = 1 << 10;
/// The same after a symbol that covers a missing packet: the path loses packets.
const PACKETS_STORED_AFTER_LOSS: u32 = 1 << 16;

/// Reason why a symbol is inconsistent with the packets that were received: the peer violates the
/// protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rejected;

/// A symbol less the packets that were received.
#[derive(Clone, Debug)]
struct Row {
    /// Missing packets in order, with their coefficients; that of the first one is 1.
    missing: Vec<(u64, u8)>,
    symbol: Vec<u8>,
}

/// Packets and symbols that were received.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    /// Number of packets that are stored if no further symbol arrives.
    to_store: u32,
    /// Extended sequence number of the first entry of `packets`.
    first: u64,
    /// The most recent packets; `None` for those that are missing.
    packets: VecDeque<Option<Vec<u8>>>,
    rows: Vec<Row>,
    sum: Sum,
}

impl Default for Decoder {
    fn default() -> Self {
        let (first, packets, rows, sum) = Default::default();
        Self { to_store: PACKETS_STORED, first, packets, rows, sum }
    }
}

impl Decoder {
    /// Stores packet `seq`, which was not reported missing and so was transmitted for the first time.
    /// (The payload of a retransmission may be another one.)
    pub(crate) fn on_packet(&mut self, seq: u64, payload: &[u8]) {
        let Some(to_store) = self.to_store.checked_sub(1) else { return };
        if to_store == 0 {
            *self = Self { to_store, ..Self::default() };
            return;
        }
        self.to_store = to_store;
        self.store(seq, payload);
        self.subtract_packet(seq);
    }

    /// Processes a symbol of at least [`LENGTH_OCTETS`]. All packets of `received` below its start,
    /// VR(R), were received, and no packet at or above its end, VR(H). Returns the extended sequence
    /// numbers of recovered packets, which [`packet`](Self::packet) returns; some may have been
    /// received in a retransmission before.
    ///
    /// # Errors
    /// If the symbol is shorter than a packet that it covers, or the result is not a packet.
    pub(crate) fn on_symbol(
        &mut self,
        covered: Covered,
        symbol: &[u8],
        received: Range<u64>,
    ) -> Result<Vec<u64>, Rejected> {
        self.to_store = self.to_store.max(PACKETS_STORED);
        // What is missing in the rows lies within these bounds, so that rows are bounded as well.
        let reach = 2 * MAX_COVERED as u64;
        let oldest = received.end.saturating_sub(reach);
        self.rows.retain(|row| {
            let is_recent = row.missing.first().is_some_and(|&(seq, _)| seq >= oldest);
            is_recent && row.missing.last().is_some_and(|&(seq, _)| seq >= received.start)
        });
        let range = covered.first..covered.first + covered.count as u64;
        if range.start < oldest || range.end > received.end + reach {
            return Ok(Vec::new());
        }
        let coefficients = range.map(|seq| (seq, coefficient(covered.key, seq)));
        let mut missing = Vec::new();
        self.sum.begin(symbol.len());
        self.sum.add_symbol(1, symbol);
        for (seq, coefficient) in coefficients {
            match packet_at(self.first, &self.packets, seq) {
                Some(packet) if packet.len() + LENGTH_OCTETS > symbol.len() => {
                    return Err(Rejected);
                }
                Some(packet) => self.sum.add_packet(coefficient, packet),
                // It was received, but is not stored: the symbol cannot be used.
                None if seq < received.start => return Ok(Vec::new()),
                None if missing.len() == MAX_SYMBOLS => return Ok(Vec::new()),
                None => missing.push((seq, coefficient)),
            }
        }
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        self.to_store = PACKETS_STORED_AFTER_LOSS;
        let row = Row { missing, symbol: self.sum.total().to_vec() };
        self.insert(row);
        self.take_recovered()
    }

    /// A packet that is stored.
    pub(crate) fn packet(&self, seq: u64) -> Option<&[u8]> {
        packet_at(self.first, &self.packets, seq)
    }

    fn store(&mut self, seq: u64, payload: &[u8]) {
        let end = self.first + self.packets.len() as u64;
        if self.packets.is_empty() || seq >= end + MAX_COVERED as u64 {
            self.packets.clear();
            self.first = seq;
        } else if seq < self.first {
            if end - seq > MAX_COVERED as u64 {
                return;
            }
            while self.first > seq {
                self.packets.push_front(None);
                self.first -= 1;
            }
        }
        let mut spare = None;
        while self.first + (self.packets.len() as u64) <= seq {
            if self.packets.len() == MAX_COVERED {
                spare = self.packets.pop_front().flatten().or(spare);
                self.first += 1;
            }
            self.packets.push_back(None);
        }
        if let Some(entry) = self.packets.get_mut((seq - self.first) as usize) {
            let mut packet = spare.unwrap_or_default();
            packet.clear();
            packet.extend_from_slice(payload);
            *entry = Some(packet);
        }
    }

    /// Subtracts packet `seq`, which is stored now, from the rows in which it is missing: the symbol
    /// overtook it.
    fn subtract_packet(&mut self, seq: u64) {
        let is_missing = |row: &Row| row.missing.iter().any(|&(missing, _)| missing == seq);
        while let Some(index) = self.rows.iter().position(is_missing) {
            let mut row = self.rows.swap_remove(index);
            let Some(packet) = packet_at(self.first, &self.packets, seq) else { return };
            let place = row.missing.iter().position(|&(missing, _)| missing == seq);
            let Some((_, coefficient)) = place.map(|place| row.missing.remove(place)) else {
                return;
            };
            if packet.len() + LENGTH_OCTETS > row.symbol.len() {
                continue;
            }
            self.sum.begin(row.symbol.len());
            self.sum.add_symbol(1, &row.symbol);
            self.sum.add_packet(coefficient, packet);
            row.symbol.copy_from_slice(self.sum.total());
            self.insert(row);
        }
    }

    /// Adds a row, and restores the reduced echelon form.
    fn insert(&mut self, mut row: Row) {
        for other in &self.rows {
            let pivot = other.missing.first().map(|&(seq, _)| seq);
            let found = row.missing.iter().find(|&&(seq, _)| Some(seq) == pivot);
            if let Some(&(_, coefficient)) = found {
                row.add(coefficient, other, &mut self.sum);
            }
        }
        let Some(&(pivot, coefficient)) = row.missing.first() else { return };
        row.scale(inverse(coefficient), &mut self.sum);
        for other in &mut self.rows {
            let found = other.missing.iter().find(|&&(seq, _)| seq == pivot);
            if let Some(&(_, coefficient)) = found {
                other.add(coefficient, &row, &mut self.sum);
            }
        }
        if self.rows.len() == MAX_SYMBOLS {
            // The one with the oldest missing packet is the least useful.
            let oldest = (0..self.rows.len()).min_by_key(|&i| self.rows[i].missing.first());
            self.rows.swap_remove(oldest.unwrap_or(0));
        }
        self.rows.push(row);
    }

    /// Stores the packets that are the only missing ones of a row.
    fn take_recovered(&mut self) -> Result<Vec<u64>, Rejected> {
        let mut recovered = Vec::new();
        while let Some(index) = self.rows.iter().position(|row| row.missing.len() == 1) {
            let row = self.rows.swap_remove(index);
            let length = row.symbol.first_chunk().map_or(0, |&octets| u16::from_be_bytes(octets));
            let end = LENGTH_OCTETS + usize::from(length);
            let payload = row.symbol.get(LENGTH_OCTETS..end).ok_or(Rejected)?;
            if row.symbol[end..].iter().any(|&octet| octet != 0) {
                return Err(Rejected);
            }
            self.store(row.missing[0].0, payload);
            recovered.push(row.missing[0].0);
        }
        Ok(recovered)
    }
}

impl Row {
    /// Adds `coefficient` times `other`.
    fn add(&mut self, coefficient: u8, other: &Self, sum: &mut Sum) {
        for &(seq, factor) in &other.missing {
            let product = multiply(coefficient, factor);
            match self.missing.binary_search_by_key(&seq, |&(seq, _)| seq) {
                Ok(place) => {
                    self.missing[place].1 ^= product;
                    if self.missing[place].1 == 0 {
                        self.missing.remove(place);
                    }
                }
                Err(place) => self.missing.insert(place, (seq, product)),
            }
        }
        // A shorter symbol covers shorter packets: zeros follow it.
        sum.begin(self.symbol.len().max(other.symbol.len()));
        sum.add_symbol(1, &self.symbol);
        sum.add_symbol(coefficient, &other.symbol);
        self.symbol.clear();
        self.symbol.extend_from_slice(sum.total());
    }

    fn scale(&mut self, factor: u8, sum: &mut Sum) {
        for (_, coefficient) in &mut self.missing {
            *coefficient = multiply(*coefficient, factor);
        }
        sum.begin(self.symbol.len());
        sum.add_symbol(factor, &self.symbol);
        self.symbol.copy_from_slice(sum.total());
    }
}

fn packet_at(first: u64, packets: &VecDeque<Option<Vec<u8>>>, seq: u64) -> Option<&[u8]> {
    let index = usize::try_from(seq.checked_sub(first)?).ok()?;
    packets.get(index)?.as_deref()
}

#[cfg(any(test, feature = "fuzzing"))]
impl Decoder {
    pub(super) fn check_bounds(&self) {
        assert!(self.packets.len() <= MAX_COVERED && self.rows.len() <= MAX_SYMBOLS);
        for row in &self.rows {
            assert!(!row.missing.is_empty() && row.missing.len() <= 5 * MAX_COVERED);
            assert!(row.missing.is_sorted() && row.missing[0].1 == 1);
        }
    }
}
