//! Which probes were sent and which of them are answered: the paper's probing map.
//!
//! ```text
//!   slot:       0          1         2         3
//!          ┌──────────┬─────────┬─────────┬─────────┐
//!          │ pre-loss │ PROBE 1 │ PROBE 2 │ PROBE 3 │    PROBE 4 takes the place of the oldest
//!          └──────────┴─────────┴─────────┴─────────┘
//! ```
//!
//! The slots are in the order of sending. The first one waits for answers to POLLs that were
//! sent before the cycle began, the newest of which stays; it is the first to go when the map
//! is full.

use alloc::collections::VecDeque;
use units::Span;

/// A probe in the map, with what its answer measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// The POLL's count.
    pub(crate) count: u32,
    /// From the POLL to the STAT, once that has come.
    pub(crate) round_trip: Option<Span>,
}

/// The probing map of one cycle.
#[derive(Clone, Debug)]
pub(crate) struct ProbeMap {
    size: usize,
    /// The outer level: whether the slot is still there; the inner: whether it is filled.
    before_loss: Option<Option<Probe>>,
    probes: VecDeque<Probe>,
}

impl ProbeMap {
    /// An empty map of `size` slots, the first of which is kept for answers to earlier POLLs if
    /// `before_loss` says so.
    pub(crate) fn new(size: u32, before_loss: bool) -> Self {
        let before_loss = before_loss.then_some(None);
        Self { size: size as usize, before_loss, probes: VecDeque::new() }
    }

    /// A probe was sent. The oldest slot goes when there is no other (XSTP-13.3.2).
    pub(crate) fn on_sent(&mut self, count: u32) {
        let reserved = usize::from(self.before_loss.is_some());
        if self.probes.len() + reserved >= self.size && self.before_loss.take().is_none() {
            self.probes.pop_front();
        }
        self.probes.push_back(Probe { count, round_trip: None });
    }

    /// A POLL that was sent before the cycle is answered. Whether there was a place for it.
    pub(crate) fn on_earlier(&mut self, count: u32, round_trip: Span) -> bool {
        let Some(slot) = &mut self.before_loss else { return false };
        *slot = Some(Probe { count, round_trip: Some(round_trip) });
        true
    }

    /// A probe is answered. False: its slot is gone.
    pub(crate) fn on_answer(&mut self, count: u32, round_trip: Span) -> bool {
        let Some(probe) = self.probes.iter_mut().find(|probe| probe.count == count) else {
            return false;
        };
        probe.round_trip = Some(round_trip);
        true
    }

    /// Whether the probe before `count` is still without an answer.
    pub(crate) fn skips(&self, count: u32) -> bool {
        let before = self.probes.iter().take_while(|probe| probe.count != count).last();
        before.is_some_and(|probe| probe.round_trip.is_none())
    }

    /// The longest round trip of the first `required` neighbours that are all filled, once there
    /// are as many (XSTP-13.3.5).
    pub(crate) fn longest_of(&self, required: u32) -> Option<Span> {
        let required = (required as usize).max(1);
        let mut run = VecDeque::new();
        for slot in self.slots() {
            match slot.and_then(|probe| probe.round_trip) {
                Some(round_trip) => run.push_back(round_trip),
                None => run.clear(),
            }
            if run.len() == required {
                return run.into_iter().max();
            }
        }
        None
    }

    /// The slots, oldest first; `None` is the first one while it is not filled.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Option<Probe>> {
        self.before_loss.into_iter().chain(self.probes.iter().copied().map(Some))
    }
}
