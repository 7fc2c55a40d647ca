//! Where frames wait for the line.

mod fair;
mod red;

pub use red::Red;

use crate::{DropCause, Frame};
use alloc::collections::VecDeque;
use fair::FairQueue;
use red::{RedState, Verdict};
use units::{Instant, RngStream, Span};

/// A queue: who is dropped, and when it is full.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueConfig {
    /// Which frame waits, goes first, or is dropped.
    pub discipline: Discipline,
    /// How much fits.
    pub limit: Limit,
}

/// The order of service, and who is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// First in, first out; what does not fit is dropped.
    #[default]
    DropTail,
    /// First in, first out; random early detection drops or marks before it is full.
    Red(Red),
    /// One queue for each flow, served by deficit round robin (Shreedhar and Varghese 1995);
    /// when all are full together, the end of the longest is dropped.
    Fair {
        /// Bytes on air that each flow may send in its turn; at least 64.
        quantum: u32,
    },
}

/// How much waits. The frame that is being sent counts: a limit of one packet is a line
/// without a queue. Bytes are bytes on air, with framing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// This many frames.
    Packets(u64),
    /// This many bytes.
    Bytes(u64),
    /// The direction's rate times the link's round trip times this; at least 3,000 bytes.
    BandwidthDelay(f64),
}

impl Default for Limit {
    /// netem's: 1,000 packets.
    fn default() -> Self {
        Self::Packets(1_000)
    }
}

/// A frame on its way to the line.
#[derive(Debug)]
pub(crate) struct Waiting<F> {
    pub(crate) frame: F,
    pub(crate) offered_at: Instant,
    /// Its size on air, by the framing at its arrival.
    pub(crate) on_air: u64,
}

/// What is on the line now, in frames and bytes: it counts towards the limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InService {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// What became of a frame that wants to wait.
pub(crate) enum Entry<F> {
    /// It waits; `marked` if instead of a drop.
    Waits { marked: bool },
    /// It does not.
    Refused(DropCause, F),
    /// It waits, and this one had to go.
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
    /// A queue whose settings have been validated, with limits in packets or bytes.
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

    /// Takes new settings. What waits goes on waiting, in the order in which it would have been
    /// served, even above a new limit.
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

    /// Frames and bytes that wait, without the one in service.
    pub(crate) fn backlog(&self) -> InService {
        InService { packets: self.packets, bytes: self.bytes }
    }

    /// What waits, for auditing.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &F> {
        let (line, fair) = match &self.room {
            Room::Line(line) => (Some(line.iter()), None),
            Room::Fair(fair) => (None, Some(fair.iter())),
        };
        let waiting = line.into_iter().flatten().chain(fair.into_iter().flatten());
        waiting.map(|waiting| &waiting.frame)
    }

    /// Lets `waiting` wait, if it may. `typical` is how long a typical frame takes on the line.
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

    /// The next to be sent.
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

    /// Whether a full queue takes `waiting` at another's cost: only a fair one does, when
    /// another flow has more waiting and one frame of it makes room enough.
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
