//! What clients meet at a terminal before anything is opened for them: how they are answered, and
//! how much of the terminal each of them may have.

use super::complaints::Complaints;
use super::core::Core;
use super::direct::Direct;
use super::fail::Fail;
use super::quota::{Holder, Over};
use super::reachability::Reachability;
use crate::{AcceptRules, Config, Limits, TerminalSection, Terms};
use std::net::{IpAddr, SocketAddr};
use units::Instant;

/// Connections that a client may have beyond its share while it says to a proxy what it wants:
/// it is told then, in words, that it cannot have it.
const TO_BE_TOLD: u32 = 16;

/// A terminal's rules for clients.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) accept: AcceptRules,
    terms: Terms,
    complaints: Complaints,
    /// What becomes of clients whose connections cannot be carried.
    pub(super) fail: Fail,
    /// What makes connections without a hub.
    pub(super) direct: Direct,
    /// What is known of destinations before their servers are asked.
    pub(super) reachability: Reachability,
}

impl Door {
    pub(super) fn new(accept: AcceptRules, limits: &Limits, fail: Fail, direct: Direct) -> Self {
        let terms = limits.client.of(limits.connections, true);
        let (complaints, reachability) = Default::default();
        Self { accept, terms, complaints, fail, direct, reachability }
    }

    /// Takes other rules, and goes on from where it is.
    pub(super) fn change(&mut self, section: &TerminalSection, config: &Config) {
        self.accept = section.accept.clone();
        self.terms = config.limits.client.of(config.limits.connections, true);
        self.fail.set(config.fail);
        self.direct.guard(section);
        self.reachability.refresh_filter();
    }

    /// Whether a client may come in whose wish is known; who has the connection then.
    pub(super) fn one_more(
        &mut self,
        core: &mut Core,
        now: Instant,
        client: SocketAddr,
    ) -> Option<Holder> {
        let holder = holder(client.ip());
        let asked = core.quotas.ask(now, &holder, &self.terms);
        self.settle(core, now, client, asked).then_some(holder)
    }

    /// Whether a client may come in to tell a proxy its wish.
    pub(super) fn one_more_to_ask(
        &mut self,
        core: &mut Core,
        now: Instant,
        client: SocketAddr,
    ) -> Option<Holder> {
        let holder = holder(client.ip());
        let many = core.quotas.open(&holder) >= self.terms.connections.saturating_add(TO_BE_TOLD);
        let asked = if many { Err(Over::Connections) } else { Ok(()) };
        self.settle(core, now, client, asked).then_some(holder)
    }

    /// Whether a client that a proxy has asked may have what it wants.
    pub(super) fn may_have(&mut self, core: &mut Core, now: Instant, client: SocketAddr) -> bool {
        let asked = core.quotas.ask_again(now, &holder(client.ip()), &self.terms);
        self.settle(core, now, client, asked)
    }

    fn settle(
        &mut self,
        core: &mut Core,
        now: Instant,
        client: SocketAddr,
        asked: Result<(), Over>,
    ) -> bool {
        let what = match asked {
            Ok(()) => return true,
            Err(Over::Connections) => "client_connections",
            Err(Over::Rate) => "client_rate",
        };
        core.counters.limited(what);
        if self.complaints.may_say(now) {
            tracing::warn!(%client, limit = what, "refused");
        }
        false
    }
}

fn holder(client: IpAddr) -> Holder {
    Holder::Client(client.to_canonical())
}
