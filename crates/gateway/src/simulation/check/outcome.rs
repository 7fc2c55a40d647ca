//! Checks the end of a connection: complete, refused as its server has refused, or reset as one of
//! its sides has reset.

use crate::simulation::draw::Storm;
use crate::simulation::draw::site::Layout;
use crate::simulation::net::handshake::gateway_address;
use crate::simulation::net::tcp::Owner;
use crate::simulation::net::{Answer, Net, conn_of};
use crate::simulation::task::{ClientKind, Ending, Reading, Stage, Task};
use crate::simulation::world::Act;
use units::Span;

/// Reply codes of SOCKS5 (RFC 1928, section 6).
const NO_NETWORK: u16 = 3;
const NO_HOST: u16 = 4;
const REFUSED: u16 = 5;
const TIMED_OUT: u16 = 6;
/// Status codes of HTTP (RFC 9110, sections 15.6.3 and 15.6.5).
const BAD_GATEWAY: u16 = 502;
const GATEWAY_TIMEOUT: u16 = 504;
/// Time for which a terminal waits for a hub's reply: `limits.connect` and 10 s.
const NO_ANSWER: Span = Span::from_secs(15);

/// Checks the end of `task`.
///
/// # Errors
/// Returns the violation.
pub(in crate::simulation) fn check_outcome(
    task: &Task,
    storm: &Storm,
    net: &Net,
) -> Result<(), String> {
    let [client, server] = &task.sides;
    let bad = |what: &str| Err(format!("{what}: {task:?}"));
    if matches!(task.kind, ClientKind::Silent | ClientKind::Malformed) {
        return match client.end_seen || client.error.is_some() || client.has_reset {
            true => Ok(()),
            false => bad("an invalid proxy request had no reply"),
        };
    }
    let is_reachable = storm.is_reachable(task);
    if !is_reachable && server.id.is_some() {
        return bad("an unreachable server was reached");
    }
    let faults = &net.faults;
    let affected =
        faults.affected.contains(&task.number) || faults.affected_servers.contains(&task.server);
    if task.excuses.lost || task.hostile || affected {
        return Ok(());
    }
    check_source(task, storm, net)?;
    // Connections are refused when descriptors have run out, and idle ones are closed.
    let was_opened = server.id.is_some();
    let is_broken = client.error.is_some() || server.error.is_some();
    let may_be_refused = storm.is_short() || storm.harsh && storm.options.fail[0] == "refuse";
    let was_refused = is_broken || client.end_seen && !was_opened;
    let may_be_refused = may_be_refused || task.excuses.refused;
    if storm.is_short() && was_refused || may_be_refused && was_refused && !was_opened {
        return Ok(());
    }
    if !is_reachable {
        return check_refusal(task, storm);
    }
    let resets = client.plan.ending != Ending::Fin || server.plan.ending != Ending::Fin;
    match task.stage {
        Stage::Refused(TIMED_OUT | GATEWAY_TIMEOUT) if has_waited(task, storm) => Ok(()),
        Stage::Open if client.error == Some(libc::ENETUNREACH) && has_waited(task, storm) => Ok(()),
        // A server that resets immediately has refused.
        Stage::Refused(_) if server.has_reset => Ok(()),
        // Without descriptors a hub may give up a connection that its server is just accepting.
        Stage::Refused(_) if storm.is_short() && !server.end_seen => Ok(()),
        Stage::Refused(_) => bad("refused without a reason"),
        _ if resets => check_reset(task, storm),
        _ if !task.is_complete() => bad("not complete"),
        _ => Ok(()),
    }
}

/// Returns whether a client may be refused because no hub has replied in time: the opening of a
/// stream, or its reply, may be delayed on a slow link or by an outage.
fn has_waited(task: &Task, storm: &Storm) -> bool {
    storm.harsh && task.finished.is_some_and(|at| at.since(task.start) >= NO_ANSWER)
}

/// Checks the refusal of a client whose server is unreachable: it receives a refusal, with its
/// cause where the protocol has a code for it.
fn check_refusal(task: &Task, storm: &Storm) -> Result<(), String> {
    let client = &task.sides[0];
    let answers = storm.answers(task);
    let bad = |what: &str| Err(format!("{what} ({answers:?}): {task:?}"));
    let has_address = storm.has_address(task);
    let code_of = |answer: &Answer| match (has_address, answer) {
        (false, _) => NO_HOST,
        (true, Answer::Refuse | Answer::Accept) => REFUSED,
        (true, Answer::Unreachable) => NO_NETWORK,
        (true, Answer::Discard) => TIMED_OUT,
    };
    match (&task.stage, client.error) {
        (Stage::Refused(TIMED_OUT | GATEWAY_TIMEOUT), _) if has_waited(task, storm) => Ok(()),
        (Stage::Refused(code), _) => {
            let wanted = |answer: &Answer| match (&task.kind, code_of(answer)) {
                (ClientKind::Connect, TIMED_OUT) => GATEWAY_TIMEOUT,
                (ClientKind::Connect, _) => BAD_GATEWAY,
                (_, code) => code,
            };
            match answers.iter().any(|answer| *code == wanted(answer)) {
                true => Ok(()),
                false => bad("a refusal with another cause"),
            }
        }
        (_, None) if client.plan.ending == Ending::Fin => bad("a refusal that was not reported"),
        // A client in `confirm` mode receives its server's refusal; if the hub replies too late, it
        // receives "unreachable" or a timeout.
        (Stage::Open, Some(code)) if is_held(task, storm) => {
            let right = match storm.answer(task) {
                Answer::Accept | Answer::Refuse => code == libc::ECONNREFUSED,
                Answer::Unreachable => code == libc::ENETUNREACH,
                Answer::Discard => code == libc::ETIMEDOUT,
            };
            let slow = matches!(code, libc::ENETUNREACH | libc::ETIMEDOUT);
            if right || slow && has_waited(task, storm) {
                Ok(())
            } else {
                bad("a refusal with another cause")
            }
        }
        (_, _) => Ok(()),
    }
}

/// Checks the source address of the connection to the server: the client's, if the hub is
/// configured so, otherwise the gateway's own.
fn check_source(task: &Task, storm: &Storm, net: &Net) -> Result<(), String> {
    let Some(id) = task.sides[1].id else { return Ok(()) };
    let [opener, server] = &net.conns[conn_of(id).0].ends;
    let Owner::Node(gateway) = opener.owner else { return Ok(()) };
    let is_same_family = task.from.is_ipv4() == server.address.is_ipv4();
    let source = match storm.site.uses_client_address(gateway) && is_same_family {
        true => task.from,
        false => gateway_address(server.address),
    };
    match opener.address == source {
        true => Ok(()),
        false => Err(format!("connected to from {}, not {source}: {task:?}", opener.address)),
    }
}

/// Returns whether the client's SYN is held until its server has accepted.
fn is_held(task: &Task, storm: &Storm) -> bool {
    let changes = |act: &Act| matches!(act, Act::Reload(_) | Act::Restart(_) | Act::Drain(..));
    let is_constant = !storm.acts.values().any(changes);
    let pair = storm.options.layout != Layout::Single;
    task.kind == ClientKind::Intercepted && storm.options.confirms && is_constant && pair
}

/// Checks a reset: the other side has all bytes before it, and an error.
fn check_reset(task: &Task, storm: &Storm) -> Result<(), String> {
    let bad = |what: &str| Err(format!("{what}: {task:?}"));
    for own in 0..2 {
        let (side, other) = (&task.sides[own], &task.sides[1 - own]);
        let has_reset = other.has_reset && other.error.is_none();
        if !has_reset || side.plan.ending != Ending::Fin || side.id.is_none() {
            continue;
        }
        if side.error.is_none() {
            return bad("a RST that was not reported");
        }
        // The last bytes may be lost by a timeout if the reader is slow or the link has an outage.
        let is_quick = side.plan.reading == Reading::All && !storm.rough;
        if is_quick && other.sent == other.plan.bytes && side.got < other.plan.bytes {
            return bad("bytes before a RST were lost");
        }
    }
    Ok(())
}
