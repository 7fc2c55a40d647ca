//! Whole gateways under virtual time: terminals and hubs as operators run them, with clients and
//! servers, in a network in memory. A seed selects gateways, connections and faults; the same seed
//! gives the same run.
//!
//! ```text
//!   client ── TCP ── terminal: Engine ── link with faults ── hub: Engine ── TCP ── server
//! ```
//!
//! * [`draw`] derives a run from a seed: the gateways (a pair, a terminal with two hubs, a hub with
//!   two terminals, a single one) and their configurations, the behaviour of clients and servers,
//!   hostile clients, and faults.
//! * [`world`] runs it: gateways by readiness and time, and events (restarts, drains, reloads,
//!   blackouts, exhausted descriptors).
//! * [`net`] and [`host`] simulate the kernel: TCP with buffers, windows and resets, packet filters
//!   that hold SYNs, datagrams over links, and each error that a call can return.
//! * [`check`] and [`task`] verify the results. Each byte is the one that was sent at its position.
//!   An end of stream follows the last byte of a side that has ended; a RST is read as an error,
//!   and a refusal is reported as a refusal. At the end of the run every connection has ended,
//!   gateways and their hosts hold no resources for any of them, and no gateway was in a busy loop.
//!   Every sixteenth seed is a [contest](draw::contest): honest clients receive 80 % of their
//!   max-min share beside a hostile one.
//! * [`defect`](crate::engine::defect) has defects that can be enabled; the tests verify that each
//!   of them is found.

mod check;
mod draw;
mod host;
mod names;
mod net;
mod task;
mod udp;
mod world;

pub use crate::engine::defect::{DEFECTS, Defect, with_defect};

use check::{all_released, outcome, shares};
use draw::Storm;
use draw::contest::Contest;
use std::fmt;
use task::Task;
use units::Span;
use world::World;

/// Maximum time that all connections take after the faults end, in addition to the transmission
/// time of their bytes.
const COMPLETION_TIMEOUT: Span = Span::from_secs(600);
/// Time for which gateways are observed after all connections have ended.
const CALM: Span = Span::from_secs(60);
/// One in this number of seeds is a contest.
const CONTESTS: u64 = 16;

/// Result of a run without a violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// A hash of all events, equal for two runs only if they were identical.
    pub trace: u64,
    /// Number of connections, hostile ones included.
    pub connections: usize,
    /// Number of connections that transferred all their bytes and ended in order.
    pub complete: usize,
    /// Bytes that clients and servers have read.
    pub bytes: u64,
    /// Simulated time.
    pub time: Span,
    /// Rounds of all gateways' loops.
    pub rounds: u64,
    /// The largest number of consecutive rounds without effect.
    pub empty_rounds: u64,
}

/// Description of a violated property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// Describes the run of `seed`.
pub fn describe(seed: u64) -> String {
    match is_contest(seed) {
        true => Contest::draw(seed).storm.to_string(),
        false => Storm::draw(seed).to_string(),
    }
}

/// Runs gateways with the faults of `seed`.
///
/// # Errors
/// Returns the first violation.
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

/// Runs `seed` as [`run`] does, and periodically passes each gateway's status of its peers to
/// `show`.
///
/// # Errors
/// Returns the first violation.
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
        while world.now() < storm.faults_end + CALM && !world.tasks.iter().all(Task::is_over) {
            if world.now() >= storm.faults_end && std::mem::take(&mut storms) {
                storm.end_faults(&mut world);
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

/// Returns whether the run of `seed` is a contest.
pub fn is_contest(seed: u64) -> bool {
    seed % CONTESTS == CONTESTS - 1
}

fn run_storm(storm: &Storm) -> Result<Report, String> {
    let mut world = storm.world()?;
    world.run(storm.faults_end, |_| false)?;
    storm.end_faults(&mut world);
    let limit = storm.faults_end + COMPLETION_TIMEOUT;
    if !world.run(limit, |world| world.tasks.iter().all(Task::is_over))? {
        return Err(unfinished(&mut world));
    }
    all_released(&mut world)?;
    let net = world.net.net();
    for task in &world.tasks {
        outcome::check_outcome(task, storm, &net)?;
    }
    drop(net);
    Ok(report(&world))
}

fn unfinished(world: &mut World) -> String {
    let held = world.held();
    let open = world.tasks.iter().filter(|task| !task.is_over());
    let tasks: Vec<String> = open.take(3).map(|task| format!("{task:?}")).collect();
    format!(
        "connections run {COMPLETION_TIMEOUT} after the end of the faults: {tasks:?}, held {held:?}"
    )
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
        empty_rounds: world.max_empty_rounds(),
    }
}

#[cfg(test)]
mod tests;
