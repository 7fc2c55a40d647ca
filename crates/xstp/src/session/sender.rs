//! The sender's table: every number that was sent and is not released.
//!
//! ```text
//!        VT(A)                         VT(S)              VT(MS)
//!   ──────┬──────────────────────────────┬───────────────────┬────▶ numbers
//!  forgot │ released early ░  sent ▒     │ free to be used   │ not allowed by the peer
//!         └── ring buffer, one entry ────┘
//! ```
//!
//! Numbers are counted without wrap inside (64 bits), so that they can be ordered; on the wire
//! they are the lower 24 bits. Finding an entry is indexing; what is to be sent again is an
//! ordered set, because the lowest number goes first (XSTP-7.2.2).

use super::polling::sent_before;
use super::upper::Upper;
use crate::Seq24;
use crate::wire::Run;
use alloc::collections::{BTreeSet, VecDeque};
use units::{Instant, Span};

/// How often USTATs may tell of each number, on average. A receiver tells once, and segments can
/// come twice.
const TELLINGS: u64 = 4;

/// One number that was sent.
#[derive(Clone, Copy, Debug)]
struct Entry {
    handle: u64,
    size: u32,
    /// Count of the last POLL before its last sending.
    stamp: u32,
    /// When it was last sent, in microseconds, modulo 2³².
    sent_at: u32,
    /// How often it was sent again; stays at the top once there.
    again: u8,
    released: bool,
}

/// A sending: what the rules of XSTP-7.3 compare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    /// Count of the last POLL before it.
    pub(crate) poll: u32,
    /// When.
    pub(crate) at: Instant,
}

/// Which of the numbers that a STAT tells as missing are to be sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Count of the POLL that the STAT answers.
    pub(crate) poll: u32,
    /// When the STAT came, and how long before that a number must have been sent last.
    pub(crate) age: Option<(Instant, Span)>,
    /// Whether they are only counted, and not queued.
    pub(crate) hold: bool,
}

impl Asked {
    fn calls_back(&self, entry: &Entry) -> bool {
        let old = self.age.is_none_or(|(now, least)| {
            let least = u32::try_from(least.as_micros()).unwrap_or(u32::MAX);
            micros(now).wrapping_sub(entry.sent_at) >= least
        });
        old && sent_before(entry.stamp, self.poll)
    }
}

/// `at` in microseconds, modulo 2³².
fn micros(at: Instant) -> u32 {
    (at.as_nanos() / 1_000) as u32
}

/// What is to be sent again next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Again {
    pub(crate) count: u64,
    pub(crate) handle: u64,
    pub(crate) size: usize,
}

/// What a STAT or USTAT changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Payload bytes released.
    pub(crate) released: u64,
    /// Numbers newly found missing, whether queued or only counted.
    pub(crate) lost: u64,
    /// Those of them that had been sent again before.
    pub(crate) lost_again: u64,
}

/// Why a STAT or USTAT was not believed. Nothing of it was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disbelief {
    /// N(R) is not between VT(A) and VT(S).
    ReceivedBelow,
    /// The list reaches beyond VT(S).
    List,
}

/// The table, the retransmission queue and the peer's window.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// The number of the first packet.
    first: u64,
    /// "VT(A)", counted without wrap.
    oldest: u64,
    table: VecDeque<Entry>,
    queue: BTreeSet<u64>,
    /// "VT(MS)", counted without wrap.
    limit: u64,
    own_window: u32,
    release_early: bool,
    double_from: Option<u8>,
    /// So many numbers from the first on go out twice whenever they are sent again.
    double_first: u32,
    unreleased_bytes: u64,
    unreleased: u64,
    /// The POLL that was answered last, and how many numbers its STATs may still list.
    listing: Option<(u32, u64)>,
    /// Numbers that USTATs may still tell of.
    telling: u64,
}

impl Sender {
    /// Nothing sent; the peer is taken to allow `initial_limit` numbers until it says otherwise.
    pub(crate) fn new(own_window: u32, initial_limit: u32, release_early: bool) -> Self {
        Self {
            first: 0,
            oldest: 0,
            table: VecDeque::new(),
            queue: BTreeSet::new(),
            limit: u64::from(initial_limit.min(Seq24::HALF)),
            own_window: own_window.clamp(1, Seq24::HALF),
            release_early,
            double_from: None,
            double_first: 0,
            unreleased_bytes: 0,
            unreleased: 0,
            listing: None,
            telling: 0,
        }
    }

    /// From this sending again on, numbers go out twice each time; the `first` numbers do so from
    /// their first on.
    pub(crate) fn set_double(&mut self, from: Option<u8>, first: u32) {
        (self.double_from, self.double_first) = (from, first);
    }

    /// "VT(A)", counted without wrap.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// "VT(S)", counted without wrap.
    pub(crate) fn next(&self) -> u64 {
        self.oldest + self.table.len() as u64
    }

    /// "VT(S)" as it goes on the wire.
    pub(crate) fn next_number(&self) -> Seq24 {
        Seq24::of_count(self.next())
    }

    /// Whether everything that was sent is acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Numbers sent and not released.
    pub(crate) fn unreleased(&self) -> u64 {
        self.unreleased
    }

    /// Payload bytes sent and not released.
    pub(crate) fn unreleased_bytes(&self) -> u64 {
        self.unreleased_bytes
    }

    /// Numbers that may still be used before VT(MS) or the own window is reached.
    pub(crate) fn free_numbers(&self) -> u64 {
        let limit = self.limit.min(self.oldest + u64::from(self.own_window));
        limit.saturating_sub(self.next())
    }

    /// Whether the peer's window is what stops new data: "credit" is lost.
    pub(crate) fn is_shut_by_peer(&self) -> bool {
        self.next() >= self.limit
    }

    /// Takes VT(S) for a packet of `size` payload bytes.
    pub(crate) fn push(&mut self, size: usize, handle: u64, sending: Sending) -> u64 {
        let count = self.next();
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let (stamp, sent_at) = (sending.poll, micros(sending.at));
        self.table.push_back(Entry { handle, size, stamp, sent_at, again: 0, released: false });
        self.unreleased += 1;
        self.unreleased_bytes += u64::from(size);
        self.telling += TELLINGS;
        count
    }

    /// What is to be sent again first.
    pub(crate) fn again(&self) -> Option<Again> {
        let &count = self.queue.first()?;
        let entry = self.table.get(self.index(count)?)?;
        Some(Again { count, handle: entry.handle, size: entry.size as usize })
    }

    /// How many numbers wait to be sent again.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// `count` was sent again, now with `size` payload bytes.
    pub(crate) fn sent_again(&mut self, count: u64, size: usize, sending: Sending) {
        let Some(index) = self.index(count) else {
            self.queue.remove(&count);
            return;
        };
        let entry = &mut self.table[index];
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        self.unreleased_bytes = self.unreleased_bytes - u64::from(entry.size) + u64::from(size);
        entry.size = size;
        entry.stamp = sending.poll;
        entry.sent_at = micros(sending.at);
        entry.again = entry.again.saturating_add(1);
        // The first of two stays in the queue for the second.
        let is_early = count - self.first < u64::from(self.double_first);
        let from = if is_early { Some(1) } else { self.double_from };
        let is_first_of_two = from.is_some_and(|from| {
            entry.again >= from && entry.again < u8::MAX && (entry.again - from).is_multiple_of(2)
        });
        if !is_first_of_two {
            self.queue.remove(&count);
        }
    }

    /// Asks for the first number that is not released to be sent again: nothing says that the
    /// peer knows of the connection yet.
    pub(crate) fn repeat_first(&mut self) {
        let first = self.table.iter().position(|entry| !entry.released);
        if let Some(index) = first {
            self.queue.insert(self.oldest + index as u64);
        }
    }

    /// A STAT (XSTP-7.3).
    pub(crate) fn on_stat(
        &mut self,
        received_below: Seq24,
        window: u32,
        runs: impl Iterator<Item = Run> + Clone,
        asked: Asked,
        upper: &mut impl Upper,
    ) -> Result<Outcome, Disbelief> {
        let below = self.check(received_below, runs.clone())?;
        let listed = self.may_list(asked.poll, total(runs.clone()));
        let mut outcome = self.release_below(below, upper);
        self.limit = below + u64::from(window.min(Seq24::HALF));
        if !listed {
            return Ok(outcome);
        }
        for run in runs {
            let start = below + u64::from(run.start.distance(received_below));
            let end = start + u64::from(run.len);
            if run.missing {
                let calls_back = |entry: &Entry| asked.calls_back(entry);
                self.enqueue(start, end, asked.hold, &mut outcome, calls_back);
            } else if self.release_early {
                outcome.released += self.release_run(start, end, upper);
            }
        }
        Ok(outcome)
    }

    /// Queues what a STAT that was believed just now, and held, tells as missing.
    pub(crate) fn queue_held(
        &mut self,
        received_below: Seq24,
        runs: impl Iterator<Item = Run>,
        asked: Asked,
    ) -> Outcome {
        let below = self.oldest + u64::from(received_below.distance(Seq24::of_count(self.oldest)));
        let mut outcome = Outcome::default();
        for run in runs.filter(|run| run.missing) {
            let start = below + u64::from(run.start.distance(received_below));
            let end = start + u64::from(run.len);
            self.enqueue(start, end, false, &mut outcome, |entry| asked.calls_back(entry));
        }
        outcome
    }

    /// Nothing waits to be sent again any more. What is still missing will be told again.
    pub(crate) fn clear_queue(&mut self) {
        self.queue.clear();
    }

    /// A USTAT: what is in its gaps is sent again only if it was sent once (XSTP-7.4); with
    /// `hold` it is only counted. One that a later report has overtaken still counts for the
    /// numbers from VT(A) on.
    pub(crate) fn on_ustat(
        &mut self,
        received_below: Seq24,
        gaps: impl Iterator<Item = Run> + Clone,
        hold: bool,
        upper: &mut impl Upper,
    ) -> Result<Outcome, Disbelief> {
        let below = match self.overtaken(received_below) {
            Some(below) => self.check_list(below, received_below, gaps.clone())?,
            None => self.check(received_below, gaps.clone())?,
        };
        let mut outcome = self.release_below(below, upper);
        let told = self.telling.checked_sub(total(gaps.clone()));
        let Some(left) = told else { return Ok(outcome) };
        self.telling = left;
        for gap in gaps {
            let start = below + u64::from(gap.start.distance(received_below));
            let end = start + u64::from(gap.len);
            self.enqueue(start, end, hold, &mut outcome, |entry| entry.again == 0);
        }
        Ok(outcome)
    }

    /// The peer allows `window` numbers from the first on: it said so when the session began.
    pub(crate) fn set_first_window(&mut self, window: u32) {
        if self.oldest == self.first {
            self.limit = self.first + u64::from(window.min(Seq24::HALF));
        }
    }

    /// Begins at `first` instead of 0, with everything before it acknowledged.
    pub(crate) fn start_at(&mut self, first: u64) {
        debug_assert!(self.next() == 0, "nothing may have been sent");
        self.limit += first;
        self.first = first;
        self.oldest = first;
    }

    /// Whether `numbers` more may be listed by STATs that answer the POLL counted `poll`: twice
    /// what is outstanding, as segments can come twice. To walk through more is for nothing.
    fn may_list(&mut self, poll: u32, numbers: u64) -> bool {
        let left = match self.listing {
            Some((listed, left)) if listed == poll => left,
            Some(_) | None => 2 * self.table.len() as u64,
        };
        self.listing = Some((poll, left.saturating_sub(numbers)));
        numbers <= left
    }

    /// N(R) without wrap, if it and the whole list lie between VT(A) and VT(S).
    fn check(
        &self,
        received_below: Seq24,
        runs: impl Iterator<Item = Run>,
    ) -> Result<u64, Disbelief> {
        let ahead = received_below.distance(Seq24::of_count(self.oldest));
        if ahead as usize > self.table.len() {
            return Err(Disbelief::ReceivedBelow);
        }
        self.check_list(self.oldest + u64::from(ahead), received_below, runs)
    }

    /// N(R) without wrap, if it is behind VT(A) and not behind the first number.
    fn overtaken(&self, received_below: Seq24) -> Option<u64> {
        let behind = Seq24::of_count(self.oldest).distance(received_below);
        let below = self.oldest.checked_sub(u64::from(behind))?;
        (0 < behind && behind < Seq24::HALF && below >= self.first).then_some(below)
    }

    /// `below`, which is `received_below` without wrap, if no run reaches beyond VT(S).
    fn check_list(
        &self,
        below: u64,
        received_below: Seq24,
        runs: impl Iterator<Item = Run>,
    ) -> Result<u64, Disbelief> {
        for run in runs {
            let start = below + u64::from(run.start.distance(received_below));
            if start + u64::from(run.len) > self.next() {
                return Err(Disbelief::List);
            }
        }
        Ok(below)
    }

    fn release_below(&mut self, below: u64, upper: &mut impl Upper) -> Outcome {
        let mut outcome = Outcome::default();
        while self.oldest < below {
            let Some(entry) = self.table.pop_front() else { break };
            let count = self.oldest;
            self.oldest += 1;
            if !entry.released {
                outcome.released += self.release(count, entry, upper);
            }
        }
        outcome
    }

    fn release_run(&mut self, start: u64, end: u64, upper: &mut impl Upper) -> u64 {
        let mut bytes = 0;
        for count in start..end {
            let Some(index) = self.index(count) else { continue };
            let entry = self.table[index];
            if !entry.released {
                self.table[index].released = true;
                bytes += self.release(count, entry, upper);
            }
        }
        bytes
    }

    fn release(&mut self, count: u64, entry: Entry, upper: &mut impl Upper) -> u64 {
        self.queue.remove(&count);
        self.unreleased -= 1;
        self.unreleased_bytes -= u64::from(entry.size);
        upper.released(Seq24::of_count(count), entry.handle);
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
        for count in start..end {
            let Some(entry) = self.index(count).and_then(|index| self.table.get(index)) else {
                continue;
            };
            let lost = !entry.released && eligible(entry);
            let again = entry.again > 0;
            if lost && (if hold { !self.queue.contains(&count) } else { self.queue.insert(count) })
            {
                outcome.lost += 1;
                outcome.lost_again += u64::from(again);
            }
        }
    }

    fn index(&self, count: u64) -> Option<usize> {
        usize::try_from(count.checked_sub(self.oldest)?).ok().filter(|&i| i < self.table.len())
    }
}

/// How many numbers the runs have.
fn total(runs: impl Iterator<Item = Run>) -> u64 {
    runs.map(|run| u64::from(run.len)).sum()
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod model;
#[cfg(test)]
mod tests;
