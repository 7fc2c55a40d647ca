//! State of destinations before a stream is opened: the address families that the hub reaches
//! (RLY-9), and servers that have refused or not responded recently.
//!
//! ```text
//!   FAMILIES of the hub ──▶ none: refuse · IPv6 partial: defer ─┐
//!   refused ──▶ failures, for 10 s or 30 s ──▶ defer            ├─▶ proxies: `decide`
//!   accepted ──▶ not a failure any more                         └─▶ the packet filter: `filter`
//! ```
//!
//! To *defer* is to answer the client once its server has answered, as `accept = "confirm"` does.
//! A server that has failed is tried again for each client, so that a server that responds again is
//! reached immediately, and the failure of one client's connection costs another at most a round
//! trip ([decision](../../../../../docs/decisions/early-accept.md)).

mod failures;

use crate::AcceptMode;
use crate::intercept::is_global;
use crate::proxy::{Destination, RefuseReason};
use failures::{Failures, Server};
use relay::{Families, FamilyReach};
use std::net::{IpAddr, SocketAddr};
use units::{Instant, Span};

/// Time from the beginning of a session until the hub counts as one that reaches all families, if
/// it has announced nothing: several round trips by satellite, with losses.
const ANNOUNCEMENT: Span = Span::from_secs(5);
/// Minimum interval between changes of the packet filter.
const FILTER_INTERVAL: Span = Span::from_millis(100);
/// Time after which the packet filter is changed again after a refusal.
const FILTER_RETRY: Span = Span::from_secs(5);

/// Decision about a client's connection to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Early accept or deferred accept.
    Accept(AcceptMode),
    /// Refusal without opening a stream.
    Refuse(RefuseReason),
}

/// State of the packet filter for new connections, by destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// The address families that are reached.
    pub(crate) families: Families,
    /// Destinations that are deferred.
    pub(crate) deferred: Vec<SocketAddr>,
}

/// State of destinations.
#[derive(Debug, Default)]
pub(crate) struct Reachability {
    /// Families that the hub has announced. Those of the last session apply until the next one
    /// announces others.
    families: Families,
    /// Time at which a session without an announcement counts as reaching all families.
    assume_all_at: Option<Instant>,
    failures: Failures,
    /// Present state of the packet filter.
    applied: Filter,
    /// Whether the packet filter differs from what it should do.
    stale: bool,
    /// Earliest time of the next change.
    change_at: Instant,
}

impl Reachability {
    /// Stores what the hub has `announced` in this session, if there is one.
    pub(crate) fn review(&mut self, now: Instant, connected: bool, announced: Option<Families>) {
        match (connected, announced) {
            (_, Some(families)) => {
                self.assume_all_at = None;
                self.set_families(families);
            }
            (true, None) => {
                if now >= *self.assume_all_at.get_or_insert(now + ANNOUNCEMENT) {
                    self.set_families(Families::default());
                }
            }
            (false, None) => self.assume_all_at = None,
        }
        self.stale |= self.failures.expire(now);
    }

    fn set_families(&mut self, families: Families) {
        if self.families == families {
            return;
        }
        self.families = families;
        self.stale = true;
        for (family, reach) in [("IPv4", families.ipv4), ("IPv6", families.ipv6)] {
            match reach {
                FamilyReach::Global => tracing::info!(family, "the hub reaches the Internet"),
                FamilyReach::Partial => {
                    tracing::warn!(family, "the hub may not reach the whole Internet");
                }
                FamilyReach::None => tracing::warn!(
                    family,
                    "the hub does not reach the Internet: global destinations are refused"
                ),
            }
        }
    }

    /// Requests a complete update of the packet filter, whose rules may have changed.
    pub(crate) fn refresh_filter(&mut self) {
        self.stale = true;
    }

    /// Whether no connection to `address` can come about, whatever its server does.
    pub(crate) fn is_unreachable(&self, address: IpAddr) -> bool {
        self.reach(address) == FamilyReach::None
    }

    /// What the hub reaches of the family of `address`, as far as that concerns it.
    fn reach(&self, address: IpAddr) -> FamilyReach {
        match address.to_canonical() {
            _ if !is_global(address) => FamilyReach::Global,
            IpAddr::V4(_) => self.families.ipv4,
            IpAddr::V6(_) => self.families.ipv6,
        }
    }

    /// Whether a connection to `destination` is deferred, whatever is configured.
    pub(crate) fn is_deferred(&self, now: Instant, destination: &Destination) -> bool {
        let partial = matches!(destination, Destination::Address(address)
            if address.ip().to_canonical().is_ipv6()
                && self.reach(address.ip()) == FamilyReach::Partial);
        partial || self.failures.contains(now, &Server::from(destination))
    }

    /// The hub has refused to connect a client to `server`.
    pub(crate) fn failed(
        &mut self,
        now: Instant,
        client: Option<IpAddr>,
        server: Option<&Destination>,
        reason: RefuseReason,
    ) {
        let (Some(client), Some(server)) = (client, server) else { return };
        self.stale |= self.failures.add(now, client, Server::from(server), reason);
    }

    /// The hub has connected a client to `server`.
    pub(crate) fn succeeded(&mut self, server: Option<&Destination>) {
        if !self.failures.is_empty()
            && let Some(server) = server
        {
            self.stale |= self.failures.remove(&Server::from(server));
        }
    }

    /// Whether the packet filter is to be changed by now.
    pub(crate) fn wants_filter(&self, now: Instant) -> bool {
        self.stale && now >= self.change_at
    }

    /// Returns what the packet filter should do.
    pub(crate) fn filter(&self) -> Filter {
        Filter { families: self.families, deferred: self.failures.addresses() }
    }

    /// Returns what the packet filter did after the last change.
    pub(crate) fn applied(&self) -> Filter {
        self.applied.clone()
    }

    /// Notes what the packet filter does from now on; `None`: it has refused to change.
    pub(crate) fn set_applied(&mut self, now: Instant, applied: Option<Filter>) {
        match applied {
            Some(filter) => {
                (self.applied, self.stale) = (filter, false);
                self.change_at = now + FILTER_INTERVAL;
            }
            None => self.change_at = now + FILTER_RETRY,
        }
    }

    /// Returns the time of the next review.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let assume = self.assume_all_at.filter(|_| self.families != Families::default());
        let change = Some(self.change_at).filter(|_| self.stale);
        assume
            .into_iter()
            .chain(change)
            .chain(self.failures.next_expiry())
            .filter(|at| *at > now)
            .min()
    }
}

#[cfg(test)]
mod tests;
