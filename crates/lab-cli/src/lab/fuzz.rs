//! `bentpipe-lab fuzz`.

use crate::{Outcome, values};
use lab::fuzz::{FuzzConfig, Fuzzed, Subject, describe, fuzz};
use std::fmt::Write;
use std::num::NonZeroUsize;
use units::Span;

/// Random combinations of faults in sessions, connections and gateways, and hostile clients
///
/// Each seed is one run: loss, outages, clock steps, restarts and other faults drawn from the seed,
/// followed by a quiescent phase in which everything must complete. Invariants are checked
/// throughout. The invariant of `fairness` is that honest clients keep their share in parallel to
/// hostile ones. Prints a summary at the end. A seed that violates an invariant is printed with the
/// command that repeats it, and the exit code is 1.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe lab fuzz --subject gateways --seeds 200")]
pub(crate) struct Arguments {
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "S", default_value_t = 0)]
    first: u64,
    /// Subject: sessions, connections, links, gateways, fairness; default: all in turn
    #[arg(long, value_name = "WHAT", value_parser = subject)]
    subject: Option<Subject>,
    /// Number of parallel runs; default: one per processor
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Start no run after this time
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    seconds: Option<Span>,
}

fn subject(text: &str) -> Result<Subject, String> {
    let names = || Subject::ALL.map(Subject::name).join(", ");
    let found = Subject::ALL.into_iter().find(|subject| subject.name() == text);
    found.ok_or_else(|| format!("expected one of {}", names()))
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let config = FuzzConfig {
        subject: arguments.subject,
        first: arguments.first,
        seeds: arguments.seeds,
        jobs: arguments.jobs.map_or_else(lab::fuzz::processors, NonZeroUsize::get),
        at_most: arguments.seconds,
    };
    let mut shown = 0;
    let fuzzed = fuzz(&config, |so_far| shown = show(so_far, shown, config.seeds));
    show(&fuzzed, shown, config.seeds);
    eprintln!();
    let mut text = fuzzed.tally.to_string();
    let _ = writeln!(text, "\n{} storms run twice, with the same trace", fuzzed.twice);
    let missed = fuzzed.tally.missed();
    if !missed.is_empty() {
        let _ = writeln!(text, "not reached: {missed:?}");
    }
    values::print(&text)?;
    match fuzzed.broken {
        0 => Ok(()),
        broken => Err(format!("{broken} of {} storms broke a promise", fuzzed.done)),
    }
}

/// Prints new failures and a line of progress; returns the number of printed failures.
fn show(so_far: &Fuzzed, shown: usize, seeds: u64) -> usize {
    for failure in so_far.failures.iter().skip(shown) {
        let storm = describe(failure.subject, failure.seed);
        eprintln!(
            "\r\x1b[Kseed {}: {}\n  {storm}\n  {}",
            failure.seed,
            failure.what,
            failure.command()
        );
    }
    eprint!("\r{} of {seeds} storms, {} broke a promise", so_far.done, so_far.broken);
    so_far.failures.len()
}
