//! How much may be sent on random carriers: said by the hub, once a frame.
//!
//! Slotted Aloha carries less the more is sent beyond one burst in a slot, and what collides comes
//! again: without a bound it is lost for good once it is overloaded. The hub hears in which slots
//! nobody sent. Of bursts that come by chance, `G` in a slot on average, that is a share of
//! `e^-G` (Roberts 1972), so it knows `G`; with the chance that it had given, it knows what would
//! be sent if all might, and gives a chance with which it comes to half a burst in a slot.

use super::AlohaConfig;
use alloc::collections::VecDeque;
use units::{Instant, Span};

/// Bursts in a slot that the hub lets come, on average: three in five of them come through, and of
/// the most that such a channel can carry it carries four fifths.
const TARGET: f64 = 0.5;
/// Frames over which what would be sent is averaged: few slots say little.
const FRAMES: f64 = 8.0;
/// The least chance: somebody must send for anything to be heard.
const LEAST: f64 = 1.0 / 64.0;
/// More than this share of slots in use says nothing more of how many would like them.
const FULL: f64 = 0.98;

/// The hub's word, and when terminals hear it.
#[derive(Debug)]
pub(super) struct Control {
    period: Span,
    /// To the hub and back.
    loop_time: Span,
    /// Slots of a frame, each carrier's counted.
    slots: f64,
    /// The end of the frame that is measured.
    end: Instant,
    busy: u64,
    /// What would be sent in a slot.
    wanted: f64,
    /// What terminals go by, and since when, oldest first; some of it they are yet to hear.
    said: VecDeque<(Instant, f64)>,
}

impl Control {
    pub(super) fn new(random: &AlohaConfig, period: Span) -> Self {
        Self {
            period,
            loop_time: random.way + random.way,
            slots: period.as_secs_f64() / random.slot().as_secs_f64() * f64::from(random.carriers),
            end: Instant::ZERO + period,
            busy: 0,
            wanted: 0.0,
            said: VecDeque::from([(Instant::ZERO, 1.0)]),
        }
    }

    /// The end of the next frame, if it is over by `now`.
    pub(super) fn frame_by(&self, now: Instant) -> Option<Instant> {
        (self.end <= now).then_some(self.end)
    }

    /// A frame is over, and slots were in use `busy` times so far. Returns the new chance.
    pub(super) fn measure(&mut self, busy: u64) -> f64 {
        let share = ((busy - self.busy) as f64 / self.slots).min(FULL);
        self.busy = busy;
        let sent = -libm::log(1.0 - share);
        let given = self.at(self.end);
        self.wanted += (sent / given - self.wanted) / FRAMES;
        let chance = if self.wanted > TARGET { (TARGET / self.wanted).max(LEAST) } else { 1.0 };
        self.said.push_back((self.end + self.loop_time, chance));
        // What came before what is in force now will not be asked for again.
        while self.said.get(1).is_some_and(|&(since, _)| since <= self.end) {
            self.said.pop_front();
        }
        self.end += self.period;
        chance
    }

    /// The chance as terminals know it at `now`, no earlier than the last frame's end.
    pub(super) fn at(&self, now: Instant) -> f64 {
        let mut heard = self.said.iter().rev().filter(|&&(since, _)| since <= now);
        heard.next().map_or(1.0, |&(_, chance)| chance)
    }

    /// The newest, which terminals may not have heard.
    pub(super) fn latest(&self) -> f64 {
        self.said.back().map_or(1.0, |&(_, chance)| chance)
    }
}
