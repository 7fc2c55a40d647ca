//! Clients that come out of a terminal's listeners.

use super::about::About;
use super::asking::ask;
use super::carrier::target;
use super::confirm::Confirm;
use super::connection::{Asking, Phase};
use super::core::Core;
use super::door::Door;
use super::fail::Fate;
use super::listener::{Kind, Listener};
use super::opening::open_now;
use super::socket;
use crate::intercept;
use crate::proxy::{Destination, Handshake, RefuseReason};
use mio::net::TcpStream;
use std::net::SocketAddr;
use units::Instant;

/// A client is there: what it wants is known, or it is asked.
pub(super) fn welcome(
    core: &mut Core,
    now: Instant,
    listener: &Listener,
    door: &mut Door,
    confirm: Option<&mut Confirm>,
    stream: TcpStream,
    client: SocketAddr,
) {
    core.counters.accepted += 1;
    if let Err(error) = socket::prepare(&stream, &core.limits) {
        tracing::debug!(%client, %error, "a client was gone at once");
        return;
    }
    let wanted = wanted(listener, &stream, client);
    if let (Some(confirm), Some(server)) = (confirm, wanted)
        && let Some(index) = confirm.claim(core, client, server)
    {
        enter(core, now, index, stream);
        return;
    }
    let fate = door.fail.fate();
    let holder = match (listener.kind, wanted) {
        (Kind::Transparent, None) => {
            core.counters.not_intercepted += 1;
            socket::close_with_reset(stream);
            return;
        }
        // A proxy tells its clients in words.
        (Kind::Transparent, Some(server)) if door.must_reset(server) => {
            core.counters.refused(RefuseReason::NetworkUnreachable);
            socket::close_with_reset(stream);
            return;
        }
        (Kind::Transparent, Some(_)) => door.one_more(core, now, client),
        (Kind::Socks5 | Kind::HttpConnect, _) => door.one_more_to_ask(core, now, client),
    };
    let Some(holder) = holder.filter(|_| core.has_room()) else {
        core.counters.refused(RefuseReason::Limit);
        socket::close_with_reset(stream);
        return;
    };
    let (phase, due) = match listener.kind {
        Kind::Transparent => {
            let Some(server) = wanted else { return };
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
    if let (Some(server), Fate::Direct) = (wanted, fate) {
        let server = Destination::Address(server);
        door.direct.begin(core, now, index, server, None, Vec::new());
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

/// Where an intercepted client wanted to go.
fn wanted(listener: &Listener, stream: &TcpStream, client: SocketAddr) -> Option<SocketAddr> {
    if listener.kind != Kind::Transparent {
        return None;
    }
    let local = stream.local_addr().ok()?;
    let server = intercept::original_destination(local, listener.address);
    if server.is_none() {
        tracing::info!(%client, "refused: it connected straight to the transparent port");
    }
    server
}

/// A client comes out of the listener whose server has answered.
fn enter(core: &mut Core, now: Instant, index: usize, stream: TcpStream) {
    core.connections[index].socket = Some(stream);
    if core.connections[index].key.is_none() {
        // The server has left again.
        core.reset_socket(index);
    } else if let Err(error) = core.register(index) {
        core.broken(now, index, &error);
    } else {
        core.splice(index, Vec::new(), Vec::new());
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
