//! A terminal: what waits in it, what it knows of plans, and what it asks for.

use super::log_on::Call;
use super::{AskIn, Class, Demand, MfTdmaConfig, Order};
use crate::mac::schedule::Request;
use alloc::collections::VecDeque;
use units::{Instant, Span};

/// Every so manieth request of volume is an absolute one.
const ABSOLUTE_EVERY: u32 = 8;

/// What a terminal says of what it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// What is so.
    #[default]
    Honest,
    /// This, whatever is so.
    Always(Request),
}

/// A packet that waits, or is being sent slot by slot.
#[derive(Debug)]
pub(super) struct Waiting<F> {
    pub(super) frame: F,
    /// Slots that it still needs.
    pub(super) left: u64,
    /// A part of it has been sent.
    pub(super) begun: bool,
    pub(super) offered_at: Instant,
}

/// A frame's worth of slots that a terminal has been told of.
#[derive(Clone, Copy, Debug)]
struct Known {
    frame: u64,
    heard_at: Instant,
    left: u32,
}

/// What one slot carries.
#[derive(Debug)]
pub(super) struct Cell<F> {
    pub(super) class: Class,
    /// A packet begins with it: what befell the one before, which may have no end, is over.
    pub(super) first: bool,
    /// The packet whose end it is.
    pub(super) last: Option<Waiting<F>>,
}

#[derive(Debug)]
pub(super) struct Terminal<F> {
    /// One way to the scheduler.
    pub(super) way: Span,
    pub(super) late: bool,
    /// It has a carrier up: it uses slots that it is granted.
    pub(super) online: bool,
    /// The scheduler took it on, and has not been seen to drop it.
    pub(super) admitted: bool,
    pub(super) call: Option<Call>,
    pub(super) claim: Claim,
    /// By class.
    pub(super) queues: [VecDeque<Waiting<F>>; 2],
    /// Slots that all of them need.
    backlog: u64,
    known: VecDeque<Known>,
    /// The frame in which it asked last.
    asked_in: Option<u64>,
    asked: u32,
    /// Slots that became necessary since it asked last.
    fresh: u64,
}

impl<F> Terminal<F> {
    pub(super) fn new(way: Span, late: bool, online: bool) -> Self {
        Self {
            way,
            late,
            online,
            admitted: online,
            call: None,
            claim: Claim::Honest,
            queues: [VecDeque::new(), VecDeque::new()],
            backlog: 0,
            known: VecDeque::new(),
            asked_in: None,
            asked: 0,
            fresh: 0,
        }
    }

    /// Packets that wait.
    pub(super) fn waiting(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// Slots that what waits needs.
    pub(super) fn backlog(&self) -> u64 {
        self.backlog
    }

    pub(super) fn push(&mut self, queue: Class, waiting: Waiting<F>) {
        self.backlog += waiting.left;
        self.fresh += waiting.left;
        self.queues[queue as usize].push_back(waiting);
    }

    /// Everything that waited.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Waiting<F>> {
        (self.backlog, self.fresh) = (0, 0);
        self.asked_in = None;
        self.known.clear();
        core::mem::take(&mut self.queues).into_iter().flatten()
    }

    /// It will hear at `heard_at` of `slots` in `frame`.
    pub(super) fn told(&mut self, frame: u64, heard_at: Instant, slots: u32) {
        self.known.push_back(Known { frame, heard_at, left: slots });
    }

    /// A slot of `frame` begins.
    pub(super) fn use_slot(&mut self, frame: u64) {
        while self.known.front().is_some_and(|known| known.frame < frame) {
            self.known.pop_front();
        }
        if let Some(known) = self.known.front_mut().filter(|known| known.frame == frame) {
            known.left = known.left.saturating_sub(1);
        }
    }

    /// What goes into a slot, if anything waits.
    pub(super) fn next_cell(&mut self, order: Order) -> Option<Cell<F>> {
        // Under `Order::Arrival` everything stands in one queue.
        let class = match order {
            Order::Arrival => Class::Data,
            Order::ControlFirst if !self.queues[Class::Control as usize].is_empty() => {
                Class::Control
            }
            Order::ControlFirst => Class::Data,
        };
        let queue = &mut self.queues[class as usize];
        let head = queue.front_mut()?;
        let first = !core::mem::replace(&mut head.begun, true);
        head.left -= 1;
        self.backlog -= 1;
        self.fresh = self.fresh.min(self.backlog);
        let last = if head.left == 0 { queue.pop_front() } else { None };
        Some(Cell { class, first, last })
    }

    /// What it asks for in a burst of `frame` that it sends at `now`.
    pub(super) fn ask(
        &mut self,
        config: &MfTdmaConfig,
        now: Instant,
        frame: u64,
    ) -> Option<Request> {
        if config.ask_in == AskIn::First && self.asked_in == Some(frame) {
            return None;
        }
        let since = self.asked_in.map_or(1, |last| (frame - last).max(1));
        let first = self.asked_in != Some(frame);
        self.asked_in = Some(frame);
        if let Claim::Always(request) = self.claim {
            return Some(request);
        }
        let heard = self.known.iter().filter(|known| known.heard_at <= now);
        let has: u64 = heard.map(|known| u64::from(known.left)).sum();
        let short = self.backlog.saturating_sub(has);
        match config.demand {
            Demand::None => None,
            Demand::Absolute => Some(Request::Absolute(slots(short))),
            Demand::Volume => {
                let more = self.fresh.min(short);
                if short == 0 {
                    self.fresh = 0;
                    return None;
                }
                self.asked += 1;
                self.fresh = 0;
                match self.asked % ABSOLUTE_EVERY {
                    0 => Some(Request::Absolute(slots(short))),
                    _ => (more > 0).then(|| Request::Volume(slots(more))),
                }
            }
            Demand::Rate => {
                let came = if first { self.fresh.div_ceil(since) } else { 0 };
                self.fresh = 0;
                Some(Request::Rate(slots(came + short.div_ceil(4))))
            }
        }
    }
}

fn slots(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
