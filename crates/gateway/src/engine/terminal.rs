//! The terminal's part: taking clients' connections and opening streams for them.
//!
//! ```text
//!   intercepted ──────────────▶ Greeting ──first bytes, or a few ms──▶ Spliced
//!   SOCKS5, CONNECT ──▶ Asking ──early──▶ Greeting
//!                          └─────confirm──▶ Confirming ──accepted──▶ Spliced
//!                                               └───────refused───▶ Farewell
//! ```

use super::about::About;
use super::asking::{ask, farewell, flush, say_farewell};
use super::carrier::{Peer, StreamKey, target};
use super::connection::{Asking, Phase};
use super::core::{Core, FIRST_CONNECTION};
use super::door::Door;
use super::listener::{Accepted, Kind, Listener};
use super::{LISTENERS, socket};
use crate::AcceptMode;
use crate::intercept;
use crate::proxy::{Destination, Handshake, RefuseReason};
use mio::net::TcpStream;
use mio::{Registry, Token};
use relay::{Event, ResetReason};
use slab::Slab;
use std::io;
use std::net::SocketAddr;
use units::{Instant, Span};

/// Clients accepted before others have their turn.
const ACCEPT_BUDGET: usize = 64;
/// How long accepting pauses when the system has no descriptors.
const ACCEPT_PAUSE: Span = Span::from_millis(200);
/// Rounds of accepting before listeners are closed: more than any listen queue holds.
const CLOSING_ROUNDS: usize = 64;
/// How often the log hears of pauses.
const COMPLAINTS: Span = Span::from_secs(10);
/// What the hub's answer may take beyond the time that the hub gives the server.
const CONFIRM_GRACE: Span = Span::from_secs(10);

/// What only a terminal has.
#[derive(Debug)]
pub(super) struct Terminal {
    listeners: Slab<Listener>,
    /// Whose turn it is to accept from.
    turn: usize,
    pub(super) door: Door,
    /// Accepting is paused until then, or until a connection closes.
    accept_again: Option<Instant>,
    /// The log hears of it no earlier than then.
    complain_again: Instant,
}

impl Terminal {
    pub(super) fn new(door: Door) -> Self {
        let listeners = Slab::new();
        let (accept_again, complain_again) = (None, Instant::ZERO);
        Self { listeners, turn: 0, door, accept_again, complain_again }
    }

    /// Accepts from `listener` as well.
    pub(super) fn listen(&mut self, registry: &Registry, mut listener: Listener) -> io::Result<()> {
        let place = self.listeners.vacant_entry();
        let token = LISTENERS + place.key();
        assert!(token < FIRST_CONNECTION, "the configuration bounds listeners");
        listener.register(registry, Token(token))?;
        place.insert(listener);
        Ok(())
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
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.accept_again
    }

    /// Accepts who waits; true when more wait.
    pub(super) fn accept(&mut self, core: &mut Core, now: Instant) -> bool {
        if let Some(again) = self.accept_again {
            if now < again && !core.room_again {
                return false;
            }
            self.accept_again = None;
        }
        core.room_again = false;
        // One from each in turn, so that a crowd at one does not keep out those at another.
        for _ in 0..ACCEPT_BUDGET {
            let Some(turn) = self.next_listener() else { return false };
            if !core.has_room() {
                core.counters.accept_pauses += 1;
                self.accept_again = Some(Instant::FAR_FUTURE);
                return false;
            }
            let listener = &mut self.listeners[turn];
            match listener.accept() {
                Accepted::Client(stream, client) => {
                    welcome(core, now, listener, &mut self.door, stream, client);
                }
                Accepted::Nobody => {}
                Accepted::NoRoom(error) => {
                    if now >= self.complain_again {
                        self.complain_again = now + COMPLAINTS;
                        tracing::warn!(%error, "accepting pauses until there is room");
                    }
                    core.counters.accept_pauses += 1;
                    self.accept_again = Some(now + ACCEPT_PAUSE);
                    return false;
                }
            }
        }
        self.listeners.iter().any(|(_, listener)| listener.may_accept())
    }

    /// The next listener at which clients may be waiting.
    fn next_listener(&mut self) -> Option<usize> {
        let ready = |from| {
            let mut all = self.listeners.iter();
            all.find(|(key, listener)| *key >= from && listener.may_accept()).map(|(key, _)| key)
        };
        let found = ready(self.turn).or_else(|| ready(0))?;
        self.turn = found + 1;
        Some(found)
    }

    /// A connection's turn.
    pub(super) fn turn(&mut self, core: &mut Core, now: Instant, index: usize) {
        match core.connections[index].phase {
            Phase::Asking(_) => ask(core, now, index, &mut self.door),
            Phase::Greeting { .. } => open_greeted(core, now, index),
            // What the client sends meanwhile waits in its socket.
            Phase::Confirming(_) => {}
            Phase::Farewell { .. } => farewell(core, index),
            Phase::Resolving(_) | Phase::Connecting(_) => unreachable!("a hub's phase"),
            Phase::Spliced(_) => core.turn_splice(now, index),
            Phase::Breaking(_) => core.turn_breaking(now, index),
        }
    }

    /// The deadline of a connection has come.
    pub(super) fn expired(&self, core: &mut Core, now: Instant, index: usize) {
        core.set_due(index, None);
        match &core.connections[index].phase {
            Phase::Asking(asking) => {
                tracing::info!(client = %asking.client, "a client of a proxy was too slow");
                core.counters.bad_requests += 1;
                core.because(index, "it was too slow to say what it wanted");
                core.reset_socket(index);
            }
            Phase::Greeting { .. } => open_now(core, now, index, Vec::new()),
            Phase::Confirming(_) => {
                if let Some(key) = core.connections[index].key {
                    core.carrier.reset(key, ResetReason::TimedOut);
                }
                core.detach(index);
                refuse(core, now, index, RefuseReason::TimedOut, "the hub gave no answer");
            }
            Phase::Farewell { .. } => core.reset_socket(index),
            Phase::Resolving(_) | Phase::Connecting(_) => unreachable!("a hub's phase"),
            Phase::Spliced(_) => {}
            Phase::Breaking(_) => core.turn_breaking(now, index),
        }
    }

    /// Something happened on the relay's side.
    pub(super) fn event(&self, core: &mut Core, now: Instant, peer: Peer, event: &Event) {
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
                    stream_gone(core, now, index, RefuseReason::Other, "the hub was lost");
                }
            }
            Event::Opened { stream, .. } => {
                // Only terminals open streams.
                core.carrier.refuse(key(stream), RefuseReason::Policy);
            }
            Event::Accepted { stream } => accepted(core, key(stream)),
            Event::Refused { stream, reason } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    tracing::debug!(%stream, ?reason, "refused by the hub");
                    core.counters.refused(reason);
                    core.because(index, reason.words());
                    core.detach(index);
                    stream_gone(core, now, index, reason, "");
                }
            }
            Event::Readable { stream } | Event::Writable { stream } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    core.queue(index);
                }
            }
            Event::Ended { stream } => core.stream_ended(key(stream)),
            Event::Reset { stream, reason } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    tracing::debug!(%stream, ?reason, "reset by the hub");
                    core.counters.reset_by_peer += 1;
                    core.because(index, "the hub reset it");
                    core.detach(index);
                    stream_gone(core, now, index, RefuseReason::Other, "the connection was reset");
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
}

/// A client is there: what it wants is known, or it is asked.
fn welcome(
    core: &mut Core,
    now: Instant,
    listener: &Listener,
    door: &mut Door,
    stream: TcpStream,
    client: SocketAddr,
) {
    core.counters.accepted += 1;
    if let Err(error) = socket::prepare(&stream, &core.limits) {
        tracing::debug!(%client, %error, "a client was gone at once");
        return;
    }
    let holder = match listener.kind {
        Kind::Transparent => door.one_more(core, now, client),
        Kind::Socks5 | Kind::HttpConnect => door.one_more_to_ask(core, now, client),
    };
    let Some(holder) = holder else {
        core.counters.refused(RefuseReason::Limit);
        socket::close_with_reset(stream);
        return;
    };
    let (phase, due) = match listener.kind {
        Kind::Transparent => {
            let local = stream.local_addr().ok();
            let server =
                local.and_then(|local| intercept::original_destination(local, listener.address));
            let Some(server) = server else {
                tracing::info!(%client, "refused: it connected straight to the transparent port");
                core.counters.not_intercepted += 1;
                socket::close_with_reset(stream);
                return;
            };
            let target = target(Destination::Address(server), Some(client));
            (Phase::Greeting { target, preface: Vec::new() }, core.limits.first_bytes)
        }
        Kind::Socks5 | Kind::HttpConnect => {
            make_room_to_ask(core);
            let handshake = match listener.kind {
                Kind::Socks5 => Handshake::socks5(),
                Kind::Transparent | Kind::HttpConnect => Handshake::http_connect(),
            };
            let asking = Asking { handshake, reply: Vec::new(), client };
            (Phase::Asking(asking), core.limits.handshake)
        }
    };
    let server = phase.target().map(|target| target.destination.clone());
    let index = core.add(Some(stream), None, phase);
    core.hold(index, holder);
    core.connections[index].about = About::new(now, Some(client), server);
    if let Err(error) = core.register(index) {
        tracing::warn!(%client, %error, "a client cannot be watched");
        core.reset_socket(index);
        return;
    }
    core.set_due(index, Some(now + due));
    // A client that had to wait to be accepted may have said something already.
    if matches!(core.connections[index].phase, Phase::Asking(_)) {
        ask(core, now, index, door);
    } else if due.is_zero() {
        open_now(core, now, index, Vec::new());
    }
}

/// Clients that are still being asked have half of the places at most: beyond that the one that
/// has taken longest goes, so that many who say nothing keep out nobody who does.
fn make_room_to_ask(core: &mut Core) {
    let most = (core.limits.connections as usize / 2).max(1);
    // Most of the time there is nothing to count.
    if core.connections.len() < most {
        return;
    }
    let asked =
        || core.connections.iter().filter(|(_, client)| matches!(client.phase, Phase::Asking(_)));
    let oldest = asked().min_by_key(|(_, client)| client.due).map(|(index, _)| index);
    if let Some(index) = oldest.filter(|_| asked().count() >= most) {
        tracing::debug!("a client of a proxy makes room for another");
        core.counters.bad_requests += 1;
        core.because(index, "it made room for another");
        core.reset_socket(index);
    }
}

/// The client of a proxy has said what it wants.
pub(super) fn wants(
    core: &mut Core,
    now: Instant,
    index: usize,
    door: &mut Door,
    destination: Destination,
    mut kept: Vec<u8>,
) {
    let connection = &mut core.connections[index];
    let asking = Phase::Farewell { message: Vec::new(), ended: false };
    let Phase::Asking(mut asking) = std::mem::replace(&mut connection.phase, asking) else {
        return;
    };
    if !door.may_have(core, now, asking.client) {
        core.counters.refused(RefuseReason::Limit);
        let mut message = asking.reply;
        message.extend(asking.handshake.refused(RefuseReason::Limit, "this client has its share"));
        say_farewell(core, now, index, message);
        return;
    }
    let connection = &mut core.connections[index];
    let target = target(destination, Some(asking.client));
    connection.about.server = Some(target.destination.clone());
    match door.mode {
        AcceptMode::Early => {
            asking.reply.extend_from_slice(&asking.handshake.granted(None));
            if let Some(socket) = &connection.socket
                && let Err(error) = flush(socket, &mut asking.reply)
            {
                core.broken(now, index, &error);
                return;
            }
            connection.phase = Phase::Greeting { target, preface: asking.reply };
            let due = now + core.limits.first_bytes;
            core.set_due(index, Some(due));
            if !kept.is_empty() || core.limits.first_bytes.is_zero() {
                open_now(core, now, index, kept);
            }
        }
        AcceptMode::Confirm => {
            connection.phase = Phase::Confirming(asking.handshake);
            let due = now + core.limits.connect + CONFIRM_GRACE;
            core.set_due(index, Some(due));
            match core.carrier.open(now, target) {
                Ok(key) => {
                    core.counters.opened += 1;
                    core.attach(index, key);
                    let taken = core.carrier.write(now, key, &kept);
                    core.counters.bytes_from_sockets += taken as u64;
                    kept.drain(..taken);
                    core.connections[index].kept = kept;
                }
                Err(reason) => {
                    core.counters.refused(reason);
                    core.because(index, reason.words());
                    refuse(core, now, index, reason, "");
                }
            }
        }
    }
}

/// The client has bytes or an end for us, or something else woke it: opens if it has.
fn open_greeted(core: &mut Core, now: Instant, index: usize) {
    let Some(socket) = &core.connections[index].socket else { return };
    match socket.peek(&mut [0]) {
        Err(error) if socket::is_later(&error) => {}
        Ok(_) => open_now(core, now, index, Vec::new()),
        Err(error) => core.broken(now, index, &error),
    }
}

/// Opens the stream, with what the client has sent so far.
fn open_now(core: &mut Core, now: Instant, index: usize, kept: Vec<u8>) {
    let greeted = Phase::Farewell { message: Vec::new(), ended: false };
    let phase = std::mem::replace(&mut core.connections[index].phase, greeted);
    let Phase::Greeting { target, preface } = phase else { return };
    tracing::debug!(server = %target.destination, "opens");
    match core.carrier.open(now, target) {
        Ok(key) => {
            core.counters.opened += 1;
            core.attach(index, key);
            core.splice(index, kept, preface);
            // At once, so that the bytes ride with the opening.
            core.turn_splice(now, index);
        }
        Err(reason) => {
            core.counters.refused(reason);
            core.because(index, reason.words());
            core.reset_socket(index);
        }
    }
}

/// The hub has connected.
fn accepted(core: &mut Core, key: StreamKey) {
    let Some(index) = core.connection_of(key) else { return };
    let connection = &mut core.connections[index];
    match &connection.phase {
        Phase::Confirming(handshake) => {
            let preface = handshake.granted(None);
            let kept = std::mem::take(&mut connection.kept);
            core.splice(index, kept, preface);
        }
        // The client was told long ago.
        Phase::Asking(_)
        | Phase::Greeting { .. }
        | Phase::Farewell { .. }
        | Phase::Resolving(_)
        | Phase::Connecting(_)
        | Phase::Spliced(_)
        | Phase::Breaking(_) => {}
    }
}

/// The stream is gone before its time: the client is told as well as it can be.
fn stream_gone(core: &mut Core, now: Instant, index: usize, reason: RefuseReason, detail: &str) {
    match &core.connections[index].phase {
        Phase::Confirming(_) => refuse(core, now, index, reason, detail),
        Phase::Asking(_) | Phase::Greeting { .. } | Phase::Farewell { .. } => {}
        Phase::Resolving(_) | Phase::Connecting(_) => unreachable!("a hub's phase"),
        Phase::Spliced(_) | Phase::Breaking(_) => core.reset_socket(index),
    }
}

/// Tells the client of a proxy why it is not connected.
fn refuse(core: &mut Core, now: Instant, index: usize, reason: RefuseReason, detail: &str) {
    if let Phase::Confirming(handshake) = &core.connections[index].phase {
        let message = handshake.refused(reason, detail);
        say_farewell(core, now, index, message);
    }
}
