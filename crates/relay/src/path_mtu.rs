//! How large a packet the path takes: found by probing, as RFC 8899 describes it.
//!
//! ```text
//!            ┌──────────── passes: larger ────────────┐
//!            ▼                                        │
//!   begin ─ Searching ── nothing left to try ──▶ Settled ── 10 minutes ──▶ Searching
//!            ▲                                        │
//!            │                 full packets unanswered, the kernel says less, it has moved
//!            │                                        ▼
//!            └── does not pass: begins below ─── Doubting ── passes ──▶ as it was
//! ```
//!
//! Data goes at a size that nearly every path takes until a larger one was answered. A size is
//! given up only when chance is ruled out (see [`Trial`]); what the kernel has heard by ICMP is a
//! hint for what to try next. Probes take a twentieth of the way at most, in both directions,
//! and are never larger than what the way carries in a second.
//!
//! Sizes are those of IP packets, in bytes.

use crate::config::MIN_MTU;
use association::Sealed;
use std::collections::VecDeque;
use trial::{Luck, Trial, Verdict};
use units::{BitRate, Instant, Span};

mod trial;
mod word;

/// What nearly every path takes (RFC 8899, 5.1.2).
const BASE: usize = 1200;
/// Sizes that paths have: of common networks and tunnels.
const COMMON: [usize; 22] = [
    1280, 1300, 1340, 1360, 1380, 1400, 1412, 1420, 1428, 1440, 1450, 1460, 1472, 1480, 1488, 1492,
    1496, 1500, 2002, 4352, 4470, 8166,
];
/// A search ends when less than this is left between what passes and what does not.
const CLOSE: usize = 8;
/// How long until a path that takes less than it might is searched again (RFC 8899, 5.1.1).
const AGAIN: Span = Span::from_secs(600);
/// The part of the way that probes take at most.
const PART: u64 = 20;
/// A packet takes no longer than this to leave.
const LONGEST: Span = Span::from_secs(1);
/// Probes whose answers are still understood.
const REMEMBERED: usize = 64;
/// Answers that wait; a peer that asks faster is not answered.
const MAX_ANSWERS: usize = 4;

/// What is known of the way to the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// The round trip, measured or assumed.
    pub(crate) round_trip: Span,
    /// The rate towards the peer; nothing is probed before there is one.
    pub(crate) rate: Option<BitRate>,
    /// The rate back, as far as it was told.
    pub(crate) back: Option<BitRate>,
    /// Bytes around a payload: IP, UDP and association.
    pub(crate) overhead: usize,
}

/// A datagram about the path that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outgoing {
    /// A Probe that makes an IP packet of `size` bytes.
    Probe { number: u32, size: usize },
    /// A ProbeAck for a Probe that came with `size` bytes of UDP payload.
    Answer { number: u32, size: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is no session, or sizes are not probed.
    Asleep,
    /// Looks for more.
    Searching,
    /// Has what there is to have; more was within `ceiling`.
    Settled { until: Instant, ceiling: usize },
    /// Looks whether the present size still passes.
    Doubting,
}

/// One side's search; each direction of a path is probed by who sends there.
#[derive(Debug)]
pub(crate) struct PathMtu {
    /// Configured, and what the peer takes.
    most: usize,
    current: usize,
    phase: Phase,
    /// The smallest size that is known not to pass; `most + 1` when none is.
    too_large: usize,
    /// What the kernel thinks.
    hint: Option<usize>,
    trial: Option<Trial>,
    luck: Luck,
    numbers: u32,
    sent: VecDeque<(u32, usize)>,
    outbox: VecDeque<Outgoing>,
    /// When probes have used up no more than their part of the way.
    from: Instant,
    answers: VecDeque<Outgoing>,
    /// Since when full packets are sent of which none was acknowledged.
    unanswered: Option<Instant>,
    /// How long that may last without a doubt.
    patience: Span,
    /// Data was lost for its size, which has not been told yet.
    fell: bool,
    /// The highest rate so far. Where large packets do not pass the controller sees its rate
    /// collapse, and what is to find out why must not wait for it.
    fastest: Option<BitRate>,
    /// The largest size that is worth having at that rate; 0 while it is not known.
    ceiling: usize,
}

impl PathMtu {
    /// Packets of at most `most` bytes; all of it is used until [`begin`](Self::begin).
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            current: most,
            phase: Phase::Asleep,
            too_large: most + 1,
            hint: None,
            trial: None,
            luck: Luck::default(),
            numbers: 0,
            sent: VecDeque::new(),
            outbox: VecDeque::new(),
            from: Instant::ZERO,
            answers: VecDeque::new(),
            unanswered: None,
            patience: Span::from_secs(5),
            fell: false,
            fastest: None,
            ceiling: 0,
        }
    }

    /// The size to use.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// A session stands with a peer that takes packets of `most` bytes: the search begins.
    pub(crate) fn begin(&mut self, most: usize) {
        *self = Self { hint: self.hint, numbers: self.numbers, ..Self::new(most) };
        self.current = BASE.min(most);
        self.phase = Phase::Searching;
    }

    /// The size to use where it is not probed.
    pub(crate) fn force(&mut self, mtu: usize) {
        self.current = mtu.min(self.most);
    }

    /// The session is over.
    pub(crate) fn stop(&mut self) {
        self.phase = Phase::Asleep;
        self.trial = None;
        self.unanswered = None;
        self.outbox.clear();
        self.answers.clear();
    }

    /// Whether data was lost for its size since this was last asked.
    pub(crate) fn take_fell(&mut self) -> bool {
        core::mem::take(&mut self.fell)
    }

    /// What the kernel thinks that the path takes. It may be wrong either way.
    pub(crate) fn set_hint(&mut self, mtu: usize) {
        let before = self.hint.replace(mtu);
        if before == Some(mtu) {
            return;
        }
        if mtu < self.current {
            self.doubt();
        } else if matches!(self.phase, Phase::Settled { .. }) && mtu > self.current {
            self.search();
        }
    }

    /// This host's own link did not take a packet of `size` bytes.
    pub(crate) fn refused(&mut self, size: usize) {
        if self.phase == Phase::Asleep {
            return;
        }
        if size <= self.current {
            self.fall_below(size);
        } else if size < self.too_large {
            self.too_large = size;
            self.trial = None;
        }
    }

    /// The way may be another one now.
    pub(crate) fn moved(&mut self) {
        self.too_large = self.most + 1;
        self.doubt();
    }

    /// A packet of data went out.
    pub(crate) fn data_sent(&mut self, now: Instant, size: usize) {
        if self.is_full(size) {
            self.unanswered.get_or_insert(now);
        }
    }

    /// The peer has a packet of data of that size.
    pub(crate) fn data_acknowledged(&mut self, size: usize) {
        if self.is_full(size) {
            self.unanswered = None;
        }
    }

    fn is_full(&self, size: usize) -> bool {
        self.phase != Phase::Asleep && size * 16 >= self.current * 15
    }

    /// A word from the peer; `arrived` is its datagram's UDP payload, bytes. False: not understood.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        kind: Sealed,
        payload: &[u8],
        arrived: usize,
    ) -> bool {
        match kind {
            Sealed::Probe => {
                let Some(number) = word::probe_number(payload) else { return false };
                if self.answers.len() < MAX_ANSWERS {
                    self.answers.push_back(Outgoing::Answer { number, size: arrived });
                }
                true
            }
            Sealed::ProbeAck => match word::answer(payload) {
                Some((number, _)) => {
                    self.answered(now, number);
                    true
                }
                None => false,
            },
            Sealed::Data => false,
        }
    }

    fn answered(&mut self, now: Instant, number: u32) {
        let asked = self.sent.iter().find(|(sent, _)| *sent == number);
        let Some(&(_, size)) = asked else { return };
        let passes = self.trial.as_mut().is_some_and(|trial| trial.answered(now, number));
        if self.phase == Phase::Asleep {
            return;
        }
        // Also an answer that comes after the verdict is the truth.
        if size > self.current && size <= self.most {
            self.current = size;
            self.unanswered = None;
            self.too_large = self.too_large.max(size + 1);
            if self.trial.is_some_and(|trial| trial.size <= size) {
                self.trial = None;
            }
        }
        if passes {
            self.trial = None;
            if self.phase == Phase::Doubting {
                self.unanswered = None;
                self.phase = Phase::Searching;
            }
        }
    }

    /// Does what is due by `now` and hands out what is to be sent.
    pub(crate) fn poll_transmit(&mut self, now: Instant, way: &Conditions) -> Option<Outgoing> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        self.advance(now, way);
        self.outbox.pop_front()
    }

    /// Writes `outgoing` over `payload`, which has the room that [`Self::room`] asks for.
    pub(crate) fn write(outgoing: Outgoing, payload: &mut [u8]) -> Sealed {
        match outgoing {
            Outgoing::Probe { number, .. } => {
                word::write_probe(number, payload);
                Sealed::Probe
            }
            Outgoing::Answer { number, size } => {
                word::write_answer(number, size, payload);
                Sealed::ProbeAck
            }
        }
    }

    /// Bytes of payload of `outgoing`, which has `overhead` bytes around it.
    pub(crate) fn room(outgoing: Outgoing, overhead: usize) -> usize {
        match outgoing {
            Outgoing::Probe { size, .. } => size.saturating_sub(overhead).max(word::ANSWER),
            Outgoing::Answer { .. } => word::ANSWER,
        }
    }

    /// When [`poll_transmit`](Self::poll_transmit) has something to do again, unless the rate has
    /// to become known first.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if !self.answers.is_empty() || !self.outbox.is_empty() {
            return Some(Instant::ZERO);
        }
        let phase = match self.phase {
            _ if self.ceiling == 0 => return None,
            Phase::Asleep => return None,
            Phase::Settled { until, .. } => Some(until),
            Phase::Searching | Phase::Doubting => None,
        };
        let trial = self.trial.as_ref().map(Trial::due);
        let doubts = self.phase != Phase::Doubting && self.current > MIN_MTU;
        let doubt = self.unanswered.filter(|_| doubts).map(|since| since + self.patience);
        phase.into_iter().chain(trial).chain(doubt).min()
    }

    fn advance(&mut self, now: Instant, way: &Conditions) {
        self.fastest = self.fastest.max(way.rate);
        let way = &Conditions { rate: self.fastest, ..*way };
        self.ceiling = ceiling(way, self.most);
        if self.phase == Phase::Asleep || self.ceiling == 0 {
            return;
        }
        self.patience = (wait(way) * 2).max(Span::from_secs(2));
        if self.unanswered.is_some_and(|since| now.since(since) >= self.patience) {
            self.doubt();
        }
        if let Some(trial) = &mut self.trial {
            let doubted = self.hint.is_some_and(|hint| hint < trial.size);
            let size = trial.size;
            match trial.judge(now, &mut self.luck, doubted) {
                Verdict::Open => {}
                Verdict::TooLarge if self.phase == Phase::Doubting => self.fall_below(size),
                Verdict::TooLarge => {
                    self.too_large = self.too_large.min(size);
                    self.trial = None;
                }
            }
        }
        if let Phase::Settled { until, ceiling } = self.phase
            && (now >= until || self.ceiling > ceiling)
        {
            self.search();
        }
        if self.phase == Phase::Searching && self.trial.is_none() {
            match self.candidate() {
                Some(size) => self.trial = Some(Trial::new(size, self.from)),
                None => self.settle(now),
            }
        }
        self.ask(now, way);
    }

    /// The next size to try, between what passes and what does not.
    fn candidate(&self) -> Option<usize> {
        let (low, high) = (self.current, self.ceiling.min(self.too_large - 1));
        if high <= low {
            return None;
        }
        if let Some(hint) = self.hint.filter(|hint| (low + 1..=high).contains(hint)) {
            return Some(hint);
        }
        if high < self.too_large - 1 || self.too_large > self.most {
            // Nothing is known against the largest.
            return Some(high);
        }
        if self.too_large - low <= CLOSE {
            return None;
        }
        let middle = usize::midpoint(low, self.too_large);
        let within = COMMON.into_iter().filter(|size| (low + 1..self.too_large).contains(size));
        Some(within.min_by_key(|size| size.abs_diff(middle)).unwrap_or(middle))
    }

    /// Begins a round of the trial, when its time has come.
    fn ask(&mut self, now: Instant, way: &Conditions) {
        let (Some(trial), Some(rate)) = (&mut self.trial, way.rate) else { return };
        if trial.is_waiting() || trial.next > now {
            return;
        }
        let mut number = |size| {
            self.numbers = self.numbers.wrapping_add(1);
            if self.sent.len() >= REMEMBERED {
                self.sent.pop_front();
            }
            self.sent.push_back((self.numbers, size));
            self.outbox.push_back(Outgoing::Probe { number: self.numbers, size });
            self.numbers
        };
        let probe = number(trial.size);
        let witness = trial.wants_witness().then(|| number(MIN_MTU));
        let probes = 1 + u64::from(witness.is_some());
        let bytes = trial.size + if witness.is_some() { MIN_MTU } else { 0 };
        let forth = rate.time_for(bytes as u64 * PART);
        let answers = (word::ANSWER + way.overhead) as u64 * probes;
        let back = way.back.map_or(Span::ZERO, |rate| rate.time_for(answers * PART));
        self.from = now + forth.max(back);
        trial.begin(now, probe, witness, wait(way), self.from);
    }

    fn search(&mut self) {
        self.too_large = self.most + 1;
        self.trial = None;
        self.phase = Phase::Searching;
    }

    fn settle(&mut self, now: Instant) {
        let until = if self.current < self.most { now + AGAIN } else { Instant::FAR_FUTURE };
        self.phase = Phase::Settled { until, ceiling: self.ceiling };
    }

    /// Looks whether the present size still passes, if it is used. Below the smallest there is
    /// nothing.
    fn doubt(&mut self) {
        self.unanswered = None;
        let known = self.current <= MIN_MTU || self.current > self.ceiling;
        if known || matches!(self.phase, Phase::Asleep | Phase::Doubting) {
            return;
        }
        self.phase = Phase::Doubting;
        self.trial = Some(Trial::suspicious(self.current, self.from));
    }

    /// Packets of `size` bytes do not pass any more.
    fn fall_below(&mut self, size: usize) {
        self.too_large = size.max(MIN_MTU + 1);
        self.current = if size > BASE { BASE.min(self.most) } else { MIN_MTU };
        self.fell = true;
        self.unanswered = None;
        self.trial = None;
        self.phase = Phase::Searching;
    }
}

/// The largest size of at most `most` that is worth having: on a slow way a packet takes no more
/// than a second. 0 while the rate is not known.
fn ceiling(way: &Conditions, most: usize) -> usize {
    let Some(rate) = way.rate else { return 0 };
    let fits = usize::try_from(rate.bytes_in(LONGEST)).unwrap_or(usize::MAX);
    fits.max(MIN_MTU).min(most)
}

/// How long an answer may take.
fn wait(way: &Conditions) -> Span {
    let round_trip = (way.round_trip * 2).max(way.round_trip + Span::from_millis(200));
    let full = (BASE + MIN_MTU) as u64;
    let forth = way.rate.map_or(Span::ZERO, |rate| rate.time_for(full * 2));
    let back = way.back.map_or(Span::ZERO, |rate| rate.time_for(400));
    round_trip + forth + back
}

#[cfg(test)]
mod tests;
