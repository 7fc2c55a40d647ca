//! `bentpipe top`.

use crate::{Outcome, values};
use monitor::top::{self, Options};
use std::path::PathBuf;
use units::Span;

/// Watch a running gateway: each terminal and each connection, once per second
///
/// If standard output is not a terminal, prints one page of text after another.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe top --terminal boat")]
pub struct Arguments {
    /// The gateway's control socket; default: the only one in /run/bentpipe
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Seconds between updates
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = values::seconds)]
    interval: Span,
    /// End after this number of updates
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Only the connections of one terminal
    #[arg(long, value_name = "NAME")]
    terminal: Option<String>,
}

/// Shows a running gateway until the user quits.
///
/// # Errors
/// If the gateway does not respond, or standard output cannot be written.
pub fn run(arguments: Arguments) -> Outcome {
    let Arguments { socket, interval, count, terminal } = arguments;
    let options = Options { interval, count, terminal };
    top::run(socket.as_deref(), &options).map_err(|error| error.to_string())
}
