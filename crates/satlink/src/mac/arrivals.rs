//! What has come through a shared channel and waits to be fetched.

use crate::{Frame, Tally};
use alloc::collections::VecDeque;
use units::Instant;

/// A packet that arrived at the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived<F> {
    /// When its last bit did.
    pub at: Instant,
    /// Which terminal sent it.
    pub terminal: usize,
    /// The packet.
    pub frame: F,
    /// When it was offered.
    pub offered_at: Instant,
}

/// Packets in the order in which they arrive; those to come may stand there already.
#[derive(Debug)]
pub(super) struct Arrivals<F>(VecDeque<Arrived<F>>);

impl<F: Frame> Arrivals<F> {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// One that arrives no earlier than those before it.
    pub(super) fn push(&mut self, arrived: Arrived<F>) {
        debug_assert!(self.0.back().is_none_or(|last| last.at <= arrived.at), "in order");
        self.0.push_back(arrived);
    }

    /// When the next one does.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.0.front().map(|arrived| arrived.at)
    }

    /// The next one, if that is not after `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Arrived<F>> {
        self.0.front().filter(|arrived| arrived.at <= now)?;
        self.0.pop_front()
    }

    /// The same, moved from `held` to `delivered`.
    pub(super) fn fetch(
        &mut self,
        now: Instant,
        held: &mut Tally,
        delivered: &mut Tally,
    ) -> Option<Arrived<F>> {
        let arrived = self.pop(now)?;
        let bytes = arrived.frame.len() as u64;
        held.remove(bytes);
        delivered.add(bytes);
        Some(arrived)
    }

    /// Adds up what is there.
    pub(super) fn count_into(&self, held: &mut Tally) {
        self.0.iter().for_each(|arrived| held.add(arrived.frame.len() as u64));
    }
}
