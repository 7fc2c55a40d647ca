//! `bentpipe key`.

use crate::{Outcome, values};
use clap::Subcommand;
use std::path::PathBuf;

/// Create and print the keys of gateways
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe key generate /etc/bentpipe/key")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a private key in a new FILE, readable by its owner only, and print its public key
    #[command(after_help = "Example: bentpipe key generate /etc/bentpipe/key")]
    Generate {
        /// The file, such as /etc/bentpipe/key; never overwritten
        file: PathBuf,
    },
    /// Print the public key of the private key in FILE, for the configuration of the peer
    #[command(after_help = "Example: bentpipe key show /etc/bentpipe/key")]
    Show {
        /// The private key
        file: PathBuf,
    },
    /// Replace the key of a terminal: register a new one at the hub, and write it in its place
    ///
    /// The hub rejects the old key from then on, so restart the gateway at once. If this command
    /// fails, repeat it.
    #[command(after_help = "Example: bentpipe key rotate && systemctl restart bentpipe@terminal")]
    Rotate {
        /// The terminal's configuration
        #[arg(long, value_name = "FILE", default_value = "/etc/bentpipe/terminal.toml")]
        config: PathBuf,
    },
    /// Create a secret in a new FILE, which two gateways share in addition to their keys
    #[command(after_help = "Example: bentpipe key preshared /etc/bentpipe/boat.psk")]
    Preshared {
        /// The file; never overwritten
        file: PathBuf,
    },
}

/// Creates a key, or prints the public part of one.
///
/// # Errors
/// If a key file cannot be read or written.
pub fn run(arguments: &Arguments) -> Outcome {
    let message = |error: gateway::KeyError| error.to_string();
    match &arguments.command {
        Command::Generate { file } => {
            let public = gateway::generate_key(file).map_err(message)?;
            values::print(&format!("{public}\n"))
        }
        Command::Show { file } => {
            let public = gateway::public_key(file).map_err(message)?;
            values::print(&format!("{public}\n"))
        }
        Command::Rotate { config } => {
            let public = gateway::enrolment::rotate(config).map_err(|error| error.to_string())?;
            let instance = values::unit_instance(config);
            values::print(&format!("{public}\nnext: systemctl restart bentpipe@{instance}\n"))
        }
        Command::Preshared { file } => gateway::generate_preshared_key(file).map_err(message),
    }
}
