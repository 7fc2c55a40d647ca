//! `bentpipe upgrade`.

use crate::{Outcome, values};
use monitor::{Client, Question, Status};
use rt::Clock;
use std::path::{Path, PathBuf};
use units::Span;

/// Maximum time until the new process responds: it has 30 s to start.
const LIMIT: Span = Span::from_secs(40);
/// Interval of the checks.
const INTERVAL: Span = Span::from_millis(50);

/// Replace a running gateway by the installed release, without losing a connection
///
/// The gateway starts its program again and leaves listeners and UDP ports to the new process, which
/// serves new connections. The old process ends with its last connection. Both gateways of a pair
/// must be of release 0.2 or later. If the new process does not start, the old one continues.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe upgrade --socket /run/bentpipe/hub.sock")]
pub struct Arguments {
    /// The gateway's control socket; default: the only one in /run/bentpipe
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Requests the upgrade and waits for the new process.
///
/// # Errors
/// If the gateway does not respond, or the new process has failed.
pub fn run(arguments: &Arguments) -> Outcome {
    let socket = arguments.socket.as_deref();
    let mut connection = Client::find(socket).map_err(|error| error.to_string())?;
    let old =
        connection.ask::<Status>(&Question::Status).map_err(|error| error.to_string())?.gateway;
    if old.role == "single" {
        return Err("a single gateway cannot be replaced: restart it".to_owned());
    }
    gateway::request_upgrade(old.pid)
        .map_err(|error| format!("process {}: {error}; run as root or as its user", old.pid))?;
    let clock = Clock::from_here();
    let end = clock.now() + LIMIT;
    let mut has_closed = false;
    while clock.now() < end {
        clock.sleep_until(clock.now() + INTERVAL);
        // The old process closes its connections while the new one starts, however short that is.
        has_closed = has_closed || connection.ask::<Status>(&Question::Status).is_err();
        match status(socket).map(|status| status.gateway) {
            Err(_) => has_closed = true,
            Ok(new) if new.pid != old.pid => {
                return values::print(&format!(
                    "version {}, process {}, has replaced version {}, process {}\n",
                    new.version, new.pid, old.version, old.pid
                ));
            }
            // It closes its control socket for the new process.
            Ok(_) if has_closed => break,
            Ok(_) => {}
        }
    }
    Err(format!("not upgraded: process {} continues; its log has the reason", old.pid))
}

fn status(socket: Option<&Path>) -> Result<Status, monitor::Error> {
    Client::find(socket)?.ask(&Question::Status)
}
