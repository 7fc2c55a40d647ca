//! Ending without breaking what runs: no new connections, and time for the others to finish.

use crate::engine::defect::{self, Defect};
use crate::engine::{Engine, Kind, Listener, Role};
use crate::report::PeerReport;
use units::{Instant, Span};

/// How long the farewell to the other gateway may take.
const FAREWELL: Span = Span::from_millis(100);

impl Engine {
    /// Takes no new connections any more, and ends when all that run are over at both ends, or
    /// after `limit`. The proxies' listeners close once those who wait in their queues are in.
    pub(crate) fn drain(&mut self, now: Instant, limit: Span) {
        self.core.now = now;
        self.draining = Some(now + limit);
        match &mut self.role {
            // What comes to the transparent ones now was intercepted before its end.
            Role::Terminal(terminal) => {
                terminal.confirm_no_more(&mut self.core);
                let is_proxy = |listener: &Listener| listener.kind != Kind::Transparent;
                terminal.close(&mut self.core, now, is_proxy);
            }
            Role::Hub(_) => self.core.draining = true,
        }
    }

    /// Whether it takes no new connections any more.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_some()
    }

    /// Connections that run.
    pub(crate) fn connections(&self) -> usize {
        self.core.connections.len()
    }

    /// Whether it was to end when all connections have, and they have, or the time is over.
    pub(crate) fn has_drained(&mut self, now: Instant) -> bool {
        let Some(limit) = self.draining else { return false };
        if defect::has(Defect::HastyDrain) {
            return true;
        }
        // A connection is gone here as soon as its last byte is the other gateway's to deliver;
        // its stream, when that gateway has it.
        now >= limit || (self.core.connections.is_empty() && self.core.carrier.open_streams() == 0)
    }

    /// What was known of the ways to peers when it stopped.
    pub(crate) fn take_peers(&mut self) -> Vec<PeerReport> {
        std::mem::take(&mut self.peers)
    }

    /// Ends everything; [`Engine::farewell`] tells the other gateway, which would otherwise have to
    /// find out.
    pub(crate) fn end(&mut self, now: Instant) {
        self.core.now = now;
        self.remember(now);
        self.peers = self.core.carrier.peers(now);
        let open: Vec<usize> = self.core.connections.iter().map(|(index, _)| index).collect();
        for index in open {
            self.core.reset_socket(index);
        }
        self.core.carrier.close(now);
        self.farewell_until = now + FAREWELL;
    }

    /// Sends what is left of the farewell; when to go on with it, unless it is over.
    pub(crate) fn farewell(&mut self, now: Instant) -> Option<Instant> {
        if now >= self.farewell_until {
            return None;
        }
        if self.core.carrier.poll_timeout().is_some_and(|due| due <= now) {
            self.core.carrier.handle_timeout(now);
        }
        if self.transmit(now) || self.outlets.iter().any(|outlet| outlet.pending.is_some()) {
            return Some(now);
        }
        while self.core.carrier.poll_event().is_some() {}
        self.core.carrier.poll_timeout().filter(|due| *due < self.farewell_until)
    }

    /// Writes down what is to be remembered.
    pub(crate) fn save(&mut self) {
        self.state.close();
    }
}
