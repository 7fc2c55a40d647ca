//! A sender's table that is slow and obvious, held against the real one.
//!
//! It keeps every number that was ever sent, with whole counts and times, and answers each
//! question by walking over all of them. [`check`] plays a script of octets to both: which
//! numbers must be sent again after any sequence of sendings, STATs and USTATs, by either rule.

use super::{Outcome, PacketTable, RetransmitFilter, Transmission};
use crate::seq::Seq24;
use crate::session::upper::{NewPacket, UpperLayer};
use crate::wire::Run;
use alloc::vec::Vec;
use units::{Instant, Span};

/// Plays `script` to both tables.
///
/// # Panics
/// When they differ.
pub(crate) fn check(script: &[u8]) {
    let Some((setting, steps)) = script.split_at_checked(4) else { return };
    let mut bench = Bench::new(setting);
    for step in steps.chunks_exact(4) {
        bench.step(step[0], [step[1], step[2], step[3]]);
        bench.compare();
    }
}

/// A number that was sent.
#[derive(Clone, Debug)]
struct Sent {
    size: u64,
    /// POLLs before its last sending, and when that was.
    polls: u64,
    at: Instant,
    again: u32,
    released: bool,
    queued: bool,
}

/// The obvious table: all numbers from the first one on.
#[derive(Clone, Debug, Default)]
struct Model {
    sent: Vec<Sent>,
    oldest: usize,
    limit: usize,
    /// Numbers that STATs for the POLL that was answered last may still list, and USTATs in all.
    listable: Option<(u64, usize)>,
    tellable: usize,
    release_early: bool,
    double_from: Option<u32>,
    double_first: u32,
}

/// What a STAT or USTAT says: numbers from `below` on, each missing (true) or not.
struct Told {
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

    /// Calls `number` back if `eligible` and it does not wait already.
    fn call(&mut self, number: usize, hold: bool, eligible: bool, outcome: &mut Outcome) {
        let sent = &mut self.sent[number];
        if sent.released || sent.queued || !eligible {
            return;
        }
        sent.queued = !hold;
        outcome.lost += 1;
        outcome.lost_again += u64::from(sent.again > 0);
    }

    fn on_stat(&mut self, told: &Told, asked: &Question) -> Outcome {
        let mut outcome = Outcome::default();
        let outstanding = self.sent.len() - self.oldest;
        let left = match self.listable {
            Some((poll, left)) if poll == asked.poll => left,
            _ => 2 * outstanding,
        };
        self.listable = Some((asked.poll, left.saturating_sub(told.missing.len())));
        for number in 0..told.below {
            outcome.released += self.release(number);
        }
        self.oldest = told.below;
        self.limit = told.below + asked.window;
        if told.missing.len() <= left {
            self.look(told, asked, &mut outcome);
        }
        outcome
    }

    fn look(&mut self, told: &Told, asked: &Question, outcome: &mut Outcome) {
        for (number, &missing) in (told.below..).zip(&told.missing) {
            let sent = &self.sent[number];
            let old = asked.age.is_none_or(|age| asked.now.since(sent.at) >= age);
            let eligible = sent.polls < asked.poll && old;
            if missing {
                self.call(number, asked.hold, eligible, outcome);
            } else if self.release_early {
                outcome.released += self.release(number);
            }
        }
    }

    fn on_ustat(&mut self, told: &Told, hold: bool) -> Outcome {
        let mut outcome = Outcome::default();
        for number in 0..told.below {
            outcome.released += self.release(number);
        }
        self.oldest = told.below;
        let gaps = told.missing.iter().filter(|&&missing| missing).count();
        if gaps > self.tellable {
            return outcome;
        }
        self.tellable -= gaps;
        for (number, _) in (told.below..).zip(&told.missing).filter(|(_, missing)| **missing) {
            let first = self.sent[number].again == 0;
            self.call(number, hold, first, &mut outcome);
        }
        outcome
    }
}

/// What a STAT answers, and how it is taken.
struct Question {
    poll: u64,
    now: Instant,
    age: Option<Span>,
    hold: bool,
    window: usize,
}

/// Both tables, and the peer that the script plays.
struct Bench {
    real: PacketTable,
    model: Model,
    first: u64,
    polls: u64,
    now: Instant,
    age: Option<Span>,
    released: Released,
}

/// Counts of POLLs begin where they are about to wrap.
const COUNTS: u32 = u32::MAX - 5;

impl Bench {
    fn new(setting: &[u8]) -> Self {
        let first = u64::from(Seq24::MODULUS) - u64::from(setting[0]);
        let release_early = setting[1] & 1 == 0;
        let double_from = (setting[1] & 2 == 0).then_some(1 + (setting[1] >> 6));
        let age = (setting[1] & 4 == 0).then(|| Span::from_millis(u64::from(setting[2])));
        let mut real = PacketTable::new(1 << 10, 1 << 9, release_early);
        let double_first = u32::from(setting[1] >> 3 & 7);
        real.set_duplication(double_from, double_first);
        real.start_at(first);
        let model = Model {
            limit: 1 << 9,
            release_early,
            double_from: double_from.map(u32::from),
            double_first,
            ..Model::default()
        };
        // Times in microseconds wrap too.
        let now = Instant::ZERO + Span::from_micros(u64::from(u32::MAX) - u64::from(setting[3]));
        Self { real, model, first, polls: 0, now, age, released: Released::default() }
    }

    fn step(&mut self, kind: u8, [a, b, c]: [u8; 3]) {
        match kind % 16 {
            0..5 => self.send(1 + u64::from(a)),
            5 | 6 => self.polls += 1 + u64::from(a % 2),
            7 => self.now += Span::from_micros(u64::from(a) << (b % 12)),
            8..10 => self.send_again(u64::from(a)),
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

    fn count_of(&self, polls: u64) -> u32 {
        COUNTS.wrapping_add(polls as u32)
    }

    fn sending(&self) -> Transmission {
        Transmission { poll: self.count_of(self.polls), at: self.now }
    }

    fn send(&mut self, size: u64) {
        let sending = self.sending();
        let handle = self.model.sent.len() as u64;
        self.real.push(size as usize, handle, sending);
        let (polls, at) = (self.polls, self.now);
        let sent = Sent { size, polls, at, again: 0, released: false, queued: false };
        self.model.sent.push(sent);
        self.model.tellable += 4;
    }

    /// Sends again what is first, perhaps shorter.
    fn send_again(&mut self, most: u64) {
        let first = self.model.sent.iter().position(|sent| sent.queued);
        let found = self.real.next_retransmission().map(|again| (again.seq - self.first) as usize);
        assert_eq!(found, first, "the lowest number that waits goes first");
        let Some(number) = first else { return };
        let sending = self.sending();
        let (polls, at) = (self.polls, self.now);
        let early = number < self.model.double_first as usize;
        let double_from = if early { Some(1) } else { self.model.double_from };
        let sent = &mut self.model.sent[number];
        let size = sent.size.min(most);
        *sent = Sent { size, polls, at, again: sent.again + 1, ..sent.clone() };
        let twice = double_from.is_some_and(|from| sent.again >= from);
        sent.queued =
            twice && double_from.is_some_and(|from| (sent.again - from).is_multiple_of(2));
        self.real.on_retransmitted(self.first + number as u64, size as usize, sending);
    }

    /// Something that a peer may say: up to where it has all, and a list beyond.
    fn told(&self, [a, b, c]: [u8; 3]) -> Told {
        let outstanding = self.model.sent.len() - self.model.oldest;
        let below = self.model.oldest + usize::from(a) % (outstanding.min(6) + 1);
        let len = usize::from(b) % (self.model.sent.len() - below + 1);
        let missing = (0..len).map(|n| n == 0 || c >> (n % 8) & 1 == 1).collect();
        Told { below, missing }
    }

    /// The list as runs.
    fn runs(&self, told: &Told) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (number, &missing) in (told.below..).zip(&told.missing) {
            match runs.last_mut() {
                Some(run) if run.missing == missing => run.len += 1,
                _ => runs.push(Run { start: self.number(number), len: 1, missing }),
            }
        }
        runs
    }

    fn number(&self, number: usize) -> Seq24 {
        Seq24::of_count(self.first + number as u64)
    }

    fn stat(&mut self, hold: bool, octets: [u8; 3]) {
        let told = self.told(octets);
        let runs = self.runs(&told);
        let poll = self.polls - u64::from(octets[2] % 3).min(self.polls);
        let window = usize::from(octets[1]);
        let question = Question { poll, now: self.now, age: self.age, hold, window };
        let age = self.age.map(|age| (self.now, age));
        let asked = RetransmitFilter { poll: self.count_of(poll), age, hold };
        let below = self.number(told.below);
        let listed = told.missing.len();
        let real = self.real.on_stat(
            below,
            window as u32,
            runs.iter().copied(),
            asked,
            &mut self.released,
        );
        assert_eq!(real, Ok(self.model.on_stat(&told, &question)));
        let believed = self.model.listable.is_some_and(|(_, left)| left > 0 || listed == 0);
        if hold && believed {
            let now = Question { hold: false, ..question };
            let mut expected = Outcome::default();
            self.model.release_early = false;
            self.model.look(&told, &now, &mut expected);
            self.model.release_early = self.real.release_early;
            let asked = RetransmitFilter { hold: false, ..asked };
            let outcome = self.real.queue_held(below, runs.into_iter(), asked);
            assert_eq!(outcome, expected);
        }
    }

    fn ustat(&mut self, octets: [u8; 3]) {
        let told = self.told(octets);
        let runs = self.runs(&told).into_iter().filter(|run| run.missing);
        let below = self.number(told.below);
        let hold = octets[2] & 128 != 0;
        let real = self.real.on_ustat(below, runs, hold, &mut self.released);
        assert_eq!(real, Ok(self.model.on_ustat(&told, hold)));
    }

    fn compare(&self) {
        let (real, model) = (&self.real, &self.model);
        assert_eq!(real.oldest(), self.first + model.oldest as u64);
        assert_eq!(real.next(), self.first + model.sent.len() as u64);
        let out = model.sent.iter().filter(|sent| !sent.released);
        let bytes: u64 = out.clone().map(|sent| sent.size).sum();
        assert_eq!((real.unreleased(), real.unreleased_bytes()), (out.count() as u64, bytes));
        let waiting = (self.first..).zip(&model.sent).filter(|(_, sent)| sent.queued);
        assert!(waiting.map(|(count, _)| count).eq(real.queue.iter().copied()));
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
        assert!(!core::mem::replace(&mut self.0[handle], true), "each once");
    }
    fn deliver(&mut self, _: Seq24, _: &[u8]) {}
}
