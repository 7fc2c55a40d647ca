//! What clients meet at a terminal before anything is opened for them: how they are answered, and
//! how much of the terminal each of them may have.

use crate::engine::accept::fallback::Fail;
use crate::engine::accept::reachability::Reachability;
use crate::engine::connect::direct::Direct;
use crate::engine::limits::rates::Holder;
use crate::engine::limits::slots::{Bounds, Full, Owner, Verdict};
use crate::engine::transfer::connections::Core;
use crate::{AcceptRules, Config, Limits, TerminalSection, Terms};
use std::net::SocketAddr;
use std::sync::Arc;
use units::Instant;

/// Clients of a proxy that are heard at one time of one that has its share of connections: they
/// are told so in the proxy's words.
const TO_BE_TOLD: usize = 16;

/// A terminal's rules for clients.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) accept: AcceptRules,
    terms: Terms,
    /// All clients are of one group.
    group: Arc<str>,
    /// What becomes of clients whose connections cannot be carried.
    pub(crate) fail: Fail,
    /// What makes connections without a hub.
    pub(crate) direct: Direct,
    /// What is known of destinations before their servers are asked.
    pub(crate) reachability: Reachability,
}

impl Door {
    pub(crate) fn new(accept: AcceptRules, limits: &Limits, fail: Fail, direct: Direct) -> Self {
        let (terms, reachability) = (limits.client.terms(), Reachability::default());
        Self { accept, terms, group: "".into(), fail, direct, reachability }
    }

    /// Takes other rules, and goes on from where it is.
    pub(crate) fn change(&mut self, section: &TerminalSection, config: &Config) {
        self.accept = section.accept.clone();
        self.terms = config.limits.client.terms();
        self.fail.set(config.fail);
        self.direct.guard(section);
        self.reachability.refresh_filter();
    }

    /// Whether a client may have one more connection, and who has it then. An idle connection of
    /// another client may lose its slot for that.
    pub(crate) fn one_more(
        &mut self,
        core: &mut Core,
        now: Instant,
        client: SocketAddr,
    ) -> Option<Owner<Arc<str>>> {
        let owner = core.slots.owner(&self.group, client.ip());
        let holder = Holder::Client(owner.client);
        let what = if !core.quotas.has_token(now, &holder, &self.terms) {
            "client_rate"
        } else {
            match core.admit(now, &owner, (usize::MAX, self.terms.connections as usize)) {
                Ok(()) => {
                    core.quotas.take(now, &holder, &self.terms);
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

    /// Whether a client may come in to tell a proxy what it wants; who it is then. The client that
    /// has taken longest of those of the largest holder makes way when there are too many.
    pub(crate) fn one_more_to_ask(
        &mut self,
        core: &mut Core,
        now: Instant,
        client: SocketAddr,
    ) -> Option<Owner<()>> {
        let owner = core.slots.owner(&self.group, client.ip());
        // Without descriptors it can be heard only in the place of a connection.
        if core.slots.is_short(now) && core.admit(now, &owner, (usize::MAX, usize::MAX)).is_err() {
            core.counters.limited("descriptors");
            core.slots.refused(now, &owner, "descriptors");
            return None;
        }
        // One that has its share, and enough that are being told so, is told no more.
        let bounds = (usize::MAX, self.terms.connections as usize);
        let has_its_share = !core.slots.may_have(now, &owner, bounds);
        let owner = Owner { group: (), client: owner.client };
        if has_its_share && core.asking.held_by(&owner) >= TO_BE_TOLD {
            core.counters.limited("connections");
            return None;
        }
        let total = core.most_asking(now);
        let makes_way = match core.asking.judge(&owner, Bounds { total, ..Bounds::NONE }) {
            Verdict::Free => None,
            Verdict::Reclaim(index) => Some(index),
            Verdict::Refused(_) => core.asking.idlest_of(&owner),
        };
        if let Some(index) = makes_way {
            core.asking.release(index);
            core.counters.bad_requests += 1;
            core.reclaim(index);
        }
        Some(owner)
    }
}
