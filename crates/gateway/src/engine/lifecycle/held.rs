//! What an engine holds for connections, to see that all of it is given back.

use crate::engine::Engine;

/// Counts of what is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Connections, in whatever state.
    pub(crate) connections: usize,
    /// Slots of connections, and of clients that talk with a proxy.
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

impl Engine {
    /// Counts what is held.
    pub(crate) fn held(&mut self) -> Held {
        let resolver = self.core.resolver.status();
        Held {
            connections: self.core.connections.len(),
            slots: self.core.slots.table.len() + self.core.asking.len(),
            deadlines: self.core.deadlines.len(),
            streams: self.core.carrier.open_streams(),
            buffered: self.core.carrier.buffered(),
            lookups: resolver.in_flight + resolver.queued,
        }
    }
}
