//! The terminal's part: taking clients' connections and opening streams for them.
//!
//! ```text
//!   intercepted, early ───────▶ Greeting ──first bytes, or a few ms──▶ Spliced
//!   SOCKS5, CONNECT ──▶ Asking ──early──▶ Greeting
//!                          └─────confirm──▶ Confirming ──accepted──▶ Spliced
//!                                               └───────refused───▶ Farewell
//! ```

use crate::config::MOST_LISTENERS;
use crate::engine::accept::client_accept::welcome;
use crate::engine::accept::client_admission::Door;
use crate::engine::accept::confirm_queue::Confirm;
use crate::engine::accept::direct::Direct;
use crate::engine::accept::fallback::{Fail, Fate};
use crate::engine::accept::listener::{Accepted, Kind, Listener};
use crate::engine::accept::pause::Pause;
use crate::engine::accept::proxy_client::ask;
use crate::engine::accept::stage::{TerminalCore, TerminalStage};
use crate::engine::accept::stream_open::{open_greeted, open_now, refuse};
use crate::engine::connect::hub_lookup::HubLookups;
use crate::engine::forward::PacketDenied;
use crate::engine::host::{Host, SocketId, Source};
use crate::engine::limits::client_network::client_network;
use crate::engine::limits::slots::reserve::is_out_of_descriptors;
use crate::engine::pair::Role;
use crate::engine::peers::relay_set::{Peer, StreamKey};
use crate::engine::resolver::Answer;
use crate::engine::transfer::connection_info::About;
use crate::forward::Homes;
use crate::forward::packet::Ends;
use crate::intercept::Doorkeeper;
use crate::proxy::RefuseReason;
use crate::{FailSection, Limits, Promised, TerminalSection};
use relay::{Event, ResetReason, Service};
use slab::Slab;
use std::io;
use std::net::IpAddr;
use units::{Instant, Span};

/// Clients accepted before others have their turn.
const ACCEPT_BUDGET: usize = 64;
/// Rounds of accepting before listeners are closed: more than any listen queue holds.
const CLOSING_ROUNDS: usize = 64;
/// Places for listeners: those of two configurations, for a moment of a reload, each with its
/// transparent ones.
pub(crate) const PLACES: usize = 2 * (MOST_LISTENERS + 2);
/// How often the log hears of pauses.
const COMPLAINTS: Span = Span::from_secs(10);

/// What only a terminal has.
#[derive(Debug)]
pub(crate) struct Terminal {
    listeners: Slab<Listener>,
    /// Whose turn it is to accept from.
    turn: usize,
    pub(crate) door: Door,
    /// Where some that are intercepted are confirmed.
    pub(crate) confirm: Option<Confirm>,
    /// Whether accepting pauses.
    pause: Pause,
    /// The log hears of it no earlier than then.
    complain_again: Instant,
    /// Hubs that are configured by name.
    hubs: HubLookups,
}

impl Terminal {
    pub(crate) fn new(door: Door, confirm: Option<Confirm>) -> Self {
        let listeners = Slab::new();
        let (pause, complain_again) = (Pause::None, Instant::ZERO);
        let hubs = HubLookups::default();
        Self { listeners, turn: 0, door, confirm, pause, complain_again, hubs }
    }

    /// A terminal as `config` has it.
    ///
    /// # Errors
    /// Those of watching a socket.
    pub(crate) fn open(
        host: &mut dyn Host,
        config: &TerminalSection,
        (limits, fail): (&Limits, FailSection),
        (listeners, keeper): (Vec<Listener>, Option<Doorkeeper>),
    ) -> io::Result<Self> {
        if let Some(keeper) = &keeper {
            host.watch(SocketId(keeper.descriptor()), Source::Knocks)?;
        }
        let bounds = config.intercept.as_ref().map(|section| section.confirm).unwrap_or_default();
        let confirm = keeper.map(|keeper| Confirm::new(keeper, bounds));
        let mut direct = Direct::new();
        direct.guard(config);
        let door = Door::new(config.accept.clone(), limits, Fail::new(fail), direct);
        let mut terminal = Self::new(door, confirm);
        terminal.listen(host, listeners)?;
        Ok(terminal)
    }

    /// New connections pass by now: those that wait to be confirmed will as well.
    pub(crate) fn let_go(&mut self, core: &mut TerminalCore) {
        if let Some(confirm) = &mut self.confirm {
            confirm.let_go(core);
        }
    }

    /// Takes who has knocked; true when there may be more.
    pub(crate) fn answer_knocks(&mut self, core: &mut TerminalCore, now: Instant) -> bool {
        let door = &mut self.door;
        let more = self.confirm.as_mut().is_some_and(|confirm| confirm.answer(core, now, door));
        self.reset_reclaimed(core);
        more
    }

    /// Accepts from all of `new` as well, or from none of them. Returns their numbers.
    pub(crate) fn listen(
        &mut self,
        host: &mut dyn Host,
        new: Vec<Listener>,
    ) -> io::Result<Vec<usize>> {
        let mut numbers = Vec::new();
        if self.listeners.len() + new.len() > PLACES {
            let why = format!("more than {PLACES} listeners, those included that are to close");
            return Err(io::Error::other(why));
        }
        for listener in new {
            let place = self.listeners.vacant_entry();
            let number = place.key();
            // A slab takes its lowest places first.
            debug_assert!(number < PLACES);
            if let Err(error) = listener.watch(host, number) {
                self.listen_no_more(&numbers);
                return Err(error);
            }
            place.insert(listener);
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// Closes the listeners with these numbers.
    pub(crate) fn listen_no_more(&mut self, numbers: &[usize]) {
        for &number in numbers {
            self.listeners.try_remove(number);
        }
    }

    /// Its listeners.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().map(|(_, listener)| listener)
    }

    /// Clients wait at a listener.
    pub(crate) fn is_ready(&mut self, listener: usize) {
        if let Some(listener) = self.listeners.get_mut(listener) {
            listener.is_ready();
        }
    }

    /// Takes in who waits, as far as there is room, and closes the listeners that `go`.
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

    /// Looks whether new connections can be carried.
    pub(crate) fn review(&mut self, core: &TerminalCore, now: Instant) {
        let (open, limit) = (core.slots.table.len(), core.slots.total(now));
        self.door.fail.review(now, core.carrier.answers(), open, limit);
        let (connected, announced) = core.carrier.families();
        self.door.reachability.review(now, connected, announced);
    }

    /// Accepts who waits; true when more wait.
    pub(crate) fn accept(&mut self, core: &mut TerminalCore, now: Instant) -> bool {
        core.review_closing();
        let expected = self.ready_listener(false).is_some();
        if self.pause.holds(now, core.room_again, expected) {
            return false;
        }
        self.pause = Pause::None;
        core.room_again = false;
        // One from each in turn, so that a crowd at one does not keep out those at another.
        for _ in 0..ACCEPT_BUDGET {
            let room = core.slots.has_room(now) || !self.door.fail.waits_when_full();
            let Some(turn) = self.next_listener(room) else {
                if !room && self.listeners.iter().any(|(_, listener)| listener.may_accept()) {
                    core.counters.accept_pauses += 1;
                    self.pause = Pause::Places(core.slots.shortage(now));
                }
                return false;
            };
            let listener = &mut self.listeners[turn];
            match listener.accept() {
                Accepted::Client(stream, client) => {
                    let confirm = self.confirm.as_mut();
                    welcome(core, now, listener, &mut self.door, confirm, stream, client);
                    self.reset_reclaimed(core);
                    core.slots.restore_reserve();
                }
                Accepted::Nobody => {}
                Accepted::NoRoom(error) => {
                    if now >= self.complain_again {
                        self.complain_again = now + COMPLAINTS;
                        let open = core.slots.table.len();
                        tracing::warn!(%error, open, "no more clients than there are");
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

    /// Resets the connections whose slots others have.
    fn reset_reclaimed(&mut self, core: &mut TerminalCore) {
        while let Some(index) = core.next_reclaimed() {
            match (&core.connections[index].stage, &mut self.confirm) {
                (TerminalStage::Knocking(_), Some(confirm)) => confirm.reclaimed(core, index),
                (_, _) => core.give_up(index, ResetReason::Local),
            }
        }
    }

    /// The next listener at which clients may be waiting, whose turn it is then.
    fn next_listener(&mut self, room: bool) -> Option<usize> {
        let found = self.ready_listener(room)?;
        self.turn = found + 1;
        Some(found)
    }

    /// The next listener at which clients may be waiting. Without `room` for more only those
    /// that have a place already: they were let in.
    fn ready_listener(&self, room: bool) -> Option<usize> {
        let expected = self.confirm.as_ref().is_some_and(Confirm::is_expecting);
        let may = |listener: &Listener| {
            listener.may_accept() && (room || expected && listener.kind == Kind::Transparent)
        };
        let ready = |from| {
            let mut all = self.listeners.iter();
            all.find(|(key, listener)| *key >= from && may(listener)).map(|(key, _)| key)
        };
        ready(self.turn).or_else(|| ready(0))
    }

    /// The hub has connected.
    fn accepted(&mut self, core: &mut TerminalCore, now: Instant, key: StreamKey) {
        let Some(index) = core.connection_of(key) else { return };
        let connection = &mut core.connections[index];
        self.door.reachability.succeeded(connection.about.server.as_ref());
        match &connection.stage {
            TerminalStage::Confirming(handshake) => {
                let preface = handshake.granted(None);
                let kept = std::mem::take(&mut connection.kept);
                core.splice(index, kept, preface);
            }
            TerminalStage::Knocking(_) => {
                if let Some(confirm) = &mut self.confirm {
                    confirm.accepted(core, now, index);
                }
            }
            // The client was answered early.
            TerminalStage::Transfer(_)
            | TerminalStage::Asking(_)
            | TerminalStage::Greeting { .. }
            | TerminalStage::DirectConnect(_) => {}
        }
    }

    /// Tells the client as well as it can be told that its stream is gone.
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
            TerminalStage::Knocking(_) => {
                if let Some(confirm) = &mut self.confirm {
                    confirm.refused(core, index, reason);
                }
            }
            TerminalStage::Transfer(_) => core.stream_lost(index),
            // They have no stream.
            TerminalStage::Asking(_)
            | TerminalStage::Greeting { .. }
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
            Source::Knocks => {
                if let Some(confirm) = &mut self.confirm {
                    confirm.is_ready();
                }
            }
            Source::Datagrams(_) | Source::Names | Source::Packets | Source::Connection(_) => {}
        }
    }

    fn begin_round(&mut self, core: &mut TerminalCore, now: Instant) -> bool {
        self.review(core, now);
        self.hubs.review(&mut core.carrier, &mut core.resolver, &*core.host, now);
        let more_knock = self.answer_knocks(core, now);
        self.accept(core, now) || more_knock
    }

    fn on_event(&mut self, core: &mut TerminalCore, now: Instant, peer: Peer, event: Event) {
        let key = |stream| StreamKey { peer, stream };
        match event {
            Event::Connected => {
                tracing::info!(hub = %core.carrier.describe(peer), "the hub answers");
            }
            Event::Disconnected { reason } => {
                tracing::warn!(?reason, "the hub is lost, and all connections with it");
                for index in core.connections_to(peer) {
                    core.counters.lost_with_peer += 1;
                    core.because(index, "the hub was lost");
                    core.detach(index);
                    let reason = match core.connections[index].stage {
                        TerminalStage::Knocking(_) => RefuseReason::NetworkUnreachable,
                        _ => RefuseReason::Other,
                    };
                    self.stream_gone(core, now, index, reason, "the hub was lost");
                }
            }
            Event::Opened { stream, .. } => {
                // Only terminals open streams.
                core.carrier.refuse(key(stream), RefuseReason::Policy);
            }
            Event::Accepted { stream } => self.accepted(core, now, key(stream)),
            Event::Refused { stream, reason } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    tracing::debug!(%stream, ?reason, "refused by the hub");
                    let About { client, server, .. } = &core.connections[index].about;
                    let network =
                        client.map(|client| client_network(client.ip(), core.limits.ipv6_prefix));
                    self.door.reachability.failed(now, network, server.as_ref(), reason);
                    core.counters.refused(reason);
                    core.because(index, reason.words());
                    core.detach(index);
                    self.stream_gone(core, now, index, reason, "");
                }
            }
            Event::Readable { stream } | Event::Writable { stream } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    core.queue(index);
                }
            }
            Event::Ended { stream } => core.stream_ended(key(stream)),
            Event::Ending { stream, reason } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    tracing::debug!(%stream, ?reason, "reset by the hub");
                    core.because(index, "the hub reset it");
                    core.stream_ending(index);
                }
            }
            Event::Reset { stream, reason } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    tracing::debug!(%stream, ?reason, "reset by the hub");
                    core.because(index, "the hub reset it");
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
                // What is left is to pass on the end, if that was not done yet.
                if let Some(index) = core.connection_of(key(stream)) {
                    core.queue(index);
                }
            }
        }
    }

    fn on_answer(&mut self, core: &mut TerminalCore, now: Instant, answer: Answer) {
        if !self.hubs.answered(&mut core.carrier, &*core.host, now, &answer) {
            self.door.direct.answered(core, now, answer);
        }
    }

    fn run(&mut self, core: &mut TerminalCore, now: Instant, index: usize) {
        match core.connections[index].stage {
            TerminalStage::Asking(_) => {
                ask(core, now, index, &mut self.door);
                self.reset_reclaimed(core);
            }
            TerminalStage::Greeting { .. } => open_greeted(core, now, index),
            // What the client sends meanwhile stays in its socket.
            TerminalStage::Confirming(_) | TerminalStage::Knocking(_) => {}
            TerminalStage::DirectConnect(_) => self.door.direct.connecting(core, now, index),
            TerminalStage::Transfer(_) => core.run_transfer(now, index),
        }
    }

    fn on_deadline(&mut self, core: &mut TerminalCore, now: Instant, index: usize) {
        match &core.connections[index].stage {
            TerminalStage::Asking(asking) => {
                tracing::info!(client = %asking.client, "a client of a proxy was too slow");
                core.counters.bad_requests += 1;
                core.because(index, "it was too slow to say what it wanted");
                core.reset_socket(index);
            }
            TerminalStage::Greeting { .. } => open_now(core, now, index, Vec::new()),
            TerminalStage::Knocking(_) => {
                if let Some(confirm) = &mut self.confirm {
                    confirm.expired(core, index);
                }
            }
            TerminalStage::Confirming(_) => {
                if let Some(key) = core.connections[index].key {
                    core.carrier.reset(key, ResetReason::TimedOut);
                }
                core.detach(index);
                refuse(core, now, index, RefuseReason::TimedOut, "the hub gave no answer");
            }
            TerminalStage::DirectConnect(_) => self.door.direct.connecting(core, now, index),
            TerminalStage::Transfer(_) => core.on_transfer_deadline(now, index),
        }
    }

    fn end_round(&mut self, _: &mut TerminalCore, _: Instant) {}

    fn poll_timeout(&self, _: &TerminalCore, now: Instant) -> Option<Instant> {
        let door = [self.door.fail.poll_timeout(now), self.door.reachability.poll_timeout(now)];
        self.pause
            .until()
            .into_iter()
            .chain(self.hubs.poll_timeout())
            .chain(door.into_iter().flatten())
            .min()
    }

    /// Clients at the transparent listeners were intercepted before the drain began.
    fn drain(&mut self, core: &mut TerminalCore, now: Instant) {
        if let Some(confirm) = &mut self.confirm {
            confirm.close(core);
        }
        self.close(core, now, |listener| listener.kind != Kind::Transparent);
    }

    fn bypasses_packets(&self) -> Option<bool> {
        Some(self.door.fail.fate() == Fate::Direct)
    }

    fn peer_for(&self, core: &TerminalCore, _: &Homes, _: &Ends) -> Option<Peer> {
        Some(core.carrier.first_path())
    }

    fn service_of(&self, _: &[u8], ends: &Ends) -> (IpAddr, Option<Service>) {
        (ends.source, None)
    }

    fn admit_packet(
        &mut self,
        _: Instant,
        _: &Homes,
        _: &str,
        _: &Ends,
    ) -> Result<(), PacketDenied> {
        Ok(())
    }

    fn promised(&self) -> &[Promised] {
        &[]
    }

    fn wants_change(&self, now: Instant) -> bool {
        self.door.fail.wants_passing(now).is_some() || self.door.reachability.wants_filter(now)
    }
}
