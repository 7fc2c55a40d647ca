//! Logs on standard error: as text, for journald, or as JSON.

#[cfg(test)]
pub(crate) mod captured;
mod limit;
mod queue;
pub(crate) mod recent;

use crate::config::{LogFormat, LogSection};
pub(crate) use limit::CONNECTIONS;
use limit::Limiter;
use queue::LogQueue;
use rt::Clock;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::panic::PanicHookInfo;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

/// Environment variable of the log level: `BENTPIPE_LOG=debug`, `BENTPIPE_LOG=gateway=trace`.
const VARIABLE: &str = "BENTPIPE_LOG";

/// The level of this process's log.
static LEVEL: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

/// The queued lines of this process.
static QUEUE: OnceLock<Arc<LogQueue>> = OnceLock::new();

/// Maximum time that the end of a process waits for standard error.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// The log of this process. Dropping it writes the queued lines, for at most one second.
#[derive(Debug)]
#[must_use = "the last log lines are lost without it"]
pub struct Log {
    /// `None` where another subscriber is in place.
    queue: Option<Arc<LogQueue>>,
    writing: bool,
}

/// Starts logging to standard error as configured in `section`, which `BENTPIPE_LOG` overrides. Has
/// no effect if the process logs already.
///
/// The thread that logs never waits for standard error: lines are queued, and dropped and counted
/// when the queue is full. They are written from [`Log::start_writing`] on.
///
/// A log statement of level `info` or above writes at most twenty lines in ten seconds; the number
/// of omitted lines is logged afterwards.
pub fn start_logging(section: &LogSection) -> Log {
    let queue = Arc::new(LogQueue::default());
    let (filter, level) = reload::Layer::new(filter(section));
    let lines = tracing_subscriber::fmt::layer().with_writer(Arc::clone(&queue)).with_target(false);
    let to_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let lines = match section.format {
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        // The journal adds the time, reads the level from the line's beginning, and shows a line
        // with escape sequences as "blob data".
        LogFormat::Text if to_journal => lines.with_ansi(false).event_format(Journal).boxed(),
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
    };
    let recent = recent::Recent { clock: Clock::new() };
    let layers = tracing_subscriber::registry()
        .with(filter)
        .with(Limiter::of_process())
        .with(recent)
        .with(lines);
    // A subscriber that exists already is kept.
    if layers.try_init().is_err() {
        return Log { queue: None, writing: false };
    }
    let _ = LEVEL.set(level);
    let _ = QUEUE.set(Arc::clone(&queue));
    std::panic::set_hook(Box::new(log_panic));
    Log { queue: Some(queue), writing: false }
}

impl Log {
    /// Starts the thread that writes. A process drops privileges before, because each thread has its
    /// own.
    ///
    /// # Errors
    /// When no descriptor or thread is available.
    pub fn start_writing(&mut self) -> io::Result<()> {
        if let (Some(queue), false) = (&self.queue, self.writing) {
            let queue = Arc::clone(queue);
            // Not `io::stderr`: its lock would be held while the descriptor blocks.
            let out = File::from(io::stderr().as_fd().try_clone_to_owned()?);
            let thread = std::thread::Builder::new().name("log".into());
            let dropped = Arc::new(Barrier::new(2));
            let drops = Arc::clone(&dropped);
            thread.spawn(move || {
                crate::privileges::drop_all_of_thread();
                drops.wait();
                queue.write_all_to(out)
            })?;
            // No thread keeps privileges when the first octet is read from the network.
            dropped.wait();
            self.writing = true;
        }
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        report_omissions();
        // Lines of a process that ends before the thread has started are written as well.
        let started = self.start_writing();
        if let (Some(queue), Ok(())) = (&self.queue, started) {
            queue.flush(FLUSH_LIMIT);
        }
    }
}

/// Logs how many lines were omitted or dropped since the last call, if any.
pub(crate) fn report_omissions() {
    limit::tell_left_out();
    if let Some(lines) = QUEUE.get().and_then(|queue| queue.take_unreported()) {
        tracing::warn!(lines, "log lines dropped: standard error was blocked");
    }
}

/// Returns the number of lines dropped since the process started, because standard error was
/// blocked.
pub(crate) fn dropped_lines() -> u64 {
    QUEUE.get().map_or(0, |queue| queue.dropped())
}

/// Replaces the default panic hook, which writes to standard error and would block.
fn log_panic(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = text.unwrap_or("a value that is no text");
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let trace = Backtrace::capture();
    match trace.status() {
        BacktraceStatus::Captured => {
            tracing::error!(thread, place, "panicked: {message}\n{trace}");
        }
        _ => tracing::error!(thread, place, "panicked: {message}"),
    }
    // A second panic during unwinding aborts the process.
    if let Some(queue) = QUEUE.get() {
        queue.flush(FLUSH_LIMIT);
    }
}

/// Sets the level to that of the section.
pub(crate) fn set_level(section: &LogSection) {
    if let Some(level) = LEVEL.get()
        && let Err(error) = level.reload(filter(section))
    {
        tracing::warn!(%error, "log level not changed");
    }
}

fn filter(section: &LogSection) -> Targets {
    let configured = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    configured.unwrap_or_else(|| Targets::new().with_default(section.level.filter()))
}

/// Lines for systemd's journal: `<6>text`, where 6 is the level by syslog(3).
struct Journal;

impl<S, N> FormatEvent<S, N> for Journal
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let number = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            Level::DEBUG | Level::TRACE => 7,
        };
        write!(writer, "<{number}>")?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}
