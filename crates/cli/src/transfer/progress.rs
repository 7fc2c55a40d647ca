//! The progress bar of a transfer, on standard error.

use indicatif::{ProgressBar, ProgressStyle};
use rt::Clock;
use std::io::{self, IsTerminal};
use transfer::{Summary, Update};
use units::Instant;

/// A progress bar if standard error is a terminal; otherwise remarks and a last line.
pub(super) struct Progress {
    bar: ProgressBar,
    quiet: bool,
    clock: Clock,
    begun: Instant,
}

impl Progress {
    /// Creates a bar for `total` octets, or without an end.
    pub(super) fn new(quiet: bool, total: Option<u64>) -> Self {
        let clock = Clock::new();
        let bar = match (quiet || !io::stderr().is_terminal(), total) {
            (true, _) => ProgressBar::hidden(),
            (false, Some(total)) => ProgressBar::new(total)
                .with_style(style("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}")),
            (false, None) => ProgressBar::no_length().with_style(style("{bytes} {bytes_per_sec}")),
        };
        Self { bar, quiet, begun: clock.now(), clock }
    }

    /// Counts from zero, for another attempt: what is there already is reported again.
    pub(super) fn restart(&self) {
        self.bar.set_position(0);
    }

    pub(super) fn update(&self, update: Update<'_>) {
        match update {
            Update::Moved(octets) | Update::Skipped(octets) => self.bar.inc(octets),
            Update::Note(note) => self.note(note),
        }
    }

    pub(super) fn note(&self, note: &str) {
        self.bar.suspend(|| eprintln!("{note}"));
    }

    /// Prints the summary.
    pub(super) fn finish(&self, summary: &Summary) {
        self.bar.finish_and_clear();
        if self.quiet {
            return;
        }
        let seconds = self.clock.now().since(self.begun).as_secs_f64();
        let Summary { files, present, failed, octets } = summary;
        eprintln!(
            "{files} files, {octets} octets in {seconds:.1} s; {present} were there already, \
             {failed} failed"
        );
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is valid")
}
