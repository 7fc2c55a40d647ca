//! Probing map of the paper: the probes that were sent and their responses.
//!
//! ```text
//!   slot:       0          1         2         3
//!          ┌──────────┬─────────┬─────────┬─────────┐
//!          │ pre-loss │ PROBE 1 │ PROBE 2 │ PROBE 3 │    PROBE 4 takes the place of the oldest
//!          └──────────┴─────────┴─────────┴─────────┘
//! ```
//!
//! The slots are in the order of transmission. The first slot holds the newest response to a POLL
//! that was sent before the cycle; it is the first to be discarded when the map is full.

use alloc::collections::VecDeque;
use units::Span;

/// A probe in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// Sequence number of the POLL.
    pub(crate) seq: u32,
    /// Time from the POLL to the STAT, once it is received.
    pub(crate) rtt: Option<Span>,
}

/// Probing map of one cycle.
#[derive(Clone, Debug)]
pub(crate) struct ProbeMap {
    size: usize,
    /// First slot: `None` when it was discarded, `Some(None)` while it is empty.
    before_loss: Option<Option<Probe>>,
    probes: VecDeque<Probe>,
}

impl ProbeMap {
    /// An empty map of `size` slots. With `before_loss` the first one is reserved for responses to
    /// earlier POLLs.
    pub(crate) fn new(size: u32, before_loss: bool) -> Self {
        let before_loss = before_loss.then_some(None);
        Self { size: size as usize, before_loss, probes: VecDeque::new() }
    }

    /// A probe was sent. It replaces the oldest one if the map is full (XSTP-13.3.2).
    pub(crate) fn on_sent(&mut self, seq: u32) {
        let reserved = usize::from(self.before_loss.is_some());
        if self.probes.len() + reserved >= self.size && self.before_loss.take().is_none() {
            self.probes.pop_front();
        }
        self.probes.push_back(Probe { seq, rtt: None });
    }

    /// A POLL that was sent before the cycle is answered; returns whether there is a slot for it.
    pub(crate) fn on_earlier(&mut self, seq: u32, rtt: Span) -> bool {
        let Some(slot) = &mut self.before_loss else { return false };
        *slot = Some(Probe { seq, rtt: Some(rtt) });
        true
    }

    /// A probe is answered; returns false if its slot was discarded.
    pub(crate) fn on_response(&mut self, seq: u32, rtt: Span) -> bool {
        let Some(probe) = self.probes.iter_mut().find(|probe| probe.seq == seq) else {
            return false;
        };
        probe.rtt = Some(rtt);
        true
    }

    /// Whether the probe before `seq` is unanswered.
    pub(crate) fn skips(&self, seq: u32) -> bool {
        let before = self.probes.iter().take_while(|probe| probe.seq != seq).last();
        before.is_some_and(|probe| probe.rtt.is_none())
    }

    /// Maximum RTT of the first `required` consecutive slots with a response, if there are as many
    /// (XSTP-13.3.5).
    pub(crate) fn longest_of(&self, required: u32) -> Option<Span> {
        let required = (required as usize).max(1);
        let mut run = VecDeque::new();
        for slot in self.slots() {
            match slot.and_then(|probe| probe.rtt) {
                Some(rtt) => run.push_back(rtt),
                None => run.clear(),
            }
            if run.len() == required {
                return run.into_iter().max();
            }
        }
        None
    }

    /// Slots, oldest first; `None` is the first one while it is empty.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Option<Probe>> {
        self.before_loss.into_iter().chain(self.probes.iter().copied().map(Some))
    }
}
