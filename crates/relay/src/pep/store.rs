//! Copies of a sender's segments until the receiver has acknowledged them, with the detection of
//! losses: RACK (RFC 8985) where the connection has SACK, NewReno (RFC 6582) where it has not.

use super::segment::{Block, MAX_BLOCKS, Places, clear_ecn};
use super::serial::{after, before, distance, earlier, later};
use std::collections::VecDeque;
use units::{Instant, Span};

/// Memory of a stored segment beside its packet, in octets.
const OVERHEAD: usize = 128;
/// Duplicate acknowledgements, or segments reported by SACK, after which a hole is a loss (RFC
/// 5681, 3.2; RFC 8985, 6.2).
const DUPLICATES: usize = 3;

/// A stored segment.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) seq: u32,
    pub(super) end: u32,
    pub(super) packet: Vec<u8>,
    pub(super) places: Places,
    /// When it was last sent.
    pub(super) sent: Option<Instant>,
    is_again: bool,
    is_sacked: bool,
    is_lost: bool,
}

impl Stored {
    pub(super) fn new(
        block: Block,
        packet: Vec<u8>,
        places: Places,
        sent: Option<Instant>,
    ) -> Self {
        let (is_again, is_sacked, is_lost) = (false, false, false);
        Self { seq: block.0, end: block.1, packet, places, sent, is_again, is_sacked, is_lost }
    }
}

/// Octets of memory for a packet of `len` octets.
pub(super) fn cost(len: usize) -> usize {
    len + OVERHEAD
}

/// Result of an acknowledgement.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Memory that was freed, in octets.
    pub(super) freed: usize,
    /// Time since the transmission of a segment that was sent once and has arrived.
    pub(super) sample: Option<Span>,
}

/// The stored segments of a connection: in order, without overlap.
#[derive(Debug, Default)]
pub(super) struct Store {
    segments: VecDeque<Stored>,
    /// Not after the first number of any segment.
    base: u32,
    /// Greatest number acknowledged.
    acked: u32,
    memory: usize,
    lost: usize,
    unsent: usize,
    sacked: usize,
    /// No segment before it is unsent.
    cursor: u32,
    /// Transmission time and end of the delivered segment that was sent last (RACK.segment).
    newest: Option<(Instant, u32)>,
    duplicates: usize,
    /// End of what was sent when the loss was found, until it is acknowledged (NewReno).
    recovery: Option<u32>,
}

impl Store {
    pub(super) fn new(base: u32) -> Self {
        Self { base, acked: base, cursor: base, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Octets of memory.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// Whether a segment is to be sent.
    pub(super) fn has_to_send(&self) -> bool {
        self.lost + self.unsent > 0
    }

    fn offset(&self, seq: u32) -> u32 {
        distance(self.base, seq)
    }

    /// Index of the first segment that ends after `seq`, which does not precede the base.
    fn first_ending_after(&self, seq: u32) -> usize {
        let offset = self.offset(seq);
        self.segments.partition_point(|stored| self.offset(stored.end) <= offset)
    }

    /// Returns the parts of `first..end` that are not stored; `first` does not precede the base.
    pub(super) fn gaps(&self, (mut first, end): Block) -> Vec<Block> {
        let mut gaps = Vec::new();
        for stored in self.segments.range(self.first_ending_after(first)..) {
            if !before(stored.seq, end) {
                break;
            }
            if before(first, stored.seq) {
                gaps.push((first, stored.seq));
            }
            first = stored.end;
        }
        if before(first, end) {
            gaps.push((first, end));
        }
        gaps
    }

    /// Stores a segment, which overlaps no other one.
    pub(super) fn insert(&mut self, stored: Stored) {
        let at = self.first_ending_after(stored.seq);
        self.memory += cost(stored.packet.len());
        if stored.sent.is_none() {
            self.unsent += 1;
            self.cursor = earlier(self.cursor, stored.seq);
        }
        self.segments.insert(at, stored);
    }

    /// Returns the end of the contiguous data from `seq` on.
    pub(super) fn contiguous_from(&self, mut seq: u32) -> u32 {
        for stored in self.segments.range(self.first_ending_after(seq)..) {
            if after(stored.seq, seq) {
                break;
            }
            seq = stored.end;
        }
        seq
    }

    /// Returns runs of stored data after `seq`, for the SACK option: the one with `latest` first
    /// (RFC 2018, 4).
    pub(super) fn runs_after(&self, seq: u32, latest: u32) -> Vec<Block> {
        let mut runs: Vec<Block> = Vec::new();
        for stored in self.segments.range(self.first_ending_after(seq)..) {
            match runs.last_mut() {
                Some(run) if run.1 == stored.seq => run.1 = stored.end,
                Some(_) | None => runs.push((stored.seq, stored.end)),
            }
        }
        let has_latest = |run: &Block| !before(latest, run.0) && before(latest, run.1);
        if let Some(at) = runs.iter().position(has_latest) {
            runs[..=at].rotate_right(1);
        }
        runs.truncate(MAX_BLOCKS);
        runs
    }

    /// Takes an acknowledgement of all before `ack` and of `blocks`, which lie in what was sent.
    /// `is_duplicate` is in the sense of RFC 5681, section 2.
    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        (ack, is_duplicate): (u32, bool),
        blocks: &[Block],
        min_rtt: Span,
    ) -> Progress {
        let mut progress = Progress::default();
        let mut is_repaired = false;
        while let Some(first) = self.segments.front() {
            if after(first.end, ack) {
                break;
            }
            let Some(first) = self.segments.pop_front() else { break };
            if !first.is_sacked {
                is_repaired |= first.is_again;
                let delivered = (first.sent, first.end, first.is_again);
                self.note(now, delivered, min_rtt, &mut progress);
            }
            progress.freed += cost(first.packet.len());
            self.lost -= usize::from(first.is_lost);
            self.unsent -= usize::from(first.sent.is_none());
            self.sacked -= usize::from(first.is_sacked);
        }
        if is_repaired {
            // The others may have waited for this one at the receiver.
            progress.sample = None;
        }
        self.memory -= progress.freed;
        self.base = self.segments.front().map_or(later(ack, self.base), |first| {
            if before(first.seq, ack) { first.seq } else { later(ack, self.base) }
        });
        for &block in blocks {
            self.mark_sacked(now, block, min_rtt, &mut progress);
        }
        if after(ack, self.acked) {
            (self.acked, self.duplicates) = (ack, 0);
        }
        self.duplicates += usize::from(is_duplicate);
        progress
    }

    fn mark_sacked(
        &mut self,
        now: Instant,
        (from, to): Block,
        min_rtt: Span,
        progress: &mut Progress,
    ) {
        let from = later(from, self.base);
        let mut at = self.first_ending_after(from);
        while let Some(stored) = self.segments.get_mut(at) {
            if after(stored.end, to) {
                break;
            }
            if !before(stored.seq, from) && !stored.is_sacked && stored.sent.is_some() {
                stored.is_sacked = true;
                self.sacked += 1;
                self.lost -= usize::from(core::mem::take(&mut stored.is_lost));
                let (sent, end, is_again) = (stored.sent, stored.end, stored.is_again);
                self.note(now, (sent, end, is_again), min_rtt, progress);
            }
            at += 1;
        }
    }

    /// Notes the delivery of a segment. One that was retransmitted less than a round trip ago has
    /// been delivered by an earlier transmission (RFC 8985, 6.2).
    fn note(
        &mut self,
        now: Instant,
        (sent, end, is_again): (Option<Instant>, u32, bool),
        min_rtt: Span,
        progress: &mut Progress,
    ) {
        let Some(sent) = sent else { return };
        if !is_again {
            let sample = now.since(sent);
            progress.sample = Some(progress.sample.map_or(sample, |least| least.min(sample)));
        } else if now.since(sent) < min_rtt {
            return;
        }
        if self.newest.is_none_or(|(at, last)| sent > at || (sent == at && after(end, last))) {
            self.newest = Some((sent, end));
        }
    }

    /// Marks lost segments of a connection with SACK (RFC 8985): those sent before one that was
    /// delivered, by more than a quarter of a round trip unless three segments were reported.
    pub(super) fn detect_by_sack(&mut self, min_rtt: Span) {
        let Some((newest, end)) = self.newest else { return };
        let window = if self.sacked >= DUPLICATES { Span::ZERO } else { min_rtt / 4 };
        for stored in &mut self.segments {
            let Some(sent) = stored.sent else { continue };
            let precedes = sent + window < newest
                || (sent + window == newest && window == Span::ZERO && before(stored.seq, end));
            if precedes && !stored.is_sacked && !stored.is_lost {
                stored.is_lost = true;
                self.lost += 1;
            }
        }
    }

    /// Marks the first segment lost after three duplicate acknowledgements, and again at each
    /// partial one (RFC 6582). `ack` is the acknowledgement's number, `sent_end` the end of what was
    /// sent.
    pub(super) fn detect_by_duplicates(&mut self, ack: u32, sent_end: u32) {
        if self.recovery.is_some_and(|end| !before(ack, end)) {
            self.recovery = None;
        }
        let is_partial = self.recovery.is_some() && self.duplicates == 0;
        if is_partial || (self.recovery.is_none() && self.duplicates == DUPLICATES) {
            self.recovery = Some(sent_end);
            self.mark_first_lost();
        }
    }

    /// Marks the first segment lost, after a timeout. If it was reported by SACK, the receiver has
    /// discarded it (RFC 2018, 8), and no earlier report counts. Returns whether it is marked by
    /// this.
    pub(super) fn mark_first_lost(&mut self) -> bool {
        if self.segments.front().is_some_and(|first| first.is_sacked) {
            self.segments.iter_mut().for_each(|stored| stored.is_sacked = false);
            self.sacked = 0;
        }
        if let Some(first) = self.segments.front_mut()
            && first.sent.is_some()
            && !first.is_lost
        {
            first.is_lost = true;
            self.lost += 1;
            return true;
        }
        false
    }

    /// Returns when the first segment was last sent.
    pub(super) fn first_sent(&self) -> Option<Instant> {
        self.segments.front()?.sent
    }

    /// Returns the next segment to send as a copy of its packet, and whether it was sent before.
    pub(super) fn send(&mut self, now: Instant) -> Option<(Vec<u8>, Places, bool)> {
        let next = if self.lost > 0 {
            self.segments.iter_mut().find(|stored| stored.is_lost)?
        } else {
            let from = self.first_ending_after(later(self.cursor, self.base));
            self.segments.range_mut(from..).find(|stored| stored.sent.is_none())?
        };
        self.lost -= usize::from(core::mem::take(&mut next.is_lost));
        let is_again = next.sent.is_some();
        self.unsent -= usize::from(!is_again);
        self.cursor = if is_again { self.cursor } else { next.end };
        (next.is_again, next.sent) = (is_again, Some(now));
        let mut packet = next.packet.clone();
        if is_again {
            clear_ecn(&mut packet);
        }
        Some((packet, next.places, is_again))
    }
}
