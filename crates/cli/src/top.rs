//! `bentpipe top`.

use crate::{Outcome, values};
use monitor::top::{self, Options};
use std::path::PathBuf;
use units::Span;

/// Watch a running gateway: each terminal and each connection, once a second
///
/// Where standard output is no terminal, one page of text follows another.
#[derive(clap::Args)]
pub struct Arguments {
    /// The gateway's control socket; the only one in /run/bentpipe unless given
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = values::seconds)]
    interval: Span,
    /// End after so many looks
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Only the connections of one terminal
    #[arg(long, value_name = "NAME")]
    terminal: Option<String>,
}

/// Shows a running gateway until the user ends it.
///
/// # Errors
/// When the gateway cannot be asked, or standard output is no terminal.
pub fn run(arguments: Arguments) -> Outcome {
    let Arguments { socket, interval, count, terminal } = arguments;
    let options = Options { interval, count, terminal };
    top::run(socket.as_deref(), &options).map_err(|error| error.to_string())
}
