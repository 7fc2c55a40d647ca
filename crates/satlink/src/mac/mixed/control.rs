//! Load control of random carriers by the hub, once per frame.
//!
//! The throughput of slotted Aloha falls above one burst per slot, and collided bursts are
//! retransmitted, so without control an overload is permanent. The hub observes the idle slots.
//! With `G` random bursts per slot their fraction is `e^-G` (Roberts 1972), which yields `G`. From
//! `G` and the current probability it computes the load without control, and the probability at
//! which the load is half a burst per slot.

use super::AlohaConfig;
use alloc::collections::VecDeque;
use units::{Instant, Span};

/// Target load in bursts per slot: 60 % of the bursts succeed, and the throughput is 80 % of the
/// maximum.
const TARGET: f64 = 0.5;
/// Frames over which the load is averaged.
const FRAMES: f64 = 8.0;
/// Minimum probability: without any bursts the load could not be measured.
const LEAST: f64 = 1.0 / 64.0;
/// Above this fraction of slots in use the load cannot be measured.
const FULL: f64 = 0.98;

/// The hub's announcements, and when terminals receive them.
#[derive(Debug)]
pub(super) struct Control {
    period: Span,
    /// Delay to the hub and back.
    loop_time: Span,
    /// Slots per frame, counted per carrier.
    slots: f64,
    /// End of the frame that is being measured.
    end: Instant,
    busy: u64,
    /// Load in bursts per slot without control.
    wanted: f64,
    /// Announced probabilities with the time from which each applies, oldest first; some are still
    /// in propagation.
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

    /// The end of the next frame, if it has ended by `now`.
    pub(super) fn frame_by(&self, now: Instant) -> Option<Instant> {
        (self.end <= now).then_some(self.end)
    }

    /// Handles the end of a frame; `busy` is the number of slots in use so far. Returns the new
    /// probability.
    pub(super) fn measure(&mut self, busy: u64) -> f64 {
        let share = ((busy - self.busy) as f64 / self.slots).min(FULL);
        self.busy = busy;
        let sent = -libm::log(1.0 - share);
        let given = self.at(self.end);
        self.wanted += (sent / given - self.wanted) / FRAMES;
        let chance = if self.wanted > TARGET { (TARGET / self.wanted).max(LEAST) } else { 1.0 };
        self.said.push_back((self.end + self.loop_time, chance));
        // Announcements before the current one are not needed any more.
        while self.said.get(1).is_some_and(|&(since, _)| since <= self.end) {
            self.said.pop_front();
        }
        self.end += self.period;
        chance
    }

    /// The probability that terminals use at `now`, no earlier than the last frame's end.
    pub(super) fn at(&self, now: Instant) -> f64 {
        let mut heard = self.said.iter().rev().filter(|&&(since, _)| since <= now);
        heard.next().map_or(1.0, |&(_, chance)| chance)
    }

    /// The latest announcement, which terminals may not have received.
    pub(super) fn latest(&self) -> f64 {
        self.said.back().map_or(1.0, |&(_, chance)| chance)
    }
}
