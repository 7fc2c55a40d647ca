//! Clients that come out of a terminal's listeners.

use crate::engine::accept::client_admission::Door;
use crate::engine::accept::confirm_queue::Confirm;
use crate::engine::accept::fallback::Fate;
use crate::engine::accept::listener::{Kind, Listener};
use crate::engine::accept::proxy_client::ask;
use crate::engine::accept::stream_open::open_now;
use crate::engine::host::{Close, Socket, TcpSocket};
use crate::engine::limits::rates::Holder;
use crate::engine::limits::slots::Owner;
use crate::engine::peers::relay_set::target;
use crate::engine::transfer::connection::{Asking, Phase};
use crate::engine::transfer::connection_info::About;
use crate::engine::transfer::connections::Core;
use crate::intercept;
use crate::proxy::{Destination, Handshake, RefuseReason};
use std::net::SocketAddr;
use std::sync::Arc;
use units::Instant;

/// What a client has been given.
enum Admitted {
    /// The slot of a connection.
    Connection(Owner<Arc<str>>),
    /// Time to tell a proxy what it wants.
    Asking(Owner<()>),
}

/// A client is there: what it wants is known, or it is asked.
pub(crate) fn welcome(
    core: &mut Core,
    now: Instant,
    listener: &Listener,
    door: &mut Door,
    confirm: Option<&mut Confirm>,
    stream: Socket,
    client: SocketAddr,
) {
    core.counters.accepted += 1;
    let wanted = wanted(listener, &*stream, client);
    if let (Some(confirm), Some(server)) = (confirm, wanted)
        && let Some(index) = confirm.claim(core, client, server)
    {
        enter(core, now, index, stream);
        return;
    }
    let fate = door.fail.fate();
    let Some(admitted) = admit(core, now, listener.kind, door, (client, wanted)) else {
        stream.close(Close::Reset);
        return;
    };
    if let Err(error) = stream.prepare(&core.limits) {
        tracing::debug!(%client, %error, "a client was gone at once");
        // Without its options the socket would end in good order.
        stream.close(Close::Reset);
        return;
    }
    let (phase, due) = match listener.kind {
        Kind::Transparent => {
            let Some(server) = wanted else { return };
            let target = target(Destination::Address(server), Some(client));
            (Phase::Greeting { target, preface: Vec::new() }, core.limits.first_bytes)
        }
        Kind::Socks5 | Kind::HttpConnect => {
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
    match admitted {
        Admitted::Connection(owner) => {
            let holder = Holder::Client(owner.client);
            core.hold(now, index, owner, holder);
        }
        Admitted::Asking(owner) => core.asking.occupy(now, owner, index),
    }
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

/// What a new client is given; one that gets nothing is counted.
fn admit(
    core: &mut Core,
    now: Instant,
    kind: Kind,
    door: &mut Door,
    (client, wanted): (SocketAddr, Option<SocketAddr>),
) -> Option<Admitted> {
    let admitted = match (kind, wanted) {
        (Kind::Transparent, None) => {
            core.counters.not_intercepted += 1;
            return None;
        }
        // A proxy tells its clients in words.
        (Kind::Transparent, Some(server)) if door.must_reset(server) => {
            core.counters.refused(RefuseReason::NetworkUnreachable);
            return None;
        }
        (Kind::Transparent, Some(_)) => door.one_more(core, now, client).map(Admitted::Connection),
        (Kind::Socks5 | Kind::HttpConnect, _) => {
            door.one_more_to_ask(core, now, client).map(Admitted::Asking)
        }
    };
    if admitted.is_none() {
        core.counters.refused(RefuseReason::Limit);
    }
    admitted
}

/// Where an intercepted client wanted to go.
fn wanted(listener: &Listener, stream: &dyn TcpSocket, client: SocketAddr) -> Option<SocketAddr> {
    if listener.kind != Kind::Transparent {
        return None;
    }
    let local = stream.local_address().ok()?;
    let server = intercept::original_destination(local, listener.address);
    if server.is_none() {
        tracing::info!(%client, "refused: it connected straight to the transparent port");
    }
    server
}

/// A client comes out of the listener whose server has answered.
fn enter(core: &mut Core, now: Instant, index: usize, stream: Socket) {
    let prepared = stream.prepare(&core.limits);
    core.connections[index].socket = Some(stream);
    if core.connections[index].key.is_none() {
        // The server has left again.
        core.reset_socket(index);
    } else if let Err(error) = prepared.and_then(|()| core.register(index)) {
        core.broken(now, index, &error);
    } else {
        core.splice(index, Vec::new(), Vec::new());
    }
}
