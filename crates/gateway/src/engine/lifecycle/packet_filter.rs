//! Requests of a terminal to the packet filter: bypassing the gateway, refusing, and deferring.

use crate::engine::accept::reachability::Filter;
use crate::engine::pair::Pair;
use crate::engine::terminal::Terminal;
use units::Instant;

impl Pair<Terminal> {
    /// Returns whether new connections are to bypass the gateway, if that differs from what the
    /// packet filter does. A terminal that drains changes nothing.
    pub(crate) fn wanted_bypass(&self, now: Instant) -> Option<bool> {
        self.role.admission.fallback.wanted_bypass(now).filter(|_| self.draining.is_none())
    }

    /// Notes what the packet filter does from now on. Without interception (`intercepted`) a bypass
    /// is not counted.
    pub(crate) fn set_bypass(&mut self, passing: bool, intercepted: bool) {
        self.role.admission.fallback.set_bypass(passing);
        if passing {
            // Otherwise a SYN could be reinjected whose retransmission has bypassed the gateway.
            self.role.drop_pending(&mut self.core);
        }
        let counted = u64::from(passing && intercepted);
        self.core.counters.bypass_activations += counted;
        self.core.counters.bypass_active = counted;
    }

    /// Whether the packet filter bypasses the gateway.
    pub(crate) fn is_bypassing(&self) -> bool {
        self.role.admission.fallback.is_bypassing()
    }

    /// Notes that a change of the packet filter has failed; it is attempted again later.
    pub(crate) fn on_bypass_refused(&mut self, now: Instant) {
        self.role.admission.fallback.refused(now);
    }

    /// Whether the packet filter is to be changed by now, with [`Pair::filter`].
    pub(crate) fn wants_filter(&self, now: Instant) -> bool {
        self.draining.is_none() && self.role.admission.reachability.wants_filter(now)
    }

    /// Returns what the packet filter should do.
    pub(crate) fn filter(&self) -> Filter {
        self.role.admission.reachability.filter()
    }

    /// Returns what the packet filter did after the last change.
    pub(crate) fn applied_filter(&self) -> Filter {
        self.role.admission.reachability.applied()
    }

    /// Notes what the packet filter does from now on; `None`: the change has failed.
    pub(crate) fn set_applied_filter(&mut self, now: Instant, applied: Option<Filter>) {
        self.role.admission.reachability.set_applied(now, applied);
    }
}
