//! Values of arguments, and files for results.

use serde::Serialize;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use units::Span;

/// Parses a size such as `48MB`, `10MiB` or `1000`, in octets.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err("expected a size such as 48MB, 10MiB or 1000000".to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| "expected a size such as 48MB".to_owned())?;
    let bytes = number * factor;
    if (1.0..=1e12).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err("expected a size from one byte to 1000 GB".to_owned())
    }
}

/// Parses a time in seconds.
pub fn seconds(text: &str) -> Result<Span, String> {
    let number: f64 =
        text.trim_end_matches('s').parse().map_err(|_| "expected a number of seconds")?;
    if (0.1..=86_400.0).contains(&number) {
        Ok(Span::from_secs_f64(number))
    } else {
        Err("expected 0.1 to 86400 seconds".to_owned())
    }
}

/// Writes the last lines of a program to `to`, which may be a pipe without a reader: gives up after
/// one second.
pub fn write_briefly(mut to: impl Write + Send + 'static, text: String) {
    let (done, written) = mpsc::channel();
    let writer = std::thread::Builder::new().spawn(move || {
        // The receiver may be gone.
        let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
        let _ = done.send(());
    });
    if writer.is_ok() {
        let _ = written.recv_timeout(Duration::from_secs(1));
    }
}

/// Checks that the file of a result can be written, before time is spent on it.
pub fn reserve(path: &Path) -> Result<(), String> {
    if path == Path::new("-") {
        return Ok(());
    }
    let opened = fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes `value` as JSON; `-` is standard output.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), String> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| error.to_string())?;
    text.push('\n');
    if path == Path::new("-") {
        print(&text)
    } else {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Writes `value` as JSON; with a `table` this is printed, and JSON only written to a file.
pub fn write_report(
    path: &Path,
    value: &impl Serialize,
    table: Option<String>,
) -> Result<(), String> {
    match table {
        Some(table) if path == Path::new("-") => print(&table),
        Some(table) => write_json(path, value).and_then(|()| print(&table)),
        None => write_json(path, value),
    }
}

/// Prints `text` on standard output. A closed pipe is not an error.
pub fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// Returns a flag that SIGINT and SIGTERM set.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| format!("signal {signal}: {error}"))?;
    }
    Ok(stop)
}

/// Returns the instance of the systemd unit `bentpipe@` that runs the configuration at `config`.
pub(crate) fn unit_instance(config: &Path) -> String {
    config.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("48MB"), Ok(48_000_000));
        assert_eq!(size("1.5 KiB"), Ok(1536));
        assert_eq!(size("7"), Ok(7));
        for wrong in ["", "MB", "1 parsec", "0", "1e30", "9999999999GB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seconds_have_bounds() {
        assert_eq!(seconds("1.5"), Ok(Span::from_millis(1500)));
        assert_eq!(seconds("20s"), Ok(Span::from_secs(20)));
        for wrong in ["", "-1", "0", "soon", "1e9", "NaN"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
