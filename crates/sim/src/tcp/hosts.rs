//! The connections of a host, and their timers.

use crate::TimerTree;
use crate::network::{NodeId, Outbox};
use simtcp::Endpoint;
use units::Instant;

/// Connections of one host.
#[derive(Debug)]
pub(super) struct Connections {
    all: Vec<(NodeId, Endpoint)>,
    timers: TimerTree,
    /// Connections with an event, each once.
    awake: Vec<usize>,
    is_awake: Vec<bool>,
}

impl Connections {
    pub(super) fn new() -> Self {
        Self { all: Vec::new(), timers: TimerTree::new(), awake: Vec::new(), is_awake: Vec::new() }
    }

    /// Adds a connection with `peer`; returns its number.
    pub(super) fn add(&mut self, peer: NodeId, endpoint: Endpoint) -> usize {
        let number = self.all.len();
        self.all.push((peer, endpoint));
        self.is_awake.push(false);
        self.timers.grow(number + 1);
        self.wake(number);
        number
    }

    pub(super) fn get(&self, number: usize) -> &Endpoint {
        &self.all[number].1
    }

    /// A connection, for changes; it may send afterwards.
    pub(super) fn get_mut(&mut self, number: usize) -> &mut Endpoint {
        self.wake(number);
        &mut self.all[number].1
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Endpoint> {
        self.all.iter().map(|(_, endpoint)| endpoint)
    }

    fn wake(&mut self, number: usize) {
        if !core::mem::replace(&mut self.is_awake[number], true) {
            self.awake.push(number);
        }
    }

    /// Sends all segments that may be sent; calls `before` for each connection with an event.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        out: &mut Outbox<'_>,
        mut before: impl FnMut(usize, &mut Endpoint),
    ) {
        while let Some(number) = self.awake.pop() {
            self.is_awake[number] = false;
            let (peer, endpoint) = &mut self.all[number];
            before(number, endpoint);
            while let Some(segment) = endpoint.poll_transmit(now) {
                out.send_segment(*peer, segment);
            }
            while endpoint.poll_event().is_some() {}
            self.timers.set(number, endpoint.poll_timeout());
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next_at()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(number) = self.timers.first_due(now) {
            self.timers.set(number, None);
            self.get_mut(number).handle_timeout(now);
        }
    }
}
