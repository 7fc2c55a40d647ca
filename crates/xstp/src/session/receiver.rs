//! The receiving half: which packets are here, which are missing, and when to say so.
//!
//! ```text
//!            VR(R)                                   VR(H)            VR(MR)
//!  received    |  missing  | received | missing | rec. |   not sent yet  |  not accepted
//!  ------------+===========+----------+=========+------+ . . . . . . . . +- - - - - - - -
//! ```
//!
//! [`Receiver`] knows numbers, not bytes: each packet is reported as new exactly once, and the
//! caller hands it up (immediate delivery) or puts it into a [`ReceiveCache`] (in order).
//!
//! It owes the peer two kinds of reports. A STAT answers a POLL and lists everything that is
//! missing; a newer POLL makes an older answer unnecessary. A USTAT tells of a gap once, when
//! enough later packets have arrived that it is not mere reordering, or when a newer gap shows
//! up. With a hold, gaps that ripen within it share one USTAT, and a POLL that comes first makes
//! that USTAT unnecessary as far as its STAT covers the same gaps.

mod cache;
mod holes;
mod reports;

pub use cache::ReceiveCache;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use model::check as check_against_model;

use crate::Seq24;
use crate::wire::{Arrival, Echo, Poll, Profile, RunBudget, RunList, Stat, Ustat};
use alloc::vec::Vec;
use holes::Holes;
use reports::Reports;
use units::{Instant, Span};

/// How a receiver behaves.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// The first number; zero unless a test wants to be elsewhere.
    pub first: Seq24,
    /// How many numbers from VR(R) on are accepted; at most [`Seq24::HALF`].
    pub window: u32,
    /// A gap is told of when this many packets beyond it have arrived; 1 is at once, which is
    /// right where nothing is reordered. The paper's tests use 3.
    pub ustat_threshold: u32,
    /// How long a gap may wait for others to share its USTAT; zero as published.
    pub ustat_hold: Span,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// It is here for the first time: hand it up.
    New,
    /// It was here before.
    Duplicate,
    /// It is beyond what was ever offered: a broken peer's.
    BeyondWindow,
}

/// What a receiver has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStatistics {
    /// Packets that were new.
    pub packets: u64,
    /// Packets that had been here before: SSCOP's error Q.
    pub duplicates: u64,
    /// Packets at or beyond VR(MR).
    pub beyond_window: u64,
    /// POLLs that were not newer than the last one.
    pub stale_polls: u64,
    /// Gaps that a packet revealed.
    pub gaps: u64,
}

/// The receiving half of a session.
#[derive(Clone, Debug)]
pub struct Receiver {
    holes: Holes,
    /// VR(MR) as last told to the peer, which may send anything below it.
    edge: u64,
    window: u32,
    reports: Reports,
    answer: Option<Answer>,
    last_poll: Option<u32>,
    octets: u32,
    statistics: ReceiverStatistics,
    /// The list of the segment that was built last.
    lengths: Vec<u32>,
}

/// The POLL that is to be answered.
#[derive(Clone, Copy, Debug)]
struct Answer {
    echo: Echo,
    arrival: Arrival,
    /// Where the list goes on, when part of it has gone already.
    resume: Option<u64>,
}

impl Receiver {
    /// A receiver that has nothing yet.
    ///
    /// # Panics
    /// When the window is above [`Seq24::HALF`].
    pub fn new(config: &ReceiverConfig) -> Self {
        assert!(config.window <= Seq24::HALF, "a window is at most half of all numbers");
        // Counts start one turn up, so that numbers before the first one have counts too.
        let first = u64::from(Seq24::MODULUS) + u64::from(config.first.value());
        Self {
            holes: Holes::new(first),
            edge: first + u64::from(config.window),
            window: config.window,
            reports: Reports::new(config.ustat_threshold, config.ustat_hold),
            answer: None,
            last_poll: None,
            octets: 0,
            statistics: ReceiverStatistics::default(),
            lengths: Vec::new(),
        }
    }

    /// VR(R): the first number that is missing.
    pub fn received_below(&self) -> Seq24 {
        Seq24::of_count(self.holes.next())
    }

    /// VR(H): the number after the highest one that is known to have been sent.
    pub fn highest(&self) -> Seq24 {
        Seq24::of_count(self.holes.highest())
    }

    /// Whether everything that is known to have been sent is here.
    pub fn is_complete(&self) -> bool {
        self.holes.next() == self.holes.highest()
    }

    /// What was counted.
    pub const fn statistics(&self) -> &ReceiverStatistics {
        &self.statistics
    }

    /// Offers `window` numbers from VR(R) on, from the next STAT on; what was offered before
    /// stays accepted.
    ///
    /// # Panics
    /// When the window is above [`Seq24::HALF`].
    pub fn set_window(&mut self, window: u32) {
        assert!(window <= Seq24::HALF, "a window is at most half of all numbers");
        self.window = window;
    }

    /// Counts a segment that arrived, with all that was below and around it, whatever is in it:
    /// what STAT tells as received so far. Comes before the segment's parts are handled.
    pub fn on_octets(&mut self, octets: u32) {
        self.octets = self.octets.wrapping_add(octets);
    }

    /// Handles the number of an SD.
    pub fn on_data(&mut self, now: Instant, number: Seq24) -> Accept {
        let count = self.count_of(number);
        if count >= self.edge {
            self.statistics.beyond_window += 1;
            return Accept::BeyondWindow;
        }
        let highest = self.holes.highest();
        if count >= highest {
            self.holes.extend_to(count);
            self.holes.append();
            if count > highest {
                self.statistics.gaps += 1;
                self.reports.on_gap(now, highest, count);
            }
        } else if !self.holes.fill(count) {
            self.statistics.duplicates += 1;
            return Accept::Duplicate;
        }
        self.reports.on_packet(now, count, &self.holes);
        self.statistics.packets += 1;
        Accept::New
    }

    /// Handles a POLL; says whether it was newer than all before and will be answered.
    pub fn on_poll(&mut self, now: Instant, stamp: u32, poll: Poll) -> bool {
        if self.last_poll.is_some_and(|last| poll.count.wrapping_sub(last) as i32 <= 0) {
            self.statistics.stale_polls += 1;
            return false;
        }
        self.last_poll = Some(poll.count);
        let sent_below = self.count_of(poll.next).min(self.edge);
        self.holes.extend_to(sent_below);
        self.reports.on_answer(sent_below);
        let at = now.as_nanos() / 1000;
        self.answer = Some(Answer {
            echo: Echo { count: poll.count, stamp },
            arrival: Arrival { at: at as u32, octets: self.octets },
            resume: None,
        });
        true
    }

    /// Whether a STAT, or another part of one, is to be sent.
    pub const fn stat_due(&self) -> bool {
        self.answer.is_some()
    }

    /// The next segment's STAT, in at most `room` octets (64 are always enough for some of it);
    /// `None` when no more is due. It is as good as sent.
    pub fn take_stat(&mut self, profile: &Profile, room: usize) -> Option<Stat<'_>> {
        let answer = self.answer?;
        let next = self.holes.next();
        let from = answer.resume.unwrap_or(next).max(next);
        self.lengths.clear();
        let mut budget = RunBudget::stat(profile, room);
        let mut skip = 0;
        let mut resume = None;
        for (low, high, received) in self.holes.runs_from(from) {
            // A window fits 32 bits; the room of the first pair is the caller's promise.
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
        self.answer = resume.map(|_| Answer { resume, ..answer });
        if answer.resume.is_some() && self.lengths.is_empty() {
            // What was left has been filled meanwhile.
            return None;
        }
        self.edge = self.edge.max(next + u64::from(self.window.min(profile.max_window())));
        Some(Stat {
            echo: answer.echo,
            received_below: Seq24::of_count(next),
            window: (self.edge - next) as u32,
            arrival: answer.resume.is_none().then_some(answer.arrival),
            runs: RunList::new(skip, &self.lengths).expect("runs lie within a window"),
        })
    }

    /// When a USTAT is due, if nothing changes until then.
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.reports.due()
    }

    /// Whether a USTAT is to be sent now.
    pub fn ustat_due(&self, now: Instant) -> bool {
        self.reports.due().is_some_and(|due| due <= now)
    }

    /// The next segment's USTAT, in at most `room` octets (64 are always enough for some of it);
    /// `None` when no more is due. It is as good as sent.
    pub fn take_ustat(
        &mut self,
        now: Instant,
        profile: &Profile,
        room: usize,
    ) -> Option<Ustat<'_>> {
        if !self.ustat_due(now) {
            return None;
        }
        let next = self.holes.next();
        let mut budget = RunBudget::ustat(profile, room);
        let lengths = &mut self.lengths;
        lengths.clear();
        let mut end = next;
        let mut skip = 0;
        self.reports.take(&self.holes, |low, high| {
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
        let gaps = RunList::new(skip, lengths).expect("gaps lie within a window");
        Ustat::new(Seq24::of_count(next), gaps)
    }

    /// The count of a number that can only be near VR(R).
    fn count_of(&self, number: Seq24) -> u64 {
        number.extend(self.holes.next()).expect("counts start one turn up")
    }
}

#[cfg(any(test, feature = "fuzzing"))]
mod model;
#[cfg(test)]
mod tests;
