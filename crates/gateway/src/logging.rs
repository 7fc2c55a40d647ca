//! Logs, on standard error: for people, for journald, or as JSON.

mod limit;

use crate::config::{LogFormat, LogSection};
use limit::Limiter;
pub(crate) use limit::{CONNECTIONS, tell_left_out};
use std::fmt;
use std::io::IsTerminal;
use std::sync::OnceLock;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

/// What decides how much is logged: `BENTPIPE_LOG=debug`, `BENTPIPE_LOG=gateway=trace`.
const VARIABLE: &str = "BENTPIPE_LOG";

/// The level, of the logging that this process has started.
static LEVEL: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Logs what happens to standard error as `section` says, unless `BENTPIPE_LOG` says otherwise.
/// Does nothing when the process logs already.
///
/// What one place in the program has to say is written twenty times in ten seconds at most, from
/// `info` on; how many lines were left out is told afterwards.
pub fn start_logging(section: &LogSection) {
    let (filter, level) = reload::Layer::new(filter(section));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let to_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let lines = match section.format {
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        // It knows the time, and it reads the level from the line's beginning.
        LogFormat::Text if to_journal => lines.event_format(Journal).boxed(),
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
    };
    let layers =
        tracing_subscriber::registry().with(filter).with(Limiter::of_process()).with(lines);
    // Somebody else's subscriber is as good.
    if layers.try_init().is_ok() {
        let _ = LEVEL.set(level);
    }
}

/// Writes from the section's level on from here on.
pub(crate) fn set_level(section: &LogSection) {
    if let Some(level) = LEVEL.get()
        && let Err(error) = level.reload(filter(section))
    {
        tracing::warn!(%error, "the log keeps its level");
    }
}

fn filter(section: &LogSection) -> EnvFilter {
    EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new(section.level.name()))
}

/// Lines as systemd's journal takes them: `<6>text`, where 6 is syslog's number for the level.
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
