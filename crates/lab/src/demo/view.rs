//! Progress: bars on a terminal, otherwise lines.

use super::Plan;
use super::measure::{Stage, Watched};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use rt::Clock;
use std::io::IsTerminal;
use units::{Instant, Span};

/// Refresh interval of the bars.
const FRAME: Span = Span::from_millis(200);
/// Interval between lines.
const LINE: Span = Span::from_secs(5);

/// Displays the progress of each transport.
pub(super) struct View<'a> {
    watched: &'a [Watched],
    bars: Option<Vec<ProgressBar>>,
    clock: Clock,
    began: Instant,
    size: u64,
}

impl<'a> View<'a> {
    pub(super) fn new(watched: &'a [Watched], plan: &Plan) -> Self {
        let clock = Clock::new();
        let bars = std::io::stderr().is_terminal().then(|| {
            let all = MultiProgress::new();
            let style = ProgressStyle::with_template("{prefix:>9} {bar:40} {msg}")
                .expect("the template is a constant")
                .progress_chars("━╸─");
            let bar = |way: &Watched| {
                let bar = all.add(ProgressBar::new(plan.size));
                bar.set_style(style.clone());
                bar.set_prefix(way.way.name());
                bar
            };
            watched.iter().map(bar).collect()
        });
        Self { watched, bars, clock, began: clock.now(), size: plan.size }
    }

    /// Displays the progress until `done` returns true.
    pub(super) fn show_until(&self, done: impl Fn() -> bool) {
        let mut next_line = self.began;
        while !done() {
            let now = self.clock.now();
            match &self.bars {
                Some(bars) => {
                    for (bar, way) in bars.iter().zip(self.watched) {
                        bar.set_position(way.progress.bytes());
                        bar.set_message(self.words(way, now));
                    }
                }
                None if now >= next_line => {
                    self.line(now);
                    next_line = now + LINE;
                }
                None => {}
            }
            self.clock.sleep_until(now + FRAME);
        }
    }

    pub(super) fn close(&self) {
        match &self.bars {
            Some(bars) => bars.iter().for_each(ProgressBar::finish_and_clear),
            None => self.line(self.clock.now()),
        }
    }

    fn line(&self, now: Instant) {
        let seconds = now.since(self.began).as_secs_f64();
        let ways: Vec<String> = self
            .watched
            .iter()
            .map(|way| format!("{}: {}", way.way, self.words(way, now)))
            .collect();
        eprintln!("{seconds:>4.0} s  {}", ways.join("; "));
    }

    fn words(&self, way: &Watched, now: Instant) -> String {
        match way.stage() {
            Stage::Building => "building the network".to_owned(),
            Stage::Requests => "requests of 4 KB".to_owned(),
            Stage::Page => "a web page".to_owned(),
            Stage::Download { since } => {
                let bytes = way.progress.bytes();
                let seconds = now.since(since).as_secs_f64().max(0.001);
                format!(
                    "{:.1} of {:.1} MB, {:.2} Mbit/s",
                    bytes as f64 / 1e6,
                    self.size as f64 / 1e6,
                    bytes as f64 * 8.0 / seconds / 1e6
                )
            }
            Stage::Closing => "closing".to_owned(),
            Stage::Done => format!("done, {:.1} MB", way.progress.bytes() as f64 / 1e6),
            Stage::Failed(reason) => format!("failed: {reason}"),
        }
    }
}
