//! `bentpipe status`.

use crate::{Outcome, values};
use monitor::{Client, Question, Status};
use std::path::PathBuf;

/// Show the status of a running gateway once
///
/// Queries the gateway's control socket, which root and members of its group may use.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe status --socket /run/bentpipe/hub.sock")]
pub struct Arguments {
    /// The gateway's control socket; default: the only one in /run/bentpipe
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print the gateway's response unchanged, in JSON
    #[arg(long)]
    json: bool,
}

/// Prints the status of a running gateway.
///
/// # Errors
/// If the gateway does not respond.
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
