//! Whole gateways under virtual time: a terminal and a hub as operators run them, with clients and
//! servers, in a network in memory. A seed chooses the configuration, the connections and the
//! faults; the same seed gives the same run.
//!
//! ```text
//!   client ── TCP ── terminal: Engine ── link with faults ── hub: Engine ── TCP ── server
//! ```
//!
//! Checked at each octet and each end: octets are those that were sent, in order; an end is read
//! only behind the last octet of a side that has ended; a RST is read as an error, and a refusal is
//! told as one. Checked in the end: every connection is over, whatever else was going on, and the
//! gateways hold nothing for any of them.

mod draw;
mod link;
mod net;
mod sockets;
mod task;
mod tcp;
mod world;

use crate::engine::Held;
use draw::Mix;
use std::fmt;
use task::{Ending, Reading, Stage, Task, Way};
use units::Span;
use world::World;

/// How long all connections may take after the storm, beyond their bytes' time on the link.
const PATIENCE: Span = Span::from_secs(600);
/// How long gateways may hold on to something after the last connection.
const LINGER: Span = Span::from_secs(300);

/// What a storm came to that broke no promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// A number that two runs share only if they were the same.
    pub trace: u64,
    /// Connections, and those that carried all their bytes both ways.
    pub connections: usize,
    /// Those that carried all their bytes both ways to an orderly end.
    pub complete: usize,
    /// Bytes that clients and servers have read.
    pub bytes: u64,
    /// Time that has passed in the simulation.
    pub time: Span,
    /// Rounds of both gateways' loops.
    pub rounds: u64,
}

/// A promise that a gateway broke, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage(String);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Damage {}

/// What the storm of `seed` is made of, for people.
pub fn describe(seed: u64) -> String {
    Mix::draw(seed).to_string()
}

/// Runs two gateways through the storm of `seed`.
///
/// # Errors
/// The first promise that was broken.
pub fn run(seed: u64) -> Result<Report, Damage> {
    let mix = Mix::draw(seed);
    run_mix(&mix).map_err(|damage| Damage(format!("{damage}; {mix}")))
}

fn run_mix(mix: &Mix) -> Result<Report, String> {
    let mut world = mix.world()?;
    world.run(mix.calm_at, |_| false)?;
    mix.calm(&mut world);
    let limit = mix.calm_at + PATIENCE;
    if !world.run(limit, |world| world.tasks.iter().all(Task::is_over))? {
        return Err(unfinished(&mut world));
    }
    // A server whose client has gone at once may still be connected to.
    let limit = world.now() + LINGER;
    let is_idle = |world: &mut World| world.held() == [Held::default(); 2];
    let given_back =
        world.run(limit, |world| is_idle(world) && world.tasks.iter().all(Task::is_over))?;
    if !given_back {
        return Err(format!("not given back: {:?}", world.held()));
    }
    for task in &world.tasks {
        judge(task, mix)?;
    }
    let net = world.net.net();
    for (number, node) in net.nodes.iter().enumerate() {
        // The datagram socket, and the descriptor in reserve.
        if node.open > 2 || !node.lookups.is_empty() {
            return Err(format!("gateway {number} has {} sockets in the end", node.open));
        }
    }
    let sides = world.tasks.iter().flat_map(|task| &task.sides);
    Ok(Report {
        trace: net.trace,
        connections: world.tasks.len(),
        complete: world.tasks.iter().filter(|task| is_complete(task)).count(),
        bytes: sides.map(|side| side.got).sum(),
        time: net.now.since(units::Instant::ZERO),
        rounds: world.rounds,
    })
}

fn unfinished(world: &mut World) -> String {
    let held = world.held();
    let open = world.tasks.iter().filter(|task| !task.is_over());
    let words: Vec<String> = open.take(3).map(|task| format!("{task:?}")).collect();
    format!("not over {PATIENCE} after the storm: {words:?}, held {held:?}")
}

/// Whether all bytes have arrived both ways, and both ends were read.
fn is_complete(task: &Task) -> bool {
    let [client, server] = &task.sides;
    let whole = |own: &task::Side, other: &task::Side| own.end_seen && own.got == other.plan.bytes;
    whole(client, server) && whole(server, client)
}

/// Whether a connection that is over has ended as it was to.
fn judge(task: &Task, mix: &Mix) -> Result<(), String> {
    let [client, server] = &task.sides;
    let bad = |what: &str| Err(format!("{what}: {task:?}"));
    if matches!(task.way, Way::Silence | Way::Nonsense) {
        return match client.end_seen || client.error.is_some() {
            true => Ok(()),
            false => bad("a proxy's client was never told that it is not heard"),
        };
    }
    let is_reachable = mix.is_reachable(task);
    if !is_reachable && server.id.is_some() && !task.excused {
        return bad("a server that cannot be reached was reached");
    }
    if task.excused || task.hostile {
        return Ok(());
    }
    // Connections are refused then, and idle ones make way.
    let was_opened = server.id.is_some();
    let is_broken = client.error.is_some() || server.error.is_some();
    if mix.is_short() && (is_broken || client.end_seen && !was_opened) {
        return Ok(());
    }
    let client_resets = client.plan.ending != Ending::Fin;
    match (&task.stage, is_reachable) {
        // The opening of a stream may wait too long on a narrow link, or one that is out.
        (Stage::Refused(6 | 504), _) if mix.is_harsh() && server.id.is_none() => Ok(()),
        (Stage::Refused(code), false) => match mix.refusal(task) {
            Some(wanted) if wanted != *code => bad("another refusal than there was"),
            _ => Ok(()),
        },
        // A server that resets at once has refused.
        (Stage::Refused(_), true) if server.has_reset => Ok(()),
        (Stage::Refused(_), true) => bad("refused without a reason"),
        (_, false) if client.error.is_none() && !client_resets => {
            bad("a refusal that was not told")
        }
        (_, false) => Ok(()),
        (_, true) if client_resets || server.plan.ending != Ending::Fin => judge_reset(task, mix),
        (_, true) if !is_complete(task) => bad("not complete"),
        (_, true) => Ok(()),
    }
}

/// A side that resets behind its last byte: the other has all bytes, and an error.
fn judge_reset(task: &Task, mix: &Mix) -> Result<(), String> {
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
        let is_quick = side.plan.reading == Reading::All && !mix.is_harsh();
        if is_quick && other.sent == other.plan.bytes && side.got < other.plan.bytes {
            return bad("bytes before a RST were lost");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
