//! Admission of terminals at a hub: number and rate of their connections, and their destinations.
//! Refusals are counted, and logged within a budget.

use crate::config::terminal_of;
use crate::engine::limits::log_budget::LogBudget;
use crate::engine::limits::rates::QuotaOwner;
use crate::engine::limits::slots::{Full, Owner};
use crate::engine::peers::peer::Peer;
use crate::engine::transfer::connection::Stage;
use crate::engine::transfer::connections::Core;
use crate::forward::packet::Ends;
use crate::intercept::Prefix;
use crate::reach::{DenyReason, Reach, may_speak_for};
use crate::{HubSection, Limits, Terms};
use rt::netlink::NetlinkError;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use units::Instant;

/// Admission rules of a hub.
#[derive(Debug)]
pub(crate) struct Admission {
    reach: Reach,
    usual: Terms,
    clients: Vec<Prefix>,
    known: BTreeMap<String, Known>,
    log_budget: LogBudget,
}

/// Rules for one terminal that differ from the default.
#[derive(Debug)]
struct Known {
    terms: Terms,
    reach: Reach,
    clients: Option<Vec<Prefix>>,
}

impl Admission {
    /// Rules as configured by `section` and `limits`.
    ///
    /// # Errors
    /// Returns the error of reading the hub's own addresses from the kernel.
    pub(crate) fn new(section: &HubSection, limits: &Limits) -> Result<Self, NetlinkError> {
        // All paths of a terminal have the same rules.
        let terminals =
            section.terminals.iter().filter(|entry| terminal_of(&entry.name) == entry.name);
        let known = terminals.map(|entry| {
            let terms = entry.share.or(limits.terminal).terms();
            let reach = Reach::listed(&entry.destinations);
            (entry.name.clone(), Known { terms, reach, clients: entry.clients.clone() })
        });
        Ok(Self {
            reach: Reach::hub(&section.destinations, section.guarded)?,
            usual: limits.terminal.terms(),
            clients: section.clients.clone(),
            known: known.collect(),
            log_budget: LogBudget::default(),
        })
    }

    /// Returns the owners of quota and slot if the terminal may have one more connection for this
    /// client. The slot of another client's idle connection may be reclaimed for it.
    pub(crate) fn admit<S: Stage>(
        &mut self,
        core: &mut Core<S>,
        now: Instant,
        peer: Peer,
        client: Option<SocketAddr>,
    ) -> Option<(QuotaOwner, Owner<Arc<str>>)> {
        let name: Arc<str> = terminal_of(core.relays.name(peer)).into();
        let terms = self.known.get(&*name).map_or(self.usual, |known| known.terms);
        let client = client.map_or(Ipv4Addr::UNSPECIFIED.into(), |client| client.ip());
        let owner = core.slots.owner(&name, client);
        let quota_owner = QuotaOwner::Terminal(name);
        let what = if !core.quotas.has_token(now, &quota_owner, &terms) {
            "terminal_rate"
        } else {
            match core.admit(now, &owner, (terms.connections as usize, usize::MAX)) {
                Ok(()) => {
                    core.quotas.take(now, &quota_owner, &terms);
                    return Some((quota_owner, owner));
                }
                Err(Full::Group) => "terminal_connections",
                Err(Full::Table | Full::Client) => "connections",
            }
        };
        core.counters.limited(what);
        core.slots.refused(now, &owner, what);
        None
    }

    /// Whether the owner's terminal may reach `server`.
    pub(crate) fn may_reach(
        &mut self,
        now: Instant,
        quota_owner: Option<&QuotaOwner>,
        server: SocketAddr,
    ) -> bool {
        self.check(now, quota_owner, server, |reach| reach.check(server))
    }

    /// Whether a packet of the owner's terminal may be forwarded to its destination. A packet
    /// without a visible port needs permission for all ports; a source-routed packet is denied.
    pub(crate) fn may_carry(
        &mut self,
        now: Instant,
        quota_owner: &QuotaOwner,
        packet: &Ends,
    ) -> bool {
        let Ends { destination, port_is_hidden, goes_on, .. } = *packet;
        self.check(now, Some(quota_owner), destination, |reach| match (goes_on, port_is_hidden) {
            (true, _) => Err(DenyReason::SourceRouted),
            (false, true) => reach.check_all_ports(destination.ip()),
            (false, false) => reach.check(destination),
        })
    }

    fn check(
        &mut self,
        now: Instant,
        quota_owner: Option<&QuotaOwner>,
        server: SocketAddr,
        check: impl Fn(&mut Reach) -> Result<(), DenyReason>,
    ) -> bool {
        let name = name_of(quota_owner);
        let checked = check(&mut self.reach).and_then(|()| match self.known.get_mut(&*name) {
            Some(known) => check(&mut known.reach),
            None => Ok(()),
        });
        if let Err(because) = &checked
            && self.log_budget.allow(now)
        {
            tracing::warn!(terminal = &*name, %server, %because, "refused");
        }
        checked.is_ok()
    }

    /// Whether the owner's terminal may use the source address `client` towards servers. The hub's
    /// own addresses are denied, since servers may trust them.
    pub(crate) fn may_speak_for(
        &mut self,
        quota_owner: Option<&QuotaOwner>,
        client: IpAddr,
    ) -> bool {
        let known = self.known.get(&*name_of(quota_owner));
        let networks = known.and_then(|known| known.clients.as_ref()).unwrap_or(&self.clients);
        may_speak_for(networks, client) && !self.reach.is_own(client)
    }
}

fn name_of(quota_owner: Option<&QuotaOwner>) -> Arc<str> {
    match quota_owner {
        Some(QuotaOwner::Terminal(name)) => Arc::clone(name),
        Some(QuotaOwner::Client(_) | QuotaOwner::Neighbour(_)) | None => "".into(),
    }
}
