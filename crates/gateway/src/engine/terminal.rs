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
use crate::engine::accept::listener::{Accepted, Kind, Listener};
use crate::engine::accept::pause::Pause;
use crate::engine::accept::proxy_client::{ask, farewell};
use crate::engine::accept::stream_open::{open_greeted, open_now, refuse};
use crate::engine::host::Host;
use crate::engine::limits::client_network::client_network;
use crate::engine::limits::slots::reserve::is_out_of_descriptors;
use crate::engine::peers::relay_set::{Peer, StreamKey};
use crate::engine::transfer::connection::Phase;
use crate::engine::transfer::connection_info::About;
use crate::engine::transfer::connections::Core;
use crate::proxy::RefuseReason;
use relay::{Event, ResetReason};
use slab::Slab;
use std::io;
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
pub(super) struct Terminal {
    listeners: Slab<Listener>,
    /// Whose turn it is to accept from.
    turn: usize,
    pub(super) door: Door,
    /// Where some that are intercepted are confirmed.
    pub(super) confirm: Option<Confirm>,
    /// Whether accepting pauses.
    pause: Pause,
    /// The log hears of it no earlier than then.
    complain_again: Instant,
}

impl Terminal {
    pub(super) fn new(door: Door, confirm: Option<Confirm>) -> Self {
        let listeners = Slab::new();
        let (pause, complain_again) = (Pause::None, Instant::ZERO);
        Self { listeners, turn: 0, door, confirm, pause, complain_again }
    }

    /// Somebody knocks who is to be confirmed.
    pub(super) fn somebody_knocks(&mut self) {
        if let Some(confirm) = &mut self.confirm {
            confirm.is_ready();
        }
    }

    /// Confirms nobody any more.
    pub(super) fn confirm_no_more(&mut self, core: &mut Core) {
        if let Some(confirm) = &mut self.confirm {
            confirm.close(core);
        }
    }

    /// New connections pass by now: those that wait to be confirmed will as well.
    pub(super) fn let_go(&mut self, core: &mut Core) {
        if let Some(confirm) = &mut self.confirm {
            confirm.let_go(core);
        }
    }

    /// Takes who has knocked; true when there may be more.
    pub(super) fn answer_knocks(&mut self, core: &mut Core, now: Instant) -> bool {
        let door = &mut self.door;
        let more = self.confirm.as_mut().is_some_and(|confirm| confirm.answer(core, now, door));
        self.reset_reclaimed(core);
        more
    }

    /// Accepts from all of `new` as well, or from none of them. Returns their numbers.
    pub(super) fn listen(
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
    pub(super) fn listen_no_more(&mut self, numbers: &[usize]) {
        for &number in numbers {
            self.listeners.try_remove(number);
        }
    }

    /// Its listeners.
    pub(super) fn listeners(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().map(|(_, listener)| listener)
    }

    /// Clients wait at a listener.
    pub(super) fn is_ready(&mut self, listener: usize) {
        if let Some(listener) = self.listeners.get_mut(listener) {
            listener.is_ready();
        }
    }

    /// Takes in who waits, as far as there is room, and closes the listeners that `go`.
    pub(super) fn close(&mut self, core: &mut Core, now: Instant, go: impl Fn(&Listener) -> bool) {
        for _ in 0..CLOSING_ROUNDS {
            if !self.accept(core, now) {
                break;
            }
        }
        self.listeners.retain(|_, listener| !go(listener));
    }

    /// When accepting is to be tried again.
    pub(super) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let door = [self.door.fail.poll_timeout(now), self.door.reachability.poll_timeout(now)];
        self.pause.until().into_iter().chain(door.into_iter().flatten()).min()
    }

    /// Looks whether new connections can be carried.
    pub(super) fn review(&mut self, core: &Core, now: Instant) {
        let (open, limit) = (core.slots.table.len(), core.slots.total(now));
        self.door.fail.review(now, core.carrier.answers(), open, limit);
        let (connected, announced) = core.carrier.families();
        self.door.reachability.review(now, connected, announced);
    }

    /// Accepts who waits; true when more wait.
    pub(super) fn accept(&mut self, core: &mut Core, now: Instant) -> bool {
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
    fn reset_reclaimed(&mut self, core: &mut Core) {
        while let Some(index) = core.next_reclaimed() {
            match (&core.connections[index].phase, &mut self.confirm) {
                (Phase::Knocking(_), Some(confirm)) => confirm.reclaimed(core, index),
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

    /// A connection's turn.
    pub(super) fn turn(&mut self, core: &mut Core, now: Instant, index: usize) {
        match core.connections[index].phase {
            Phase::Asking(_) => {
                ask(core, now, index, &mut self.door);
                self.reset_reclaimed(core);
            }
            Phase::Greeting { .. } => open_greeted(core, now, index),
            // What the client sends meanwhile waits in its socket.
            Phase::Confirming(_) | Phase::Knocking(_) => {}
            Phase::Farewell { .. } => farewell(core, index),
            Phase::Direct(_) => self.door.direct.turn(core, now, index),
            Phase::Connecting(_) => unreachable!("a hub's phase"),
            Phase::Spliced(_) => core.turn_splice(now, index),
            Phase::Emptying(_) => core.turn_emptying(now, index),
            Phase::Breaking(_) => core.turn_breaking(now, index),
        }
    }

    /// The deadline of a connection has come.
    pub(super) fn expired(&mut self, core: &mut Core, now: Instant, index: usize) {
        core.set_due(index, None);
        match &core.connections[index].phase {
            Phase::Asking(asking) => {
                tracing::info!(client = %asking.client, "a client of a proxy was too slow");
                core.counters.bad_requests += 1;
                core.because(index, "it was too slow to say what it wanted");
                core.reset_socket(index);
            }
            Phase::Greeting { .. } => open_now(core, now, index, Vec::new()),
            Phase::Knocking(_) => {
                if let Some(confirm) = &mut self.confirm {
                    confirm.expired(core, index);
                }
            }
            Phase::Confirming(_) => {
                if let Some(key) = core.connections[index].key {
                    core.carrier.reset(key, ResetReason::TimedOut);
                }
                core.detach(index);
                refuse(core, now, index, RefuseReason::TimedOut, "the hub gave no answer");
            }
            Phase::Farewell { .. } => core.reset_socket(index),
            Phase::Direct(_) => self.door.direct.expired(core, now, index),
            Phase::Connecting(_) => unreachable!("a hub's phase"),
            Phase::Spliced(_) => {}
            Phase::Emptying(_) => core.turn_emptying(now, index),
            Phase::Breaking(_) => core.turn_breaking(now, index),
        }
    }

    /// Something happened on the relay's side.
    pub(super) fn event(&mut self, core: &mut Core, now: Instant, peer: Peer, event: &Event) {
        let key = |stream| StreamKey { peer, stream };
        match *event {
            Event::Connected => {
                tracing::info!(hub = %core.carrier.describe(peer), "the hub answers");
            }
            Event::Disconnected { reason } => {
                tracing::warn!(?reason, "the hub is lost, and all connections with it");
                for index in core.connections_to(peer) {
                    core.counters.lost_with_peer += 1;
                    core.because(index, "the hub was lost");
                    core.detach(index);
                    let knocks = matches!(core.connections[index].phase, Phase::Knocking(_));
                    let reason = match knocks {
                        true => RefuseReason::NetworkUnreachable,
                        false => RefuseReason::Other,
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
                    if core.connections[index].is_handing_out() {
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

    /// The hub has connected.
    fn accepted(&mut self, core: &mut Core, now: Instant, key: StreamKey) {
        let Some(index) = core.connection_of(key) else { return };
        let connection = &mut core.connections[index];
        self.door.reachability.succeeded(connection.about.server.as_ref());
        match &connection.phase {
            Phase::Confirming(handshake) => {
                let preface = handshake.granted(None);
                let kept = std::mem::take(&mut connection.kept);
                core.splice(index, kept, preface);
            }
            Phase::Knocking(_) => {
                if let Some(confirm) = &mut self.confirm {
                    confirm.accepted(core, now, index);
                }
            }
            // The client was told long ago.
            Phase::Asking(_)
            | Phase::Greeting { .. }
            | Phase::Direct(_)
            | Phase::Farewell { .. }
            | Phase::Connecting(_)
            | Phase::Spliced(_)
            | Phase::Emptying(_)
            | Phase::Breaking(_) => {}
        }
    }

    /// The stream is gone before its time: the client is told as well as it can be.
    fn stream_gone(
        &mut self,
        core: &mut Core,
        now: Instant,
        index: usize,
        reason: RefuseReason,
        detail: &str,
    ) {
        match &core.connections[index].phase {
            Phase::Confirming(_) => refuse(core, now, index, reason, detail),
            Phase::Knocking(_) => {
                if let Some(confirm) = &mut self.confirm {
                    confirm.refused(core, index, reason);
                }
            }
            Phase::Asking(_)
            | Phase::Greeting { .. }
            | Phase::Direct(_)
            | Phase::Farewell { .. } => {}
            Phase::Connecting(_) => unreachable!("a hub's phase"),
            Phase::Spliced(_) | Phase::Emptying(_) | Phase::Breaking(_) => {
                core.reset_socket(index);
            }
        }
    }
}
