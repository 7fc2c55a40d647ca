//! What a terminal knows of destinations before it opens a stream: the address families that its
//! hub reaches (RLY-9), and servers that have refused or not answered lately.
//!
//! ```text
//!   FAMILIES of the hub ──▶ none: refuse · IPv6 partial: defer ─┐
//!   refused ──▶ failures, for 10 s or 30 s ──▶ defer            ├─▶ proxies: `decide`
//!   accepted ──▶ not a failure any more                         └─▶ the packet filter: `filter`
//! ```
//!
//! To *defer* is to answer the client once its server has answered, as `accept = "confirm"` does.
//! A server that has failed is asked again and never refused unasked, so that one that has just
//! come back is reached at once, and what one client has caused costs another a round trip at
//! most ([decision](../../../../../docs/decisions/early-accept.md)).

mod failures;

use crate::engine::accept::client_admission::Door;
use crate::engine::accept::fallback::Fate;
use crate::engine::{Engine, Role};
use crate::intercept::is_global;
use crate::proxy::{Destination, RefuseReason};
use crate::{AcceptMode, ClientProtocol};
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

/// How a client's connection to a destination is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// At once, or when the server has answered.
    Accept(AcceptMode),
    /// By a refusal, without asking the hub.
    Refuse(RefuseReason),
}

/// What the packet filter is to do with new connections because of their destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// The address families that are reached.
    pub(crate) families: Families,
    /// Destinations that are deferred.
    pub(crate) deferred: Vec<SocketAddr>,
}

/// What is known of destinations.
#[derive(Debug, Default)]
pub(crate) struct Reachability {
    /// The families that the hub reaches, as far as it has announced them. What the last session
    /// has brought holds until the next one brings something else.
    families: Families,
    /// When a session without an announcement means that all are reached.
    assume_all_at: Option<Instant>,
    failures: Failures,
    /// What the packet filter does.
    applied: Filter,
    /// The packet filter does not do what it should.
    stale: bool,
    /// When it may be changed.
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

    /// Has the packet filter told everything again: its rules may be others.
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
    fn is_deferred(&self, now: Instant, destination: &Destination) -> bool {
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
        server: Option<&relay::Destination>,
        reason: RefuseReason,
    ) {
        let (Some(client), Some(server)) = (client, server) else { return };
        self.stale |= self.failures.add(now, client, Server::from(server), reason);
    }

    /// The hub has connected a client to `server`.
    pub(crate) fn succeeded(&mut self, server: Option<&relay::Destination>) {
        if !self.failures.is_empty()
            && let Some(server) = server
        {
            self.stale |= self.failures.remove(&Server::from(server));
        }
    }

    /// When to look again although nothing has happened.
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

impl Door {
    /// Whether an intercepted client that has been accepted is reset at once, because no hub
    /// answers or the hub does not reach `server`. The packet filter has not refused it in time.
    pub(crate) fn must_reset(&self, server: SocketAddr) -> bool {
        match self.fail.fate() {
            Fate::Refused => true,
            Fate::Carried => self.reachability.is_unreachable(server.ip()),
            Fate::Direct => false,
        }
    }

    /// How a client is answered that asks for `destination` by `protocol`.
    pub(crate) fn decide(
        &self,
        now: Instant,
        protocol: ClientProtocol,
        destination: &Destination,
    ) -> Answer {
        if let Destination::Address(address) = destination
            && self.reachability.is_unreachable(address.ip())
        {
            return Answer::Refuse(RefuseReason::NetworkUnreachable);
        }
        match self.accept.mode_for(protocol, destination) {
            AcceptMode::Early if self.reachability.is_deferred(now, destination) => {
                Answer::Accept(AcceptMode::Confirm)
            }
            mode => Answer::Accept(mode),
        }
    }
}

impl Engine {
    fn reachability(&self) -> Option<&Reachability> {
        match &self.role {
            Role::Terminal(terminal) if self.draining.is_none() => {
                Some(&terminal.door.reachability)
            }
            Role::Terminal(_) | Role::Hub(_) => None,
        }
    }

    /// Whether the packet filter is to be changed by now, with [`Engine::filter`].
    pub(crate) fn wants_filter(&self, now: Instant) -> bool {
        self.reachability().is_some_and(|known| known.stale && now >= known.change_at)
    }

    /// What the packet filter should do.
    pub(crate) fn filter(&self) -> Filter {
        self.reachability().map_or_else(Filter::default, |known| Filter {
            families: known.families,
            deferred: known.failures.addresses(),
        })
    }

    /// What the packet filter did after the last change.
    pub(crate) fn applied_filter(&self) -> Filter {
        self.reachability().map_or_else(Filter::default, |known| known.applied.clone())
    }

    /// The packet filter does this from now on; or, when `None`, it has refused to change.
    pub(crate) fn set_applied_filter(&mut self, now: Instant, applied: Option<Filter>) {
        let Role::Terminal(terminal) = &mut self.role else { return };
        let known = &mut terminal.door.reachability;
        match applied {
            Some(filter) => {
                (known.applied, known.stale) = (filter, false);
                known.change_at = now + FILTER_INTERVAL;
            }
            None => known.change_at = now + FILTER_RETRY,
        }
    }
}

#[cfg(test)]
mod tests;
