//! DualPI2, the dual-queue coupled AQM of L4S (RFC 9332, appendix A).
//!
//! ```text
//!   L queue     ECT(1) and CE           figure 3
//!   C queue     not-ECT and ECT(0)
//!   each Tupdate = min(target, RTT_max / 3):                                    figure 6
//!               p' += alpha (q - target) + beta (q - last q)
//!               alpha = 0.1 Tupdate / RTT_max², beta = 0.3 / RTT_max            figure 2
//!   from L      marked with max(ramp from 0.8 to 1.2 ms of sojourn, k p')       figures 4 and 5
//!   from C      marked or, without ECN, dropped with p'²                        figure 4
//!   overload    from k p' = 1 on L drops with p'² as well, and C does not mark  appendix A.2
//! ```
//!
//! q is the greater sojourn of the two head frames, and the scheduler is a weighted round robin that
//! keeps a tenth of the rate for the C queue: both as in Linux (`sch_dualpi2`); the RFC leaves the
//! scheduler open (section 4.1.1). Decisions are spread evenly by an accumulator in place of a random number
//! (`recur()` of appendix A.1). Between two events the queue does not change, so that the updates
//! that were due are computed at the next event without a timer.

use super::{Exit, Waiting};
use crate::Frame;
use alloc::collections::VecDeque;
use units::{Instant, Span};

/// DualPI2's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2 {
    /// Target of the sojourn in the C queue; RFC 9332 suggests 15 ms.
    pub target: Span,
    /// RTT_max: the longest round trip expected; RFC 9332 suggests 100 ms, a geostationary link
    /// needs more.
    pub max_round_trip: Span,
}

impl Default for DualPi2 {
    fn default() -> Self {
        Self { target: Span::from_millis(15), max_round_trip: Span::from_millis(100) }
    }
}

/// The coupling factor k.
const COUPLING: f64 = 2.0;
/// p_Cmax: from here on marks no longer control the C queue.
const MAX_CLASSIC: f64 = 1.0 / (COUPLING * COUPLING);
/// minTh and range of the L queue's ramp.
const RAMP_START: Span = Span::from_micros(800);
const RAMP_RANGE: Span = Span::from_micros(400);
/// Weights of the queues while both have frames (Linux's `classic_protection` of 10 %).
const CLASSIC_WEIGHT: i64 = 10;
const L4S_WEIGHT: i64 = 90;
/// Credit of the C queue at its start.
const FIRST_CREDIT: i64 = 1_500 * (CLASSIC_WEIGHT - L4S_WEIGHT);

/// One of the two queues.
#[derive(Debug)]
struct Line<F> {
    frames: VecDeque<Waiting<F>>,
    /// The accumulated likelihood of `recur()`.
    likelihood: f64,
}

impl<F> Line<F> {
    fn new() -> Self {
        Self { frames: VecDeque::new(), likelihood: 0.0 }
    }

    fn sojourn(&self, now: Instant) -> Span {
        self.frames.front().map_or(Span::ZERO, |head| now.since(head.offered_at))
    }

    fn recurs(&mut self, likelihood: f64) -> bool {
        self.likelihood += likelihood;
        let is_due = self.likelihood > 1.0;
        if is_due {
            self.likelihood -= 1.0;
        }
        is_due
    }
}

/// The two queues and their controller.
#[derive(Debug)]
pub(super) struct DualQueue<F> {
    settings: DualPi2,
    l4s: Line<F>,
    classic: Line<F>,
    /// p'.
    base: f64,
    last: Span,
    next_update: Option<Instant>,
    /// Above zero the C queue is served.
    credit: i64,
}

impl<F: Frame> DualQueue<F> {
    pub(super) fn new(settings: DualPi2) -> Self {
        Self {
            settings,
            l4s: Line::new(),
            classic: Line::new(),
            base: 0.0,
            last: Span::ZERO,
            next_update: None,
            credit: FIRST_CREDIT,
        }
    }

    pub(super) fn set(&mut self, settings: DualPi2) {
        self.settings = settings;
    }

    pub(super) fn push(&mut self, waiting: Waiting<F>) {
        self.advance(waiting.offered_at);
        let line = if waiting.frame.is_l4s() { &mut self.l4s } else { &mut self.classic };
        line.frames.push_back(waiting);
    }

    pub(super) fn pop(&mut self, now: Instant) -> Option<Exit<F>> {
        self.advance(now);
        if self.serves_l4s() {
            let waiting = self.l4s.frames.pop_front()?;
            if !self.classic.frames.is_empty() {
                self.credit += CLASSIC_WEIGHT * signed(waiting.on_air);
            }
            return Some(self.pass_l4s(now, waiting));
        }
        let Some(waiting) = self.classic.frames.pop_front() else {
            self.credit = FIRST_CREDIT;
            return None;
        };
        if !self.l4s.frames.is_empty() {
            self.credit -= L4S_WEIGHT * signed(waiting.on_air);
        }
        Some(self.pass_classic(waiting))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting<F>> {
        self.l4s.frames.iter().chain(&self.classic.frames)
    }

    /// Removes all frames, in order of arrival.
    pub(super) fn drain(&mut self) -> VecDeque<Waiting<F>> {
        let mut all: VecDeque<_> = self.l4s.frames.drain(..).collect();
        all.extend(self.classic.frames.drain(..));
        all.make_contiguous().sort_by_key(|waiting| waiting.offered_at);
        all
    }

    fn serves_l4s(&self) -> bool {
        !self.l4s.frames.is_empty() && (self.classic.frames.is_empty() || self.credit <= 0)
    }

    fn pass_l4s(&mut self, now: Instant, mut waiting: Waiting<F>) -> Exit<F> {
        let coupled = COUPLING * self.base;
        let likelihood = if coupled < 1.0 {
            // Th_len: the last frame is not marked for its own sojourn, which at a low rate is
            // that of another frame's transmission.
            let is_queue = !self.l4s.frames.is_empty();
            let sojourn = now.since(waiting.offered_at);
            let native = if is_queue { ramp(sojourn) } else { 0.0 };
            native.max(coupled)
        } else if self.l4s.recurs(self.base * self.base) {
            return Exit::Shed(waiting);
        } else {
            1.0
        };
        let marked = self.l4s.recurs(likelihood) && waiting.frame.mark();
        Exit::Goes { waiting, marked }
    }

    fn pass_classic(&mut self, mut waiting: Waiting<F>) -> Exit<F> {
        let likelihood = self.base * self.base;
        if !self.classic.recurs(likelihood) {
            return Exit::Goes { waiting, marked: false };
        }
        if likelihood < MAX_CLASSIC && waiting.frame.mark() {
            return Exit::Goes { waiting, marked: true };
        }
        Exit::Shed(waiting)
    }

    /// Makes the updates of p' that are due by `now`.
    fn advance(&mut self, now: Instant) {
        let target = self.settings.target;
        let longest = self.settings.max_round_trip;
        let interval = target.min(longest / 3);
        let mut next = *self.next_update.get_or_insert(now + interval);
        let alpha = 0.1 * interval.as_secs_f64() / (longest.as_secs_f64() * longest.as_secs_f64());
        let beta = 0.3 / longest.as_secs_f64();
        while next <= now {
            let sojourn = self.l4s.sojourn(next).max(self.classic.sojourn(next));
            let error = sojourn.as_secs_f64() - target.as_secs_f64();
            let change = sojourn.as_secs_f64() - self.last.as_secs_f64();
            self.base = (self.base + alpha * error + beta * change).clamp(0.0, 1.0);
            self.last = sojourn;
            next += interval;
            if self.base == 0.0 && sojourn.is_zero() && next <= now {
                // Empty until now: further updates change nothing.
                next += interval * (now.since(next).as_nanos() / interval.as_nanos());
            }
        }
        self.next_update = Some(next);
    }
}

/// The native likelihood of a mark in the L queue (`laqm()`, figure 5).
fn ramp(sojourn: Span) -> f64 {
    if sojourn <= RAMP_START {
        return 0.0;
    }
    ((sojourn - RAMP_START).as_secs_f64() / RAMP_RANGE.as_secs_f64()).min(1.0)
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX / L4S_WEIGHT)
}

#[cfg(test)]
mod tests;
