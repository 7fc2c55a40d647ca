//! Receiver of a session: received and missing packets, and the STATs and USTATs that report them.
//!
//! ```text
//!            VR(R)                                   VR(H)            VR(MR)
//!  received    |  missing  | received | missing | rec. |   not sent yet  |  not accepted
//!  ------------+===========+----------+=========+------+ . . . . . . . . +- - - - - - - -
//! ```
//!
//! [`Receiver`] stores sequence numbers, not payload: each packet is accepted as new exactly once,
//! and the caller delivers it (immediate delivery) or stores it in a [`ReceiveCache`] (in order).
//!
//! A STAT answers a POLL and lists all missing packets; a newer POLL replaces an older one that is
//! not answered yet. A USTAT reports a gap once: when as many later packets were received as the
//! reordering threshold says, or when a newer gap is found. With a hold time, gaps that are found
//! within it are reported by one USTAT, and a POLL received first cancels the part of it that its
//! STAT covers.

mod cache;
mod gaps;
mod stat_schedule;
mod ustat_queue;

pub use cache::ReceiveCache;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use model::check as check_against_model;

use crate::seq::Seq24;
use crate::wire::{Arrival, Echo, Poll, Profile, RunBudget, RunList, Stat, Ustat};
use alloc::vec::Vec;
use core::ops::Range;
use gaps::GapSet;
use stat_schedule::StatSchedule;
use units::{Instant, Span};
use ustat_queue::UstatQueue;

/// Settings of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Sequence number of the first packet; zero except in tests.
    pub first: Seq24,
    /// Number of packets from VR(R) on that are accepted; at most [`Seq24::HALF`].
    pub window: u32,
    /// Reordering threshold: number of later packets after which a gap is reported. 1 reports it
    /// immediately, for paths that do not reorder; the paper's tests use 3.
    pub ustat_threshold: u32,
    /// Delay of a USTAT in which further gaps are added to it; zero as published.
    pub ustat_hold: Span,
}

/// Result for a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// It is new and is delivered.
    New,
    /// It was received before.
    Duplicate,
    /// It is beyond every advertised window: the peer violates the protocol.
    BeyondWindow,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStatistics {
    /// New packets.
    pub packets: u64,
    /// Packets received before: error Q of SSCOP.
    pub duplicates: u64,
    /// Packets at or beyond VR(MR).
    pub beyond_window: u64,
    /// POLLs that were not newer than the last one.
    pub stale_polls: u64,
    /// Gaps that a packet revealed.
    pub gaps: u64,
}

/// Receiver of a session.
#[derive(Clone, Debug)]
pub struct Receiver {
    gaps: GapSet,
    /// VR(MR) as last advertised to the peer.
    window_edge: u64,
    window: u32,
    ustats: UstatQueue,
    stats: StatSchedule,
    pending_stat: Option<PendingStat>,
    last_poll: Option<u32>,
    octets: u32,
    /// No report has listed a packet from this one on.
    reported_below: u64,
    statistics: ReceiverStatistics,
    /// List of the last report.
    lengths: Vec<u32>,
}

/// POLL that is to be answered.
#[derive(Clone, Copy, Debug)]
struct PendingStat {
    echo: Echo,
    arrival: Arrival,
    /// First packet that the STATs sent so far have not covered.
    resume: Option<u64>,
}

impl Receiver {
    /// A receiver without packets.
    ///
    /// # Panics
    /// When the window is above [`Seq24::HALF`].
    pub fn new(config: &ReceiverConfig) -> Self {
        assert!(config.window <= Seq24::HALF, "a window is at most half of all numbers");
        // Extended sequence numbers start at 2²⁴, so that those before the first packet exist too.
        let first = u64::from(Seq24::MODULUS) + u64::from(config.first.value());
        Self {
            gaps: GapSet::new(first),
            window_edge: first + u64::from(config.window),
            window: config.window,
            ustats: UstatQueue::new(config.ustat_threshold, config.ustat_hold),
            stats: StatSchedule::default(),
            pending_stat: None,
            last_poll: None,
            octets: 0,
            reported_below: first,
            statistics: ReceiverStatistics::default(),
            lengths: Vec::new(),
        }
    }

    /// VR(R): the first missing packet.
    pub fn received_below(&self) -> Seq24 {
        Seq24::from_extended(self.gaps.next())
    }

    /// VR(H): the packet after the highest one that was sent, as far as SDs and POLLs show.
    pub fn highest(&self) -> Seq24 {
        Seq24::from_extended(self.gaps.highest())
    }

    /// Whether all packets up to VR(H) were received.
    pub fn is_complete(&self) -> bool {
        self.gaps.next() == self.gaps.highest()
    }

    /// Counters.
    pub const fn statistics(&self) -> &ReceiverStatistics {
        &self.statistics
    }

    /// Advertises `window` packets from VR(R) on, with the next STAT. Packets within an earlier
    /// window are still accepted.
    ///
    /// # Panics
    /// When the window is above [`Seq24::HALF`].
    pub fn set_window(&mut self, window: u32) {
        assert!(window <= Seq24::HALF, "a window is at most half of all numbers");
        self.window = window;
    }

    /// Adds the octets of a received segment, headers below included, to the counter that STATs
    /// report. It is called before the parts of the segment are processed.
    pub fn on_octets(&mut self, octets: u32) {
        self.octets = self.octets.wrapping_add(octets);
    }

    /// Processes the sequence number of an SD.
    pub fn on_data(&mut self, now: Instant, number: Seq24) -> Accept {
        let seq = self.extend(number);
        if seq >= self.window_edge {
            self.statistics.beyond_window += 1;
            return Accept::BeyondWindow;
        }
        let highest = self.gaps.highest();
        if seq >= highest {
            self.gaps.extend_to(seq);
            self.gaps.append();
            if seq > highest {
                self.statistics.gaps += 1;
                self.ustats.on_gap(now, highest, seq);
            }
        } else if !self.gaps.fill(seq) {
            self.statistics.duplicates += 1;
            return Accept::Duplicate;
        }
        self.ustats.on_packet(now, seq, &self.gaps);
        self.statistics.packets += 1;
        Accept::New
    }

    /// Processes a POLL; returns whether it is newer than all before it and will be answered.
    pub fn on_poll(&mut self, now: Instant, timestamp: u32, poll: Poll) -> bool {
        if self.last_poll.is_some_and(|last| poll.seq.wrapping_sub(last) as i32 <= 0) {
            self.statistics.stale_polls += 1;
            return false;
        }
        self.last_poll = Some(poll.seq);
        let sent_below = self.extend(poll.next).min(self.window_edge);
        self.gaps.extend_to(sent_below);
        self.ustats.on_stat(sent_below);
        let at = now.as_nanos() / 1000;
        self.stats.on_poll();
        self.pending_stat = Some(PendingStat {
            echo: Echo { seq: poll.seq, timestamp },
            arrival: Arrival { at: at as u32, octets: self.octets },
            resume: None,
        });
        true
    }

    /// Whether a STAT, or another segment of its list, is pending.
    pub const fn stat_due(&self) -> bool {
        self.pending_stat.is_some()
    }

    /// Earliest time at which a pending STAT is sent, with `spacing` between two lists.
    pub(super) fn stat_at(&self, spacing: Span) -> Option<Instant> {
        self.stat_due().then(|| self.stats.earliest(spacing))
    }

    pub(super) fn is_stat_incomplete(&self) -> bool {
        self.stats.is_incomplete()
    }

    pub(super) fn last_stat_at(&self) -> Option<Instant> {
        self.stats.last_sent()
    }

    /// The STAT that was taken last was sent.
    pub(super) fn on_stat_sent(&mut self, now: Instant) {
        self.stats.on_sent(now, self.pending_stat.is_some());
    }

    /// Takes the STAT of the next segment, in at most `room` octets; 64 suffice for a part of it.
    /// Returns `None` if none is pending.
    pub fn take_stat(&mut self, profile: &Profile, room: usize) -> Option<Stat<'_>> {
        let pending = self.pending_stat?;
        let next = self.gaps.next();
        let from = pending.resume.unwrap_or(next).max(next);
        self.lengths.clear();
        let mut budget = RunBudget::stat(profile, room);
        let mut skip = 0;
        let mut resume = None;
        for (low, high, received) in self.gaps.runs_from(from) {
            // A window fits 32 bits; the caller guarantees the room of the first pair.
            let pair = [(high - low) as u32, received as u32];
            let pair = if received == 0 { &pair[..1] } else { &pair[..] };
            let first = self.lengths.is_empty();
            if !budget.take(pair) && !first {
                resume = Some(low);
                break;
            }
            if first {
                skip = (low - next) as u32;
            }
            self.lengths.extend_from_slice(pair);
        }
        self.pending_stat = resume.map(|_| PendingStat { resume, ..pending });
        if pending.resume.is_some() && self.lengths.is_empty() {
            // The remaining gaps were filled meanwhile.
            return None;
        }
        self.reported_below = self.reported_below.max(self.gaps.highest());
        self.window_edge =
            self.window_edge.max(next + u64::from(self.window.min(profile.max_window())));
        Some(Stat {
            echo: pending.echo,
            received_below: Seq24::from_extended(next),
            window: (self.window_edge - next) as u32,
            // Without a skip it looks like the beginning of a list.
            arrival: (pending.resume.is_none() || skip == 0).then_some(pending.arrival),
            runs: RunList::new(skip, &self.lengths).expect("runs lie within a window"),
        })
    }

    /// Time at which a USTAT is due, if no gap is filled until then.
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.ustats.due()
    }

    /// Whether a USTAT is due at `now`.
    pub fn ustat_due(&self, now: Instant) -> bool {
        self.ustats.due().is_some_and(|due| due <= now)
    }

    /// Takes the USTAT of the next segment, in at most `room` octets; 64 suffice for a part of it.
    /// Returns `None` if none is due.
    pub fn take_ustat(
        &mut self,
        now: Instant,
        profile: &Profile,
        room: usize,
    ) -> Option<Ustat<'_>> {
        if !self.ustat_due(now) {
            return None;
        }
        let next = self.gaps.next();
        let mut budget = RunBudget::ustat(profile, room);
        let lengths = &mut self.lengths;
        lengths.clear();
        let mut end = next;
        let mut skip = 0;
        self.ustats.take(&self.gaps, |low, high| {
            let pair = [(low - end) as u32, (high - low) as u32];
            if lengths.is_empty() {
                let _ = budget.take(&pair[1..]);
                skip = pair[0];
                lengths.push(pair[1]);
            } else if budget.take(&pair) {
                lengths.extend_from_slice(&pair);
            } else {
                return false;
            }
            end = high;
            true
        });
        self.reported_below = self.reported_below.max(end);
        let gaps = RunList::new(skip, lengths).expect("gaps lie within a window");
        Ustat::new(Seq24::from_extended(next), gaps)
    }

    /// VR(R) and VR(H) as extended sequence numbers.
    pub(super) fn known(&self) -> Range<u64> {
        self.gaps.next()..self.gaps.highest()
    }

    /// Whether no report has listed packet `seq` as missing, so that the peer has not retransmitted
    /// it.
    pub(super) fn is_unreported(&self, seq: u64) -> bool {
        seq >= self.reported_below
    }

    /// Extended sequence number of `number`, which is near VR(R).
    pub(super) fn extend(&self, number: Seq24) -> u64 {
        number.extend(self.gaps.next()).expect("extended sequence numbers start at 2^24")
    }
}

#[cfg(any(test, feature = "fuzzing"))]
mod model;
#[cfg(test)]
mod tests;
