//! Taking slots for connections, giving them back, and reclaiming those of idle connections.

use super::{Full, Owner};
use crate::engine::limits::rates::Holder;
use crate::engine::peers::relay_set::StreamKey;
use crate::engine::transfer::connection::Phase;
use crate::engine::transfer::connections::Core;
use crate::proxy::RefuseReason;
use relay::{ResetReason, Target};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use units::Instant;

/// Why connections end whose slots others have, for the log.
pub(crate) const RECLAIMED: &str = "its slot was reclaimed for a client with fewer connections";
/// And those that move no bytes.
pub(crate) const IDLE: &str = "it moved no byte for limits.idle";
/// Closing streams that are looked at in one round.
const LOOKS: usize = 64;

/// Streams that a terminal has opened, whose connections are over, and that the hub has not
/// answered for yet: they count against what the hub allows.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    streams: VecDeque<(StreamKey, Owner<Arc<str>>)>,
    counts: BTreeMap<Owner<Arc<str>>, usize>,
}

impl Closing {
    /// Streams of the owner's.
    fn count(&self, owner: &Owner<Arc<str>>) -> usize {
        self.counts.get(owner).copied().unwrap_or(0)
    }

    fn add(&mut self, key: StreamKey, owner: Owner<Arc<str>>) {
        *self.counts.entry(owner.clone()).or_default() += 1;
        self.streams.push_back((key, owner));
    }

    /// Forgets some that are over by now.
    fn review(&mut self, mut is_open: impl FnMut(StreamKey) -> bool) {
        for _ in 0..LOOKS.min(self.streams.len()) {
            let Some((key, owner)) = self.streams.pop_front() else { return };
            if is_open(key) {
                self.streams.push_back((key, owner));
            } else if let Some(count) = self.counts.get_mut(&owner) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&owner);
                }
            }
        }
    }
}

impl Core {
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
        let is_open = |phase: &Phase| matches!(phase, Phase::Spliced(_) | Phase::Direct(_));
        let is_idle = |index| {
            self.slots.table.get(index).is_some_and(|(_, since)| now.since(since) >= longest)
        };
        let idle: Vec<usize> = (self.connections.iter())
            .filter(|(index, connection)| is_open(&connection.phase) && is_idle(*index))
            .map(|(index, _)| index)
            .collect();
        for index in idle {
            self.counters.idle += 1;
            self.because(index, IDLE);
            self.give_up(index, ResetReason::TimedOut);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::peers::relay_set::Peer;
    use relay::{Priority, Relay, RelayConfig};
    use units::RngStream;

    #[test]
    fn closing_streams_count_until_both_sides_have_forgotten_them() {
        let (now, random) = (Instant::ZERO, RngStream::new(1, 0, "closing"));
        let mut relay = Relay::terminal(&RelayConfig::new("boat"), now, random);
        let mut key = |_| {
            let target = Target::name("server", 80);
            let stream = relay.open(now, target, Priority::Normal).unwrap();
            StreamKey { peer: Peer::Path(0), stream }
        };
        let keys: Vec<StreamKey> = (0..101).map(&mut key).collect();
        let owner = |host| Owner { group: "".into(), client: [10, 1, 0, host].into() };
        let mut closing = Closing::default();
        keys[..100].iter().for_each(|key| closing.add(*key, owner(1)));
        closing.add(keys[100], owner(2));
        assert_eq!((closing.count(&owner(1)), closing.count(&owner(2))), (100, 1));
        // A few in each round.
        closing.review(|_| false);
        assert_eq!(closing.count(&owner(1)), 100 - LOOKS);
        (0..2).for_each(|_| closing.review(|key| key == keys[99]));
        assert_eq!((closing.count(&owner(1)), closing.count(&owner(2))), (1, 0));
        closing.review(|_| false);
        assert!(closing.streams.is_empty() && closing.counts.is_empty());
    }
}
