//! Slots of connections: taking and giving them back, and reclaiming those of idle connections.

use crate::engine::limits::rates::Holder;
use crate::engine::limits::slots::{Full, IDLE, Owner, RECLAIMED};
use crate::engine::peers::relay_set::StreamKey;
use crate::engine::transfer::connection::Stage;
use crate::engine::transfer::connections::Core;
use crate::proxy::RefuseReason;
use relay::{ResetReason, Target};
use std::sync::Arc;
use units::Instant;

impl<S: Stage> Core<S> {
    /// Whether `owner` may have one more connection, within these bounds of its group and its own;
    /// an idle connection of another may lose its slot for that.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        owner: &Owner<Arc<str>>,
        bounds: (usize, usize),
    ) -> Result<(), Full> {
        let reclaimed = self.slots.admit(now, owner, bounds)?;
        if let Some(index) = reclaimed {
            self.reclaim(index);
        }
        Ok(())
    }

    /// The connection is to be reset: another has its slot.
    pub(crate) fn reclaim(&mut self, index: usize) {
        self.counters.reclaimed += 1;
        self.because(index, RECLAIMED);
        if let Some(connection) = self.connections.get(index) {
            self.reclaimed.push((index, connection.id));
        }
    }

    /// The next connection that is to be reset because another has its slot.
    pub(crate) fn next_reclaimed(&mut self) -> Option<usize> {
        while let Some((index, id)) = self.reclaimed.pop() {
            // It may have closed in the meantime, and another may have its place.
            if self.connections.get(index).is_some_and(|connection| connection.id == id) {
                return Some(index);
            }
        }
        None
    }

    /// The connection has a slot from here on, as one of `holder`'s.
    pub(crate) fn hold(
        &mut self,
        now: Instant,
        index: usize,
        owner: Owner<Arc<str>>,
        holder: Holder,
    ) {
        self.asking.release(index);
        self.slots.table.occupy(now, owner, index);
        self.connections[index].holder = Some(holder);
        let held = self.slots.table.len() as u64;
        self.counters.most_at_once = self.counters.most_at_once.max(held);
    }

    /// Clients that may tell a proxy at one time what they want; they have no slot of a connection
    /// yet.
    pub(crate) fn most_asking(&self, now: Instant) -> usize {
        (self.slots.total(now) / 4).clamp(16, 1024)
    }

    /// Opens a stream for the connection. The hub's bound on streams is shared as slots are, but no
    /// stream can be reclaimed at once, so each client leaves some to others.
    pub(crate) fn open_stream(
        &mut self,
        now: Instant,
        owner: &Owner<Arc<str>>,
        target: Target,
    ) -> Result<StreamKey, RefuseReason> {
        let held = self.slots.table.held_by(owner) + self.closing.count(owner);
        let opened = self.carrier.open(now, target, held);
        if opened == Err(RefuseReason::Limit) {
            self.counters.limited("streams");
        }
        opened
    }

    /// The connection is over; its slot is free, and its stream may have to be waited for.
    pub(crate) fn vacate(&mut self, index: usize, key: Option<StreamKey>) {
        self.asking.release(index);
        if let (Some(owner), Some(key)) = (self.slots.table.release(index), key)
            && self.carrier.has_opened(key)
        {
            self.closing.add(key, owner);
        }
    }

    /// Forgets closing streams that are over.
    pub(crate) fn review_closing(&mut self) {
        let carrier = &mut self.carrier;
        self.closing.review(|key| carrier.has_opened(key));
    }

    /// Ends connections that have moved no byte for `limits.idle`.
    pub(crate) fn end_idle(&mut self, now: Instant) {
        let Some(longest) = self.limits.idle else { return };
        let is_idle = |index| {
            self.slots.table.get(index).is_some_and(|(_, since)| now.since(since) >= longest)
        };
        let idle: Vec<usize> = (self.connections.iter())
            .filter(|(index, connection)| connection.is_open() && is_idle(*index))
            .map(|(index, _)| index)
            .collect();
        for index in idle {
            self.counters.idle += 1;
            self.because(index, IDLE);
            self.give_up(index, ResetReason::TimedOut);
        }
    }
}
