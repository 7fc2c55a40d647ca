//! What a terminal asks of the packet filter: to bypass the gateway, to refuse, and to defer.

use crate::engine::accept::reachability::Filter;
use crate::engine::pair::Pair;
use crate::engine::terminal::Terminal;
use units::Instant;

impl Pair<Terminal> {
    /// Whether the kernel is to let new connections pass, or to intercept them again, if that is
    /// news. When it drains it does neither any more.
    pub(crate) fn wants_passing(&self, now: Instant) -> Option<bool> {
        self.role.door.fail.wants_passing(now).filter(|_| self.draining.is_none())
    }

    /// What the kernel does from now on. Where nothing is `intercepted` nothing passes either.
    pub(crate) fn set_passing(&mut self, passing: bool, intercepted: bool) {
        self.role.door.fail.set_passing(passing);
        if passing {
            // Else one would be let in whose client has gone past meanwhile.
            self.role.let_go(&mut self.core);
        }
        let counted = u64::from(passing && intercepted);
        self.core.counters.passed += counted;
        self.core.counters.passing = counted;
    }

    /// Whether the kernel lets new connections pass now.
    pub(crate) fn is_passing(&self) -> bool {
        self.role.door.fail.is_passing()
    }

    /// The kernel has refused, and does what it did: it is asked again in a while.
    pub(crate) fn not_passing_as_wanted(&mut self, now: Instant) {
        self.role.door.fail.refused(now);
    }

    /// Whether the packet filter is to be changed by now, with [`Pair::filter`].
    pub(crate) fn wants_filter(&self, now: Instant) -> bool {
        self.draining.is_none() && self.role.door.reachability.wants_filter(now)
    }

    /// What the packet filter should do.
    pub(crate) fn filter(&self) -> Filter {
        self.role.door.reachability.filter()
    }

    /// What the packet filter did after the last change.
    pub(crate) fn applied_filter(&self) -> Filter {
        self.role.door.reachability.applied()
    }

    /// The packet filter does this from now on; or, when `None`, it has refused to change.
    pub(crate) fn set_applied_filter(&mut self, now: Instant, applied: Option<Filter>) {
        self.role.door.reachability.set_applied(now, applied);
    }
}
