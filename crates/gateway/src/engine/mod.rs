//! What a gateway does with connections, without I/O of its own: sockets, relay streams and
//! datagrams.
//!
//! ```text
//!   round:  what is due ─▶ datagrams in ─▶ events ─▶ turns ─▶ datagrams out ─▶ events ─▶ wait
//!                           (bounded)                (bounded)   (paced)
//! ```
//!
//! Sockets, routes and name servers stand behind [`Host`], time is an argument, and the
//! [`driver`](crate::driver) waits. Every part of a round has a budget, so that no client holds up
//! the pacing of the link for more than a moment.

mod accept;
mod connect;
pub(crate) mod defect;
mod forward;
pub(crate) mod host;
mod hub;
mod lifecycle;
mod limits;
mod peers;
pub(crate) mod resolver;
pub(crate) mod single;
mod terminal;
mod transfer;

use crate::observe::AssociationCounters;
use crate::report::{Counters, PeerReport, Traffic, UdpCounters};
use crate::state::State;
use accept::client_admission::Door;
use accept::confirm_queue::Confirm;
use accept::fallback::Fail;
use connect::direct::Direct;
use defect::Defect;
use hub::Hub;
use peers::classes::Classes;
use peers::family_watch::FamilyWatch;
use peers::scheduler_notifier::Mac;
use relay::{Keys, PublicKey};
use std::io;
use std::sync::Arc;
use terminal::Terminal;
use transfer::connection::Phase;
use transfer::connections::Core;
use units::Instant;

pub(crate) use accept::fallback::depends_on_paths;
pub(crate) use accept::listener::{Kind, Listener};
pub(crate) use connect::terminal_admission::Admission;
pub(crate) use host::{
    Close, DatagramSocket, Descriptors, HeldSyns, Host, ListenSocket, Lookups, Platform, Readiness,
    Reserve, Sent, Socket, SocketId, Source, TcpSocket,
};
#[cfg(any(test, feature = "simulation"))]
pub(crate) use lifecycle::held::Held;
pub(crate) use lifecycle::view::Sight;
pub(crate) use limits::slots::descriptors_for;
pub(crate) use limits::slots::reserve::is_out_of_descriptors;
pub(crate) use peers::link_socket::Outlet;
pub(crate) use peers::paths::PathPlan;
pub(crate) use peers::relay_set::Carrier;
pub(crate) use peers::route::Route;
pub(crate) use terminal::PLACES as LISTENER_PLACES;

/// What the driver drives: an engine.
pub(crate) trait Machine {
    /// Does all that can be done at `now`, within its budget; true when there is more.
    fn round(&mut self, now: Instant) -> bool;
    /// Returns when to call [`Machine::round`] although nothing has become ready.
    fn poll_timeout(&self, now: Instant) -> Instant;
    /// Takes note of what has become ready.
    fn handle_readiness(&mut self, now: Instant, source: Source, ready: Readiness);
    /// What an observer sees; the clock's zero was `epoch_unix_ns` nanoseconds after 1970.
    fn sight(&mut self, now: Instant, epoch_unix_ns: u64) -> Sight<'_>;
    /// Returns a number that changes when anything moves.
    fn moved(&self) -> u64;
}

/// A gateway at work.
#[derive(Debug)]
pub(crate) struct Engine {
    core: Core,
    role: Role,
    /// The sockets for datagrams: a hub's one, or one for each path of a terminal.
    outlets: Vec<Outlet>,
    sweep_at: Instant,
    /// The addresses that the configuration names, and when to look for them.
    addresses: crate::host::HostAddresses,
    state: State,
    /// What was known of peers at the end.
    peers: Vec<PeerReport>,
    names_answered: bool,
    /// Rounds in a row in which nothing moved.
    still: u32,
    /// When to end, although connections still run: no new ones are taken any more.
    draining: Option<Instant>,
    /// What is carried as it is goes by this.
    tunnel: Option<Box<forward::Tunnel>>,
    /// How long the farewell to the other gateway may take, once it has begun.
    farewell_until: Instant,
}

#[derive(Debug)]
enum Role {
    Terminal(Box<Terminal>),
    Hub(Box<Hub>),
}

impl Engine {
    /// A terminal's engine.
    pub(crate) fn terminal(
        (platform, now): (Platform, Instant),
        carrier: Carrier,
        outlets: Vec<Outlet>,
        config: &crate::TerminalSection,
        (limits, fail): (&crate::Limits, crate::FailSection),
        (listeners, keeper): (Vec<Listener>, Option<Box<dyn HeldSyns>>),
        state: State,
    ) -> io::Result<Self> {
        let bounds = config.intercept.as_ref().map(|section| section.confirm).unwrap_or_default();
        let mut core = Core::new(carrier, platform, limits.clone(), now);
        if let Some(keeper) = &keeper {
            core.host.watch(keeper.id(), Source::Knocks)?;
        }
        let confirm = keeper.map(|keeper| Confirm::new(keeper, bounds));
        let mut direct = Direct::new();
        direct.guard(config);
        let door = Door::new(config.accept.clone(), limits, Fail::new(fail), direct);
        let mut terminal = Terminal::new(door, confirm);
        terminal.listen(&mut *core.host, listeners)?;
        Self::new(core, outlets, Role::Terminal(Box::new(terminal)), state)
    }

    /// A hub's engine.
    pub(crate) fn hub(
        (platform, now): (Platform, Instant),
        carrier: Carrier,
        outlet: Outlet,
        config: &crate::HubSection,
        admission: Admission,
        limits: &crate::Limits,
        state: State,
    ) -> io::Result<Self> {
        let mac = config.mac.as_ref().and_then(|path| Mac::new(path, &config.id));
        let (classes, promised) = (Classes::new(&config.classes), Vec::new());
        let (source, families) = (config.source, FamilyWatch::default());
        let hub = Hub { source, admission, classes, mac, promised, families };
        let core = Core::new(carrier, platform, limits.clone(), now);
        Self::new(core, vec![outlet], Role::Hub(Box::new(hub)), state)
    }

    fn new(mut core: Core, mut outlets: Vec<Outlet>, role: Role, state: State) -> io::Result<Self> {
        for (number, outlet) in outlets.iter_mut().enumerate() {
            outlet.watch(&mut *core.host, number)?;
            core.carrier.set_bound(number, outlet.udp().is_some());
        }
        core.carrier.check_paths(&*core.host);
        Ok(Self {
            sweep_at: core.now + core.sweep_interval(),
            addresses: crate::host::HostAddresses::default(),
            core,
            role,
            outlets,
            state,
            peers: Vec::new(),
            names_answered: false,
            still: 0,
            draining: None,
            tunnel: None,
            farewell_until: Instant::ZERO,
        })
    }

    /// What became of connections.
    pub(crate) fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// What went through the datagram socket.
    pub(crate) fn udp_counters(&self) -> UdpCounters {
        peers::link_socket::counted(&self.outlets)
    }

    /// A hub's own public key, where it has keys.
    pub(crate) fn own_key(&self) -> Option<PublicKey> {
        self.core.carrier.own_key()
    }

    /// Takes another list of terminals at a hub: those that are not on it any more are lost.
    pub(crate) fn set_keys(&mut self, keys: Arc<Keys>) {
        self.core.carrier.set_keys(keys);
    }

    /// What associations have counted.
    pub(crate) fn association(&self) -> AssociationCounters {
        self.core.carrier.association()
    }

    /// What sessions and streams have counted.
    pub(crate) fn traffic(&mut self) -> Traffic {
        let udp = self.udp_counters();
        Traffic {
            datagrams_sent: udp.sent,
            datagrams_received: udp.received,
            ..self.core.carrier.traffic()
        }
    }

    fn expire(&mut self, now: Instant) {
        if self.core.carrier.poll_timeout().is_some_and(|due| due <= now) {
            self.core.carrier.handle_timeout(now);
            self.events(now);
        }
        while let Some(index) = self.core.deadlines.due(now) {
            match &mut self.role {
                Role::Terminal(terminal) => terminal.expired(&mut self.core, now, index),
                Role::Hub(hub) => hub.expired(&mut self.core, now, index),
            }
        }
        if self.sweep_at <= now {
            self.core.sweep(now);
            self.core.carrier.check_paths(&*self.core.host);
            self.core.carrier.share_memory(self.core.limits.memory);
            self.remember(now);
            self.state.save_rarely(now);
            crate::logging::report_omissions();
            self.sweep_at = now + self.core.sweep_interval();
        }
    }

    /// Notes what sessions have learnt of their ways.
    fn remember(&mut self, now: Instant) {
        let host = &*self.core.host;
        let unix_seconds = |at| host.unix_ns(at) / 1_000_000_000;
        self.core.carrier.remember(now, &mut self.state, unix_seconds);
    }

    fn receive(&mut self, now: Instant) {
        for (number, outlet) in self.outlets.iter_mut().enumerate() {
            outlet.receive(&mut self.core.carrier, now, number);
        }
    }

    fn events(&mut self, now: Instant) {
        while let Some((peer, event)) = self.core.carrier.poll_event() {
            match &mut self.role {
                Role::Terminal(terminal) => terminal.event(&mut self.core, now, peer, &event),
                Role::Hub(hub) => hub.event(&mut self.core, now, peer, event),
            }
        }
    }

    /// Sends what the pacers let go; true when there is more.
    fn transmit(&mut self, now: Instant) -> bool {
        let mut more = false;
        for (number, outlet) in self.outlets.iter_mut().enumerate() {
            more |= outlet.transmit(&mut self.core.carrier, &*self.core.host, now, number);
        }
        more
    }

    fn socket_ready(&mut self, now: Instant, index: usize, ready: Readiness) {
        // It may have closed earlier in this round; news for a closed one is harmless to another.
        let Some(connection) = self.core.connections.get_mut(index) else { return };
        // A socket that breaks while its bytes are not wanted would not be read from.
        let has_stream = matches!(
            connection.phase,
            Phase::Spliced(_) | Phase::Confirming(_) | Phase::Emptying(_)
        );
        if has_stream
            && ready.error
            && let Some(error) = connection.socket.as_ref().and_then(|socket| socket.take_error())
        {
            self.core.broken(now, index, &error);
            return;
        }
        if let Phase::Emptying(emptying) = &mut connection.phase
            && ready.writable
        {
            emptying.splice.socket_is_writable();
        }
        if let Phase::Spliced(splice) = &mut connection.phase {
            if ready.readable {
                splice.socket_is_readable();
            }
            if ready.writable {
                splice.socket_is_writable();
            }
        }
        self.core.queue(index);
    }
}

impl Machine for Engine {
    fn round(&mut self, now: Instant) -> bool {
        self.core.now = now;
        self.core.counters.rounds += 1;
        let moved = self.moved();
        self.expire(now);
        self.look_after_outlets(now);
        self.receive(now);
        // The next session numbers its streams anew: who had one of the last is told before any opens.
        self.events(now);
        self.core.carrier.review(now);
        self.carry_in(now);
        let more_clients = match &mut self.role {
            Role::Terminal(terminal) => {
                terminal.review(&self.core, now);
                let more_knock = terminal.answer_knocks(&mut self.core, now);
                terminal.accept(&mut self.core, now) || more_knock
            }
            Role::Hub(hub) => {
                hub.announce_families(&mut self.core, now);
                false
            }
        };
        self.names(now);
        self.lead_packets(now);
        self.events(now);
        for _ in 0..self.core.waiting() {
            let Some(index) = self.core.next_turn() else { break };
            match &mut self.role {
                Role::Terminal(terminal) => terminal.turn(&mut self.core, now, index),
                Role::Hub(hub) => hub.turn(&mut self.core, now, index),
            }
        }
        let more_packets = self.carry_out(now);
        let more_to_send = self.transmit(now);
        self.events(now);
        if let Role::Hub(hub) = &mut self.role
            && let Some(mac) = &mut hub.mac
        {
            mac.tell(now, &mut self.core.slots.table, &mut self.core.counters);
        }
        self.still = if moved == self.moved() { self.still.saturating_add(1) } else { 0 };
        let more_datagrams = self.outlets.iter().any(|outlet| outlet.readable);
        let more = more_clients || more_packets || more_to_send || more_datagrams;
        let busy = defect::has(Defect::BusyLoop) && !self.core.connections.is_empty();
        more || busy || self.core.waiting() > 0 || self.wants_change(now)
    }

    fn poll_timeout(&self, now: Instant) -> Instant {
        self.next_due(now)
    }

    fn handle_readiness(&mut self, now: Instant, source: Source, ready: Readiness) {
        self.core.now = now;
        match source {
            Source::Names => self.names_answered = true,
            Source::Knocks => {
                if let Role::Terminal(terminal) = &mut self.role {
                    terminal.somebody_knocks();
                }
            }
            Source::Packets => {
                if let Some(tunnel) = &mut self.tunnel {
                    tunnel.readable = true;
                }
            }
            Source::Datagrams(number) => {
                if let Some(outlet) = self.outlets.get_mut(number) {
                    outlet.readable |= ready.readable;
                }
            }
            Source::Listener(number) => {
                if let Role::Terminal(terminal) = &mut self.role {
                    terminal.is_ready(number);
                }
            }
            Source::Connection(index) => self.socket_ready(now, index, ready),
        }
    }

    fn sight(&mut self, now: Instant, epoch_unix_ns: u64) -> Sight<'_> {
        self.sight_at(now, epoch_unix_ns)
    }

    fn moved(&self) -> u64 {
        self.moved_so_far()
    }
}

#[cfg(test)]
mod tests;
