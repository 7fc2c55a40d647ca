//! A terminal: its queue, its slots and its capacity requests.

use super::log_on::Call;
use super::{AskIn, Class, Demand, MfTdmaConfig, Order};
use crate::mac::schedule::Request;
use alloc::collections::VecDeque;
use units::{Instant, Span};

/// Every eighth volume request is absolute.
const ABSOLUTE_EVERY: u32 = 8;

/// What a terminal requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// What it needs.
    #[default]
    Honest,
    /// Always this request.
    Always(Request),
}

/// A packet that is queued or being sent.
#[derive(Debug)]
pub(super) struct Waiting<F> {
    pub(super) frame: F,
    /// Slots that it still needs.
    pub(super) left: u64,
    /// Part of it has been sent.
    pub(super) begun: bool,
    pub(super) offered_at: Instant,
}

/// The slots of a frame granted to a terminal.
#[derive(Clone, Copy, Debug)]
struct Known {
    frame: u64,
    heard_at: Instant,
    left: u32,
}

/// The content of one slot.
#[derive(Debug)]
pub(super) struct Cell<F> {
    pub(super) class: Class,
    /// It is the first of a packet: damage of an earlier unfinished packet ends here.
    pub(super) first: bool,
    /// The packet that it completes.
    pub(super) last: Option<Waiting<F>>,
}

#[derive(Debug)]
pub(super) struct Terminal<F> {
    /// One-way delay to the scheduler.
    pub(super) way: Span,
    pub(super) late: bool,
    /// The carrier is on: granted slots are used.
    pub(super) online: bool,
    /// It is logged on, and not known to be dropped.
    pub(super) admitted: bool,
    pub(super) call: Option<Call>,
    pub(super) claim: Claim,
    /// By class.
    pub(super) queues: [VecDeque<Waiting<F>>; 2],
    /// Slots needed for the whole queue.
    backlog: u64,
    known: VecDeque<Known>,
    /// The frame of the last request.
    asked_in: Option<u64>,
    asked: u32,
    /// Slots needed for packets that arrived since the last request.
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

    /// Packets queued.
    pub(super) fn waiting(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// Slots needed for the queue.
    pub(super) fn backlog(&self) -> u64 {
        self.backlog
    }

    pub(super) fn push(&mut self, queue: Class, waiting: Waiting<F>) {
        self.backlog += waiting.left;
        self.fresh += waiting.left;
        self.queues[queue as usize].push_back(waiting);
    }

    /// Removes all queued packets.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Waiting<F>> {
        (self.backlog, self.fresh) = (0, 0);
        self.asked_in = None;
        self.known.clear();
        core::mem::take(&mut self.queues).into_iter().flatten()
    }

    /// Schedules the information about `slots` in `frame` for `heard_at`.
    pub(super) fn on_plan(&mut self, frame: u64, heard_at: Instant, slots: u32) {
        self.known.push_back(Known { frame, heard_at, left: slots });
    }

    /// Counts a slot of `frame` as past.
    pub(super) fn use_slot(&mut self, frame: u64) {
        while self.known.front().is_some_and(|known| known.frame < frame) {
            self.known.pop_front();
        }
        if let Some(known) = self.known.front_mut().filter(|known| known.frame == frame) {
            known.left = known.left.saturating_sub(1);
        }
    }

    /// The content of the next slot, if a packet is queued.
    pub(super) fn next_cell(&mut self, order: Order) -> Option<Cell<F>> {
        // Under `Order::Arrival` all packets are in one queue.
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

    /// The request in a burst of `frame` that is sent at `now`.
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
