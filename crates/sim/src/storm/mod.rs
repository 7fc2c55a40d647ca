//! Storms: fault-injection runs. Each seed selects a random mix of faults over sessions,
//! connections, links or gateways. After the faults a fault-free phase follows, in which all
//! transfers must finish.
//!
//! ```text
//!   seed ──▶ plan: enabled faults, intensities, times      checks
//!              │                                             ▲
//!   ┌──────────▼─────────────────────────────────────────────┴────┐
//!   │ runner  client ── clock ── channels ── clock ── server      │
//!   │         Host<PacketInstance>: sessions, immediate delivery  │
//!   │         Host<StreamInstance>: connections, in order         │
//!   └─────────────────────────────────────────────────────────────┘
//! ```
//!
//! Each kind of fault is enabled or disabled by the seed: a run with all faults at once makes too
//! little progress to find defects. Each endpoint has its own clock. In the fault-free phase open
//! sessions must finish, and aborted ones must restart and finish, within a bounded time. At any
//! time: the octets delivered are those sent, each once; every datagram is accounted for; rates and
//! memory limits are kept; no event follows the end of a session.
//!
//! The same seed gives the same run, octet for octet: [`Report::trace`].

mod channel;
mod checks;
mod clock;
mod fairness;
mod fault;
mod gateways;
mod host;
mod packets;
mod plan;
mod preset;
mod ranges;
mod report;
mod runner;
mod stream;
mod table;

pub use fault::{Fault, FaultCounts, FaultSet};
pub use report::{Report, Subject, Violation};
pub use table::{Tally, UNREACHABLE};

use crate::scenario;
use host::Host;
use packets::PacketInstance;
use plan::StormPlan;
use runner::{End, Runner, RunnerParts};
use stream::StreamInstance;
use units::{Instant, RngStream};
use xstp::session::Coverage;

/// Describes the storm of `seed` over `subject`.
pub fn describe(subject: Subject, seed: u64) -> String {
    if subject == Subject::Links {
        return "gateways; all faults of links and networks".to_owned();
    }
    if subject == Subject::Gateways {
        return gateways::StormPlan::draw(seed).describe();
    }
    if subject == Subject::Fairness {
        return fairness::describe(seed);
    }
    StormPlan::draw(subject, seed).describe()
}

/// Runs `subject` through the storm of `seed`.
///
/// # Errors
/// Returns the first violation.
///
/// # Panics
/// If the code under test panics.
pub fn run(subject: Subject, seed: u64) -> Result<Report, Violation> {
    if subject == Subject::Links {
        return links(seed);
    }
    if subject == Subject::Gateways {
        return gateways::run(seed);
    }
    if subject == Subject::Fairness {
        return fairness::run(seed);
    }
    let plan = StormPlan::draw(subject, seed);
    let [here, there] = plan.clocks.each_ref().map(|clock| clock.at(Instant::ZERO));
    let [client, server] = plan.setups();
    let ends: [Box<dyn End>; 2] = match subject {
        Subject::Sessions => [
            Box::new(Host::<PacketInstance>::new(client, here)),
            Box::new(Host::<PacketInstance>::new(server, there)),
        ],
        Subject::Connections | Subject::Links | Subject::Gateways | Subject::Fairness => [
            Box::new(Host::<StreamInstance>::new(client, here)),
            Box::new(Host::<StreamInstance>::new(server, there)),
        ],
    };
    let mut runner = Runner::new(RunnerParts {
        ends,
        clocks: plan.clocks.clone(),
        channels: plan.channels(),
        fault_free: Default::default(),
        timer_delay: plan.timer_delay,
        rng: RngStream::new(seed, 0, "sim/storm/lag"),
    });
    for &(at, action) in &plan.actions {
        runner.schedule(at, action);
    }
    plan.count_settings(runner.fault_counts());
    runner.run(plan.faults_end, false)?;
    runner.fault_free();
    if !runner.run(plan.faults_end + plan.recovery_limit(), true)? {
        let ends = [0, 1].map(|end| runner.ends()[end].describe());
        return Err(Violation::new(format!("{} after the storm: {ends:?}", plan.recovery_limit())));
    }
    checks::checks(&runner)?;
    Ok(checks::report(&mut runner, &plan))
}

/// Gateways on a satellite link.
fn links(seed: u64) -> Result<Report, Violation> {
    let seen = scenario::storm_seen(seed).map_err(|damage| Violation::new(damage.to_string()))?;
    Ok(Report {
        trace: seen.trace,
        preset: "gateways on a link",
        packets: seen.packets,
        storm: seen.storm,
        recovery: seen.recovery,
        sessions: 2,
        aborted: 0,
        bytes: seen.bytes,
        // This scenario checks faults itself and does not count them.
        coverage: Coverage::default(),
        fault_counts: FaultCounts::default(),
    })
}

#[cfg(test)]
mod tests;
