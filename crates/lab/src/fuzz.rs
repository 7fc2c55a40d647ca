//! `bentpipe lab fuzz`: fault-injection runs over sessions, connections, links and gateways, one
//! for each seed.
//!
//! `sim::storm` documents the runs. This module distributes seeds over threads, catches panics and
//! reports them by seed, and repeats a sample of the seeds to check that runs are deterministic.

use crate::threads::panic_message;
use rt::Clock;
use sim::storm::{self, Tally};
pub use sim::storm::{Subject, describe};
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use units::Span;

/// One of so many seeds is run twice.
const REPEAT_EVERY: u64 = 64;
/// Maximum number of failures that are stored; all are counted.
const MAX_FAILURES: usize = 100;
/// Minimum interval between calls of `progress`.
const PROGRESS_INTERVAL: Span = Span::from_secs(1);

/// Options of a series of runs.
#[derive(Clone, Debug)]
pub struct FuzzConfig {
    /// The subject of every run; `None` derives it from the seed.
    pub subject: Option<Subject>,
    /// The first seed.
    pub first: u64,
    /// Number of seeds.
    pub seeds: u64,
    /// Number of threads.
    pub jobs: usize,
    /// No run starts after this time.
    pub at_most: Option<Span>,
}

/// A seed whose run violated an invariant or panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The subject of its run.
    pub subject: Subject,
    /// The violated invariant, or the message of the panic.
    pub what: String,
}

impl Failure {
    /// Returns the command that repeats the run.
    pub fn command(&self) -> String {
        format!(
            "bentpipe lab fuzz --seeds 1 --first {} --subject {}",
            self.seed,
            self.subject.name()
        )
    }
}

/// Results of a series of runs.
#[derive(Clone, Debug, Default)]
pub struct Fuzzed {
    /// Totals over the runs without a violation.
    pub tally: Tally,
    /// Number of runs.
    pub done: u64,
    /// Number of seeds that were run twice with equal traces.
    pub twice: u64,
    /// Number of runs with a violation.
    pub broken: u64,
    /// The first of them, at most 100.
    pub failures: Vec<Failure>,
}

/// Returns the number of processors available to this process.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Runs the seeds. Calls `progress` with the results so far about once per second and after each
/// failure.
pub fn fuzz(config: &FuzzConfig, mut progress: impl FnMut(&Fuzzed)) -> Fuzzed {
    let clock = Clock::from_here();
    let started = clock.now();
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut fuzzed = Fuzzed::default();
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        for _ in 0..config.jobs.max(1) {
            let (send, next, stop) = (send.clone(), &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= config.seeds {
                        break;
                    }
                    let seed = config.first.wrapping_add(index);
                    let subject = config.subject.unwrap_or(Subject::of_seed(seed));
                    if send.send((seed, subject, one(subject, seed))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let mut last_progress = clock.now();
        for (seed, subject, result) in receive {
            let failed = result.is_err();
            fuzzed.take(seed, subject, result);
            let now = clock.now();
            if failed || now.since(last_progress) >= PROGRESS_INTERVAL {
                last_progress = now;
                progress(&fuzzed);
            }
            let over = config.at_most.is_some_and(|most| now.since(started) >= most);
            stop.fetch_or(over, Ordering::Relaxed);
        }
    });
    fuzzed
}

impl Fuzzed {
    fn take(&mut self, seed: u64, subject: Subject, result: Result<storm::Report, String>) {
        self.done += 1;
        match result {
            Ok(report) => {
                self.twice += u64::from(seed.is_multiple_of(REPEAT_EVERY));
                self.tally.add(&report);
            }
            Err(what) => {
                self.broken += 1;
                if self.failures.len() < MAX_FAILURES {
                    self.failures.push(Failure { seed, subject, what });
                }
            }
        }
    }
}

/// Runs a seed, or twice where the traces are compared.
fn one(subject: Subject, seed: u64) -> Result<storm::Report, String> {
    let run = || match panic::catch_unwind(|| storm::run(subject, seed)) {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(damage)) => Err(damage.to_string()),
        Err(payload) => Err(format!("panicked: {}", panic_message(&*payload))),
    };
    let report = run()?;
    if seed.is_multiple_of(REPEAT_EVERY) {
        let again = run()?;
        if again.trace != report.trace {
            return Err(format!("traces {:x} and {:x} of one seed", report.trace, again.trace));
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let config = FuzzConfig { subject: None, first: 64, seeds: 12, jobs: 1, at_most: None };
        let one = fuzz(&config, |_| {});
        let two = fuzz(&FuzzConfig { jobs: 2, ..config }, |_| {});
        assert_eq!((one.done, one.twice, one.broken), (12, 1, 0), "{:?}", one.failures);
        assert_eq!(one.tally.to_string(), two.tally.to_string());
    }

    #[test]
    fn a_failure_names_the_command_that_repeats_it() {
        let mut fuzzed = Fuzzed::default();
        fuzzed.take(7, Subject::Sessions, Err("an invariant".to_owned()));
        let command = "bentpipe lab fuzz --seeds 1 --first 7 --subject sessions";
        assert_eq!((fuzzed.broken, fuzzed.failures[0].command()), (1, command.to_owned()));
    }
}
