//! The address families that a hub reaches, looked up in its routes again and again (RLY-9).

use crate::engine::host::Host;
use relay::Families;
use units::{Instant, Span};

/// Interval between looks.
const INTERVAL: Span = Span::from_secs(2);
/// The look-ups of a hub.
#[derive(Debug, Default)]
pub(crate) struct FamilyWatch {
    next: Instant,
    found: Families,
}

impl FamilyWatch {
    /// The families that are reached, when it is time to look and they have changed.
    pub(crate) fn look(&mut self, now: Instant, host: &dyn Host) -> Option<Families> {
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
        tracing::info!(?ipv4, ?ipv6, "address families that are reached");
        Some(found)
    }

    pub(crate) fn next(&self) -> Instant {
        self.next
    }
}
