//! What a gateway does with connections, without I/O of its own: sockets, relay streams and
//! datagrams.
//!
//! ```text
//!   terminal, hub ──▶ accept ──▶ connect ──▶ transfer ──▶ peers ──▶ limits
//!   (roles)              └──────────┴──▶ resolver             host (sockets, routes)
//!   single ──────────▶ accept, connect, transfer
//!   lifecycle: reload, drain, status of the roles
//! ```
//!
//! Arrows show which folder may use which. Sockets, routes and name servers stand behind [`Host`],
//! time is an argument, and the [`driver`](crate::driver) waits.

mod accept;
mod connect;
pub(crate) mod defect;
mod forward;
mod forwarded_tcp;
pub(crate) mod host;
mod hub;
mod lifecycle;
mod limits;
mod machine;
mod pair;
mod peers;
mod platform;
pub(crate) mod resolver;
pub(crate) mod single;
mod terminal;
mod transfer;

use crate::dns::AddressNames;
use crate::forward::{ForwardError, Forwarding};
use crate::observe::AssociationCounters;
use crate::report::{Counters, PeerReport, Traffic, UdpCounters};
use crate::state::State;
use crate::{
    Commitment, Config, ConfirmSection, ForwardSection, ForwardTcp, HubSection, ResolverSection,
};
use accept::reachability::Filter;
use hub::Hub;
use pair::Pair;
use relay::{Keys, PublicKey, Registration};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use terminal::Terminal;
use units::{BitRate, Instant, Span};

pub(crate) use accept::listener::{Kind, Listener};
pub(crate) use connect::terminal_admission::Admission;
pub(crate) use host::{
    Close, DatagramSocket, Delivered, Descriptors, HeldSyns, Host, ListenSocket, LocalAddress,
    Readiness, Reserve, Route, Sent, Socket, SocketId, Source, TcpSocket, TlsRoute, TlsState,
    TlsTunnel,
};
#[cfg(any(test, feature = "simulation"))]
pub(crate) use lifecycle::held::Held;
pub(crate) use lifecycle::view::{EngineView, Observed, Taps};
pub(crate) use limits::slots::descriptors_for;
pub(crate) use limits::slots::reserve::is_out_of_descriptors;
pub(crate) use machine::Machine;
pub(crate) use peers::link_socket::LinkSocket;
pub(crate) use peers::paths::PathPlan;
pub(crate) use peers::relay_set::RelaySet;
pub(crate) use peers::tls_link::TlsLink;
pub(crate) use platform::Platform;
pub(crate) use resolver::Lookups;
pub(crate) use terminal::MAX_LISTENERS;

/// One gateway of a pair at work.
#[derive(Debug)]
pub(crate) enum Engine {
    Terminal(Box<Pair<Terminal>>),
    Hub(Box<Pair<Hub>>),
}

/// Defines methods of [`Engine`] that call those of [`Pair`] in either role.
macro_rules! in_either_role {
    ($($(#[$doc:meta])* fn $name:ident(
        $this:ident: $engine:ty $(, $argument:ident: $type:ty)*
    ) $(-> $result:ty)?;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name($this: $engine $(, $argument: $type)*) $(-> $result)? {
            match $this {
                Self::Terminal(pair) => pair.$name($($argument),*),
                Self::Hub(pair) => pair.$name($($argument),*),
            }
        }
    )*};
}

impl Engine {
    in_either_role! {
        /// Returns the counters of connections.
        fn counters(self: &Self) -> &Counters;
        /// Returns the counters of the UDP sockets.
        fn udp_counters(self: &Self) -> UdpCounters;
        /// Returns a hub's own public key, where it has keys.
        fn own_key(self: &Self) -> Option<PublicKey>;
        /// Replaces a hub's list of terminals. The sessions of those that it no longer has are lost.
        fn set_keys(self: &mut Self, keys: Arc<Keys>);
        /// Returns the next key that a terminal has registered at a hub.
        fn poll_registration(self: &mut Self) -> Option<Registration>;
        /// Returns the counters of associations.
        fn association(self: &Self) -> AssociationCounters;
        /// Returns the counters of sessions and streams.
        fn traffic(self: &mut Self) -> Traffic;
        /// Watches the addresses that `config` names.
        fn watch_addresses(self: &mut Self, config: &Config);
        /// Returns the addresses and interfaces that it waits for.
        fn waiting(self: &Self) -> Vec<String>;
        /// Takes no new connections any more, and ends when all that run are over at both ends, or
        /// after `limit`.
        fn drain(self: &mut Self, now: Instant, limit: Span);
        /// Leaves new connections and receiving to the process that replaces this one, with which
        /// the UDP sockets of these numbers are connected. Ends when all connections are over at
        /// both ends, or after `limit`.
        fn hand_over(
            self: &mut Self,
            now: Instant,
            limit: Span,
            channels: Vec<(usize, OwnedFd)>
        );
        /// Whether the process that replaces this one can be connected while this one has streams.
        fn can_overlap(self: &Self) -> bool;
        /// Whether it drains.
        fn is_draining(self: &Self) -> bool;
        /// Returns the number of connections.
        fn connections(self: &Self) -> usize;
        /// Whether a drain is over.
        fn has_drained(self: &mut Self, now: Instant) -> bool;
        /// Returns the path metrics of peers at the stop.
        fn take_peers(self: &mut Self) -> Vec<PeerReport>;
        /// Resets all connections and ends all sessions, of which [`Engine::transmit_close`] informs the
        /// peers.
        fn end(self: &mut Self, now: Instant);
        /// Sends the remaining datagrams of the sessions' end; returns when to continue, unless
        /// that is done.
        fn transmit_close(self: &mut Self, now: Instant) -> Option<Instant>;
        /// Writes the path metrics to their file.
        fn save(self: &mut Self);
        /// Resolves names as `section` has it.
        fn set_resolver(self: &mut Self, section: &ResolverSection);
        /// Logs the end of each connection, if `config` says so.
        fn log_ends(self: &mut Self, config: &Config);
        /// Sets the rates of the link, as far as the peers have announced theirs.
        fn set_rates(self: &mut Self, send: Option<BitRate>, receive: Option<BitRate>);
        /// Sets the rates of a terminal's path, as far as its hub has announced its own.
        fn set_path_rates(
            self: &mut Self,
            name: &str,
            up: Option<BitRate>,
            down: Option<BitRate>
        );
        /// Returns the UDP sockets, of which some may be missing.
        fn sockets(self: &Self) -> Vec<Option<&dyn DatagramSocket>>;
        /// Forwards packets by `forwarding`.
        fn set_forwarding(
            self: &mut Self,
            forwarding: Forwarding,
            tcp: ForwardTcp
        ) -> io::Result<()>;
        /// Changes the networks of terminals to those of `hub`.
        fn set_homes(
            self: &mut Self,
            section: &ForwardSection,
            hub: &HubSection
        ) -> Result<(), ForwardError>;
    }

    /// Returns since when the sessions have been ending, if one of them with a peer that responds
    /// has not ended in order.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn unended_since(&self) -> Option<Instant> {
        match self {
            Self::Terminal(pair) => pair.unended_since(),
            Self::Hub(pair) => pair.unended_since(),
        }
    }

    /// Counts the resources in use.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn held(&mut self) -> Held {
        match self {
            Self::Terminal(pair) => pair.held(),
            Self::Hub(pair) => pair.held(),
        }
    }

    /// A terminal's engine.
    ///
    /// # Errors
    /// Those of watching a socket.
    pub(crate) fn terminal(
        (platform, now): (Platform, Instant),
        relays: RelaySet,
        link_sockets: Vec<LinkSocket>,
        config: &crate::TerminalSection,
        (limits, fail): (&crate::Limits, crate::FailSection),
        (listeners, gate): (Vec<Listener>, Option<Box<dyn HeldSyns>>),
        state: State,
    ) -> io::Result<Self> {
        let mut core = transfer::connections::Core::new(relays, platform, limits.clone(), now);
        if let Some(dns) = &config.dns {
            core.names = AddressNames::new(dns.placeholders, dns.open_by_name);
        }
        let host = &mut *core.host;
        let terminal = Terminal::open(host, config, (limits, fail), (listeners, gate))?;
        Ok(Self::Terminal(Box::new(Pair::new(core, link_sockets, terminal, state)?)))
    }

    /// A hub's engine.
    ///
    /// # Errors
    /// Those of watching a socket.
    pub(crate) fn hub(
        (platform, now): (Platform, Instant),
        relays: RelaySet,
        link_socket: LinkSocket,
        config: &HubSection,
        admission: Admission,
        limits: &crate::Limits,
        state: State,
    ) -> io::Result<Self> {
        let core = transfer::connections::Core::new(relays, platform, limits.clone(), now);
        let hub = Hub::new(config, admission);
        Ok(Self::Hub(Box::new(Pair::new(core, vec![link_socket], hub, state)?)))
    }

    /// Applies another configuration of the same role, and a hub's `admission`.
    pub(crate) fn apply(&mut self, config: &Config, admission: Option<Admission>) {
        match (self, &config.role) {
            (Self::Terminal(pair), crate::Role::Terminal(section)) => pair.apply(section, config),
            (Self::Hub(pair), crate::Role::Hub(section)) => pair.apply(section, config, admission),
            // A role is not changed by a reload.
            (Self::Terminal(_), crate::Role::Hub(_) | crate::Role::Single(_))
            | (Self::Hub(_), crate::Role::Terminal(_) | crate::Role::Single(_)) => {}
        }
    }

    /// Sets the rates that a hub's plans commit, for the status.
    pub(crate) fn set_commitments(&mut self, commitments: Vec<Commitment>) {
        if let Self::Hub(pair) = self {
            pair.set_commitments(commitments);
        }
    }

    fn as_terminal(&self) -> Option<&Pair<Terminal>> {
        if let Self::Terminal(pair) = self { Some(pair) } else { None }
    }

    /// Whether the kernel is to let new connections bypass the gateway or to intercept them again,
    /// if that differs from what it does.
    pub(crate) fn wanted_bypass(&self, now: Instant) -> Option<bool> {
        self.as_terminal()?.wanted_bypass(now)
    }

    /// Notes whether new connections bypass the gateway from now on; where none are `intercepted`
    /// none do.
    pub(crate) fn set_bypass(&mut self, passing: bool, intercepted: bool) {
        if let Self::Terminal(pair) = self {
            pair.set_bypass(passing, intercepted);
        }
    }

    /// Whether new connections bypass the gateway.
    pub(crate) fn is_bypassing(&self) -> bool {
        self.as_terminal().is_some_and(Pair::is_bypassing)
    }

    /// Notes that the kernel has refused the change of [`Engine::wanted_bypass`].
    pub(crate) fn on_bypass_refused(&mut self, now: Instant) {
        if let Self::Terminal(pair) = self {
            pair.on_bypass_refused(now);
        }
    }

    /// Whether the packet filter is to be changed by now, with [`Engine::filter`].
    pub(crate) fn wants_filter(&self, now: Instant) -> bool {
        self.as_terminal().is_some_and(|pair| pair.wants_filter(now))
    }

    /// Returns what the packet filter should do.
    pub(crate) fn filter(&self) -> Filter {
        self.as_terminal().map_or_else(Filter::default, Pair::filter)
    }

    /// Returns what the packet filter did after the last change.
    pub(crate) fn applied_filter(&self) -> Filter {
        self.as_terminal().map_or_else(Filter::default, Pair::applied_filter)
    }

    /// Notes what the packet filter does from now on; `None`: it has refused to change.
    pub(crate) fn set_applied_filter(&mut self, now: Instant, applied: Option<Filter>) {
        if let Self::Terminal(pair) = self {
            pair.set_applied_filter(now, applied);
        }
    }

    /// Watches `gate`, which is not in use yet.
    ///
    /// # Errors
    /// Those of watching its socket.
    pub(crate) fn watch_syn_gate(&mut self, gate: &dyn HeldSyns) -> io::Result<()> {
        match self {
            Self::Terminal(pair) => pair.watch_syn_gate(gate),
            Self::Hub(_) => Ok(()),
        }
    }

    /// Defers intercepted connections by `gate`, if it is a new one, within `bounds`.
    pub(crate) fn set_syn_gate(&mut self, gate: Option<Box<dyn HeldSyns>>, bounds: ConfirmSection) {
        if let Self::Terminal(pair) = self {
            pair.set_syn_gate(gate, bounds);
        }
    }

    /// Returns the listeners that are open.
    pub(crate) fn listeners(&self) -> Vec<&Listener> {
        self.as_terminal().map_or_else(Vec::new, Pair::listeners)
    }

    /// Returns the descriptors of the sockets on which it accepts connections and queries.
    pub(crate) fn listening_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.as_terminal().map_or_else(Vec::new, Pair::listening_descriptors)
    }

    /// Accepts from all of `new` as well, or from none; returns their numbers.
    ///
    /// # Errors
    /// Those of watching their sockets, and too many listeners.
    pub(crate) fn listen(&mut self, new: Vec<Listener>) -> io::Result<Vec<usize>> {
        match self {
            Self::Terminal(pair) => pair.listen(new),
            Self::Hub(_) => Ok(Vec::new()),
        }
    }

    /// Closes listeners at which no client has been accepted.
    pub(crate) fn listen_no_more(&mut self, numbers: &[usize]) {
        if let Self::Terminal(pair) = self {
            pair.listen_no_more(numbers);
        }
    }

    /// Accepts the clients that are pending at the listeners that `go`, and closes these.
    pub(crate) fn close_listeners(&mut self, now: Instant, go: impl Fn(&Listener) -> bool) {
        if let Self::Terminal(pair) = self {
            pair.close_listeners(now, go);
        }
    }
}

impl Machine for Engine {
    fn round(&mut self, now: Instant) -> bool {
        match self {
            Self::Terminal(pair) => pair.round(now),
            Self::Hub(pair) => pair.round(now),
        }
    }

    fn poll_timeout(&self, now: Instant) -> Instant {
        match self {
            Self::Terminal(pair) => pair.poll_timeout(now),
            Self::Hub(pair) => pair.poll_timeout(now),
        }
    }

    fn handle_readiness(&mut self, now: Instant, source: Source, ready: Readiness) {
        match self {
            Self::Terminal(pair) => pair.handle_readiness(now, source, ready),
            Self::Hub(pair) => pair.handle_readiness(now, source, ready),
        }
    }

    fn view(&mut self, now: Instant, epoch_unix_ns: u64) -> EngineView<'_> {
        match self {
            Self::Terminal(pair) => pair.view(now, epoch_unix_ns),
            Self::Hub(pair) => pair.view(now, epoch_unix_ns),
        }
    }

    fn moved(&self) -> u64 {
        match self {
            Self::Terminal(pair) => pair.moved(),
            Self::Hub(pair) => pair.moved(),
        }
    }
}

#[cfg(test)]
mod tests;
