//! Logs for people, on standard error.

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// What decides how much is logged: `BENTPIPE_LOG=debug`, `BENTPIPE_LOG=gateway=trace`.
const VARIABLE: &str = "BENTPIPE_LOG";

/// Logs what happens to standard error, from `info` on unless `BENTPIPE_LOG` says otherwise.
/// Does nothing when the process logs already.
pub fn start_logging() {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
    // Somebody else's subscriber is as good.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .try_init();
}
