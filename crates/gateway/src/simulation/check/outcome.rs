//! Whether a connection that is over has ended as it had to: complete, refused as its server
//! refused, or reset as one of its sides has reset.

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
/// How long a terminal waits for a hub's answer: `limits.connect` and 10 s.
const NO_ANSWER: Span = Span::from_secs(15);

/// # Errors
/// What is wrong with the end of `task`.
pub(in crate::simulation) fn judge(task: &Task, storm: &Storm, net: &Net) -> Result<(), String> {
    let [client, server] = &task.sides;
    let bad = |what: &str| Err(format!("{what}: {task:?}"));
    if matches!(task.kind, ClientKind::Silent | ClientKind::Malformed) {
        return match client.end_seen || client.error.is_some() || client.has_reset {
            true => Ok(()),
            false => bad("a proxy's client was never told that it is not heard"),
        };
    }
    let is_reachable = storm.is_reachable(task);
    if !is_reachable && server.id.is_some() {
        return bad("a server that cannot be reached was reached");
    }
    let faults = &net.faults;
    let struck =
        faults.struck.contains(&task.number) || faults.struck_servers.contains(&task.server);
    if task.excuses.lost || task.hostile || struck {
        return Ok(());
    }
    judge_source(task, storm, net)?;
    // Connections are refused when descriptors have run out, and idle ones make way.
    let was_opened = server.id.is_some();
    let is_broken = client.error.is_some() || server.error.is_some();
    let may_be_refused = storm.is_short() || storm.harsh && storm.options.fail[0] == "refuse";
    let was_refused = is_broken || client.end_seen && !was_opened;
    let may_be_refused = may_be_refused || task.excuses.refused;
    if storm.is_short() && was_refused || may_be_refused && was_refused && !was_opened {
        return Ok(());
    }
    if !is_reachable {
        return judge_refusal(task, storm);
    }
    let resets = client.plan.ending != Ending::Fin || server.plan.ending != Ending::Fin;
    match task.stage {
        Stage::Refused(TIMED_OUT | GATEWAY_TIMEOUT) if has_waited(task, storm) => Ok(()),
        Stage::Open if client.error == Some(libc::ENETUNREACH) && has_waited(task, storm) => Ok(()),
        // A server that resets at once has refused.
        Stage::Refused(_) if server.has_reset => Ok(()),
        Stage::Refused(_) => bad("refused without a reason"),
        _ if resets => judge_reset(task, storm),
        _ if !task.is_complete() => bad("not complete"),
        _ => Ok(()),
    }
}

/// Whether a client is refused because no hub has answered in time: the opening of a stream, or its
/// answer, may wait too long where the link is slow or out.
fn has_waited(task: &Task, storm: &Storm) -> bool {
    storm.harsh && task.finished.is_some_and(|at| at.since(task.start) >= NO_ANSWER)
}

/// A client whose server cannot be reached: it is told so, and why as far as that can be said.
fn judge_refusal(task: &Task, storm: &Storm) -> Result<(), String> {
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
                false => bad("another refusal than there was"),
            }
        }
        (_, None) if client.plan.ending == Ending::Fin => bad("a refusal that was not told"),
        // A client that was not answered before its server is told what the server said; or, where
        // the hub is slow to answer, that there is no way, or nothing.
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
                bad("another refusal than there was")
            }
        }
        (_, _) => Ok(()),
    }
}

/// A hub that lends the clients their addresses connects from them, and any other gateway from its
/// own.
fn judge_source(task: &Task, storm: &Storm, net: &Net) -> Result<(), String> {
    let Some(id) = task.sides[1].id else { return Ok(()) };
    let [opener, server] = &net.conns[conn_of(id).0].ends;
    let Owner::Node(gateway) = opener.owner else { return Ok(()) };
    let is_same_family = task.from.is_ipv4() == server.address.is_ipv4();
    let source = match storm.site.lends(gateway) && is_same_family {
        true => task.from,
        false => gateway_address(server.address),
    };
    match opener.address == source {
        true => Ok(()),
        false => Err(format!("connected to from {}, not {source}: {task:?}", opener.address)),
    }
}

/// Whether the client's SYN is held until its server has answered, from the first to the last.
fn is_held(task: &Task, storm: &Storm) -> bool {
    let changes = |act: &Act| matches!(act, Act::Reload(_) | Act::Restart(_) | Act::Drain(..));
    let is_constant = !storm.acts.values().any(changes);
    let pair = storm.options.layout != Layout::Single;
    task.kind == ClientKind::Intercepted && storm.options.confirms && is_constant && pair
}

/// A side that resets behind its last byte: the other has all bytes, and an error.
fn judge_reset(task: &Task, storm: &Storm) -> Result<(), String> {
    let bad = |what: &str| Err(format!("{what}: {task:?}"));
    for own in 0..2 {
        let (side, other) = (&task.sides[own], &task.sides[1 - own]);
        let has_reset = other.has_reset && other.error.is_none();
        if !has_reset || side.plan.ending != Ending::Fin || side.id.is_none() {
            continue;
        }
        if side.error.is_none() {
            return bad("a RST that was not told");
        }
        // Who reads slowly, or over a link that is out, may lose the last bytes to a bound of time.
        let is_quick = side.plan.reading == Reading::All && !storm.rough;
        if is_quick && other.sent == other.plan.bytes && side.got < other.plan.bytes {
            return bad("bytes before a RST were lost");
        }
    }
    Ok(())
}
