//! When the engine is to be called again.

use crate::engine::{Engine, Role};
use units::{Instant, Span};

/// How long to wait when nothing moves although something is due.
const STALL: Span = Span::from_millis(1);
/// Rounds in which nothing moves before that wait; the timers of a round or two are honest.
const MOST_STILL: u32 = 8;

impl Engine {
    /// A number that changes when anything moves.
    pub(crate) fn moved_so_far(&self) -> u64 {
        let counters = &self.core.counters;
        let each = self.outlets.iter().map(|outlet| outlet.counters());
        let datagrams: u64 = each.map(|udp| udp.sent + udp.received).sum();
        let packets = counters.forwarded.moved();
        datagrams + counters.bytes_from_sockets + counters.bytes_to_sockets + packets
    }

    /// Whether the loop is to pause for a change of the packet filter.
    pub(crate) fn wants_change(&self, now: Instant) -> bool {
        self.wants_passing(now).is_some() || self.wants_filter(now)
    }

    pub(crate) fn next_due(&self, now: Instant) -> Instant {
        let mut due =
            self.sweep_at.min(self.draining.unwrap_or(self.sweep_at)).min(self.addresses.due());
        if let Some(deadline) = self.core.deadlines.next() {
            due = due.min(deadline);
        }
        if let Role::Terminal(terminal) = &self.role
            && let Some(again) = terminal.poll_timeout(now)
        {
            due = due.min(again);
        }
        if let Some(again) = self.tunnel.as_ref().and_then(|tunnel| tunnel.retry)
            && again > now
        {
            due = due.min(again);
        }
        if let Role::Hub(hub) = &self.role {
            due = due.min(hub.families.next());
            if let Some(mac) = &hub.mac {
                due = due.min(mac.poll_timeout(&self.core.slots.table));
            }
        }
        if let Some(carrier) = self.core.carrier.poll_timeout() {
            // What is due cannot be sent while the socket is full, or nothing comes of it again
            // and again: do not spin.
            let stuck = self.outlets.iter().any(|outlet| outlet.pending.is_some())
                || self.still > MOST_STILL;
            let earliest = if stuck { now + STALL } else { Instant::ZERO };
            due = due.min(carrier.max(earliest));
        }
        due
    }
}
