//! The transmit queue.

mod fair;
mod red;

pub use red::Red;

use crate::{DropCause, Frame};
use alloc::collections::VecDeque;
use fair::FairQueue;
use red::{RedState, Verdict};
use units::{Instant, RngStream, Span};

/// A queue: its discipline and its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueConfig {
    /// Order of service and drop policy.
    pub discipline: Discipline,
    /// Capacity.
    pub limit: Limit,
}

/// The order of service, and which frame is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// First in, first out; frames are dropped at a full queue.
    #[default]
    DropTail,
    /// First in, first out; random early detection drops or marks before the queue is full.
    Red(Red),
    /// One queue per flow, served by deficit round robin (Shreedhar and Varghese 1995); at the
    /// common limit the last frame of the longest queue is dropped.
    Fair {
        /// Quantum of each flow in octets on air; at least 64.
        quantum: u32,
    },
}

/// Queue limit. The frame in transmission counts: with a limit of one packet there is no queue.
/// Octets include framing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// This many frames.
    Packets(u64),
    /// This many bytes.
    Bytes(u64),
    /// This multiple of the direction's rate times the link's round trip; at least 3,000 octets.
    BandwidthDelay(f64),
}

impl Default for Limit {
    /// netem's default: 1,000 packets.
    fn default() -> Self {
        Self::Packets(1_000)
    }
}

/// A queued frame.
#[derive(Debug)]
pub(crate) struct Waiting<F> {
    pub(crate) frame: F,
    pub(crate) offered_at: Instant,
    /// Its size on air under the framing at its arrival.
    pub(crate) on_air: u64,
}

/// The frame in transmission, which counts towards the limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InService {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// Result of an enqueue.
pub(crate) enum Entry<F> {
    /// It is queued; `marked` if that replaced a drop.
    Waits { marked: bool },
    /// It was dropped.
    Refused(DropCause, F),
    /// It is queued, and another one was dropped.
    Displaced(DropCause, F),
}

/// The queue of one direction.
#[derive(Debug)]
pub(crate) struct Queue<F> {
    limit: Limit,
    room: Room<F>,
    red: Option<(Red, RedState)>,
    bytes: u64,
    packets: u64,
}

#[derive(Debug)]
enum Room<F> {
    Line(VecDeque<Waiting<F>>),
    Fair(FairQueue<F>),
}

impl<F: Frame> Queue<F> {
    /// A queue with validated settings and limits in packets or octets.
    pub(crate) fn new(settings: QueueConfig) -> Self {
        let mut queue = Self {
            limit: Limit::default(),
            room: Room::Line(VecDeque::new()),
            red: None,
            bytes: 0,
            packets: 0,
        };
        queue.reconfigure(settings);
        queue
    }

    /// Applies new settings. Queued frames stay in their order of service, even above a new limit.
    pub(crate) fn reconfigure(&mut self, settings: QueueConfig) {
        self.limit = settings.limit;
        self.red = match settings.discipline {
            Discipline::Red(red) => {
                let state = self.red.take().map_or_else(RedState::default, |(_, state)| state);
                Some((red, state))
            }
            Discipline::DropTail | Discipline::Fair { .. } => None,
        };
        match (settings.discipline, &mut self.room) {
            (Discipline::Fair { quantum }, Room::Fair(fair)) => fair.set_quantum(quantum),
            (Discipline::Fair { quantum }, Room::Line(line)) => {
                let mut fair = FairQueue::new(quantum);
                line.drain(..).for_each(|waiting| fair.push(waiting));
                self.room = Room::Fair(fair);
            }
            (Discipline::DropTail | Discipline::Red(_), Room::Line(_)) => {}
            (Discipline::DropTail | Discipline::Red(_), Room::Fair(fair)) => {
                self.room = Room::Line(core::iter::from_fn(|| fair.pop()).collect());
            }
        }
    }

    /// Frames and octets queued, without the one in transmission.
    pub(crate) fn backlog(&self) -> InService {
        InService { packets: self.packets, bytes: self.bytes }
    }

    /// Queued frames, for audits.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &F> {
        let (line, fair) = match &self.room {
            Room::Line(line) => (Some(line.iter()), None),
            Room::Fair(fair) => (None, Some(fair.iter())),
        };
        let waiting = line.into_iter().flatten().chain(fair.into_iter().flatten());
        waiting.map(|waiting| &waiting.frame)
    }

    /// Enqueues `waiting` if possible. `typical` is the serialization delay of a typical frame.
    pub(crate) fn enter(
        &mut self,
        now: Instant,
        mut waiting: Waiting<F>,
        service: InService,
        typical: Span,
        rng: &mut RngStream,
    ) -> Entry<F> {
        let mut marked = false;
        if let Some((red, state)) = &mut self.red {
            let backlog = match self.limit {
                Limit::Packets(_) => self.packets + service.packets,
                Limit::Bytes(_) | Limit::BandwidthDelay(_) => self.bytes + service.bytes,
            };
            match state.decide(red, now, backlog, typical, rng) {
                Verdict::Pass => {}
                Verdict::Early if red.mark && waiting.frame.mark() => marked = true,
                Verdict::Early | Verdict::Forced => {
                    return Entry::Refused(DropCause::Early, waiting.frame);
                }
            }
        }
        let fits = self.fits(service, waiting.on_air);
        if !fits && !self.displaces(&waiting) {
            return Entry::Refused(DropCause::QueueFull, waiting.frame);
        }
        self.packets += 1;
        self.bytes += waiting.on_air;
        match &mut self.room {
            Room::Line(line) => line.push_back(waiting),
            Room::Fair(fair) => fair.push(waiting),
        }
        if fits {
            return Entry::Waits { marked };
        }
        self.displace()
    }

    /// The next frame to send.
    pub(crate) fn leave(&mut self, now: Instant) -> Option<Waiting<F>> {
        let next = match &mut self.room {
            Room::Line(line) => line.pop_front(),
            Room::Fair(fair) => fair.pop(),
        };
        if let Some(waiting) = &next {
            self.packets -= 1;
            self.bytes -= waiting.on_air;
        } else if let Some((_, state)) = &mut self.red {
            state.idle(now);
        }
        next
    }

    fn fits(&self, service: InService, on_air: u64) -> bool {
        match self.limit {
            Limit::Packets(most) => self.packets + service.packets < most,
            Limit::Bytes(most) => self.bytes + service.bytes + on_air <= most,
            Limit::BandwidthDelay(_) => unreachable!("limits are resolved before they are used"),
        }
    }

    /// Whether a full queue accepts `waiting` by dropping another frame: only a fair queue does, if
    /// another flow has more octets queued and one frame of it is large enough.
    fn displaces(&self, waiting: &Waiting<F>) -> bool {
        match &self.room {
            Room::Line(_) => false,
            Room::Fair(fair) => fair.displaces(waiting),
        }
    }

    fn displace(&mut self) -> Entry<F> {
        let Room::Fair(fair) = &mut self.room else {
            unreachable!("only a fair queue displaces");
        };
        let victim = fair.drop_from_longest();
        self.packets -= 1;
        self.bytes -= victim.on_air;
        Entry::Displaced(DropCause::QueueFull, victim.frame)
    }
}
