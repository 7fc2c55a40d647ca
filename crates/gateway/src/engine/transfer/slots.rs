//! Slots of connections: taking and giving them back, and reclaiming those of idle connections.

use crate::engine::limits::rates::QuotaOwner;
use crate::engine::limits::slots::{Full, IDLE, Owner, RECLAIMED};
use crate::engine::peers::peer::StreamKey;
use crate::engine::transfer::connection::Stage;
use crate::engine::transfer::connections::Core;
use crate::proxy::RefuseReason;
use relay::{Destination, ResetReason, Target};
use std::sync::Arc;
use units::Instant;

impl<S: Stage> Core<S> {
    /// Checks whether `owner` may have one more connection within these bounds of its group and its
    /// own. The slot of another owner's idle connection may be reclaimed for it.
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

    /// Marks a connection for reset because its slot was reclaimed.
    pub(crate) fn reclaim(&mut self, index: usize) {
        self.counters.reclaimed += 1;
        self.set_close_cause(index, RECLAIMED);
        if let Some(connection) = self.connections.get(index) {
            self.reclaimed.push((index, connection.id));
        }
    }

    /// Returns the next connection whose slot was reclaimed and that is to be reset.
    pub(crate) fn next_reclaimed(&mut self) -> Option<usize> {
        while let Some((index, id)) = self.reclaimed.pop() {
            // It may have closed meanwhile, and another connection may have its index.
            if self.connections.get(index).is_some_and(|connection| connection.id == id) {
                return Some(index);
            }
        }
        None
    }

    /// Assigns a slot to the connection, as one of `quota_owner`.
    pub(crate) fn hold(
        &mut self,
        now: Instant,
        index: usize,
        owner: Owner<Arc<str>>,
        quota_owner: QuotaOwner,
    ) {
        self.handshakes.release(index);
        self.slots.table.occupy(now, owner, index);
        self.connections[index].quota_owner = Some(quota_owner);
        let held = self.slots.table.len() as u64;
        self.counters.peak_connections = self.counters.peak_connections.max(held);
    }

    /// Returns the maximum number of concurrent proxy handshakes, which have no slots of
    /// connections yet.
    pub(crate) fn max_handshakes(&self, now: Instant) -> usize {
        (self.slots.total(now) / 4).clamp(16, 1024)
    }

    /// Opens a stream for the connection. The hub's limit on streams is shared as slots are, but a
    /// stream cannot be reclaimed at once, so each client leaves some to others.
    pub(crate) fn open_stream(
        &mut self,
        now: Instant,
        owner: &Owner<Arc<str>>,
        mut target: Target,
    ) -> Result<StreamKey, RefuseReason> {
        if let Destination::Address(address) = target.destination {
            let destination = self.names.destination(now, address);
            target.destination = destination.ok_or(RefuseReason::NameNotFound)?;
        }
        let held = self.slots.table.held_by(owner) + self.closing.count(owner);
        let opened = self.relays.open(now, target, held);
        if opened == Err(RefuseReason::Limit) {
            self.counters.limited("streams");
        }
        opened
    }

    /// Releases the slot of a connection that ends. Its stream counts as closing until the hub has
    /// removed it.
    pub(crate) fn vacate(&mut self, index: usize, key: Option<StreamKey>) {
        self.handshakes.release(index);
        if let (Some(owner), Some(key)) = (self.slots.table.release(index), key)
            && self.relays.has_opened(key)
        {
            self.closing.add(key, owner);
        }
    }

    /// Removes closing streams that have ended.
    pub(crate) fn review_closing(&mut self) {
        let relays = &mut self.relays;
        self.closing.review(|key| relays.has_opened(key));
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
            self.set_close_cause(index, IDLE);
            self.abort(index, ResetReason::TimedOut);
        }
    }
}
