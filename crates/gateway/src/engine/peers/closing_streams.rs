//! Streams whose connections have ended at a terminal but not at its hub.

use crate::engine::limits::slots::Owner;
use crate::engine::peers::peer::{Peer, StreamKey};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Maximum number of streams that are checked in one round.
const CHECKS: usize = 64;

/// Streams of ended connections that the hub has not removed yet, so that they count against its
/// limit.
#[derive(Debug, Default)]
pub(crate) struct ClosingStreams {
    streams: VecDeque<(StreamKey, Owner<Arc<str>>)>,
    counts: BTreeMap<Owner<Arc<str>>, usize>,
}

impl ClosingStreams {
    /// Returns the number of the owner's streams.
    pub(crate) fn count(&self, owner: &Owner<Arc<str>>) -> usize {
        self.counts.get(owner).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, key: StreamKey, owner: Owner<Arc<str>>) {
        *self.counts.entry(owner.clone()).or_default() += 1;
        self.streams.push_back((key, owner));
    }

    /// Gives the streams of the peer `from` the name `to`.
    pub(crate) fn rename_peer(&mut self, from: Peer, to: Peer) {
        let its = self.streams.iter_mut().filter(|(key, _)| key.peer == from);
        its.for_each(|(key, _)| key.peer = to);
    }

    /// Removes streams that have ended, checking a bounded number of them.
    pub(crate) fn review(&mut self, mut is_open: impl FnMut(StreamKey) -> bool) {
        for _ in 0..CHECKS.min(self.streams.len()) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use relay::{Priority, Relay, RelayConfig, Target};
    use units::{Instant, RngStream};

    #[test]
    fn closing_streams_count_until_both_sides_have_removed_them() {
        let (now, random) = (Instant::ZERO, RngStream::new(1, 0, "closing"));
        let mut relay = Relay::terminal(&RelayConfig::new("boat"), now, random);
        let mut key = |_| {
            let target = Target::name("server", 80);
            let stream = relay.open(now, target, Priority::Normal).unwrap();
            StreamKey { peer: Peer::Path(0), stream }
        };
        let keys: Vec<StreamKey> = (0..101).map(&mut key).collect();
        let owner = |host| Owner { group: "".into(), client: [10, 1, 0, host].into() };
        let mut closing = ClosingStreams::default();
        keys[..100].iter().for_each(|key| closing.add(*key, owner(1)));
        closing.add(keys[100], owner(2));
        assert_eq!((closing.count(&owner(1)), closing.count(&owner(2))), (100, 1));
        // A few in each round.
        closing.review(|_| false);
        assert_eq!(closing.count(&owner(1)), 100 - CHECKS);
        (0..2).for_each(|_| closing.review(|key| key == keys[99]));
        assert_eq!((closing.count(&owner(1)), closing.count(&owner(2))), (1, 0));
        closing.review(|_| false);
        assert!(closing.streams.is_empty() && closing.counts.is_empty());
    }
}
