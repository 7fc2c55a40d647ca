//! Whole gateways under virtual time: terminals and hubs as operators run them, with clients and
//! servers, in a network in memory. A seed chooses gateways, connections and faults; the same seed
//! gives the same run.
//!
//! ```text
//!   client ── TCP ── terminal: Engine ── link with faults ── hub: Engine ── TCP ── server
//! ```
//!
//! * [`draw`] says what a seed stands for: which gateways there are (a pair, a terminal with two
//!   hubs, a hub with two terminals, one alone) and what they are told, what clients and servers
//!   do, which of them are hostile, and what goes wrong.
//! * [`world`] runs it: gateways by readiness and time, and what happens to them (restarts,
//!   drains, other configurations, blackouts, no descriptors).
//! * [`net`] and [`host`] are the kernel: TCP with buffers, windows and resets, packet filters that
//!   hold SYNs, datagrams over links, and each error that a call can return.
//! * [`check`] and [`task`] say what must hold. At each byte: it is the one that was sent there. At
//!   each end: it is read behind the last byte of a side that has ended; a RST is read as an
//!   error, and a refusal is told as one. In the end: every connection is over, gateways and
//!   their hosts hold nothing for any of them, and no gateway was busy with nothing. In every
//!   sixteenth seed, a [contest](draw::contest): honest clients have 80 % of their max-min share
//!   beside a hostile one.
//! * [`defect`](crate::engine::defect) has defects to be seeded by hand; the tests see that each of
//!   them is found.

mod check;
mod draw;
mod host;
mod names;
mod net;
mod task;
mod udp;
mod world;

pub use crate::engine::defect::{DEFECTS, Defect, with_defect};

use check::{all_given_back, outcome, shares};
use draw::Storm;
use draw::contest::Contest;
use std::fmt;
use task::Task;
use units::Span;
use world::World;

/// How long all connections may take after the storm, beyond their bytes' time on the link.
const PATIENCE: Span = Span::from_secs(600);
/// How long a storm is watched after it is over.
const CALM: Span = Span::from_secs(60);
/// One in so many seeds is a contest.
const CONTESTS: u64 = 16;

/// What came of a storm in which everything held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// A number that two runs share only if they were the same.
    pub trace: u64,
    /// Connections, hostile ones included.
    pub connections: usize,
    /// Those that carried all their bytes both ways to an orderly end.
    pub complete: usize,
    /// Bytes that clients and servers have read.
    pub bytes: u64,
    /// Time that has passed in the simulation.
    pub time: Span,
    /// Rounds of all gateways' loops.
    pub rounds: u64,
    /// The largest number of rounds in a row in which a gateway did nothing.
    pub empty_rounds: u64,
}

/// What did not hold, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// What the storm of `seed` is made of, for people.
pub fn describe(seed: u64) -> String {
    match is_contest(seed) {
        true => Contest::draw(seed).storm.to_string(),
        false => Storm::draw(seed).to_string(),
    }
}

/// Runs gateways through the storm of `seed`.
///
/// # Errors
/// The first thing that did not hold.
pub fn run(seed: u64) -> Result<Report, Violation> {
    if is_contest(seed) {
        let contest = Contest::draw(seed);
        let run = shares::run(&contest);
        return run
            .map(|world| report(&world))
            .map_err(|what| Violation(format!("{what}; {}", contest.storm)));
    }
    let storm = Storm::draw(seed);
    run_storm(&storm).map_err(|what| Violation(format!("{what}; {storm}")))
}

/// Runs the storm of `seed` and hands what each gateway shows of its peers to `show`, every so often.
///
/// # Errors
/// As [`run`].
pub fn watch(
    seed: u64,
    every: Span,
    mut show: impl FnMut(units::Instant, usize, &str),
) -> Result<Report, Violation> {
    let storm = match is_contest(seed) {
        true => Contest::draw(seed).storm,
        false => Storm::draw(seed),
    };
    let watched = storm.world().and_then(|mut world| {
        let mut storms = true;
        while world.now() < storm.calm_at + CALM && !world.tasks.iter().all(Task::is_over) {
            if world.now() >= storm.calm_at && std::mem::take(&mut storms) {
                storm.calm(&mut world);
            }
            let until = world.now() + every;
            world.run(until, |_| false)?;
            for node in 0..storm.site.configs.len() {
                let status = world.status(node);
                show(world.now(), node, &status);
            }
        }
        Ok(())
    });
    watched.map_err(Violation)?;
    run(seed)
}

/// Whether the storm of `seed` is a contest.
pub fn is_contest(seed: u64) -> bool {
    seed % CONTESTS == CONTESTS - 1
}

fn run_storm(storm: &Storm) -> Result<Report, String> {
    let mut world = storm.world()?;
    world.run(storm.calm_at, |_| false)?;
    storm.calm(&mut world);
    let limit = storm.calm_at + PATIENCE;
    if !world.run(limit, |world| world.tasks.iter().all(Task::is_over))? {
        return Err(unfinished(&mut world));
    }
    all_given_back(&mut world)?;
    let net = world.net.net();
    for task in &world.tasks {
        outcome::judge(task, storm, &net)?;
    }
    drop(net);
    Ok(report(&world))
}

fn unfinished(world: &mut World) -> String {
    let held = world.held();
    let open = world.tasks.iter().filter(|task| !task.is_over());
    let words: Vec<String> = open.take(3).map(|task| format!("{task:?}")).collect();
    format!("not over {PATIENCE} after the storm: {words:?}, held {held:?}")
}

fn report(world: &World) -> Report {
    let net = world.net.net();
    let sides = world.tasks.iter().flat_map(|task| &task.sides);
    Report {
        trace: net.trace,
        connections: world.tasks.len(),
        complete: world.tasks.iter().filter(|task| task.is_complete()).count(),
        bytes: sides.map(|side| side.got).sum(),
        time: net.now.since(units::Instant::ZERO),
        rounds: world.rounds,
        empty_rounds: world.most_empty_rounds(),
    }
}

#[cfg(test)]
mod tests;
