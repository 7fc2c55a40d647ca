//! From what a client wants to a stream that is opened for it, or to why there is none.

use crate::AcceptMode;
use crate::engine::accept::client_admission::Door;
use crate::engine::accept::fallback::Fate;
use crate::engine::accept::proxy_client::{flush, say_farewell};
use crate::engine::accept::reachability::Answer;
use crate::engine::limits::rates::Holder;
use crate::engine::peers::relay_set::{StreamKey, target};
use crate::engine::transfer::connection::{Asking, Phase};
use crate::engine::transfer::connections::Core;
use crate::engine::transfer::unresponsive;
use crate::proxy::{Destination, RefuseReason};
use relay::Target;
use units::{Instant, Span};

/// What the hub's answer may take beyond the time that the hub gives the server.
const CONFIRM_GRACE: Span = Span::from_secs(10);

/// The client of a proxy has said what it wants.
pub(crate) fn wants(
    core: &mut Core,
    now: Instant,
    index: usize,
    door: &mut Door,
    destination: Destination,
    kept: Vec<u8>,
) {
    let connection = &mut core.connections[index];
    let asking = Phase::Farewell { message: Vec::new(), ended: false };
    let Phase::Asking(mut asking) = std::mem::replace(&mut connection.phase, asking) else {
        return;
    };
    let Some(owner) = door.one_more(core, now, asking.client) else {
        turn_away(core, now, index, asking, RefuseReason::Limit, "this client has its share");
        return;
    };
    let holder = Holder::Client(owner.client);
    core.hold(now, index, owner, holder);
    match door.fail.fate() {
        Fate::Carried => {}
        Fate::Refused => {
            let reason = RefuseReason::NetworkUnreachable;
            turn_away(core, now, index, asking, reason, "no hub answers");
            return;
        }
        Fate::Direct => {
            let proxy = Some((asking.handshake, asking.reply));
            core.connections[index].about.server =
                Some(target(destination.clone(), None).destination);
            door.direct.begin(core, now, index, destination, proxy, kept);
            return;
        }
    }
    let mode = match door.decide(now, asking.handshake.protocol(), &destination) {
        Answer::Accept(mode) => mode,
        Answer::Refuse(reason) => {
            turn_away(core, now, index, asking, reason, "the hub does not reach this family");
            return;
        }
    };
    let connection = &mut core.connections[index];
    let target = target(destination, Some(asking.client));
    connection.about.server = Some(target.destination.clone());
    match mode {
        AcceptMode::Early => {
            asking.reply.extend_from_slice(&asking.handshake.granted(None));
            if let Some(socket) = &connection.socket
                && let Err(error) = flush(&**socket, &mut asking.reply)
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
            // A client may have asked without waiting for the answer to its greeting.
            if let Some(socket) = &connection.socket
                && let Err(error) = flush(&**socket, &mut asking.reply)
            {
                core.broken(now, index, &error);
                return;
            }
            connection.phase = Phase::Confirming(asking.handshake);
            confirm(core, now, index, target, kept);
        }
    }
}

/// Tells the client of a proxy why nothing is opened for it.
fn turn_away(
    core: &mut Core,
    now: Instant,
    index: usize,
    asking: Asking,
    reason: RefuseReason,
    detail: &str,
) {
    core.counters.refused(reason);
    let mut message = asking.reply;
    message.extend(asking.handshake.refused(reason, detail));
    say_farewell(core, now, index, message);
}

/// Asks the hub, whose answer the client of a proxy waits for; it has sent `kept` already.
fn confirm(core: &mut Core, now: Instant, index: usize, target: Target, mut kept: Vec<u8>) {
    let due = now + core.limits.connect + CONFIRM_GRACE;
    core.set_due(index, Some(due));
    match open_stream(core, now, index, target) {
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

/// The client has bytes or an end for us, or something else woke it: opens if it has.
pub(crate) fn open_greeted(core: &mut Core, now: Instant, index: usize) {
    let Some(socket) = &core.connections[index].socket else { return };
    match socket.peek(&mut [0]) {
        Err(error) if unresponsive::is_later(&error) => {}
        Ok(_) => open_now(core, now, index, Vec::new()),
        Err(error) => core.broken(now, index, &error),
    }
}

/// Opens the stream, with what the client has sent so far.
pub(crate) fn open_now(core: &mut Core, now: Instant, index: usize, kept: Vec<u8>) {
    let greeted = Phase::Farewell { message: Vec::new(), ended: false };
    let phase = std::mem::replace(&mut core.connections[index].phase, greeted);
    let Phase::Greeting { target, preface } = phase else { return };
    tracing::debug!(server = %target.destination, "opens");
    match open_stream(core, now, index, target) {
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

fn open_stream(
    core: &mut Core,
    now: Instant,
    index: usize,
    target: Target,
) -> Result<StreamKey, RefuseReason> {
    match core.slots.table.get(index).map(|(owner, _)| owner.clone()) {
        Some(owner) => core.open_stream(now, &owner, target),
        // Its slot was reclaimed a moment ago.
        None => Err(RefuseReason::Limit),
    }
}

/// Tells the client of a proxy why it is not connected.
pub(crate) fn refuse(
    core: &mut Core,
    now: Instant,
    index: usize,
    reason: RefuseReason,
    detail: &str,
) {
    if let Phase::Confirming(handshake) = &core.connections[index].phase {
        let message = handshake.refused(reason, detail);
        say_farewell(core, now, index, message);
    }
}
