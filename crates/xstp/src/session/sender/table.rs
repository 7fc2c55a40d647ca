//! Table of the packets that are sent and not released, with the retransmission queue.
//!
//! ```text
//!        VT(A)                         VT(S)              VT(MS)
//!   ──────┬──────────────────────────────┬───────────────────┬────▶ sequence numbers
//! released│ released early ░  sent ▒     │ allowed           │ beyond the peer's window
//!         └── ring buffer, one entry ────┘
//! ```
//!
//! Inside, sequence numbers are extended to 64 bits, so that they can be ordered; the lower 24
//! bits are sent. An entry is found by its index. The retransmission queue is an ordered set,
//! because the lowest sequence number is retransmitted first (XSTP-7.2.2).

use crate::seq::Seq24;
use crate::session::polling::sent_before;
use crate::session::upper::UpperLayer;
use crate::wire::Run;
use alloc::collections::{BTreeSet, VecDeque};
use units::{Instant, Span};

/// Mean number of times that USTATs may list a packet. A receiver lists it once, and segments can
/// be duplicated.
const USTAT_LISTINGS_PER_PACKET: u64 = 4;

/// One packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Entry {
    handle: u64,
    size: u32,
    /// POLL sequence number at the last transmission.
    poll_seq: u32,
    /// Time of the last transmission, in microseconds, modulo 2³².
    sent_at: u32,
    /// Number of retransmissions, saturating.
    retransmissions: u8,
    released: bool,
}

/// A transmission of a packet, for the rules of XSTP-7.3.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    /// Sequence number of the last POLL before it.
    pub(crate) poll: u32,
    pub(crate) at: Instant,
}

/// Condition under which a packet that a STAT reports missing is retransmitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetransmitFilter {
    /// Sequence number of the POLL that the STAT answers.
    pub(crate) poll: u32,
    /// Arrival time of the STAT, and the minimum age of the packet's last transmission.
    pub(crate) age: Option<(Instant, Span)>,
    /// Whether the packets are only counted, and not queued.
    pub(crate) hold: bool,
}

impl RetransmitFilter {
    fn matches(&self, entry: &Entry) -> bool {
        let old = self.age.is_none_or(|(now, min_age)| {
            let min_age = u32::try_from(min_age.as_micros()).unwrap_or(u32::MAX);
            micros(now).wrapping_sub(entry.sent_at) >= min_age
        });
        old && sent_before(entry.poll_seq, self.poll)
    }
}

/// `at` in microseconds, modulo 2³².
fn micros(at: Instant) -> u32 {
    (at.as_nanos() / 1_000) as u32
}

/// The next packet to be retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retransmission {
    /// Extended sequence number.
    pub(crate) seq: u64,
    pub(crate) handle: u64,
    pub(crate) size: usize,
}

/// Effect of a STAT or USTAT on the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Payload octets released.
    pub(crate) released: u64,
    /// Packets newly found missing, whether queued or only counted.
    pub(crate) lost: u64,
    /// Those of them that had been retransmitted before.
    pub(crate) lost_retransmissions: u64,
}

/// Reason why a STAT or USTAT was rejected as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvalidReport {
    /// N(R) is not between VT(A) and VT(S).
    ReceivedBelow,
    /// The list reaches beyond VT(S).
    List,
}

/// Packets in flight, the retransmission queue and the peer's window.
#[derive(Clone, Debug)]
pub(crate) struct PacketTable {
    /// Sequence number of the first packet.
    first: u64,
    /// "VT(A)".
    oldest: u64,
    table: VecDeque<Entry>,
    queue: BTreeSet<u64>,
    /// "VT(MS)".
    limit: u64,
    own_window: u32,
    release_early: bool,
    duplicate_from: Option<u8>,
    /// Number of first packets that are duplicated from their first retransmission on.
    duplicate_first: u32,
    unreleased_bytes: u64,
    unreleased: u64,
    /// The POLL that was answered last, and the number of packets that its STATs may still list.
    stat_budget: Option<(u32, u64)>,
    /// Number of packets that USTATs may still list.
    ustat_budget: u64,
}

impl PacketTable {
    /// An empty table. The peer's window is `initial_limit` until its first message.
    pub(crate) fn new(own_window: u32, initial_limit: u32, release_early: bool) -> Self {
        Self {
            first: 0,
            oldest: 0,
            table: VecDeque::new(),
            queue: BTreeSet::new(),
            limit: u64::from(initial_limit.min(Seq24::HALF)),
            own_window: own_window.clamp(1, Seq24::HALF),
            release_early,
            duplicate_from: None,
            duplicate_first: 0,
            unreleased_bytes: 0,
            unreleased: 0,
            stat_budget: None,
            ustat_budget: 0,
        }
    }

    /// Duplicates every packet from its `from`-th retransmission on. The `first` packets of the
    /// session are duplicated from their first retransmission on.
    pub(crate) fn set_duplication(&mut self, from: Option<u8>, first: u32) {
        (self.duplicate_from, self.duplicate_first) = (from, first);
    }

    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// "VT(S)" as an extended sequence number.
    pub(crate) fn next(&self) -> u64 {
        self.oldest + self.table.len() as u64
    }

    /// "VT(S)" as it is sent.
    pub(crate) fn next_number(&self) -> Seq24 {
        Seq24::from_extended(self.next())
    }

    /// Whether all packets are acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Number of packets that are sent and not released.
    pub(crate) fn unreleased(&self) -> u64 {
        self.unreleased
    }

    /// Their payload octets.
    pub(crate) fn unreleased_bytes(&self) -> u64 {
        self.unreleased_bytes
    }

    /// Number of new packets that VT(MS) and the own window allow.
    pub(crate) fn free_numbers(&self) -> u64 {
        let limit = self.limit.min(self.oldest + u64::from(self.own_window));
        limit.saturating_sub(self.next())
    }

    /// Whether the peer's window is closed.
    pub(crate) fn is_peer_window_closed(&self) -> bool {
        self.next() >= self.limit
    }

    /// Adds a packet of `size` payload octets and returns its sequence number, VT(S).
    pub(crate) fn push(&mut self, size: usize, handle: u64, transmission: Transmission) -> u64 {
        let seq = self.next();
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let (poll_seq, sent_at) = (transmission.poll, micros(transmission.at));
        let (retransmissions, released) = (0, false);
        self.table.push_back(Entry { handle, size, poll_seq, sent_at, retransmissions, released });
        self.unreleased += 1;
        self.unreleased_bytes += u64::from(size);
        self.ustat_budget += USTAT_LISTINGS_PER_PACKET;
        seq
    }

    /// The first packet of the retransmission queue.
    pub(crate) fn next_retransmission(&self) -> Option<Retransmission> {
        let &seq = self.queue.first()?;
        let entry = self.table.get(self.index(seq)?)?;
        Some(Retransmission { seq, handle: entry.handle, size: entry.size as usize })
    }

    /// Length of the retransmission queue.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Packet `seq` was retransmitted, now with `size` payload octets.
    pub(crate) fn on_retransmitted(&mut self, seq: u64, size: usize, transmission: Transmission) {
        let Some(index) = self.index(seq) else {
            self.queue.remove(&seq);
            return;
        };
        let entry = &mut self.table[index];
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        self.unreleased_bytes = self.unreleased_bytes - u64::from(entry.size) + u64::from(size);
        entry.size = size;
        entry.poll_seq = transmission.poll;
        entry.sent_at = micros(transmission.at);
        entry.retransmissions = entry.retransmissions.saturating_add(1);
        // The packet stays in the queue for its duplicate.
        let is_early = seq - self.first < u64::from(self.duplicate_first);
        let from = if is_early { Some(1) } else { self.duplicate_from };
        let has_duplicate = from.is_some_and(|from| {
            let count = entry.retransmissions;
            count >= from && count < u8::MAX && (count - from).is_multiple_of(2)
        });
        if !has_duplicate {
            self.queue.remove(&seq);
        }
    }

    /// Queues the first packet that is not released, while the peer has not answered BGN.
    pub(crate) fn retransmit_first(&mut self) {
        let first = self.table.iter().position(|entry| !entry.released);
        if let Some(index) = first {
            self.queue.insert(self.oldest + index as u64);
        }
    }

    /// Processes a STAT (XSTP-7.3). Of one that a later report has overtaken, the window counts
    /// only if it extends VT(MS).
    pub(crate) fn on_stat(
        &mut self,
        received_below: Seq24,
        window: u32,
        runs: impl Iterator<Item = Run> + Clone,
        filter: RetransmitFilter,
        upper: &mut impl UpperLayer,
    ) -> Result<Outcome, InvalidReport> {
        let below = self.check(received_below, runs.clone())?;
        let in_budget = self.take_stat_budget(filter.poll, total(runs.clone()));
        let is_overtaken = below < self.oldest;
        let limit = below + u64::from(window.min(Seq24::HALF));
        self.limit = if is_overtaken { self.limit.max(limit) } else { limit };
        let mut outcome = self.release_below(below, upper);
        if !in_budget {
            return Ok(outcome);
        }
        for run in runs {
            let (start, end) = extend(below, received_below, run);
            if run.missing {
                let eligible = |entry: &Entry| filter.matches(entry);
                self.enqueue(start, end, filter.hold, &mut outcome, eligible);
            } else if self.release_early {
                outcome.released += self.release_run(start, end, upper);
            }
        }
        Ok(outcome)
    }

    /// Queues the packets that a STAT reports missing which was processed just now with `hold`.
    pub(crate) fn queue_held(
        &mut self,
        received_below: Seq24,
        runs: impl Iterator<Item = Run>,
        filter: RetransmitFilter,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(below) = self.extend_received_below(received_below) else { return outcome };
        for run in runs.filter(|run| run.missing) {
            let (start, end) = extend(below, received_below, run);
            self.enqueue(start, end, false, &mut outcome, |entry| filter.matches(entry));
        }
        outcome
    }

    /// Empties the retransmission queue. A later STAT reports what is still missing.
    pub(crate) fn clear_queue(&mut self) {
        self.queue.clear();
    }

    /// Processes a USTAT: packets in its gaps are retransmitted only if they were sent once
    /// (XSTP-7.4). With `hold` they are only counted. A USTAT that a later report has overtaken
    /// still counts for the numbers from VT(A) on.
    pub(crate) fn on_ustat(
        &mut self,
        received_below: Seq24,
        gaps: impl Iterator<Item = Run> + Clone,
        hold: bool,
        upper: &mut impl UpperLayer,
    ) -> Result<Outcome, InvalidReport> {
        let below = self.check(received_below, gaps.clone())?;
        let mut outcome = self.release_below(below, upper);
        let left = self.ustat_budget.checked_sub(total(gaps.clone()));
        let Some(left) = left else { return Ok(outcome) };
        self.ustat_budget = left;
        for gap in gaps {
            let (start, end) = extend(below, received_below, gap);
            self.enqueue(start, end, hold, &mut outcome, |entry| entry.retransmissions == 0);
        }
        Ok(outcome)
    }

    /// Sets the peer's window to the one in its BGN or BGNAK.
    pub(crate) fn set_first_window(&mut self, window: u32) {
        if self.oldest == self.first {
            self.limit = self.first + u64::from(window.min(Seq24::HALF));
        }
    }

    /// Sets the sequence number of the first packet.
    pub(crate) fn start_at(&mut self, first: u64) {
        debug_assert!(self.next() == 0, "no packet may have been sent");
        self.limit += first;
        self.first = first;
        self.oldest = first;
    }

    /// Whether the STATs that answer `poll` may list `numbers` more packets: twice the table in
    /// total, because segments can be duplicated. This bounds the time for hostile STATs.
    fn take_stat_budget(&mut self, poll: u32, numbers: u64) -> bool {
        let left = match self.stat_budget {
            Some((listed, left)) if listed == poll => left,
            Some(_) | None => 2 * self.table.len() as u64,
        };
        self.stat_budget = Some((poll, left.saturating_sub(numbers)));
        numbers <= left
    }

    /// Returns N(R) as an extended sequence number, if neither it nor the list is beyond VT(S).
    fn check(
        &self,
        received_below: Seq24,
        runs: impl Iterator<Item = Run>,
    ) -> Result<u64, InvalidReport> {
        let below =
            self.extend_received_below(received_below).ok_or(InvalidReport::ReceivedBelow)?;
        for run in runs {
            if extend(below, received_below, run).1 > self.next() {
                return Err(InvalidReport::List);
            }
        }
        Ok(below)
    }

    /// Returns N(R) as an extended sequence number, if it is between the first packet and VT(S).
    /// It is behind VT(A) in a report that a later one has overtaken.
    fn extend_received_below(&self, received_below: Seq24) -> Option<u64> {
        let ahead = received_below.distance(Seq24::from_extended(self.oldest));
        if ahead as usize <= self.table.len() {
            return Some(self.oldest + u64::from(ahead));
        }
        let behind = Seq24::from_extended(self.oldest).distance(received_below);
        let below = self.oldest.checked_sub(u64::from(behind))?;
        (behind < Seq24::HALF && below >= self.first).then_some(below)
    }

    fn release_below(&mut self, below: u64, upper: &mut impl UpperLayer) -> Outcome {
        let mut outcome = Outcome::default();
        while self.oldest < below {
            let Some(entry) = self.table.pop_front() else { break };
            let seq = self.oldest;
            self.oldest += 1;
            if !entry.released {
                outcome.released += self.release(seq, entry, upper);
            }
        }
        outcome
    }

    fn release_run(&mut self, start: u64, end: u64, upper: &mut impl UpperLayer) -> u64 {
        let mut bytes = 0;
        for seq in start..end {
            let Some(index) = self.index(seq) else { continue };
            let entry = self.table[index];
            if !entry.released {
                self.table[index].released = true;
                bytes += self.release(seq, entry, upper);
            }
        }
        bytes
    }

    fn release(&mut self, seq: u64, entry: Entry, upper: &mut impl UpperLayer) -> u64 {
        self.queue.remove(&seq);
        self.unreleased -= 1;
        self.unreleased_bytes -= u64::from(entry.size);
        upper.on_acknowledged(Seq24::from_extended(seq), entry.handle);
        u64::from(entry.size)
    }

    fn enqueue(
        &mut self,
        start: u64,
        end: u64,
        hold: bool,
        outcome: &mut Outcome,
        eligible: impl Fn(&Entry) -> bool,
    ) {
        for seq in start..end {
            let Some(entry) = self.index(seq).and_then(|index| self.table.get(index)) else {
                continue;
            };
            if entry.released || !eligible(entry) {
                continue;
            }
            let lost_retransmissions = u64::from(entry.retransmissions > 0);
            let is_new = if hold { !self.queue.contains(&seq) } else { self.queue.insert(seq) };
            outcome.lost += u64::from(is_new);
            outcome.lost_retransmissions += u64::from(is_new) * lost_retransmissions;
        }
    }

    fn index(&self, seq: u64) -> Option<usize> {
        usize::try_from(seq.checked_sub(self.oldest)?).ok().filter(|&i| i < self.table.len())
    }
}

/// Extended sequence numbers of the first packet of a run and of the one after its last, where
/// `below` is the extended N(R).
fn extend(below: u64, received_below: Seq24, run: Run) -> (u64, u64) {
    let start = below + u64::from(run.start.distance(received_below));
    (start, start + u64::from(run.len))
}

/// Number of packets in the runs.
fn total(runs: impl Iterator<Item = Run>) -> u64 {
    runs.map(|run| u64::from(run.len)).sum()
}

#[cfg(any(test, feature = "fuzzing"))]
mod model;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use model::check as check_against_model;
#[cfg(test)]
mod tests;
