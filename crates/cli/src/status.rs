//! `bentpipe status`.

use crate::{Outcome, values};
use monitor::{Client, Question, Status};
use std::path::PathBuf;

/// Show what a running gateway does, once
///
/// Asks the gateway's control socket; root and members of the socket's group may.
#[derive(clap::Args)]
pub struct Arguments {
    /// The gateway's control socket; the only one in /run/bentpipe unless given
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The gateway's answer as it is, in JSON
    #[arg(long)]
    json: bool,
}

/// Prints the status of a running gateway.
///
/// # Errors
/// When the gateway cannot be asked.
pub fn run(arguments: &Arguments) -> Outcome {
    let failed = |error: monitor::Error| error.to_string();
    let mut client = Client::find(arguments.socket.as_deref()).map_err(failed)?;
    if arguments.json {
        let value = client.ask_value(&Question::Status).map_err(failed)?;
        return values::write_json("-".as_ref(), &value);
    }
    let status: Status = client.ask(&Question::Status).map_err(failed)?;
    values::print(&monitor::table(&status))
}
