//! What a hub lets its terminals have: so many connections, so many new ones a second, and these
//! destinations. Who asks for more is told no, counted, and named in the log now and then.

use crate::config::terminal_of;
use crate::engine::limits::log_budget::Complaints;
use crate::engine::limits::rates::Holder;
use crate::engine::limits::slots::{Full, Owner};
use crate::engine::peers::relay_set::Peer;
use crate::engine::transfer::connections::Core;
use crate::forward::packet::Ends;
use crate::intercept::Prefix;
use crate::reach::{Because, Reach, may_speak_for};
use crate::{HubSection, Limits, Terms};
use rt::netlink::NetlinkError;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
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
            complaints: Complaints::default(),
        })
    }

    /// Whether the terminal may have one more connection, for this client of its own; who has it
    /// then. An idle connection of another client may lose its slot for that.
    pub(crate) fn one_more(
        &mut self,
        core: &mut Core,
        now: Instant,
        peer: Peer,
        client: Option<SocketAddr>,
    ) -> Option<(Holder, Owner<Arc<str>>)> {
        let name: Arc<str> = terminal_of(core.carrier.name(peer)).into();
        let terms = self.known.get(&*name).map_or(self.usual, |known| known.terms);
        let client = client.map_or(Ipv4Addr::UNSPECIFIED.into(), |client| client.ip());
        let owner = core.slots.owner(&name, client);
        let holder = Holder::Terminal(name);
        let what = if !core.quotas.has_token(now, &holder, &terms) {
            "terminal_rate"
        } else {
            match core.admit(now, &owner, (terms.connections as usize, usize::MAX)) {
                Ok(()) => {
                    core.quotas.take(now, &holder, &terms);
                    return Some((holder, owner));
                }
                Err(Full::Group) => "terminal_connections",
                Err(Full::Table | Full::Client) => "connections",
            }
        };
        core.counters.limited(what);
        core.slots.refused(now, &owner, what);
        None
    }

    /// Whether the holder's terminal may reach `server`.
    pub(crate) fn may_reach(
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
    pub(crate) fn may_carry(&mut self, now: Instant, holder: &Holder, packet: &Ends) -> bool {
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
    pub(crate) fn may_speak_for(&mut self, holder: Option<&Holder>, client: IpAddr) -> bool {
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
