//! `bentpipe capture`.

use crate::{Outcome, values};
use monitor::{Client, Request};
use std::path::PathBuf;
use units::Span;

/// Capture the traffic of a running gateway, after decryption, as pcapng
///
/// The file contains user data and is readable by its owner alone. Ends with Ctrl-C, or at the
/// given limits. Wireshark dissects it with contrib/wireshark/bentpipe.lua.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe capture --write inner.pcapng --seconds 30")]
pub struct Arguments {
    /// The file to write; - for standard output
    #[arg(short, long, value_name = "FILE")]
    write: PathBuf,
    /// The gateway's control socket; default: the only one in /run/bentpipe
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Only the traffic between the hub and one terminal
    #[arg(long, value_name = "NAME")]
    terminal: Option<String>,
    /// End after this number of packets
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End after this number of seconds
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    seconds: Option<Span>,
}

/// Writes what a running gateway sends and receives to a capture file.
///
/// # Errors
/// If the gateway does not respond, or the file cannot be written.
pub fn run(arguments: Arguments) -> Outcome {
    let Arguments { write, socket, terminal, count, seconds } = arguments;
    let stop = values::stop_flag()?;
    let client = Client::find(socket.as_deref()).map_err(|error| error.to_string())?;
    let request = Request { terminal, count, seconds: seconds.map(Span::as_secs_f64) };
    let captured =
        monitor::capture(client, request, &write, &stop).map_err(|error| error.to_string())?;
    let missing = match captured.missing {
        Some(missing) => {
            format!("{missing} more were lost because this program or the disk was too slow")
        }
        None => {
            "the gateway ended before the capture did, so lost packets are not counted".to_owned()
        }
    };
    eprintln!("{} packets; {missing}", captured.packets);
    Ok(())
}
