//! The role of a terminal: accepting clients and opening streams for them.
//!
//! ```text
//!   intercepted, early ───────▶ AwaitingData ──first bytes, or a few ms──▶ Spliced
//!   SOCKS5, CONNECT ──▶ ProxyHandshake ──early──▶ AwaitingData
//!                          └─────confirm──▶ Confirming ──accepted──▶ Spliced
//!                                               └───────refused───▶ FinalReply
//! ```

mod listeners;
mod session_over;

use crate::config::MAX_PROXY_LISTENERS;
use crate::engine::accept::confirm_queue::ConfirmQueue;
use crate::engine::accept::direct::Direct;
use crate::engine::accept::dns_service::DnsService;
use crate::engine::accept::fallback::{Disposition, FallbackPolicy};
use crate::engine::accept::proxy_client::read_request;
use crate::engine::accept::stage::{TerminalCore, TerminalStage};
use crate::engine::accept::stream_open::{open_now, open_when_readable, refuse};
use crate::engine::accept::{client_accept::accept_client, client_admission::ClientAdmission};
use crate::engine::accept::{
    listener::{Accepted, Kind, Listener},
    pause::Pause,
};
use crate::engine::connect::hub_lookup::HubLookups;
use crate::engine::host::{HeldSyns, Host, Source};
use crate::engine::limits::{
    client_network::client_network, slots::reserve::is_out_of_descriptors,
};
use crate::engine::pair::Role;
use crate::engine::peers::peer::{Peer, StreamKey};
use crate::engine::peers::relay_set::reports::Reports;
use crate::engine::resolver::Answer;
use crate::engine::transfer::connection_info::ConnectionInfo;
use crate::forward::{Homes, packet::Ends};
use crate::observe::DnsStatus;
use crate::proxy::RefuseReason;
use crate::{FailSection, Limits, TerminalSection};
use relay::{Event, ResetReason};
use slab::Slab;
use std::io;
use units::{Instant, Span};

/// Maximum number of clients that are accepted in one round.
const ACCEPT_BUDGET: usize = 64;
/// Maximum number of accept rounds before listeners are closed, which exceeds the length of any
/// accept queue.
const CLOSING_ROUNDS: usize = 64;
/// Maximum number of listeners: those of two configurations during a reload, with their transparent
/// ones.
pub(crate) const MAX_LISTENERS: usize = 2 * (MAX_PROXY_LISTENERS + 2);
/// Minimum interval between log messages about pauses.
const COMPLAINTS: Span = Span::from_secs(10);

/// State of a terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    listeners: Slab<Listener>,
    /// Listener from which the next client is accepted.
    turn: usize,
    pub(crate) admission: ClientAdmission,
    /// Held SYNs, if deferred accept of intercepted connections is possible.
    pub(crate) confirm_queue: Option<ConfirmQueue>,
    /// State of accepting.
    pause: Pause,
    /// Earliest time of the next log message about a pause.
    complain_again: Instant,
    /// Hubs that are configured by name.
    hubs: HubLookups,
    /// The DNS forwarder, if there is one.
    dns: Option<DnsService>,
    reports: Reports,
}

impl Terminal {
    pub(crate) fn new(admission: ClientAdmission, confirm_queue: Option<ConfirmQueue>) -> Self {
        let listeners = Slab::new();
        let (pause, complain_again, hubs) = (Pause::None, Instant::ZERO, HubLookups::default());
        let (dns, reports) = (None, Reports::default());
        Self {
            listeners,
            turn: 0,
            admission,
            confirm_queue,
            pause,
            complain_again,
            hubs,
            dns,
            reports,
        }
    }

    /// A terminal as `config` has it.
    ///
    /// # Errors
    /// Those of watching a socket.
    pub(crate) fn open(
        host: &mut dyn Host,
        config: &TerminalSection,
        (limits, fail): (&Limits, FailSection),
        (listeners, gate): (Vec<Listener>, Option<Box<dyn HeldSyns>>),
    ) -> io::Result<Self> {
        if let Some(gate) = &gate {
            host.watch(gate.id(), Source::HeldSyns)?;
        }
        let bounds = config.intercept.as_ref().map(|section| section.confirm).unwrap_or_default();
        let confirm = gate.map(|gate| ConfirmQueue::new(gate, bounds));
        let mut direct = Direct::new();
        direct.guard(config);
        let admission =
            ClientAdmission::new(config.accept.clone(), limits, FallbackPolicy::new(fail), direct);
        let mut terminal = Self::new(admission, confirm);
        terminal.dns =
            config.dns.as_ref().map(|dns| DnsService::open(host, dns, &listeners)).transpose()?;
        terminal.listen(host, listeners)?;
        Ok(terminal)
    }

    /// Drops held SYNs, because new connections bypass the gateway from now on.
    pub(crate) fn drop_pending(&mut self, core: &mut TerminalCore) {
        if let Some(confirm) = &mut self.confirm_queue {
            confirm.drop_pending(core);
        }
    }

    /// Reads SYNs and opens streams for them; true when there may be more.
    pub(crate) fn receive_syns(&mut self, core: &mut TerminalCore, now: Instant) -> bool {
        let admission = &mut self.admission;
        let more = self
            .confirm_queue
            .as_mut()
            .is_some_and(|confirm| confirm.receive_syns(core, now, admission));
        self.reset_reclaimed(core);
        more
    }

    /// Accepts pending clients as far as there are slots, and closes the listeners that `go`.
    pub(crate) fn close(
        &mut self,
        core: &mut TerminalCore,
        now: Instant,
        go: impl Fn(&Listener) -> bool,
    ) {
        for _ in 0..CLOSING_ROUNDS {
            if !self.accept(core, now) {
                break;
            }
        }
        self.listeners.retain(|_, listener| !go(listener));
    }

    /// Updates the conditions under which new connections are relayed.
    pub(crate) fn review(&mut self, core: &TerminalCore, now: Instant) {
        let (open, limit) = (core.slots.table.len(), core.slots.total(now));
        self.admission.fallback.review(now, core.relays.answers(), open, limit);
        let (connected, announced) = core.relays.families();
        self.admission.reachability.review(now, connected, announced);
    }

    /// Accepts pending clients; true when more are pending.
    pub(crate) fn accept(&mut self, core: &mut TerminalCore, now: Instant) -> bool {
        core.review_closing();
        let expected = self.ready_listener(false).is_some();
        if self.pause.holds(now, core.room_again, expected) {
            return false;
        }
        self.pause = Pause::None;
        core.room_again = false;
        // The listeners take turns, so that a long queue at one does not starve the others.
        for _ in 0..ACCEPT_BUDGET {
            let room = core.slots.has_room(now) || !self.admission.fallback.waits_when_full();
            let Some(turn) = self.next_listener(room) else {
                if !room && self.listeners.iter().any(|(_, listener)| listener.may_accept()) {
                    core.counters.accept_pauses += 1;
                    self.pause = Pause::Slots(core.slots.shortage(now));
                }
                return false;
            };
            let listener = &mut self.listeners[turn];
            match listener.accept() {
                Accepted::Client(stream, client) => {
                    let confirm = self.confirm_queue.as_mut();
                    accept_client(
                        core,
                        now,
                        listener,
                        &mut self.admission,
                        confirm,
                        stream,
                        client,
                    );
                    self.reset_reclaimed(core);
                    core.slots.restore_reserve();
                }
                Accepted::Empty => {}
                Accepted::Exhausted(error) => {
                    if now >= self.complain_again {
                        self.complain_again = now + COMPLAINTS;
                        let open = core.slots.table.len();
                        tracing::warn!(%error, open, "accepting paused: no descriptors or memory");
                    }
                    if is_out_of_descriptors(&error) && core.slots.descriptors_ran_out(now) {
                        continue;
                    }
                    core.counters.accept_pauses += 1;
                    self.pause = Pause::without_descriptors(now);
                    return false;
                }
            }
        }
        self.listeners.iter().any(|(_, listener)| listener.may_accept())
    }

    /// Resets the connections whose slots were reclaimed.
    fn reset_reclaimed(&mut self, core: &mut TerminalCore) {
        while let Some(index) = core.next_reclaimed() {
            match (&core.connections[index].stage, &mut self.confirm_queue) {
                (TerminalStage::SynHeld(_), Some(confirm)) => confirm.reclaimed(core, index),
                (_, _) => core.abort(index, ResetReason::Local),
            }
        }
    }

    /// Handles the hub's message that it has connected to the server.
    fn accepted(&mut self, core: &mut TerminalCore, now: Instant, key: StreamKey) {
        let Some(index) = core.connection_of(key) else { return };
        let connection = &mut core.connections[index];
        self.admission.reachability.succeeded(connection.info.server.as_ref());
        match &connection.stage {
            TerminalStage::Confirming(handshake) => {
                let pending_reply = handshake.granted(None);
                let pending_input = std::mem::take(&mut connection.pending_input);
                core.splice(index, pending_input, pending_reply);
            }
            TerminalStage::SynHeld(_) => {
                if let Some(confirm) = &mut self.confirm_queue {
                    confirm.accepted(core, now, index);
                }
            }
            // The client was answered early, or waits for data.
            TerminalStage::Transfer(_)
            | TerminalStage::Dns(_)
            | TerminalStage::NameLookup(_)
            | TerminalStage::ProxyHandshake(_)
            | TerminalStage::AwaitingData { .. }
            | TerminalStage::DirectConnect(_) => {}
        }
    }

    /// Informs the client of the loss of its stream, by a reply where its stage permits one.
    fn stream_gone(
        &mut self,
        core: &mut TerminalCore,
        now: Instant,
        index: usize,
        reason: RefuseReason,
        detail: &str,
    ) {
        match &core.connections[index].stage {
            TerminalStage::Confirming(_) => refuse(core, now, index, reason, detail),
            TerminalStage::SynHeld(_) => {
                if let Some(confirm) = &mut self.confirm_queue {
                    confirm.refused(core, index, reason);
                }
            }
            TerminalStage::Transfer(_) => core.stream_lost(index),
            TerminalStage::NameLookup(_) => {
                if let Some(dns) = &mut self.dns {
                    dns.lookup_gone(core, now, index);
                }
            }
            // They have no stream.
            TerminalStage::ProxyHandshake(_)
            | TerminalStage::AwaitingData { .. }
            | TerminalStage::Dns(_)
            | TerminalStage::DirectConnect(_) => {}
        }
    }
}

impl Role for Terminal {
    type Stage = TerminalStage;

    const IS_HUB: bool = false;

    fn handle_readiness(&mut self, source: Source) {
        match source {
            Source::Listener(number) => self.is_ready(number),
            Source::HeldSyns => {
                if let Some(confirm) = &mut self.confirm_queue {
                    confirm.is_ready();
                }
            }
            Source::NameQueries(number) => {
                if let Some(dns) = &mut self.dns {
                    dns.is_ready(number);
                }
            }
            Source::Datagrams(_) | Source::Names | Source::Packets | Source::Connection(_) => {}
        }
    }

    fn begin_round(&mut self, core: &mut TerminalCore, now: Instant) -> bool {
        self.review(core, now);
        self.hubs.review(&mut core.relays, &mut core.resolver, &*core.host, now);
        let more_queries = self.dns.as_mut().is_some_and(|dns| dns.turn(core, now));
        let unix_s = core.host.unix_ns(now) / 1_000_000_000;
        let counted = (core.slots.table.len(), &core.counters);
        self.reports.review(now, unix_s, &mut core.relays, counted);
        let more_syns = self.receive_syns(core, now);
        self.accept(core, now) || more_syns || more_queries
    }

    fn on_event(&mut self, core: &mut TerminalCore, now: Instant, peer: Peer, event: Event) {
        let key = |stream| StreamKey { peer, stream };
        match event {
            Event::Connected => {
                tracing::info!(hub = %core.relays.describe(peer), "connected to hub");
            }
            Event::Disconnected { reason } => self.session_over(core, now, peer, reason),
            Event::Opened { stream, .. } => {
                // A hub opens no streams.
                core.relays.refuse(key(stream), RefuseReason::Policy);
            }
            Event::Accepted { stream } => self.accepted(core, now, key(stream)),
            Event::Refused { stream, reason } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    tracing::debug!(%stream, ?reason, "stream refused by the hub");
                    let ConnectionInfo { client, server, .. } = &core.connections[index].info;
                    let network =
                        client.map(|client| client_network(client.ip(), core.limits.ipv6_prefix));
                    self.admission.reachability.failed(now, network, server.as_ref(), reason);
                    core.counters.refused(reason);
                    core.set_close_cause(index, reason.words());
                    core.detach(index);
                    self.stream_gone(core, now, index, reason, "");
                }
            }
            Event::Readable { stream } | Event::Writable { stream } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    core.queue(index);
                }
            }
            Event::Ended { stream } => {
                core.stream_ended(key(stream));
                if let Some(index) = core.connection_of(key(stream))
                    && let TerminalStage::NameLookup(_) = core.connections[index].stage
                {
                    core.queue(index);
                }
            }
            Event::Ending { stream, reason } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    tracing::debug!(%stream, ?reason, "stream reset by the hub");
                    core.set_close_cause(index, "reset by the hub");
                    core.stream_ending(index);
                }
            }
            Event::Reset { stream, reason } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    tracing::debug!(%stream, ?reason, "stream reset by the hub");
                    core.set_close_cause(index, "reset by the hub");
                    if let TerminalStage::Transfer(_) = core.connections[index].stage {
                        core.stream_reset(now, index);
                    } else {
                        core.counters.reset_by_peer += 1;
                        core.detach(index);
                        let (reason, detail) = (RefuseReason::Other, "the connection was reset");
                        self.stream_gone(core, now, index, reason, detail);
                    }
                }
            }
            Event::Released { stream } => {
                // The end of the stream may still have to be passed on.
                if let Some(index) = core.connection_of(key(stream)) {
                    core.queue(index);
                }
            }
        }
    }

    fn on_answer(&mut self, core: &mut TerminalCore, now: Instant, answer: Answer) {
        if !self.hubs.answered(&mut core.relays, &*core.host, now, &answer) {
            self.admission.direct.answered(core, now, answer);
        }
    }

    fn run(&mut self, core: &mut TerminalCore, now: Instant, index: usize) {
        match core.connections[index].stage {
            TerminalStage::ProxyHandshake(_) => {
                read_request(core, now, index, &mut self.admission);
                self.reset_reclaimed(core);
            }
            TerminalStage::AwaitingData { .. } => open_when_readable(core, now, index),
            // What the client sends meanwhile stays in its socket.
            TerminalStage::Confirming(_) | TerminalStage::SynHeld(_) => {}
            TerminalStage::DirectConnect(_) => self.admission.direct.connecting(core, now, index),
            TerminalStage::Dns(_) => {
                if let Some(dns) = &mut self.dns {
                    dns.run_client(core, now, index);
                }
            }
            TerminalStage::NameLookup(_) => {
                if let Some(dns) = &mut self.dns {
                    dns.run_lookup(core, now, index);
                }
            }
            TerminalStage::Transfer(_) => core.run_transfer(now, index),
        }
    }

    fn on_deadline(&mut self, core: &mut TerminalCore, now: Instant, index: usize) {
        match &core.connections[index].stage {
            TerminalStage::ProxyHandshake(asking) => {
                tracing::info!(client = %asking.client, "proxy handshake timed out");
                core.counters.bad_requests += 1;
                core.set_close_cause(index, "proxy handshake timed out");
                core.reset_socket(index);
            }
            TerminalStage::AwaitingData { .. } => open_now(core, now, index, Vec::new()),
            TerminalStage::SynHeld(_) => {
                if let Some(confirm) = &mut self.confirm_queue {
                    confirm.expired(core, index);
                }
            }
            TerminalStage::Confirming(_) => {
                if let Some(key) = core.connections[index].key {
                    core.relays.reset(key, ResetReason::TimedOut);
                }
                core.detach(index);
                refuse(core, now, index, RefuseReason::TimedOut, "no response from the hub");
            }
            TerminalStage::DirectConnect(_) => self.admission.direct.connecting(core, now, index),
            TerminalStage::Dns(_) => core.finish(index),
            TerminalStage::NameLookup(_) => core.abort(index, ResetReason::Aborted),
            TerminalStage::Transfer(_) => core.on_transfer_deadline(now, index),
        }
    }

    fn poll_timeout(&self, _: &TerminalCore, now: Instant) -> Option<Instant> {
        let admission = [
            self.admission.fallback.poll_timeout(now),
            self.admission.reachability.poll_timeout(now),
        ];
        let dns = self.dns.as_ref().and_then(DnsService::poll_timeout);
        let own = self.pause.until().into_iter().chain(self.hubs.poll_timeout()).chain(dns);
        own.chain(admission.into_iter().flatten()).min()
    }

    /// Clients at the transparent listeners were intercepted before the drain began.
    fn drain(&mut self, core: &mut TerminalCore, now: Instant) {
        if let Some(confirm) = &mut self.confirm_queue {
            confirm.close(core);
        }
        self.close(core, now, |listener| listener.kind != Kind::Transparent);
        if let Some(dns) = &mut self.dns {
            dns.close(&mut *core.host);
        }
    }

    fn hand_over(&mut self, core: &mut TerminalCore) {
        if let Some(dns) = &mut self.dns {
            dns.close(&mut *core.host);
        }
        if let Some(confirm) = &mut self.confirm_queue {
            confirm.close(core);
        }
        // The other process has the same sockets, so that closing alone does not end the watch.
        self.listeners.iter().for_each(|(_, listener)| listener.unwatch(&mut *core.host));
        self.listeners.clear();
    }

    fn bypasses_packets(&self) -> Option<bool> {
        Some(self.admission.fallback.disposition() == Disposition::Direct)
    }

    fn peer_for(&self, core: &TerminalCore, _: &Homes, _: &Ends) -> Option<Peer> {
        Some(core.relays.first_path())
    }

    fn dns(&self, core: &TerminalCore) -> Option<DnsStatus> {
        let status = self.dns.as_ref()?.status();
        Some(DnsStatus { opened_by_name: core.names.opened, ..status })
    }

    fn wants_change(&self, now: Instant) -> bool {
        self.admission.fallback.wanted_bypass(now).is_some()
            || self.admission.reachability.wants_filter(now)
    }
}
