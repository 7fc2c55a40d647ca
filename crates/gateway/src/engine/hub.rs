//! The hub's part: connecting streams on to their servers.
//!
//! ```text
//!   opened, by name or by address ──▶ Connecting ──▶ Spliced
//!                                          └── no address can be reached: refused
//! ```

use crate::engine::connect::server_connect::{Connecting, Reached};
use crate::engine::connect::terminal_admission::Admission;
use crate::engine::defect::{self, Defect};
use crate::engine::host::{Host, Socket, Source};
use crate::engine::limits::client_network::client_network;
use crate::engine::limits::rates::Holder;
use crate::engine::limits::slots::reserve::is_out_of_descriptors;
use crate::engine::peers::classes::Classes;
use crate::engine::peers::family_watch::FamilyWatch;
use crate::engine::peers::relay_set::{Peer, StreamKey};
use crate::engine::peers::scheduler_notifier::Mac;
use crate::engine::resolver::{Answer, Owner};
use crate::engine::transfer::connection::{Onward, Phase};
use crate::engine::transfer::connection_info::About;
use crate::engine::transfer::connections::Core;
use crate::proxy::RefuseReason;
use crate::{Promised, SourceMode};
use relay::{Event, ResetReason, Target};
use std::io;
use std::net::SocketAddr;
use units::Instant;

/// What only a hub has.
#[derive(Debug)]
pub(super) struct Hub {
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
        if let Some(families) = self.families.look(now, &*core.host) {
            core.carrier.set_families(families);
        }
    }

    /// A connection's turn.
    pub(super) fn turn(&mut self, core: &mut Core, now: Instant, index: usize) {
        match core.connections[index].phase {
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
            Phase::Connecting(_) => self.connecting(core, now, index),
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

    /// An answer of the resolver.
    pub(super) fn answered(&mut self, core: &mut Core, now: Instant, answer: Answer) {
        let Answer { id, token: index, result } = answer;
        if let Some(connection) = core.connections.get_mut(index)
            && let Phase::Connecting(onward) = &mut connection.phase
            && onward.server.query() == Some(id)
        {
            onward.server.answer(now, &*core.host, result);
            self.connecting(core, now, index);
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
        let admitted = self.admission.one_more(core, now, key.peer, target.source);
        reset_reclaimed(core);
        let Some((holder, slot_owner)) = admitted else {
            core.counters.refused(RefuseReason::Limit);
            core.carrier.refuse(key, RefuseReason::Limit);
            return;
        };
        core.carrier.set_client(key, target.source);
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
        let port = match &target.destination {
            relay::Destination::Address(address) => address.port(),
            relay::Destination::Name(_, port) => *port,
        };
        let server = Connecting::new(now, port, core.limits.connect);
        let onward = Onward { server, source: client };
        let index = core.add(None, Some(key), Phase::Connecting(Box::new(onward)));
        core.connections[index].about = about;
        core.hold(now, index, slot_owner, holder.clone());
        let Phase::Connecting(onward) = &mut core.connections[index].phase else { return };
        match target.destination {
            relay::Destination::Address(address) => onward.server.address(now, address),
            relay::Destination::Name(name, _) => {
                let owner = owner(holder, target.source, core.limits.ipv6_prefix);
                let resolution = core.resolver.resolve(now, &owner, &name, index);
                onward.server.resolution(now, &*core.host, resolution);
            }
        }
        self.connecting(core, now, index);
    }

    /// Goes on with connecting to the server.
    fn connecting(&mut self, core: &mut Core, now: Instant, index: usize) {
        let connection = &mut core.connections[index];
        let Phase::Connecting(onward) = &mut connection.phase else { return };
        let Onward { server, source } = &mut **onward;
        let reached = server.turn(now, |address| {
            // The address that is judged is the one that is connected to.
            if !self.admission.may_reach(now, connection.holder.as_ref(), address) {
                return Err(RefuseReason::Policy);
            }
            core.counters.connect_attempts += 1;
            let started = start(&mut *core.host, *source, address).and_then(|(socket, own)| {
                core.counters.own_address_instead += u64::from(own && source.is_some());
                // The same source: news of any of the sockets is a turn for all of them.
                // One that is given up when its server has just answered is not ended in good order.
                if !defect::has(Defect::OrderlyAbandonment) {
                    socket.prepare(&core.limits)?;
                }
                core.host.watch(socket.id(), Source::Connection(index))?;
                Ok(socket)
            });
            started.map_err(|error| {
                tracing::debug!(%address, %error, "not connected");
                if is_out_of_descriptors(&error) {
                    // This one is refused; the next that may have a slot takes another's.
                    core.slots.descriptors_ran_out(now);
                    core.slots.restore_reserve();
                    core.counters.limited("descriptors");
                }
                reason_of(&error)
            })
        });
        let no_address = server.has_no_address();
        match reached {
            Reached::Pending(due) => core.set_due(index, Some(due)),
            Reached::Connected(socket) => {
                core.cancel_query(index);
                core.connections[index].socket = Some(socket);
                self.connected(core, index);
            }
            Reached::Failed(reason) => {
                if reason == RefuseReason::Limit && no_address {
                    core.counters.limited("names");
                }
                refuse(core, index, reason);
            }
        }
    }

    fn connected(&mut self, core: &mut Core, index: usize) {
        core.counters.connected += 1;
        if let Some(key) = core.connections[index].key {
            core.carrier.accept(key);
        }
        core.splice(index, Vec::new(), Vec::new());
    }
}

/// On whose behalf a name is looked up: a client of a terminal, where the terminal tells its
/// address.
fn owner(terminal: Holder, client: Option<SocketAddr>, ipv6_prefix: u32) -> Owner {
    let name = match &terminal {
        Holder::Terminal(name) => std::sync::Arc::clone(name),
        Holder::Client(_) | Holder::Neighbour(_) => "".into(),
    };
    let client = client.map(|client| client_network(client.ip(), ipv6_prefix));
    Owner { terminal: name, client: client.map_or(terminal, Holder::Client) }
}

/// Starts connecting; true beside the socket when it has the hub's own address.
fn start(
    host: &mut dyn Host,
    source: Option<SocketAddr>,
    address: SocketAddr,
) -> io::Result<(Socket, bool)> {
    if let Some(source) = source.filter(|source| source.is_ipv4() == address.is_ipv4()) {
        match host.connect(Some(source), address) {
            Ok(socket) => return Ok((socket, false)),
            Err(error) => {
                tracing::debug!(%source, %address, %error, "not with the client's own address");
            }
        }
    }
    host.connect(None, address).map(|socket| (socket, true))
}

fn refuse(core: &mut Core, index: usize, reason: RefuseReason) {
    core.counters.refused(reason);
    core.because(index, reason.words());
    if let Some(key) = core.connections[index].key {
        core.carrier.refuse(key, reason);
    }
    core.remove(index);
}

/// Resets the connections whose slots others have.
fn reset_reclaimed(core: &mut Core) {
    while let Some(index) = core.next_reclaimed() {
        if core.connections[index].is_on_its_way() {
            refuse(core, index, RefuseReason::Limit);
        } else {
            core.give_up(index, ResetReason::Local);
        }
    }
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
