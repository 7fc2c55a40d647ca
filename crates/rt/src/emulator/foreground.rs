//! An emulator in the foreground: commands from standard input, a report at the end.

use super::{Emulator, EmulatorConfig, EmulatorError, Summary};
use std::fmt;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Options of a foreground run.
#[derive(Clone, Debug, Default)]
pub struct Foreground {
    /// File for the summary as JSON; `-` is standard output.
    pub json: Option<PathBuf>,
    /// Whether to read commands from standard input; see [`Handle::line`](super::Handle::line).
    pub orders_from_stdin: bool,
}

/// Why a run failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ForegroundError {
    /// The emulator failed.
    Emulator(EmulatorError),
    /// The report could not be written.
    Json {
        /// Its path.
        path: PathBuf,
        /// The error.
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

/// Runs an emulator until `stop` is true; prints a line on standard error at the start and at the
/// end.
///
/// # Errors
/// The emulator's, or that of the report's file.
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

/// Writes the summary if a file was given.
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

/// Passes lines of standard input to `obey`, in a thread that ends with the input or with the
/// program.
pub(super) fn take_orders<E: fmt::Display>(obey: impl Fn(&str) -> Result<(), E> + Send + 'static) {
    let read = move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if let Err(error) = obey(&line) {
                eprintln!("{error}");
            }
        }
    };
    // If the thread cannot be started the emulator runs without commands.
    if let Err(error) = std::thread::Builder::new().name("orders".into()).spawn(read) {
        eprintln!("no orders from standard input: {error}");
    }
}
