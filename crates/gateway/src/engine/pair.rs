//! One gateway of a pair: the parts that terminals and hubs have in common.
//!
//! ```text
//!   round:  what is due ─▶ datagrams in ─▶ events ─▶ turns ─▶ datagrams out ─▶ events ─▶ wait
//!                           (bounded)                (bounded)   (paced)
//! ```
//!
//! Every part of a round has a budget, so that no client holds up the pacing of the link.

use crate::engine::defect::{self, Defect};
use crate::engine::forward::{PacketDenied, Tunnel};
use crate::engine::host::{Readiness, Source};
use crate::engine::lifecycle::view::EngineView;
use crate::engine::machine::Machine;
use crate::engine::peers::link_socket::{self, LinkSocket};
use crate::engine::peers::peer::Peer;
use crate::engine::resolver::Answer;
use crate::engine::transfer::connection::Stage;
use crate::engine::transfer::connections::Core;
use crate::forward::Homes;
use crate::forward::packet::Ends;
use crate::host::{HostAddresses, LOOK};
use crate::observe::{AssociationCounters, DnsStatus};
use crate::report::{Counters, PeerReport, Traffic, UdpCounters};
use crate::state::State;
use crate::{Commitment, Config};
use relay::{Event, Keys, PublicKey, Registration, Service};
use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use units::Instant;

/// What a gateway does with connections in its role.
pub(crate) trait Role: Debug + Send {
    /// The stages of its connections.
    type Stage: Stage + Send;

    /// Whether it is a hub.
    const IS_HUB: bool;

    /// Handles the readiness of a source that only this role has.
    fn handle_readiness(&mut self, source: Source) {
        let _ = source;
    }

    /// Does what comes before the turns of connections; true when there is more to do.
    fn begin_round(&mut self, core: &mut Core<Self::Stage>, now: Instant) -> bool;

    /// Handles what happened to a session or a stream.
    fn on_event(&mut self, core: &mut Core<Self::Stage>, now: Instant, peer: Peer, event: Event);

    /// Handles an answer of the resolver.
    fn on_answer(&mut self, core: &mut Core<Self::Stage>, now: Instant, answer: Answer);

    /// Gives a connection its turn.
    fn run(&mut self, core: &mut Core<Self::Stage>, now: Instant, index: usize);

    /// Handles the deadline of a connection, which has been removed.
    fn on_deadline(&mut self, core: &mut Core<Self::Stage>, now: Instant, index: usize);

    /// Does what comes at the end of a round.
    fn end_round(&mut self, core: &mut Core<Self::Stage>, now: Instant) {
        let _ = (core, now);
    }

    /// Returns when to begin a round although no source is ready.
    fn poll_timeout(&self, core: &Core<Self::Stage>, now: Instant) -> Option<Instant>;

    /// Takes no new connections any more.
    fn drain(&mut self, core: &mut Core<Self::Stage>, now: Instant);

    /// Leaves new clients to the process that replaces this one.
    fn hand_over(&mut self, core: &mut Core<Self::Stage>) {
        let _ = core;
    }

    /// Whether packets that could be forwarded bypass the gateway by now; `None`: always as they
    /// do now.
    fn bypasses_packets(&self) -> Option<bool> {
        None
    }

    /// Returns the peer to which a packet of the tunnel interface is sent, if there is one.
    fn peer_for(&self, core: &Core<Self::Stage>, homes: &Homes, ends: &Ends) -> Option<Peer>;

    /// Returns the client on whose account a packet is sent, and its service class.
    fn service_of(&self, packet: &[u8], ends: &Ends) -> (IpAddr, Option<Service>) {
        let _ = packet;
        (ends.source, None)
    }

    /// Whether a packet of the peer called `name` may go out by the tunnel interface.
    ///
    /// # Errors
    /// Why it may not.
    fn admit_packet(
        &mut self,
        now: Instant,
        homes: &Homes,
        name: &str,
        ends: &Ends,
    ) -> Result<(), PacketDenied> {
        let _ = (now, homes, name, ends);
        Ok(())
    }

    /// Returns the rates that its plans commit.
    fn commitments(&self) -> &[Commitment] {
        &[]
    }

    /// Returns the counters of the DNS forwarder, if it has one.
    fn dns(&self, core: &Core<Self::Stage>) -> Option<DnsStatus> {
        let _ = core;
        None
    }

    /// Whether the packet filter is to be changed.
    fn wants_change(&self, now: Instant) -> bool {
        let _ = now;
        false
    }
}

/// One gateway of a pair.
#[derive(Debug)]
pub(crate) struct Pair<R: Role> {
    pub(crate) core: Core<R::Stage>,
    pub(crate) role: R,
    /// The UDP sockets: one at a hub, one for each path at a terminal.
    pub(crate) link_sockets: Vec<LinkSocket>,
    sweep_at: Instant,
    /// The addresses that the configuration names, and when to look for them.
    pub(crate) addresses: HostAddresses,
    pub(crate) state: State,
    /// What was known of peers when it stopped.
    pub(crate) peers: Vec<PeerReport>,
    names_answered: bool,
    /// Consecutive rounds in which nothing moved.
    pub(crate) idle_rounds: u32,
    /// When to end although connections still run: no new ones are accepted.
    pub(crate) draining: Option<Instant>,
    /// Whether another process has replaced this one.
    pub(crate) is_replaced: bool,
    /// Since when the sessions have been ending in order.
    pub(crate) ending_since: Option<Instant>,
    /// The interface of packets that are forwarded unsplit.
    pub(crate) tunnel: Option<Box<Tunnel>>,
    /// Until when the end of the sessions may be sent, once it was begun.
    pub(crate) closing_until: Instant,
}

impl<R: Role> Pair<R> {
    /// A gateway in `role` with these UDP sockets.
    ///
    /// # Errors
    /// Those of watching a socket.
    pub(crate) fn new(
        mut core: Core<R::Stage>,
        mut link_sockets: Vec<LinkSocket>,
        role: R,
        state: State,
    ) -> io::Result<Self> {
        for (number, link_socket) in link_sockets.iter_mut().enumerate() {
            link_socket.watch(&mut *core.host, number)?;
            core.relays.set_bound(number, link_socket.udp().is_some());
        }
        core.relays.check_paths(&*core.host);
        Ok(Self {
            sweep_at: core.now + core.sweep_interval(),
            addresses: HostAddresses::default(),
            core,
            role,
            link_sockets,
            state,
            peers: Vec::new(),
            names_answered: false,
            idle_rounds: 0,
            draining: None,
            is_replaced: false,
            ending_since: None,
            tunnel: None,
            closing_until: Instant::ZERO,
        })
    }

    /// Returns the counters of connections.
    pub(crate) fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// Returns the counters of the UDP sockets.
    pub(crate) fn udp_counters(&self) -> UdpCounters {
        link_socket::counted(&self.link_sockets)
    }

    /// Returns a hub's own public key, where it has keys.
    pub(crate) fn own_key(&self) -> Option<PublicKey> {
        self.core.relays.own_key()
    }

    /// Replaces a hub's list of terminals. The sessions of those that it no longer has are lost.
    pub(crate) fn set_keys(&mut self, keys: Arc<Keys>) {
        self.core.relays.set_keys(keys);
    }

    /// Returns the next key that a terminal has registered at a hub.
    pub(crate) fn poll_registration(&mut self) -> Option<Registration> {
        self.core.relays.poll_registration()
    }

    /// Returns the counters of associations.
    pub(crate) fn association(&self) -> AssociationCounters {
        self.core.relays.association()
    }

    /// Returns the counters of sessions and streams.
    pub(crate) fn traffic(&mut self) -> Traffic {
        let udp = self.udp_counters();
        Traffic {
            datagrams_sent: udp.sent,
            datagrams_received: udp.received,
            ..self.core.relays.traffic()
        }
    }

    fn expire(&mut self, now: Instant) {
        if self.core.relays.poll_timeout().is_some_and(|due| due <= now) {
            self.core.relays.handle_timeout(now);
            self.events(now);
        }
        while let Some(index) = self.core.deadlines.due(now) {
            self.core.set_due(index, None);
            self.role.on_deadline(&mut self.core, now, index);
        }
        if self.sweep_at <= now {
            self.core.sweep(now);
            self.core.relays.check_paths(&*self.core.host);
            self.core.relays.share_memory(self.core.limits.memory);
            self.store_path_metrics(now);
            self.state.save_rarely(now);
            crate::logging::report_omissions();
            self.sweep_at = now + self.core.sweep_interval();
        }
    }

    /// Stores the path metrics that sessions have measured.
    pub(crate) fn store_path_metrics(&mut self, now: Instant) {
        let host = &*self.core.host;
        let unix_seconds = |at| host.unix_ns(at) / 1_000_000_000;
        self.core.relays.remember(now, &mut self.state, unix_seconds);
    }

    fn receive(&mut self, now: Instant) {
        for (number, link_socket) in self.link_sockets.iter_mut().enumerate() {
            link_socket.receive(&mut self.core.relays, now, number);
        }
    }

    fn events(&mut self, now: Instant) {
        while let Some((peer, event)) = self.core.relays.poll_event() {
            self.role.on_event(&mut self.core, now, peer, event);
        }
    }

    /// Hands the resolver's answers to the connections that wait for them.
    fn names(&mut self, now: Instant) {
        if !std::mem::take(&mut self.names_answered) {
            return;
        }
        self.core.resolver.handle_updates(now);
        while let Some(answer) = self.core.resolver.poll_answer() {
            self.role.on_answer(&mut self.core, now, answer);
        }
    }

    /// Sends what the pacers permit; true when there is more.
    pub(crate) fn transmit(&mut self, now: Instant) -> bool {
        let mut more = false;
        for (number, link_socket) in self.link_sockets.iter_mut().enumerate() {
            more |= link_socket.transmit(&mut self.core.relays, &*self.core.host, now, number);
        }
        more
    }

    fn socket_ready(&mut self, now: Instant, index: usize, ready: Readiness) {
        // It may have closed earlier in this round; readiness of a closed one is harmless to the
        // connection that has its index now.
        let Some(connection) = self.core.connections.get_mut(index) else { return };
        if ready.error
            && connection.stage.takes_socket_errors()
            && let Some(error) = connection.socket.as_ref().and_then(|socket| socket.take_error())
        {
            self.core.on_socket_error(now, index, &error);
            return;
        }
        if let Some(transfer) = connection.stage.transfer_mut() {
            transfer.on_readiness(ready);
        }
        self.core.queue(index);
    }

    /// Rebinds sockets whose interfaces have appeared or disappeared, at intervals.
    fn review_link_sockets(&mut self, now: Instant) {
        if !self.addresses.review(now, |address| self.core.host.has_address(address)) {
            return;
        }
        let mut moved = false;
        for (number, link_socket) in self.link_sockets.iter_mut().enumerate() {
            let before = link_socket.is_working();
            let is_another = link_socket.rebind_if_needed(&mut *self.core.host, number);
            link_socket.set_absent(self.addresses.lacks(link_socket.address()));
            if is_another || link_socket.is_working() != before {
                moved |= link_socket.is_working();
                self.core.relays.set_bound(number, link_socket.is_working());
            }
        }
        if moved {
            // The MTU of the interface may be another.
            self.core.relays.check_paths(&*self.core.host);
        }
        if self.link_sockets.iter().any(LinkSocket::may_move) {
            self.addresses.look_by(now + LOOK);
        }
    }

    /// Watches the addresses that `config` names.
    pub(crate) fn watch_addresses(&mut self, config: &Config) {
        self.addresses.watch(config);
    }

    /// Returns the addresses and interfaces that it waits for.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let sockets = self.link_sockets.iter().filter_map(LinkSocket::missing);
        self.addresses.missing().chain(sockets).chain(self.core.relays.unresolved()).collect()
    }

    /// Returns when the next sweep is due.
    pub(crate) fn sweep_at(&self) -> Instant {
        self.sweep_at
    }
}

impl<R: Role> Machine for Pair<R> {
    fn round(&mut self, now: Instant) -> bool {
        self.core.now = now;
        self.core.counters.rounds += 1;
        let moved = self.moved();
        self.expire(now);
        self.review_link_sockets(now);
        self.receive(now);
        // Stream numbers begin again with each session: the end of the last one is handled before
        // streams of the next one open.
        self.events(now);
        self.core.relays.review(now);
        let Core { relays, host, .. } = &mut self.core;
        for (number, link_socket) in self.link_sockets.iter_mut().enumerate() {
            link_socket.review_carrier(relays, &mut **host, now, number);
        }
        // A process that was replaced opens no streams, and two Hellos of one terminal at a time
        // would end each other's association.
        while !self.is_replaced
            && let Some((hub, former)) = self.core.relays.poll_succession(now)
        {
            self.core.rename_peer(hub, former);
            self.core.relays.check_paths(&*self.core.host);
        }
        self.carry_in(now);
        let more_clients = self.role.begin_round(&mut self.core, now);
        self.names(now);
        self.lead_packets(now);
        self.events(now);
        for _ in 0..self.core.waiting() {
            let Some(index) = self.core.next_turn() else { break };
            self.role.run(&mut self.core, now, index);
        }
        let more_packets = self.carry_out(now);
        let more_to_send = self.transmit(now) | self.carry_stored(now);
        self.events(now);
        self.role.end_round(&mut self.core, now);
        self.idle_rounds =
            if moved == self.moved() { self.idle_rounds.saturating_add(1) } else { 0 };
        let more_datagrams = self.link_sockets.iter().any(|link_socket| link_socket.readable);
        let more = more_clients || more_packets || more_to_send || more_datagrams;
        let busy = defect::has(Defect::BusyLoop) && !self.core.connections.is_empty();
        more || busy
            || self.core.waiting() > 0
            || (self.draining.is_none() && self.role.wants_change(now))
    }

    fn poll_timeout(&self, now: Instant) -> Instant {
        self.next_due(now)
    }

    fn handle_readiness(&mut self, now: Instant, source: Source, ready: Readiness) {
        self.core.now = now;
        match source {
            Source::Names => self.names_answered = true,
            Source::HeldSyns | Source::Listener(_) | Source::NameQueries(_) => {
                self.role.handle_readiness(source);
            }
            Source::Packets => {
                if let Some(tunnel) = &mut self.tunnel {
                    tunnel.readable = true;
                }
            }
            Source::Datagrams(number) => {
                if let Some(link_socket) = self.link_sockets.get_mut(number) {
                    link_socket.readable |= ready.readable;
                }
            }
            Source::Connection(index) => self.socket_ready(now, index, ready),
        }
    }

    fn view(&mut self, now: Instant, epoch_unix_ns: u64) -> EngineView<'_> {
        let link = self.link_sockets.first().and_then(LinkSocket::local_address);
        EngineView::new(now, epoch_unix_ns, (link, self.waiting()), self)
    }

    fn moved(&self) -> u64 {
        self.moved_so_far()
    }
}
