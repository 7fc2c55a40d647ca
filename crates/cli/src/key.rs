//! `bentpipe key`.

use crate::{Outcome, values};
use clap::Subcommand;
use std::path::PathBuf;

/// Create and print the keys of gateways
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a private key in a new FILE, readable by its owner only, and print its public key
    Generate {
        /// The file, such as /etc/bentpipe/key; never overwritten
        file: PathBuf,
    },
    /// Print the public key of the private key in FILE, for the configuration of the peer
    Show {
        /// The private key
        file: PathBuf,
    },
    /// Create a secret in a new FILE, which two gateways share in addition to their keys
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
        Command::Preshared { file } => gateway::generate_preshared_key(file).map_err(message),
    }
}
