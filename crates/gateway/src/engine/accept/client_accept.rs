//! Clients that a terminal accepts from its listeners.

use crate::engine::accept::client_admission::ClientAdmission;
use crate::engine::accept::confirm_queue::ConfirmQueue;
use crate::engine::accept::dns_service::{DNS_IDLE, DnsClient};
use crate::engine::accept::fallback::Disposition;
use crate::engine::accept::listener::{Kind, Listener};
use crate::engine::accept::proxy_client::read_request;
use crate::engine::accept::stage::{ProxyClient, TerminalCore, TerminalStage};
use crate::engine::accept::stream_open::open_now;
use crate::engine::host::{Close, Socket, TcpSocket};
use crate::engine::limits::rates::QuotaOwner;
use crate::engine::limits::slots::Owner;
use crate::engine::transfer::connection_info::ConnectionInfo;
use crate::intercept;
use crate::proxy::{Destination, Handshake, RefuseReason};
use relay::Target;
use std::net::SocketAddr;
use std::sync::Arc;
use units::Instant;

/// Resources that were allocated to a client.
enum Admitted {
    /// Slot of a connection.
    Connection(Owner<Arc<str>>),
    /// Slot of a proxy handshake.
    Handshake(Owner<()>),
}

/// Handles a newly accepted client. The destination of an intercepted connection is the socket's
/// original destination; a proxy client sends it in its SOCKS5 or CONNECT request.
pub(crate) fn accept_client(
    core: &mut TerminalCore,
    now: Instant,
    listener: &Listener,
    admission: &mut ClientAdmission,
    confirm: Option<&mut ConfirmQueue>,
    stream: Socket,
    client: SocketAddr,
) {
    core.counters.accepted += 1;
    let wanted = intercepted_destination(listener, &*stream, client);
    if let (Some(confirm), Some(server)) = (confirm, wanted)
        && let Some(index) = confirm.claim(core, client, server)
    {
        accept_confirmed(core, now, index, stream);
        return;
    }
    let disposition = admission.fallback.disposition();
    let Some(admitted) = admit(core, now, listener.kind, admission, (client, wanted)) else {
        stream.close(Close::Reset);
        return;
    };
    if let Err(error) = stream.prepare(&core.limits) {
        tracing::debug!(%client, %error, "client disconnected when it was accepted");
        // Without its options, closing the socket would end the connection in good order.
        stream.close(Close::Reset);
        return;
    }
    let (stage, due) = match listener.kind {
        Kind::Transparent => {
            let Some(server) = wanted else { return };
            let stage = TerminalStage::AwaitingData {
                target: Target { destination: Destination::Address(server), source: Some(client) },
                pending_reply: Vec::new(),
            };
            (stage, core.limits.first_data_wait)
        }
        Kind::Dns => (TerminalStage::Dns(DnsClient::default()), DNS_IDLE),
        Kind::Socks5 | Kind::HttpConnect => {
            let handshake = match listener.kind {
                Kind::Socks5 => Handshake::socks5(),
                Kind::Transparent | Kind::HttpConnect | Kind::Dns => Handshake::http_connect(),
            };
            let proxy_client = ProxyClient { handshake, reply: Vec::new(), client };
            (TerminalStage::ProxyHandshake(proxy_client), core.limits.handshake)
        }
    };
    let server = wanted.map(Destination::Address);
    let index = core.add(Some(stream), None, stage);
    match admitted {
        Admitted::Connection(owner) => {
            let quota_owner = QuotaOwner::Client(owner.client);
            core.hold(now, index, owner, quota_owner);
        }
        Admitted::Handshake(owner) => core.handshakes.occupy(now, owner, index),
    }
    core.connections[index].info = ConnectionInfo::new(now, Some(client), server);
    if let Err(error) = core.register(index) {
        tracing::warn!(%client, %error, "client socket not watched, connection reset");
        core.reset_socket(index);
        return;
    }
    if let (Some(server), Disposition::Direct) = (wanted, disposition) {
        let server = Destination::Address(server);
        admission.direct.begin(core, now, index, server, None, Vec::new());
        return;
    }
    core.set_due(index, Some(now + due));
    // A client that was in the accept queue for a while may have sent data already.
    if matches!(core.connections[index].stage, TerminalStage::ProxyHandshake(_)) {
        read_request(core, now, index, admission);
    } else if due.is_zero() {
        open_now(core, now, index, Vec::new());
    }
}

/// Allocates the resources of a new client, or counts its refusal.
fn admit(
    core: &mut TerminalCore,
    now: Instant,
    kind: Kind,
    admission: &mut ClientAdmission,
    (client, wanted): (SocketAddr, Option<SocketAddr>),
) -> Option<Admitted> {
    let admitted = match (kind, wanted) {
        (Kind::Transparent, None) => {
            core.counters.not_intercepted += 1;
            return None;
        }
        // A proxy client receives an error reply instead.
        (Kind::Transparent, Some(server)) if admission.must_reset(server) => {
            core.counters.refused(RefuseReason::NetworkUnreachable);
            return None;
        }
        (Kind::Transparent, Some(_)) => {
            admission.admit(core, now, client).map(Admitted::Connection)
        }
        (Kind::Socks5 | Kind::HttpConnect | Kind::Dns, _) => {
            admission.admit_to_proxy(core, now, client).map(Admitted::Handshake)
        }
    };
    if admitted.is_none() {
        core.counters.refused(RefuseReason::Limit);
    }
    admitted
}

/// Returns the original destination of an intercepted connection.
fn intercepted_destination(
    listener: &Listener,
    stream: &dyn TcpSocket,
    client: SocketAddr,
) -> Option<SocketAddr> {
    if listener.kind != Kind::Transparent {
        return None;
    }
    let local = stream.local_address().ok()?;
    let server = intercept::original_destination(local, listener.address);
    if server.is_none() {
        tracing::info!(%client, "connection to the transparent port rejected: not intercepted");
    }
    server
}

/// Handles a client that was accepted after its held SYN was reinjected.
fn accept_confirmed(core: &mut TerminalCore, now: Instant, index: usize, stream: Socket) {
    let prepared = stream.prepare(&core.limits);
    core.connections[index].socket = Some(stream);
    if core.connections[index].key.is_none() {
        // The server has closed its connection meanwhile.
        core.reset_socket(index);
    } else if let Err(error) = prepared.and_then(|()| core.register(index)) {
        core.on_socket_error(now, index, &error);
    } else {
        core.splice(index, Vec::new(), Vec::new());
    }
}
