//! What a hub lets its terminals have: so many connections, so many new ones a second, and these
//! destinations. Who asks for more is told no, counted, and named in the log now and then.

use super::carrier::Peer;
use super::complaints::Complaints;
use super::core::Core;
use super::quota::{Holder, Over};
use crate::config::terminal_of;
use crate::forward::packet::Ends;
use crate::intercept::Prefix;
use crate::reach::{Because, Reach, may_speak_for};
use crate::{HubSection, Limits, Terms};
use rt::netlink::NetlinkError;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use units::Instant;

/// The hub's rules for terminals.
#[derive(Debug)]
pub(crate) struct Admission {
    reach: Reach,
    usual: Terms,
    clients: Vec<Prefix>,
    known: BTreeMap<String, Known>,
    complaints: Complaints,
}

/// What is not as usual for one terminal.
#[derive(Debug)]
struct Known {
    terms: Terms,
    reach: Reach,
    clients: Option<Vec<Prefix>>,
}

impl Admission {
    /// As `section` and `limits` say.
    ///
    /// # Errors
    /// When the kernel cannot be asked for the hub's own addresses.
    pub(crate) fn new(section: &HubSection, limits: &Limits) -> Result<Self, NetlinkError> {
        // A further path has the terminal's own.
        let terminals =
            || section.terminals.iter().filter(|entry| terminal_of(&entry.name) == entry.name);
        let several = terminals().count() > 1;
        let known = terminals().map(|entry| {
            let terms = entry.share.or(limits.terminal).of(limits.connections, several);
            let reach = Reach::listed(&entry.destinations);
            (entry.name.clone(), Known { terms, reach, clients: entry.clients.clone() })
        });
        Ok(Self {
            reach: Reach::hub(&section.destinations, section.guarded)?,
            usual: limits.terminal.of(limits.connections, several),
            clients: section.clients.clone(),
            known: known.collect(),
            complaints: Complaints::default(),
        })
    }

    /// Whether the terminal may have one more connection; who has it then.
    pub(super) fn one_more(&mut self, core: &mut Core, now: Instant, peer: Peer) -> Option<Holder> {
        let name = terminal_of(core.carrier.name(peer));
        let terms = self.known.get(name).map_or(self.usual, |known| known.terms);
        let holder = Holder::Terminal(name.into());
        let what = if !core.has_room() {
            "connections"
        } else {
            match core.quotas.ask(now, &holder, &terms) {
                Ok(()) => return Some(holder),
                Err(Over::Connections) => "terminal_connections",
                Err(Over::Rate) => "terminal_rate",
            }
        };
        core.counters.limited(what);
        if self.complaints.may_say(now) {
            let terminal = core.carrier.describe(peer);
            tracing::warn!(%terminal, name = core.carrier.name(peer), limit = what, "refused");
        }
        None
    }

    /// Whether the holder's terminal may reach `server`.
    pub(super) fn may_reach(
        &mut self,
        now: Instant,
        holder: Option<&Holder>,
        server: SocketAddr,
    ) -> bool {
        self.judge(now, holder, server, |reach| reach.judge(server))
    }

    /// Whether a packet of the holder's terminal may go to where it is addressed. One that does
    /// not show its port may go where every port may be reached, and one that would be sent on to
    /// other places nowhere.
    pub(super) fn may_carry(&mut self, now: Instant, holder: &Holder, packet: &Ends) -> bool {
        let Ends { destination, port_is_hidden, goes_on, .. } = *packet;
        self.judge(now, Some(holder), destination, |reach| match (goes_on, port_is_hidden) {
            (true, _) => Err(Because::SourceRouted),
            (false, true) => reach.judge_all_ports(destination.ip()),
            (false, false) => reach.judge(destination),
        })
    }

    fn judge(
        &mut self,
        now: Instant,
        holder: Option<&Holder>,
        server: SocketAddr,
        judge: impl Fn(&mut Reach) -> Result<(), Because>,
    ) -> bool {
        let name = name_of(holder);
        let judged = judge(&mut self.reach).and_then(|()| match self.known.get_mut(&*name) {
            Some(known) => judge(&mut known.reach),
            None => Ok(()),
        });
        if let Err(because) = &judged
            && self.complaints.may_say(now)
        {
            tracing::warn!(terminal = &*name, %server, %because, "refused");
        }
        judged.is_ok()
    }

    /// Whether the holder's terminal may have servers see the address `client`. Never one that
    /// is the hub's own: servers may trust it.
    pub(super) fn may_speak_for(&mut self, holder: Option<&Holder>, client: IpAddr) -> bool {
        let known = self.known.get(&*name_of(holder));
        let networks = known.and_then(|known| known.clients.as_ref()).unwrap_or(&self.clients);
        may_speak_for(networks, client) && !self.reach.is_own(client)
    }
}

fn name_of(holder: Option<&Holder>) -> Arc<str> {
    match holder {
        Some(Holder::Terminal(name)) => Arc::clone(name),
        Some(Holder::Client(_) | Holder::Neighbour(_)) | None => "".into(),
    }
}
