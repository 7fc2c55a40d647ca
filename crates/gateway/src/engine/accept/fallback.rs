//! Disposition of new connections that the gateway cannot relay.
//!
//! ```text
//!                     no path answers                 one has answered for health.hold
//!   relayed ─────────────────────────────▶ wait, refuse, ─────────────────▶ relayed
//!           ◀──below nine tenths── full ──▶ or open: they bypass the gateway,
//!                                           and proxies connect directly
//! ```

use crate::{FailSection, WhenFail};
use relay::health::HealthState;
use units::{Instant, Span};

/// Time from the start of a terminal until a hub without a response counts as unreachable: a few
/// Hellos over a geostationary satellite.
const FIRST_ANSWER: Span = Span::from_secs(5);
/// Time from the start of an outage until the hub counts as unreachable. On a path with a short round
/// trip a queue of other traffic delays responses for longer than the outage timeout.
const OUTAGE: Span = Span::from_millis(500);
/// Interval between attempts to change the packet filter after a failure.
pub(crate) const RETRY: Span = Span::from_secs(1);

/// Disposition of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// It is relayed, at once or when a hub responds.
    Relay,
    /// It is refused.
    Refuse,
    /// It is connected without a hub.
    Direct,
}

/// State of the conditions under which new connections are not relayed.
#[derive(Debug, Default)]
pub(crate) struct FallbackPolicy {
    section: FailSection,
    /// Time until which the missing response of the hub is ignored; `None` while one responds.
    patience: Option<Instant>,
    has_answered: bool,
    unreachable: bool,
    full: bool,
    /// Whether the packet filter bypasses the gateway now.
    bypassing: bool,
    /// Time of the next attempt to change the packet filter after a failure.
    retry: Option<Instant>,
}

impl FallbackPolicy {
    pub(crate) fn new(section: FailSection) -> Self {
        Self { section, ..Self::default() }
    }

    /// Applies another configuration.
    pub(crate) fn set(&mut self, section: FailSection) {
        self.section = section;
    }

    /// Updates the state. `answers` is the health of the best path apart from delay and loss;
    /// `open` of `limit` connections are in use.
    pub(crate) fn review(&mut self, now: Instant, answers: HealthState, open: usize, limit: usize) {
        if answers != HealthState::Down {
            (self.patience, self.has_answered) = (None, true);
        }
        let patience = if self.has_answered { OUTAGE } else { FIRST_ANSWER };
        let unreachable = match answers {
            // A degraded path still has a hub, and traffic that is to be sealed must not bypass it.
            HealthState::Up | HealthState::Degraded => false,
            // A flapping path does not end the bypass each time.
            HealthState::Recovering => {
                self.unreachable && self.section.unreachable == WhenFail::Open
            }
            HealthState::Down => {
                self.unreachable || now >= *self.patience.get_or_insert(now + patience)
            }
        };
        if unreachable != self.unreachable && self.section.unreachable != WhenFail::Wait {
            let unreachable_is = self.section.unreachable.word();
            if unreachable {
                tracing::warn!(fail.unreachable = unreachable_is, "hub unreachable");
            } else {
                tracing::info!("hub reachable: new connections are relayed again");
            }
        }
        self.unreachable = unreachable;
        // Quotas leave some slots free, more of them the fewer clients there are.
        self.full = open >= limit - limit / 16 || self.full && open > limit - limit / 10;
    }

    /// Returns the time of the next review.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let patience = self.patience.filter(|_| self.section.depends_on_paths());
        patience.into_iter().chain(self.retry).filter(|at| *at > now).min()
    }

    /// Returns the disposition of a new connection that has reached the gateway.
    pub(crate) fn disposition(&self) -> Disposition {
        match self.section.unreachable {
            WhenFail::Refuse if self.unreachable => Disposition::Refuse,
            WhenFail::Open if self.unreachable => Disposition::Direct,
            WhenFail::Wait | WhenFail::Refuse | WhenFail::Open => Disposition::Relay,
        }
    }

    /// Whether clients beyond the limit stay in the accept queue.
    pub(crate) fn waits_when_full(&self) -> bool {
        self.section.full == WhenFail::Wait
    }

    /// Returns whether the packet filter is to bypass the gateway, if that differs from what it
    /// does and a change may be attempted.
    pub(crate) fn wanted_bypass(&self, now: Instant) -> Option<bool> {
        if self.retry.is_some_and(|at| now < at) {
            return None;
        }
        let open = |when: WhenFail, is_so: bool| is_so && when == WhenFail::Open;
        let wanted =
            open(self.section.unreachable, self.unreachable) || open(self.section.full, self.full);
        (wanted != self.bypassing).then_some(wanted)
    }

    /// Notes what the packet filter does from now on.
    pub(crate) fn set_bypass(&mut self, bypassing: bool) {
        (self.bypassing, self.retry) = (bypassing, None);
    }

    /// Notes that a change of the packet filter has failed.
    pub(crate) fn refused(&mut self, now: Instant) {
        self.retry = Some(now + RETRY);
    }

    /// Whether the packet filter bypasses the gateway.
    pub(crate) fn is_bypassing(&self) -> bool {
        self.bypassing
    }
}

#[cfg(test)]
mod tests;
