//! Final checks and report of a storm.

use super::fault::Fault;
use super::plan::StormPlan;
use super::report::{Record, Report, Violation};
use super::runner::Runner;
use units::Instant;
use xstp::session::Coverage;

/// Checks that the records of both ends match for each incarnation.
pub(super) fn checks(runner: &Runner) -> Result<(), Violation> {
    let [clients, servers] = runner.ends().each_ref().map(|end| end.records());
    for (records, others, name) in [(&clients, &servers, "client"), (&servers, &clients, "server")]
    {
        for record in records.iter().filter(|record| record.incarnation.is_some()) {
            let peers = || others.iter().filter(|peer| peer.incarnation == record.incarnation);
            // A server without memory may have accepted an incarnation more than once.
            let delivered = peers().map(|peer| peer.delivered).max().unwrap_or(0);
            // A restart of the server discards data that it had received and not read.
            let whole = peers().any(|peer| !peer.aborted);
            if record.self_ended && whole && delivered != record.task {
                let text = format!("{name}: ended with {delivered} of {} at the peer", record.task);
                return Err(Violation::new(text));
            }
        }
    }
    Ok(())
}

/// The report of a storm without a violation.
pub(super) fn report(runner: &mut Runner, plan: &StormPlan) -> Report {
    let records = runner.ends().iter().flat_map(|end| end.records());
    let wraps = |record: &Record| plan.wraps_after().is_some_and(|after| record.packets > after);
    for _ in 0..records.filter(wraps).count() {
        runner.fault_counts().count(Fault::Wrap);
    }
    summary(runner, plan.faults_end, plan.preset.name())
}

/// The report of a finished storm.
pub(super) fn summary(runner: &mut Runner, faults_end: Instant, preset: &'static str) -> Report {
    let mut coverage = Coverage::default();
    let (mut sessions, mut aborted, mut bytes) = (0, 0, 0);
    for end in runner.ends() {
        coverage.merge(end.coverage());
        sessions += end.sessions();
        for record in end.records() {
            aborted += u64::from(record.aborted);
            bytes += record.delivered;
        }
    }
    let packets: u64 = runner.channels().iter().map(|channel| channel.counts().offered).sum();
    Report {
        trace: runner.trace(),
        preset,
        packets,
        storm: faults_end.since(Instant::ZERO),
        recovery: runner.now().since(faults_end),
        sessions,
        aborted,
        bytes,
        coverage,
        fault_counts: runner.fault_counts().clone(),
    }
}
