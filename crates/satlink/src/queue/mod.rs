//! The transmit queue.

mod codel;
mod dual_pi2;
mod fair;
mod fair_codel;
mod red;

pub use codel::CoDel;
pub use dual_pi2::DualPi2;
pub use red::Red;

use crate::{DropCause, Frame};
use alloc::collections::VecDeque;
use codel::CoDelState;
use dual_pi2::DualQueue;
use fair::FairQueue;
use fair_codel::FairCoDel;
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
    /// First in, first out; controlled delay drops or marks what leaves a standing queue.
    CoDel(CoDel),
    /// FQ-CoDel: one queue with CoDel per flow (of 1,024, by hash), flows that have just begun
    /// first; at the common limit the first frame of the longest queue is dropped.
    FairCoDel {
        /// Quantum of each flow in octets on air; at least 64.
        quantum: u32,
        /// CoDel's parameters.
        codel: CoDel,
    },
    /// Two coupled queues, of which L4S traffic has its own (RFC 9332).
    DualPi2(DualPi2),
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

/// A frame that leaves the queue.
#[derive(Debug)]
pub(crate) enum Exit<F> {
    /// It is to be sent; `marked` if that replaced a drop.
    Goes { waiting: Waiting<F>, marked: bool },
    /// It is dropped.
    Shed(Waiting<F>),
}

/// The queue of one direction.
#[derive(Debug)]
pub(crate) struct Queue<F> {
    limit: Limit,
    room: Room<F>,
    red: Option<(Red, RedState)>,
    codel: Option<(CoDel, CoDelState)>,
    bytes: u64,
    packets: u64,
}

#[derive(Debug)]
enum Room<F> {
    Line(VecDeque<Waiting<F>>),
    Fair(FairQueue<F>),
    FairCoDel(FairCoDel<F>),
    DualPi2(DualQueue<F>),
}

impl<F: Frame> Queue<F> {
    /// A queue with validated settings and limits in packets or octets.
    pub(crate) fn new(settings: QueueConfig) -> Self {
        let mut queue = Self {
            limit: Limit::default(),
            room: Room::Line(VecDeque::new()),
            red: None,
            codel: None,
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
            Discipline::DropTail
            | Discipline::Fair { .. }
            | Discipline::CoDel(_)
            | Discipline::FairCoDel { .. }
            | Discipline::DualPi2(_) => None,
        };
        self.codel = match settings.discipline {
            Discipline::CoDel(codel) | Discipline::FairCoDel { codel, .. } => {
                let state = self.codel.take().map_or_else(CoDelState::default, |(_, state)| state);
                Some((codel, state))
            }
            Discipline::DropTail
            | Discipline::Red(_)
            | Discipline::Fair { .. }
            | Discipline::DualPi2(_) => None,
        };
        match (settings.discipline, &mut self.room) {
            (Discipline::Fair { quantum }, Room::Fair(fair)) => fair.set_quantum(quantum),
            (Discipline::FairCoDel { quantum, .. }, Room::FairCoDel(fair)) => {
                fair.set_quantum(quantum);
            }
            (Discipline::DualPi2(settings), Room::DualPi2(dual)) => dual.set(settings),
            (Discipline::DropTail | Discipline::Red(_) | Discipline::CoDel(_), Room::Line(_)) => {}
            (discipline, room) => {
                let waiting = room.drain();
                *room = Room::new(discipline);
                waiting.into_iter().for_each(|waiting| room.push(waiting));
            }
        }
    }

    /// Frames and octets queued, without the one in transmission.
    pub(crate) fn backlog(&self) -> InService {
        InService { packets: self.packets, bytes: self.bytes }
    }

    /// Queued frames, for audits.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &F> {
        let (line, fair, codel, dual) = match &self.room {
            Room::Line(line) => (Some(line.iter()), None, None, None),
            Room::Fair(fair) => (None, Some(fair.iter()), None, None),
            Room::FairCoDel(fair) => (None, None, Some(fair.iter()), None),
            Room::DualPi2(dual) => (None, None, None, Some(dual.iter())),
        };
        let waiting = line.into_iter().flatten().chain(fair.into_iter().flatten());
        let waiting = waiting.chain(codel.into_iter().flatten());
        waiting.chain(dual.into_iter().flatten()).map(|waiting| &waiting.frame)
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
        self.room.push(waiting);
        if fits {
            return Entry::Waits { marked };
        }
        self.displace()
    }

    /// The next frame that leaves.
    pub(crate) fn leave(&mut self, now: Instant) -> Option<Exit<F>> {
        let goes = |waiting| Exit::Goes { waiting, marked: false };
        let exit = match (&mut self.room, &mut self.codel) {
            (Room::Line(line), Some((codel, state))) => match line.pop_front() {
                Some(waiting) => {
                    let backlog = self.bytes - waiting.on_air;
                    Some(state.pass(codel, now, waiting, backlog))
                }
                None => {
                    state.empty();
                    None
                }
            },
            (Room::Line(line), None) => line.pop_front().map(goes),
            (Room::Fair(fair), _) => fair.pop().map(goes),
            (Room::FairCoDel(fair), Some((codel, _))) => fair.pop(codel, now),
            (Room::DualPi2(dual), _) => dual.pop(now),
            (Room::FairCoDel(_), None) => unreachable!("FQ-CoDel has CoDel's parameters"),
        };
        if let Some(Exit::Goes { waiting, .. } | Exit::Shed(waiting)) = &exit {
            self.packets -= 1;
            self.bytes -= waiting.on_air;
        } else if let Some((_, state)) = &mut self.red {
            state.idle(now);
        }
        exit
    }

    fn fits(&self, service: InService, on_air: u64) -> bool {
        match self.limit {
            Limit::Packets(most) => self.packets + service.packets < most,
            Limit::Bytes(most) => self.bytes + service.bytes + on_air <= most,
            Limit::BandwidthDelay(_) => unreachable!("limits are resolved before they are used"),
        }
    }

    /// Whether a full queue accepts `waiting` by dropping another frame: a fair queue does, if
    /// another flow has more octets queued and one frame of it is large enough.
    fn displaces(&self, waiting: &Waiting<F>) -> bool {
        match &self.room {
            Room::Line(_) | Room::DualPi2(_) => false,
            Room::Fair(fair) => fair.displaces(waiting),
            Room::FairCoDel(fair) => fair.displaces(waiting),
        }
    }

    fn displace(&mut self) -> Entry<F> {
        let victim = match &mut self.room {
            Room::Line(_) | Room::DualPi2(_) => unreachable!("only a fair queue displaces"),
            Room::Fair(fair) => fair.drop_from_longest(),
            Room::FairCoDel(fair) => fair.drop_from_longest(),
        };
        self.packets -= 1;
        self.bytes -= victim.on_air;
        Entry::Displaced(DropCause::QueueFull, victim.frame)
    }
}

impl<F: Frame> Room<F> {
    fn new(discipline: Discipline) -> Self {
        match discipline {
            Discipline::Fair { quantum } => Self::Fair(FairQueue::new(quantum)),
            Discipline::FairCoDel { quantum, .. } => Self::FairCoDel(FairCoDel::new(quantum)),
            Discipline::DualPi2(settings) => Self::DualPi2(DualQueue::new(settings)),
            Discipline::DropTail | Discipline::Red(_) | Discipline::CoDel(_) => {
                Self::Line(VecDeque::new())
            }
        }
    }

    fn push(&mut self, waiting: Waiting<F>) {
        match self {
            Self::Line(line) => line.push_back(waiting),
            Self::Fair(fair) => fair.push(waiting),
            Self::FairCoDel(fair) => fair.push(waiting),
            Self::DualPi2(dual) => dual.push(waiting),
        }
    }

    /// Removes all frames, in order of service; of FQ-CoDel and DualPI2 in order of arrival.
    fn drain(&mut self) -> VecDeque<Waiting<F>> {
        match self {
            Self::Line(line) => core::mem::take(line),
            Self::Fair(fair) => core::iter::from_fn(|| fair.pop()).collect(),
            Self::FairCoDel(fair) => fair.drain().into(),
            Self::DualPi2(dual) => dual.drain(),
        }
    }
}
