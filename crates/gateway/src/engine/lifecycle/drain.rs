//! Graceful shutdown: no new connections are accepted, and running ones have time to finish.

use crate::engine::defect::{self, Defect};
use crate::engine::pair::{Pair, Role};
use crate::engine::peers::link_socket::LinkSocket;
use crate::report::PeerReport;
use crate::state::State;
use std::os::fd::OwnedFd;
use units::{Instant, Span};

/// Maximum time for sending the reset of the sessions to the peers.
const CLOSE_TIME: Span = Span::from_millis(100);

impl<R: Role> Pair<R> {
    /// Stops accepting new connections. The engine ends when all running ones have ended at both
    /// gateways, or after `limit`. Clients in the accept queues of the proxies are accepted before
    /// these close.
    pub(crate) fn drain(&mut self, now: Instant, limit: Span) {
        self.core.now = now;
        self.draining = Some(now + limit);
        self.role.drain(&mut self.core, now);
    }

    /// Leaves new connections, and receiving by the UDP sockets with these numbers, to the process
    /// that replaces this one. The engine ends as in [`Pair::drain`]; a hub accepts the streams that
    /// its terminals open until they have its GOAWAY.
    pub(crate) fn hand_over(&mut self, now: Instant, limit: Span, channels: Vec<(usize, OwnedFd)>) {
        self.core.now = now;
        (self.draining, self.is_replaced) = (Some(now + limit), true);
        self.role.hand_over(&mut self.core);
        for (number, channel) in channels {
            if let Some(link_socket) = self.link_sockets.get_mut(number) {
                link_socket.hand_over(&mut *self.core.host, number, channel);
            }
        }
        // The other process measures the paths.
        self.state = State::open(None, 0);
    }

    /// Whether the process that replaces this one can be connected while this one has streams.
    pub(crate) fn can_overlap(&self) -> bool {
        self.core.relays.can_overlap()
    }

    /// Whether it drains.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_some()
    }

    /// Returns the number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.core.connections.len()
    }

    /// Whether a drain is over because all connections have ended or the time limit has passed.
    pub(crate) fn has_drained(&mut self, now: Instant) -> bool {
        let Some(limit) = self.draining else { return false };
        if now >= limit || defect::has(Defect::HastyDrain) {
            return true;
        }
        if self.is_replaced {
            self.core.relays.hand_over();
        }
        // A connection is removed when its last byte is in the stream; the stream is removed when
        // the peer gateway has that byte.
        if !self.core.connections.is_empty() || self.core.relays.open_streams() > 0 {
            return false;
        }
        // No stream is opened from here on, at either end. A peer that responds ends its session
        // when its clients or servers have received what it holds for them.
        if self.ending_since.is_none() {
            self.ending_since = Some(now);
            if !defect::has(Defect::NoGoaway) {
                self.core.relays.drain();
            }
        }
        self.core.relays.has_drained() && !self.link_sockets.iter().any(LinkSocket::has_predecessor)
    }

    /// Returns since when the sessions have been ending, if one of them with a peer that responds
    /// has not ended in order.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn unended_since(&self) -> Option<Instant> {
        self.ending_since.filter(|_| !self.core.relays.has_drained())
    }

    /// Returns the path metrics at the stop.
    pub(crate) fn take_peers(&mut self) -> Vec<PeerReport> {
        std::mem::take(&mut self.peers)
    }

    /// Resets all connections and ends all sessions. [`Pair::transmit_close`] informs the peers,
    /// which would otherwise need a timeout.
    pub(crate) fn end(&mut self, now: Instant) {
        self.core.now = now;
        self.store_path_metrics(now);
        self.peers = self.core.relays.peers(now);
        let open: Vec<usize> = self.core.connections.iter().map(|(index, _)| index).collect();
        for index in open {
            self.core.reset_socket(index);
        }
        self.close_stored(now);
        self.core.relays.close(now);
        self.closing_until = now + CLOSE_TIME;
    }

    /// Sends the rest of the sessions' end; returns when to continue, or `None` when it is over.
    pub(crate) fn transmit_close(&mut self, now: Instant) -> Option<Instant> {
        if now >= self.closing_until {
            return None;
        }
        if self.core.relays.poll_timeout().is_some_and(|due| due <= now) {
            self.core.relays.handle_timeout(now);
        }
        if self.transmit(now)
            || self.link_sockets.iter().any(|link_socket| link_socket.pending.is_some())
        {
            return Some(now);
        }
        while self.core.relays.poll_event().is_some() {}
        self.core.relays.poll_timeout().filter(|due| *due < self.closing_until)
    }

    /// Writes the path metrics to their file.
    pub(crate) fn save(&mut self) {
        self.state.close();
    }
}
