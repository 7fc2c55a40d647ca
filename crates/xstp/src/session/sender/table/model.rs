//! Reference model of the packet table.
//!
//! It stores all packets with unwrapped numbers and times, and iterates over all of them. [`check`]
//! runs a script of octets on both and compares which packets are to be retransmitted after any
//! sequence of transmissions, STATs and USTATs, by either rule.

use super::{Outcome, PacketTable, RetransmitFilter, Transmission};
use crate::seq::Seq24;
use crate::session::upper::{NewPacket, UpperLayer};
use crate::wire::Run;
use alloc::vec::Vec;
use units::{Instant, Span};

/// Runs `script` on both tables.
///
/// # Panics
/// When they differ.
pub(crate) fn check(script: &[u8]) {
    let Some((setting, steps)) = script.split_at_checked(4) else { return };
    let mut comparison = Comparison::new(setting);
    for step in steps.chunks_exact(4) {
        comparison.step(step[0], [step[1], step[2], step[3]]);
        comparison.compare();
    }
}

/// A packet that was sent.
#[derive(Clone, Debug)]
struct Sent {
    size: u64,
    /// Number of POLLs before its last transmission, and the time of that.
    polls: u64,
    at: Instant,
    retransmissions: u32,
    released: bool,
    queued: bool,
}

/// The model: all packets from the first one on.
#[derive(Clone, Debug, Default)]
struct Model {
    sent: Vec<Sent>,
    oldest: usize,
    limit: usize,
    /// Number of packets that STATs for the last answered POLL may still list, and USTATs in total.
    stat_listable: Option<(u64, usize)>,
    ustat_listable: usize,
    release_early: bool,
    duplicate_from: Option<u32>,
    duplicate_first: u32,
}

/// List of a STAT or USTAT: packets from `below` on, each missing (true) or not.
struct Listed {
    below: usize,
    missing: Vec<bool>,
}

impl Model {
    fn release(&mut self, number: usize) -> u64 {
        let sent = &mut self.sent[number];
        let bytes = if sent.released { 0 } else { sent.size };
        (sent.released, sent.queued) = (true, false);
        bytes
    }

    /// Queues `number` if it is `eligible` and not queued already.
    fn enqueue(&mut self, number: usize, hold: bool, eligible: bool, outcome: &mut Outcome) {
        let sent = &mut self.sent[number];
        if sent.released || sent.queued || !eligible {
            return;
        }
        sent.queued = !hold;
        outcome.lost += 1;
        outcome.lost_retransmissions += u64::from(sent.retransmissions > 0);
    }

    fn on_stat(&mut self, list: &Listed, filter: &StatFilter) -> Outcome {
        let mut outcome = Outcome::default();
        let outstanding = self.sent.len() - self.oldest;
        let left = match self.stat_listable {
            Some((poll, left)) if poll == filter.poll => left,
            _ => 2 * outstanding,
        };
        self.stat_listable = Some((filter.poll, left.saturating_sub(list.missing.len())));
        for number in 0..list.below {
            outcome.released += self.release(number);
        }
        self.oldest = list.below;
        self.limit = list.below + filter.window;
        if list.missing.len() <= left {
            self.apply(list, filter, &mut outcome);
        }
        outcome
    }

    fn apply(&mut self, list: &Listed, filter: &StatFilter, outcome: &mut Outcome) {
        for (number, &missing) in (list.below..).zip(&list.missing) {
            let sent = &self.sent[number];
            let old = filter.age.is_none_or(|age| filter.now.since(sent.at) >= age);
            let eligible = sent.polls < filter.poll && old;
            if missing {
                self.enqueue(number, filter.hold, eligible, outcome);
            } else if self.release_early {
                outcome.released += self.release(number);
            }
        }
    }

    fn on_ustat(&mut self, list: &Listed, hold: bool) -> Outcome {
        let mut outcome = Outcome::default();
        for number in 0..list.below {
            outcome.released += self.release(number);
        }
        self.oldest = list.below;
        let gaps = list.missing.iter().filter(|&&missing| missing).count();
        if gaps > self.ustat_listable {
            return outcome;
        }
        self.ustat_listable -= gaps;
        for (number, _) in (list.below..).zip(&list.missing).filter(|(_, missing)| **missing) {
            let first = self.sent[number].retransmissions == 0;
            self.enqueue(number, hold, first, &mut outcome);
        }
        outcome
    }
}

/// Filter of a STAT with unwrapped values, and the window that it advertises.
struct StatFilter {
    poll: u64,
    now: Instant,
    age: Option<Span>,
    hold: bool,
    window: usize,
}

/// Table and model, and the peer that the script controls.
struct Comparison {
    real: PacketTable,
    model: Model,
    first: u64,
    polls: u64,
    now: Instant,
    age: Option<Span>,
    released: Released,
}

/// POLL sequence numbers start shortly before they wrap.
const FIRST_POLL_SEQ: u32 = u32::MAX - 5;

impl Comparison {
    fn new(setting: &[u8]) -> Self {
        let first = u64::from(Seq24::MODULUS) - u64::from(setting[0]);
        let release_early = setting[1] & 1 == 0;
        let duplicate_from = (setting[1] & 2 == 0).then_some(1 + (setting[1] >> 6));
        let age = (setting[1] & 4 == 0).then(|| Span::from_millis(u64::from(setting[2])));
        let mut real = PacketTable::new(1 << 10, 1 << 9, release_early);
        let duplicate_first = u32::from(setting[1] >> 3 & 7);
        real.set_duplication(duplicate_from, duplicate_first);
        real.start_at(first);
        let model = Model {
            limit: 1 << 9,
            release_early,
            duplicate_from: duplicate_from.map(u32::from),
            duplicate_first,
            ..Model::default()
        };
        // Times in microseconds wrap, too.
        let now = Instant::ZERO + Span::from_micros(u64::from(u32::MAX) - u64::from(setting[3]));
        Self { real, model, first, polls: 0, now, age, released: Released::default() }
    }

    fn step(&mut self, kind: u8, [a, b, c]: [u8; 3]) {
        match kind % 16 {
            0..5 => self.send(1 + u64::from(a)),
            5 | 6 => self.polls += 1 + u64::from(a % 2),
            7 => self.now += Span::from_micros(u64::from(a) << (b % 12)),
            8..10 => self.retransmit(u64::from(a)),
            10..13 => self.stat(kind % 16 == 12, [a, b, c]),
            13 => self.ustat([a, b, c]),
            14 => {
                self.real.retransmit_first();
                let oldest = self.model.oldest;
                let mut rest = self.model.sent[oldest..].iter_mut();
                if let Some(sent) = rest.find(|sent| !sent.released) {
                    sent.queued = true;
                }
            }
            _ => {
                if a < 16 {
                    self.real.clear_queue();
                    self.model.sent.iter_mut().for_each(|sent| sent.queued = false);
                }
            }
        }
    }

    fn poll_seq(&self, polls: u64) -> u32 {
        FIRST_POLL_SEQ.wrapping_add(polls as u32)
    }

    fn transmission(&self) -> Transmission {
        Transmission { poll: self.poll_seq(self.polls), at: self.now }
    }

    fn send(&mut self, size: u64) {
        let transmission = self.transmission();
        let handle = self.model.sent.len() as u64;
        self.real.push(size as usize, handle, transmission);
        let (polls, at) = (self.polls, self.now);
        let sent = Sent { size, polls, at, retransmissions: 0, released: false, queued: false };
        self.model.sent.push(sent);
        self.model.ustat_listable += 4;
    }

    /// Retransmits the first queued packet with at most `max_size` octets.
    fn retransmit(&mut self, max_size: u64) {
        let first = self.model.sent.iter().position(|sent| sent.queued);
        let found = self.real.next_retransmission().map(|next| (next.seq - self.first) as usize);
        assert_eq!(found, first, "the lowest queued number is first");
        let Some(number) = first else { return };
        let transmission = self.transmission();
        let (polls, at) = (self.polls, self.now);
        let early = number < self.model.duplicate_first as usize;
        let duplicate_from = if early { Some(1) } else { self.model.duplicate_from };
        let sent = &mut self.model.sent[number];
        let size = sent.size.min(max_size);
        *sent = Sent { size, polls, at, retransmissions: sent.retransmissions + 1, ..sent.clone() };
        let duplicates = duplicate_from.is_some_and(|from| sent.retransmissions >= from);
        sent.queued = duplicates
            && duplicate_from.is_some_and(|from| (sent.retransmissions - from).is_multiple_of(2));
        self.real.on_retransmitted(self.first + number as u64, size as usize, transmission);
    }

    /// A valid list of a peer.
    fn list(&self, [a, b, c]: [u8; 3]) -> Listed {
        let outstanding = self.model.sent.len() - self.model.oldest;
        let below = self.model.oldest + usize::from(a) % (outstanding.min(6) + 1);
        let len = usize::from(b) % (self.model.sent.len() - below + 1);
        let missing = (0..len).map(|n| n == 0 || c >> (n % 8) & 1 == 1).collect();
        Listed { below, missing }
    }

    /// The list as runs.
    fn runs(&self, list: &Listed) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (number, &missing) in (list.below..).zip(&list.missing) {
            match runs.last_mut() {
                Some(run) if run.missing == missing => run.len += 1,
                _ => runs.push(Run { start: self.number(number), len: 1, missing }),
            }
        }
        runs
    }

    fn number(&self, number: usize) -> Seq24 {
        Seq24::from_extended(self.first + number as u64)
    }

    fn stat(&mut self, hold: bool, octets: [u8; 3]) {
        let list = self.list(octets);
        let runs = self.runs(&list);
        let poll = self.polls - u64::from(octets[2] % 3).min(self.polls);
        let window = usize::from(octets[1]);
        let stat_filter = StatFilter { poll, now: self.now, age: self.age, hold, window };
        let age = self.age.map(|age| (self.now, age));
        let filter = RetransmitFilter { poll: self.poll_seq(poll), age, hold };
        let below = self.number(list.below);
        let listed = list.missing.len();
        let real = self.real.on_stat(
            below,
            window as u32,
            runs.iter().copied(),
            filter,
            &mut self.released,
        );
        assert_eq!(real, Ok(self.model.on_stat(&list, &stat_filter)));
        let in_budget = self.model.stat_listable.is_some_and(|(_, left)| left > 0 || listed == 0);
        if hold && in_budget {
            let now = StatFilter { hold: false, ..stat_filter };
            let mut expected = Outcome::default();
            self.model.release_early = false;
            self.model.apply(&list, &now, &mut expected);
            self.model.release_early = self.real.release_early;
            let filter = RetransmitFilter { hold: false, ..filter };
            let outcome = self.real.queue_held(below, runs.into_iter(), filter);
            assert_eq!(outcome, expected);
        }
    }

    fn ustat(&mut self, octets: [u8; 3]) {
        let list = self.list(octets);
        let runs = self.runs(&list).into_iter().filter(|run| run.missing);
        let below = self.number(list.below);
        let hold = octets[2] & 128 != 0;
        let real = self.real.on_ustat(below, runs, hold, &mut self.released);
        assert_eq!(real, Ok(self.model.on_ustat(&list, hold)));
    }

    fn compare(&self) {
        let (real, model) = (&self.real, &self.model);
        assert_eq!(real.oldest(), self.first + model.oldest as u64);
        assert_eq!(real.next(), self.first + model.sent.len() as u64);
        let out = model.sent.iter().filter(|sent| !sent.released);
        let bytes: u64 = out.clone().map(|sent| sent.size).sum();
        assert_eq!((real.unreleased(), real.unreleased_bytes()), (out.count() as u64, bytes));
        let queued = (self.first..).zip(&model.sent).filter(|(_, sent)| sent.queued);
        assert!(queued.map(|(count, _)| count).eq(real.queue.iter().copied()));
        let free = model.limit.min(model.oldest + (1 << 10)).saturating_sub(model.sent.len());
        assert_eq!(real.free_numbers(), free as u64);
        let released = |handle| self.released.0.get(handle).is_some_and(|&released| released);
        let alike = |(handle, sent): (usize, &Sent)| sent.released == released(handle);
        assert!(model.sent.iter().enumerate().all(alike));
    }
}

/// Whether each handle was released.
#[derive(Default)]
struct Released(Vec<bool>);

impl UpperLayer for Released {
    fn has_new_data(&self) -> bool {
        false
    }
    fn fill_new(&mut self, _: Seq24, _: &mut [u8]) -> Option<NewPacket> {
        None
    }
    fn fill_retransmission(&mut self, _: Seq24, _: u64, _: &mut [u8]) -> usize {
        0
    }
    fn on_acknowledged(&mut self, _: Seq24, handle: u64) {
        let handle = handle as usize;
        self.0.resize(self.0.len().max(handle + 1), false);
        assert!(!core::mem::replace(&mut self.0[handle], true), "released twice");
    }
    fn deliver(&mut self, _: Seq24, _: &[u8]) {}
}
