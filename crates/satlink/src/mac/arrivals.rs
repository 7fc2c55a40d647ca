//! Packets that arrived over a shared channel and are not yet fetched.

use crate::{Frame, Tally};
use alloc::collections::VecDeque;
use units::Instant;

/// A packet that arrived at the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived<F> {
    /// When its last bit arrived.
    pub at: Instant,
    /// The terminal that sent it.
    pub terminal: usize,
    /// The packet.
    pub frame: F,
    /// When it was offered.
    pub offered_at: Instant,
}

/// Packets in order of arrival, future ones included.
#[derive(Debug)]
pub(super) struct Arrivals<F>(VecDeque<Arrived<F>>);

impl<F: Frame> Arrivals<F> {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Adds a packet that arrives no earlier than those before it.
    pub(super) fn push(&mut self, arrived: Arrived<F>) {
        debug_assert!(self.0.back().is_none_or(|last| last.at <= arrived.at), "in order");
        self.0.push_back(arrived);
    }

    /// When the next packet arrives.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.0.front().map(|arrived| arrived.at)
    }

    /// The next packet, if it arrives by `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Arrived<F>> {
        self.0.front().filter(|arrived| arrived.at <= now)?;
        self.0.pop_front()
    }

    /// As `pop`, and moves the packet from `held` to `delivered`.
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

    /// Adds the packets to `held`.
    pub(super) fn count_into(&self, held: &mut Tally) {
        self.0.iter().for_each(|arrived| held.add(arrived.frame.len() as u64));
    }
}
