//! Resources that an engine holds for connections, for tests that all are released.

use crate::engine::pair::{Pair, Role};

/// Numbers of resources in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Connections in all stages.
    pub(crate) connections: usize,
    /// Slots of connections and of proxy handshakes.
    pub(crate) slots: usize,
    /// Deadlines of connections.
    pub(crate) deadlines: usize,
    /// Streams of the relays.
    pub(crate) streams: usize,
    /// Octets in the relays' stream buffers.
    pub(crate) buffered: u64,
    /// Lookups that run or are queued.
    pub(crate) lookups: u64,
}

impl<R: Role> Pair<R> {
    /// Counts the resources in use.
    pub(crate) fn held(&mut self) -> Held {
        let resolver = self.core.resolver.status();
        Held {
            connections: self.core.connections.len(),
            slots: self.core.slots.table.len() + self.core.handshakes.len(),
            deadlines: self.core.deadlines.len(),
            streams: self.core.relays.open_streams(),
            buffered: self.core.relays.buffered(),
            lookups: resolver.in_flight + resolver.queued,
        }
    }
}
