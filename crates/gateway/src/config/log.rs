//! `[log]`: level and format of the log.

use super::reader::{Reader, Section};
use tracing::level_filters::LevelFilter;

/// Settings of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSection {
    /// Minimum level; the environment variable `BENTPIPE_LOG` overrides it.
    pub level: LogLevel,
    /// Format of the lines.
    pub format: LogFormat,
    /// Whether each connection is logged at its end.
    pub connections: bool,
}

/// Level of a log message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Causes that end the gateway.
    Error,
    /// Conditions that need an operator's action.
    Warn,
    /// Changes of state of interest to an operator.
    Info,
    /// Steps of each connection.
    Debug,
    /// All messages.
    Trace,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text.
    Text,
    /// One JSON object per line.
    Json,
}

impl LogLevel {
    const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// Returns the value as it is written in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// Returns the level as the subscriber's filter.
    pub(crate) const fn filter(self) -> LevelFilter {
        match self {
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }
}

impl LogFormat {
    /// Returns the value as it is written in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl Default for LogSection {
    /// Returns level `info`, as text.
    fn default() -> Self {
        Self { level: LogLevel::Info, format: LogFormat::Text, connections: false }
    }
}

pub(super) fn read(reader: &mut Reader<'_>, top: &mut Section<'_>) -> Option<LogSection> {
    let usual = LogSection::default();
    let Some(mut section) = top.section(reader, "log") else { return Some(usual) };
    let levels = LogLevel::ALL.map(|level| (level.name(), level));
    let level = section.or(reader, "level", usual.level, |r, i| i.word(r, &levels));
    let formats = [LogFormat::Text, LogFormat::Json].map(|format| (format.name(), format));
    let format = section.or(reader, "format", usual.format, |r, i| i.word(r, &formats));
    let words = [("on", true), ("off", false)];
    let connections =
        section.or(reader, "connections", usual.connections, |r, i| i.word(r, &words));
    section.finish(reader);
    Some(LogSection { level: level?, format: format?, connections: connections? })
}
