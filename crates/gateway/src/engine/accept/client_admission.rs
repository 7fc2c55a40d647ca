//! Admission of clients at a terminal: when each is answered, and how many connections it may have.

use crate::engine::accept::direct::Direct;
use crate::engine::accept::fallback::Disposition;
use crate::engine::accept::fallback::FallbackPolicy;
use crate::engine::accept::reachability::{Answer, Reachability};
use crate::engine::accept::stage::TerminalCore;
use crate::engine::limits::rates::QuotaOwner;
use crate::engine::limits::slots::{Bounds, Full, Owner, SlotDecision};
use crate::proxy::{Destination, RefuseReason};
use crate::{AcceptMode, ClientProtocol};
use crate::{AcceptRules, Config, Limits, TerminalSection, Terms};
use std::net::SocketAddr;
use std::sync::Arc;
use units::Instant;

/// Maximum number of concurrent proxy handshakes of a client whose quota is used up. Each of them
/// receives an error reply.
const MAX_REFUSED_HANDSHAKES: usize = 16;

/// Admission rules of a terminal.
#[derive(Debug)]
pub(crate) struct ClientAdmission {
    pub(crate) accept: AcceptRules,
    terms: Terms,
    /// Group of all clients.
    group: Arc<str>,
    /// Disposition of clients whose connections cannot be relayed.
    pub(crate) fallback: FallbackPolicy,
    /// Connector for connections without a hub.
    pub(crate) direct: Direct,
    /// Known failures of destinations.
    pub(crate) reachability: Reachability,
}

impl ClientAdmission {
    pub(crate) fn new(
        accept: AcceptRules,
        limits: &Limits,
        fallback: FallbackPolicy,
        direct: Direct,
    ) -> Self {
        let (terms, reachability) = (limits.client.terms(), Reachability::default());
        Self { accept, terms, group: "".into(), fallback, direct, reachability }
    }

    /// Applies other rules and keeps the present state.
    pub(crate) fn change(&mut self, section: &TerminalSection, config: &Config) {
        self.accept = section.accept.clone();
        self.terms = config.limits.client.terms();
        self.fallback.set(config.fail);
        self.direct.guard(section);
        self.reachability.refresh_filter();
    }

    /// Returns the slot owner if the client may have one more connection. The slot of another
    /// client's idle connection may be reclaimed for it.
    pub(crate) fn admit(
        &mut self,
        core: &mut TerminalCore,
        now: Instant,
        client: SocketAddr,
    ) -> Option<Owner<Arc<str>>> {
        let owner = core.slots.owner(&self.group, client.ip());
        let quota_owner = QuotaOwner::Client(owner.client);
        let what = if !core.quotas.has_token(now, &quota_owner, &self.terms) {
            "client_rate"
        } else {
            match core.admit(now, &owner, (usize::MAX, self.terms.connections as usize)) {
                Ok(()) => {
                    core.quotas.take(now, &quota_owner, &self.terms);
                    return Some(owner);
                }
                Err(Full::Client) => "client_connections",
                Err(Full::Table | Full::Group) => "connections",
            }
        };
        core.counters.limited(what);
        core.slots.refused(now, &owner, what);
        None
    }

    /// Returns the slot owner if the client may begin a proxy handshake. When there are too many,
    /// the oldest handshake of the owner with the most is aborted.
    pub(crate) fn admit_to_proxy(
        &mut self,
        core: &mut TerminalCore,
        now: Instant,
        client: SocketAddr,
    ) -> Option<Owner<()>> {
        let owner = core.slots.owner(&self.group, client.ip());
        // Without descriptors the handshake needs the descriptor of a connection.
        if core.slots.is_short(now) && core.admit(now, &owner, (usize::MAX, usize::MAX)).is_err() {
            core.counters.limited("descriptors");
            core.slots.refused(now, &owner, "descriptors");
            return None;
        }
        // A client whose quota is used up has a bounded number of handshakes.
        let bounds = (usize::MAX, self.terms.connections as usize);
        let has_its_share = !core.slots.may_have(now, &owner, bounds);
        let owner = Owner { group: (), client: owner.client };
        if has_its_share && core.handshakes.held_by(&owner) >= MAX_REFUSED_HANDSHAKES {
            core.counters.limited("connections");
            return None;
        }
        let total = core.max_handshakes(now);
        let reclaimed = match core.handshakes.decide(&owner, Bounds { total, ..Bounds::NONE }) {
            SlotDecision::Free => None,
            SlotDecision::Reclaim(index) => Some(index),
            SlotDecision::Refused(_) => core.handshakes.idlest_of(&owner),
        };
        if let Some(index) = reclaimed {
            core.handshakes.release(index);
            core.counters.bad_requests += 1;
            core.reclaim(index);
        }
        Some(owner)
    }
}

impl ClientAdmission {
    /// Whether an intercepted client that has been accepted is reset at once, because no hub
    /// answers or the hub does not reach `server`. The packet filter has not refused it in time.
    pub(crate) fn must_reset(&self, server: SocketAddr) -> bool {
        match self.fallback.disposition() {
            Disposition::Refuse => true,
            Disposition::Relay => self.reachability.is_unreachable(server.ip()),
            Disposition::Direct => false,
        }
    }

    /// Returns how a client that requests `destination` by `protocol` is answered.
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
