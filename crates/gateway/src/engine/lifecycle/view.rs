//! The engine as an observer sees it, between two rounds.

use crate::Promised;
use crate::engine::peers::link_socket::{self, Outlet};
use crate::engine::peers::relay_set::Carrier;
use crate::engine::single::Single;
use crate::engine::transfer::connection::{Connection, Phase};
use crate::engine::transfer::connections::Core;
use crate::engine::{Engine, Role};
use crate::observe::{ConnectionStatus, Counted, Page, PromisedStatus, TerminalStatus};
use crate::report::UdpCounters;
use std::net::SocketAddr;
use units::Instant;

/// What an observer may look at and ask for.
#[derive(Debug)]
pub(crate) struct Sight<'a> {
    pub(crate) now: Instant,
    /// Nanoseconds since 1970 at the clock's zero.
    epoch_unix_ns: u64,
    pub(crate) link: Option<SocketAddr>,
    /// Addresses and interfaces that it waits for.
    pub(crate) waiting: Vec<String>,
    seen: Seen<'a>,
}

/// What there is to look at.
#[derive(Debug)]
enum Seen<'a> {
    /// One of two gateways.
    OfTwo { core: &'a mut Core, udp: UdpCounters, is_hub: bool, promised: &'a [Promised] },
    /// One without a partner.
    Single(&'a Single),
}

impl Engine {
    pub(crate) fn sight_at(&mut self, now: Instant, epoch_unix_ns: u64) -> Sight<'_> {
        let waiting = self.waiting();
        let (is_hub, promised): (bool, &[Promised]) = match &self.role {
            Role::Hub(hub) => (true, &hub.promised),
            Role::Terminal(_) => (false, &[]),
        };
        let link = self.outlets.first().and_then(Outlet::local_address);
        let (core, udp) = (&mut self.core, link_socket::counted(&self.outlets));
        let seen = Seen::OfTwo { core, udp, is_hub, promised };
        Sight { now, epoch_unix_ns, link, waiting, seen }
    }
}

impl<'a> Sight<'a> {
    /// A gateway without a partner.
    pub(crate) fn of_single(now: Instant, epoch_unix_ns: u64, single: &'a Single) -> Self {
        let waiting = single.waiting();
        Self { now, epoch_unix_ns, link: None, waiting, seen: Seen::Single(single) }
    }
}

impl Sight<'_> {
    /// Everything that is counted.
    pub(crate) fn counted(&mut self) -> Counted {
        let (core, udp, promised) = match &mut self.seen {
            Seen::OfTwo { core, udp, is_hub: _, promised } => (core, udp, promised),
            Seen::Single(single) => return single.counted(self.now),
        };
        let traffic = crate::Traffic {
            datagrams_sent: udp.sent,
            datagrams_received: udp.received,
            ..core.carrier.traffic()
        };
        Counted {
            open: core.slots.table.len() as u64,
            limit: core.slots.total(self.now) as u64,
            connections: core.counters.clone(),
            udp: *udp,
            association: core.carrier.association(),
            traffic,
            resolver: core.resolver.status(),
            promised: promised.iter().map(PromisedStatus::of).collect(),
            single: None,
        }
    }

    /// The ways to peers; `own` is what a terminal calls itself.
    pub(crate) fn terminals(&mut self, own: &str) -> Vec<TerminalStatus> {
        let epoch = self.epoch_unix_ns;
        let unix = |at: Instant| (epoch + at.as_nanos()) as f64 / 1e9;
        match &mut self.seen {
            Seen::OfTwo { core, .. } => core.carrier.terminals(self.now, own, unix),
            Seen::Single(_) => Vec::new(),
        }
    }

    /// At most `most` connections with a number above `after`, of the terminal called `only` if
    /// one is named; in the order of their numbers.
    pub(crate) fn connections(&mut self, after: u64, most: usize, only: Option<&str>) -> Page {
        let core = match &self.seen {
            Seen::OfTwo { core, .. } => core,
            Seen::Single(_) if only.is_some() => {
                return Page { connections: Vec::new(), more: false };
            }
            Seen::Single(single) => return single.page(self.now, self.epoch_unix_ns, after, most),
        };
        let carrier = &core.carrier;
        let mut page: Vec<&Connection> = (core.connections.iter())
            .map(|(_, connection)| connection)
            .filter(|connection| connection.id > after)
            .filter(|connection| only.is_none_or(|only| carrier.owner(connection) == Some(only)))
            .collect();
        let more = page.len() > most;
        if more {
            page.select_nth_unstable_by_key(most, |connection| connection.id);
            page.truncate(most);
        }
        page.sort_unstable_by_key(|connection| connection.id);
        let connections = page.iter().map(|one| self.describe(core, one)).collect();
        Page { connections, more }
    }

    fn describe(&self, core: &Core, connection: &Connection) -> ConnectionStatus {
        let about = &connection.about;
        ConnectionStatus {
            number: connection.id,
            terminal: core.carrier.owner(connection).map(str::to_owned),
            client: about.client.map(|client| client.to_string()),
            server: about.server.as_ref().map(ToString::to_string),
            state: phase(&connection.phase),
            since_unix_seconds: (self.epoch_unix_ns + about.since.as_nanos()) / 1_000_000_000,
            age_seconds: self.now.since(about.since).as_secs_f64(),
            bytes_from_socket: about.from_socket,
            bytes_to_socket: about.to_socket,
        }
    }

    /// What carries streams, for taps; without a partner there is nothing of that kind.
    pub(crate) fn carrier(&mut self) -> Option<&mut Carrier> {
        match &mut self.seen {
            Seen::OfTwo { core, .. } => Some(&mut core.carrier),
            Seen::Single(_) => None,
        }
    }

    /// Whether this gateway is a hub.
    pub(crate) fn is_hub(&self) -> bool {
        matches!(self.seen, Seen::OfTwo { is_hub: true, .. })
    }

    /// Nanoseconds since 1970 at the clock's zero.
    pub(crate) fn epoch_unix_ns(&self) -> u64 {
        self.epoch_unix_ns
    }
}

fn phase(phase: &Phase) -> &'static str {
    match phase {
        Phase::Asking(_) => "asking",
        Phase::Greeting { .. } => "greeting",
        Phase::Confirming(_) | Phase::Knocking(_) => "confirming",
        Phase::Direct(_) => "direct",
        Phase::Farewell { .. } => "farewell",
        Phase::Connecting(onward) if onward.server.is_resolving() => "resolving",
        Phase::Connecting(_) => "connecting",
        Phase::Spliced(_) => "open",
        Phase::Emptying(_) => "emptying",
        Phase::Breaking(_) => "breaking",
    }
}
