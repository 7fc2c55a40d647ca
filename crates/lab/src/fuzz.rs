//! `bentpipe lab fuzz`: storms over sessions, connections, links and gateways, one for each seed.
//!
//! What a storm is, `sim::storm` says. Here seeds are shared out to threads, panics are caught
//! and named by their seed, and for a sample of seeds it is checked that the same seed gives the
//! same run.

use rt::Clock;
use sim::storm::{self, Tally};
pub use sim::storm::{Subject, describe};
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use units::Span;

/// Every so many seeds one is run twice.
const TWICE: u64 = 64;
/// Failures that are kept; all are counted.
const KEPT: usize = 100;
/// How often progress is told, at most.
const TELL_EVERY: Span = Span::from_secs(1);

/// What to run.
#[derive(Clone, Debug)]
pub struct FuzzConfig {
    /// What storms rage over; subjects take turns when there is none.
    pub subject: Option<Subject>,
    /// The first seed.
    pub first: u64,
    /// How many.
    pub seeds: u64,
    /// Threads.
    pub jobs: usize,
    /// No storm begins after this time.
    pub at_most: Option<Span>,
}

/// A seed that broke a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What it raged over.
    pub subject: Subject,
    /// The promise, or the panic.
    pub what: String,
}

impl Failure {
    /// The command that runs it again.
    pub fn command(&self) -> String {
        format!(
            "bentpipe lab fuzz --seeds 1 --first {} --subject {}",
            self.seed,
            self.subject.name()
        )
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Fuzzed {
    /// What storms that broke nothing reached.
    pub tally: Tally,
    /// Storms that were run.
    pub done: u64,
    /// How many of them were run twice, with the same trace.
    pub twice: u64,
    /// How many broke a promise.
    pub broken: u64,
    /// The first of these.
    pub failures: Vec<Failure>,
}

/// How many threads this machine has processors for.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Runs storms; `progress` hears what there is so far, about once a second and at each failure.
pub fn fuzz(config: &FuzzConfig, mut progress: impl FnMut(&Fuzzed)) -> Fuzzed {
    let clock = Clock::from_here();
    let begun = clock.now();
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
        let mut told = clock.now();
        for (seed, subject, result) in receive {
            let failed = result.is_err();
            fuzzed.take(seed, subject, result);
            let now = clock.now();
            if failed || now.since(told) >= TELL_EVERY {
                told = now;
                progress(&fuzzed);
            }
            let over = config.at_most.is_some_and(|most| now.since(begun) >= most);
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
                self.twice += u64::from(seed.is_multiple_of(TWICE));
                self.tally.add(&report);
            }
            Err(what) => {
                self.broken += 1;
                if self.failures.len() < KEPT {
                    self.failures.push(Failure { seed, subject, what });
                }
            }
        }
    }
}

/// One storm, or two that must be the same.
fn one(subject: Subject, seed: u64) -> Result<storm::Report, String> {
    let run = || match panic::catch_unwind(|| storm::run(subject, seed)) {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(damage)) => Err(damage.to_string()),
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            Err(format!("panicked: {}", text.unwrap_or("without a word")))
        }
    };
    let report = run()?;
    if seed.is_multiple_of(TWICE) {
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
    fn a_failure_says_how_to_see_it_again() {
        let mut fuzzed = Fuzzed::default();
        fuzzed.take(7, Subject::Sessions, Err("a promise".to_owned()));
        let command = "bentpipe lab fuzz --seeds 1 --first 7 --subject sessions";
        assert_eq!((fuzzed.broken, fuzzed.failures[0].command()), (1, command.to_owned()));
    }
}
