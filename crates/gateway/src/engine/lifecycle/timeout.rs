//! Timeouts of an engine.

use crate::engine::LinkSocket;
use crate::engine::pair::{Pair, Role};
use units::{Instant, Span};

/// Delay of the next round when a due timer has had no effect repeatedly.
const STALL: Span = Span::from_millis(1);
/// Number of rounds without effect before that delay.
const MOST_STILL: u32 = 8;

impl<R: Role> Pair<R> {
    /// Returns a number that changes when octets, datagrams or packets are moved.
    pub(crate) fn moved_so_far(&self) -> u64 {
        let counters = &self.core.counters;
        let each = self.link_sockets.iter().map(|link_socket| link_socket.counters());
        let datagrams: u64 = each.map(|udp| udp.sent + udp.received).sum();
        let packets = counters.forwarded.moved();
        datagrams + counters.bytes_from_sockets + counters.bytes_to_sockets + packets
    }

    pub(crate) fn next_due(&self, now: Instant) -> Instant {
        let mut due = self
            .sweep_at()
            .min(self.draining.unwrap_or(Instant::FAR_FUTURE))
            .min(self.addresses.due());
        if let Some(deadline) = self.core.deadlines.next() {
            due = due.min(deadline);
        }
        if let Some(again) = self.link_sockets.iter().filter_map(LinkSocket::poll_timeout).min() {
            due = due.min(again);
        }
        if let Some(again) = self.role.poll_timeout(&self.core, now) {
            due = due.min(again);
        }
        if let Some(again) = self.tunnel.as_ref().and_then(|tunnel| tunnel.retry)
            && again > now
        {
            due = due.min(again);
        }
        if let Some(at) = self.tunnel.as_ref().and_then(|tunnel| tunnel.pep_timeout()) {
            due = due.min(at);
        }
        if let Some(relays) = self.core.relays.poll_timeout() {
            // Due datagrams cannot be sent while the socket is full, and a due timer may have no
            // effect: the loop must not spin.
            let stuck = self.link_sockets.iter().any(|link_socket| link_socket.pending.is_some())
                || self.idle_rounds > MOST_STILL;
            let earliest = if stuck { now + STALL } else { Instant::ZERO };
            // Room in a TLS connection is not reported.
            let is_full = self.link_sockets.iter().any(LinkSocket::is_full);
            let earliest = if is_full { now + crate::tls::RETRY } else { earliest };
            due = due.min(relays.max(earliest));
        }
        due
    }
}
