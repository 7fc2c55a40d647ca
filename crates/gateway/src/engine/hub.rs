//! The hub's part: connecting streams on to their servers.
//!
//! ```text
//!   opened by name ──▶ Resolving ──▶ Connecting ──▶ Spliced
//!   by address ─────────────────────────┘ └── next address, or refused
//! ```

use super::about::About;
use super::admission::Admission;
use super::carrier::{Peer, StreamKey};
use super::classes::Classes;
use super::connection::{Onward, Phase};
use super::core::Core;
use super::families::FamilyWatch;
use super::mac::Mac;
use super::resolver::{Answer, Resolver};
use super::socket;
use crate::intercept;
use crate::proxy::RefuseReason;
use crate::{Promised, SourceMode};
use mio::net::TcpStream;
use relay::{Event, ResetReason, Target};
use std::io;
use std::net::SocketAddr;
use units::{Instant, Span};

/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;

/// What only a hub has.
#[derive(Debug)]
pub(super) struct Hub {
    pub(super) resolver: Resolver,
    pub(super) source: SourceMode,
    pub(super) admission: Admission,
    /// Tells a MAC scheduler of connections, where one is named.
    pub(super) mac: Option<Mac>,
    pub(super) classes: Classes,
    /// What its plans promise.
    pub(super) promised: Vec<Promised>,
    /// The address families that it reaches.
    pub(super) families: FamilyWatch,
}

impl Hub {
    /// Announces to terminals the address families that are reached, when they have changed.
    pub(super) fn announce_families(&mut self, core: &mut Core, now: Instant) {
        if let Some(families) = self.families.look(now) {
            core.carrier.set_families(families);
        }
    }

    /// A connection's turn.
    pub(super) fn turn(&mut self, core: &mut Core, now: Instant, index: usize) {
        match core.connections[index].phase {
            Phase::Resolving(_) => {}
            Phase::Connecting(_) => self.connecting(core, now, index),
            Phase::Spliced(_) => core.turn_splice(now, index),
            Phase::Emptying(_) => core.turn_emptying(now, index),
            Phase::Breaking(_) => core.turn_breaking(now, index),
            Phase::Asking(_)
            | Phase::Greeting { .. }
            | Phase::Knocking(_)
            | Phase::Confirming(_)
            | Phase::Direct(_)
            | Phase::Farewell { .. } => unreachable!("a terminal's phase"),
        }
    }

    /// The deadline of a connection has come.
    pub(super) fn expired(&mut self, core: &mut Core, now: Instant, index: usize) {
        core.set_due(index, None);
        match core.connections[index].phase {
            Phase::Resolving(_) => refuse(core, index, RefuseReason::NameNotFound),
            Phase::Connecting(_) => self.try_next(core, now, index, RefuseReason::TimedOut),
            Phase::Spliced(_) => {}
            Phase::Emptying(_) => core.turn_emptying(now, index),
            Phase::Breaking(_) => core.turn_breaking(now, index),
            Phase::Asking(_)
            | Phase::Greeting { .. }
            | Phase::Knocking(_)
            | Phase::Confirming(_)
            | Phase::Direct(_)
            | Phase::Farewell { .. } => unreachable!("a terminal's phase"),
        }
    }

    /// Something happened on the relay's side.
    pub(super) fn event(&mut self, core: &mut Core, now: Instant, peer: Peer, event: Event) {
        let key = |stream| StreamKey { peer, stream };
        match event {
            Event::Connected => {
                tracing::info!(terminal = %core.carrier.describe(peer), "a terminal is here");
            }
            Event::Disconnected { reason } => {
                let terminal = core.carrier.describe(peer);
                tracing::warn!(%terminal, ?reason, "a terminal is lost, and all its connections");
                for index in core.connections_to(peer) {
                    core.counters.lost_with_peer += 1;
                    core.because(index, "the terminal was lost");
                    core.detach(index);
                    core.reset_socket(index);
                }
            }
            Event::Opened { stream, target } => self.opened(core, now, key(stream), target),
            // Only terminals are told so.
            Event::Accepted { .. } | Event::Refused { .. } => {}
            Event::Readable { stream } | Event::Writable { stream } => {
                if let Some(index) = core.connection_of(key(stream))
                    && matches!(
                        core.connections[index].phase,
                        Phase::Spliced(_) | Phase::Emptying(_) | Phase::Breaking(_)
                    )
                {
                    core.queue(index);
                }
            }
            Event::Ended { stream } => core.stream_ended(key(stream)),
            Event::Ending { stream, reason } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    let terminal = || core.carrier.describe(peer);
                    tracing::debug!(terminal = %terminal(), %stream, ?reason, "reset by it");
                    core.because(index, "the terminal reset it");
                    core.stream_ending(index);
                    // Nobody wants to be connected any more.
                    if core.connections[index].is_on_its_way() {
                        core.give_up(index, ResetReason::Aborted);
                    }
                }
            }
            Event::Reset { stream, reason } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    let terminal = || core.carrier.describe(peer);
                    tracing::debug!(terminal = %terminal(), %stream, ?reason, "reset by it");
                    core.because(index, "the terminal reset it");
                    core.stream_reset(now, index);
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

    /// The names that were looked up.
    pub(super) fn resolved(&mut self, core: &mut Core, now: Instant) {
        for Answer { key: id, addresses } in self.resolver.answers() {
            let asked = core.connections.iter_mut().find(|(_, connection)| {
                connection.id == id && matches!(connection.phase, Phase::Resolving(_))
            });
            let Some((index, connection)) = asked else { continue };
            let Phase::Resolving(onward) = &mut connection.phase else { continue };
            onward.addresses.extend(addresses.into_iter().take(MAX_ADDRESSES));
            if onward.addresses.is_empty() {
                refuse(core, index, RefuseReason::NameNotFound);
            } else {
                self.try_next(core, now, index, RefuseReason::NameNotFound);
            }
        }
    }

    fn opened(&mut self, core: &mut Core, now: Instant, key: StreamKey, target: Target) {
        core.counters.opened += 1;
        let terminal = || core.carrier.describe(key.peer);
        tracing::debug!(terminal = %terminal(), server = %target.destination, "opened");
        if core.draining {
            core.counters.refused(RefuseReason::Other);
            core.carrier.refuse(key, RefuseReason::Other);
            return;
        }
        let Some(holder) = self.admission.one_more(core, now, key.peer) else {
            core.counters.refused(RefuseReason::Limit);
            core.carrier.refuse(key, RefuseReason::Limit);
            return;
        };
        core.carrier.set_client(key, target.source);
        let limit = now + core.limits.connect;
        let client = target.source.filter(|client| {
            self.source == SourceMode::Client
                && self.admission.may_speak_for(Some(&holder), client.ip())
        });
        if self.source == SourceMode::Client && target.source.is_some() && client.is_none() {
            core.counters.own_address_instead += 1;
        }
        if let Some(service) = self.classes.of_stream(&target.destination, target.source) {
            core.carrier.set_service(key, service);
        }
        let about = About::new(now, target.source, Some(target.destination.clone()));
        let (addresses, name) = match target.destination {
            relay::Destination::Address(address) => ([address].into(), None),
            relay::Destination::Name(name, port) => ([].into(), Some((name, port))),
        };
        let onward = Onward { addresses, source: client, limit };
        let index = core.add(None, Some(key), Phase::Resolving(onward));
        core.connections[index].about = about;
        core.hold(index, holder.clone());
        match name {
            None => self.try_next(core, now, index, RefuseReason::Other),
            Some((name, port)) => {
                core.set_due(index, Some(limit));
                if !self.resolver.ask(core.connections[index].id, holder, name, port) {
                    core.counters.limited("names");
                    refuse(core, index, RefuseReason::Limit);
                }
            }
        }
    }

    /// Tries the next address; refuses with `reason`, which the last one gave, when there is none.
    fn try_next(&mut self, core: &mut Core, now: Instant, index: usize, mut reason: RefuseReason) {
        loop {
            let connection = &mut core.connections[index];
            connection.socket = None;
            let (Phase::Resolving(onward) | Phase::Connecting(onward)) = &mut connection.phase
            else {
                return;
            };
            let left = onward.addresses.len() as u64;
            let Some(address) = onward.addresses.pop_front().filter(|_| now < onward.limit) else {
                refuse(core, index, reason);
                return;
            };
            let (limit, source) = (onward.limit, onward.source);
            // The address that is judged is the one that is connected to.
            if !self.admission.may_reach(now, connection.holder.as_ref(), address) {
                reason = RefuseReason::Policy;
                continue;
            }
            // Each of them gets its share of the time that is left.
            let share = limit.since(now) / left;
            match start(source, address) {
                Ok((socket, own)) => {
                    core.counters.own_address_instead += u64::from(own && source.is_some());
                    if let Err(error) = watch(core, now, index, socket, share) {
                        reason = reason_of(&error);
                        continue;
                    }
                    return;
                }
                Err(error) => {
                    tracing::debug!(%address, %error, "not connected");
                    reason = reason_of(&error);
                }
            }
        }
    }

    /// The socket that is being connected has news.
    fn connecting(&mut self, core: &mut Core, now: Instant, index: usize) {
        let Some(socket) = &core.connections[index].socket else { return };
        if let Some(error) = socket::taken_error(socket) {
            tracing::debug!(%error, "not connected");
            self.try_next(core, now, index, reason_of(&error));
            return;
        }
        // Without an error, either it is connected or the news was of another kind.
        if socket.peer_addr().is_err() {
            return;
        }
        if let Err(error) = socket::prepare(socket, &core.limits) {
            core.broken(now, index, &error);
            return;
        }
        core.counters.connected += 1;
        if let Some(key) = core.connections[index].key {
            core.carrier.accept(key);
        }
        core.splice(index, Vec::new(), Vec::new());
    }
}

/// Starts connecting; true beside the socket when it has the hub's own address.
fn start(source: Option<SocketAddr>, address: SocketAddr) -> io::Result<(TcpStream, bool)> {
    if let Some(source) = source.filter(|source| source.is_ipv4() == address.is_ipv4()) {
        match intercept::connect_from(source, address) {
            Ok(socket) => return Ok((TcpStream::from_std(socket), false)),
            Err(error) => {
                tracing::debug!(%source, %address, %error, "not with the client's own address");
            }
        }
    }
    TcpStream::connect(address).map(|socket| (socket, true))
}

fn watch(
    core: &mut Core,
    now: Instant,
    index: usize,
    socket: TcpStream,
    share: Span,
) -> io::Result<()> {
    let connection = &mut core.connections[index];
    connection.socket = Some(socket);
    let resolving = Phase::Connecting(Onward { addresses: [].into(), source: None, limit: now });
    let phase = std::mem::replace(&mut connection.phase, resolving);
    if let Phase::Resolving(onward) | Phase::Connecting(onward) = phase {
        connection.phase = Phase::Connecting(onward);
    }
    core.register(index)?;
    core.set_due(index, Some(now + share));
    Ok(())
}

fn refuse(core: &mut Core, index: usize, reason: RefuseReason) {
    core.counters.refused(reason);
    core.because(index, reason.words());
    if let Some(key) = core.connections[index].key {
        core.carrier.refuse(key, reason);
    }
    core.remove(index);
}

/// What a failed attempt means to the client.
pub(super) fn reason_of(error: &io::Error) -> RefuseReason {
    match error.raw_os_error() {
        Some(libc::ECONNREFUSED | libc::ECONNRESET) => RefuseReason::ConnectionRefused,
        Some(libc::EHOSTUNREACH | libc::EHOSTDOWN) => RefuseReason::HostUnreachable,
        Some(libc::ENETUNREACH | libc::ENETDOWN | libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL) => {
            RefuseReason::NetworkUnreachable
        }
        Some(libc::ETIMEDOUT) => RefuseReason::TimedOut,
        Some(libc::EACCES | libc::EPERM) => RefuseReason::Policy,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => RefuseReason::Limit,
        Some(_) | None => RefuseReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_reasons() {
        let reason = |code| reason_of(&io::Error::from_raw_os_error(code));
        assert_eq!(reason(libc::ECONNREFUSED), RefuseReason::ConnectionRefused);
        assert_eq!(reason(libc::EHOSTUNREACH), RefuseReason::HostUnreachable);
        assert_eq!(reason(libc::ENETUNREACH), RefuseReason::NetworkUnreachable);
        assert_eq!(reason(libc::ETIMEDOUT), RefuseReason::TimedOut);
        assert_eq!(reason(libc::EMFILE), RefuseReason::Limit);
        assert_eq!(reason(libc::EIO), RefuseReason::Other);
    }
}
