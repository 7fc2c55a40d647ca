//! `[log]`: what is written about what happens, and how.

use super::reader::{Reader, Section};
use tracing::level_filters::LevelFilter;

/// What is written about what happens, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSection {
    /// From which level on; the environment's `BENTPIPE_LOG` has the last word.
    pub level: LogLevel,
    /// How lines look.
    pub format: LogFormat,
    /// Whether there is a line for each connection, at its end.
    pub connections: bool,
}

/// From which level on something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// What ends the gateway.
    Error,
    /// What needs somebody.
    Warn,
    /// What an operator wants to have seen.
    Info,
    /// What became of each connection, step by step.
    Debug,
    /// Everything.
    Trace,
}

/// How lines of the log look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogLevel {
    const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// As a configuration says it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// As the subscriber has it.
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
    /// As a configuration says it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl Default for LogSection {
    /// From `info` on, as text.
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
