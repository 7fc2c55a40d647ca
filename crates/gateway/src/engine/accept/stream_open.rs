//! Opening a stream for the destination of a client, or refusing it.

use crate::AcceptMode;
use crate::engine::accept::client_admission::ClientAdmission;
use crate::engine::accept::fallback::Disposition;
use crate::engine::accept::reachability::Answer;
use crate::engine::accept::stage::{ProxyClient, TerminalCore, TerminalStage};
use crate::engine::limits::rates::QuotaOwner;
use crate::engine::peers::peer::StreamKey;
use crate::engine::transfer::final_reply::flush;
use crate::engine::transfer::unresponsive;
use crate::proxy::{Destination, RefuseReason};
use relay::Target;
use units::{Instant, Span};

/// Time allowed for the hub's response beyond `limits.connect`, which bounds the hub's attempts.
const CONFIRM_GRACE: Span = Span::from_secs(10);

/// Handles the complete request of a proxy client.
pub(crate) fn on_proxy_request(
    core: &mut TerminalCore,
    now: Instant,
    index: usize,
    admission: &mut ClientAdmission,
    destination: Destination,
    pending_input: Vec<u8>,
) {
    let connection = &mut core.connections[index];
    let stage = std::mem::replace(&mut connection.stage, TerminalStage::ending());
    let TerminalStage::ProxyHandshake(mut proxy_client) = stage else { return };
    let Some(owner) = admission.admit(core, now, proxy_client.client) else {
        reject(core, now, index, proxy_client, RefuseReason::Limit, "this client has its share");
        return;
    };
    let quota_owner = QuotaOwner::Client(owner.client);
    core.hold(now, index, owner, quota_owner);
    match admission.fallback.disposition() {
        Disposition::Relay => {}
        Disposition::Refuse => {
            let reason = RefuseReason::NetworkUnreachable;
            reject(core, now, index, proxy_client, reason, "hub unreachable");
            return;
        }
        Disposition::Direct => {
            let proxy = Some((proxy_client.handshake, proxy_client.reply));
            core.connections[index].info.server = Some(destination.clone());
            admission.direct.begin(core, now, index, destination, proxy, pending_input);
            return;
        }
    }
    let mode = match admission.decide(now, proxy_client.handshake.protocol(), &destination) {
        Answer::Accept(mode) => mode,
        Answer::Refuse(reason) => {
            reject(core, now, index, proxy_client, reason, "the hub does not reach this family");
            return;
        }
    };
    let connection = &mut core.connections[index];
    let target = Target { destination, source: Some(proxy_client.client) };
    connection.info.server = Some(target.destination.clone());
    match mode {
        AcceptMode::Early => {
            proxy_client.reply.extend_from_slice(&proxy_client.handshake.granted(None));
            if let Some(socket) = &connection.socket
                && let Err(error) = flush(&**socket, &mut proxy_client.reply)
            {
                core.on_socket_error(now, index, &error);
                return;
            }
            connection.stage =
                TerminalStage::AwaitingData { target, pending_reply: proxy_client.reply };
            let due = now + core.limits.first_data_wait;
            core.set_due(index, Some(due));
            if !pending_input.is_empty() || core.limits.first_data_wait.is_zero() {
                open_now(core, now, index, pending_input);
            }
        }
        AcceptMode::Confirm => {
            // A client may have sent its request without waiting for the reply to its greeting.
            if let Some(socket) = &connection.socket
                && let Err(error) = flush(&**socket, &mut proxy_client.reply)
            {
                core.on_socket_error(now, index, &error);
                return;
            }
            connection.stage = TerminalStage::Confirming(proxy_client.handshake);
            confirm(core, now, index, target, pending_input);
        }
    }
}

/// Refuses the request of a proxy client.
fn reject(
    core: &mut TerminalCore,
    now: Instant,
    index: usize,
    proxy_client: ProxyClient,
    reason: RefuseReason,
    detail: &str,
) {
    core.counters.refused(reason);
    let mut message = proxy_client.reply;
    message.extend(proxy_client.handshake.refused(reason, detail));
    core.send_final_reply(now, index, message);
}

/// Opens a stream with deferred accept. The client has sent `pending_input` behind its request.
fn confirm(
    core: &mut TerminalCore,
    now: Instant,
    index: usize,
    target: Target,
    mut pending_input: Vec<u8>,
) {
    let due = now + core.limits.connect + CONFIRM_GRACE;
    core.set_due(index, Some(due));
    match open_stream(core, now, index, target) {
        Ok(key) => {
            core.counters.opened += 1;
            core.attach(index, key);
            let taken = core.relays.write(now, key, &pending_input);
            core.counters.bytes_from_sockets += taken as u64;
            pending_input.drain(..taken);
            core.connections[index].pending_input = pending_input;
        }
        Err(reason) => {
            core.counters.refused(reason);
            core.set_close_cause(index, reason.words());
            refuse(core, now, index, reason, "");
        }
    }
}

/// Opens the stream if the client's socket has data or an end to read.
pub(crate) fn open_when_readable(core: &mut TerminalCore, now: Instant, index: usize) {
    let Some(socket) = &core.connections[index].socket else { return };
    match socket.peek(&mut [0]) {
        Err(error) if unresponsive::is_later(&error) => {}
        Ok(_) => open_now(core, now, index, Vec::new()),
        Err(error) => core.on_socket_error(now, index, &error),
    }
}

/// Opens the stream and sends what the client has sent so far.
pub(crate) fn open_now(
    core: &mut TerminalCore,
    now: Instant,
    index: usize,
    pending_input: Vec<u8>,
) {
    let stage = std::mem::replace(&mut core.connections[index].stage, TerminalStage::ending());
    let TerminalStage::AwaitingData { target, pending_reply } = stage else { return };
    tracing::debug!(server = %target.destination, "opening a stream");
    match open_stream(core, now, index, target) {
        Ok(key) => {
            core.counters.opened += 1;
            core.attach(index, key);
            core.splice(index, pending_input, pending_reply);
            // The first bytes are carried by the segment that opens the stream.
            core.run_splice(now, index);
        }
        Err(reason) => {
            core.counters.refused(reason);
            core.set_close_cause(index, reason.words());
            core.reset_socket(index);
        }
    }
}

fn open_stream(
    core: &mut TerminalCore,
    now: Instant,
    index: usize,
    target: Target,
) -> Result<StreamKey, RefuseReason> {
    match core.slots.table.get(index).map(|(owner, _)| owner.clone()) {
        Some(owner) => core.open_stream(now, &owner, target),
        // Its slot has been reclaimed.
        None => Err(RefuseReason::Limit),
    }
}

/// Sends the reason of a refusal to a proxy client.
pub(crate) fn refuse(
    core: &mut TerminalCore,
    now: Instant,
    index: usize,
    reason: RefuseReason,
    detail: &str,
) {
    if let TerminalStage::Confirming(handshake) = &core.connections[index].stage {
        let message = handshake.refused(reason, detail);
        core.send_final_reply(now, index, message);
    }
}
