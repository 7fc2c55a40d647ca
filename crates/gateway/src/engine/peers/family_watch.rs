//! Periodic lookup of the address families that a hub reaches by its routes (RLY-9).

use crate::engine::host::Host;
use relay::Families;
use units::{Instant, Span};

/// Interval between lookups.
const INTERVAL: Span = Span::from_secs(2);
/// State of the lookups.
#[derive(Debug, Default)]
pub(crate) struct FamilyWatch {
    next: Instant,
    found: Families,
}

impl FamilyWatch {
    /// Returns the families that are reached, if a lookup is due and they have changed.
    pub(crate) fn poll_change(&mut self, now: Instant, host: &dyn Host) -> Option<Families> {
        if now < self.next {
            return None;
        }
        self.next = now + INTERVAL;
        let found = host.families();
        if found == self.found {
            return None;
        }
        self.found = found;
        let Families { ipv4, ipv6 } = found;
        tracing::info!(?ipv4, ?ipv6, "reachable address families");
        Some(found)
    }

    pub(crate) fn next(&self) -> Instant {
        self.next
    }
}
