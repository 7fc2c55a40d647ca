//! An emulator on a terminal: orders from standard input, a report at the end.

use super::{Emulator, EmulatorConfig, EmulatorError, Summary};
use std::fmt;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// What a run on a terminal is to do besides.
#[derive(Clone, Debug, Default)]
pub struct Foreground {
    /// Where to write the summary as JSON; `-` is standard output.
    pub json: Option<PathBuf>,
    /// Whether to take orders from standard input, line by line; see [`Handle::line`](super::Handle::line).
    pub orders_from_stdin: bool,
}

/// Why there is no report.
#[derive(Debug)]
#[non_exhaustive]
pub enum ForegroundError {
    /// The emulator.
    Emulator(EmulatorError),
    /// The file for the report.
    Json {
        /// Its path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl fmt::Display for ForegroundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Emulator(error) => write!(f, "{error}"),
            Self::Json { path, source } => write!(f, "report {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for ForegroundError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Emulator(error) => Some(error),
            Self::Json { source, .. } => Some(source),
        }
    }
}

/// Runs an emulator until `stop` is true; says on standard error how it began and how it ended.
///
/// # Errors
/// The emulator's, and the report's file.
pub fn run_in_foreground(
    config: EmulatorConfig,
    foreground: &Foreground,
    stop: &AtomicBool,
) -> Result<Summary, ForegroundError> {
    let emulator = Emulator::open(config).map_err(ForegroundError::Emulator)?;
    eprintln!("{}", emulator.engine.greeting());
    if foreground.orders_from_stdin {
        let handle = emulator.handle();
        take_orders(move |line| handle.line(line));
    }
    let summary = emulator.run(stop).map_err(ForegroundError::Emulator)?;
    eprintln!("{summary}");
    write_report(foreground, &summary.to_json())?;
    Ok(summary)
}

/// Writes the summary where it was wanted.
pub(super) fn write_report(
    foreground: &Foreground,
    report: &serde_json::Value,
) -> Result<(), ForegroundError> {
    let Some(path) = &foreground.json else { return Ok(()) };
    let text = format!("{report:#}\n");
    let written = if path.as_os_str() == "-" {
        io::stdout().write_all(text.as_bytes())
    } else {
        fs::write(path, text)
    };
    written.map_err(|source| ForegroundError::Json { path: path.clone(), source })
}

/// Has `obey` take lines of standard input, in a thread that ends with it, or with the program.
pub(super) fn take_orders<E: fmt::Display>(obey: impl Fn(&str) -> Result<(), E> + Send + 'static) {
    let read = move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if let Err(error) = obey(&line) {
                eprintln!("{error}");
            }
        }
    };
    // Without the thread there are no orders, and the emulator runs all the same.
    if let Err(error) = std::thread::Builder::new().name("orders".into()).spawn(read) {
        eprintln!("no orders from standard input: {error}");
    }
}
