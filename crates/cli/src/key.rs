//! `bentpipe key`.

use crate::{Outcome, values};
use clap::Subcommand;
use std::path::PathBuf;

/// Make and show the keys that gateways know each other by
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a private key in a new FILE that only its owner reads, and print its public key
    Generate {
        /// Where to put it, such as /etc/bentpipe/key; never overwritten
        file: PathBuf,
    },
    /// Print the public key of the private key in FILE, to be told to the other side
    Show {
        /// The private key
        file: PathBuf,
    },
    /// Make a secret in a new FILE, for two gateways to share beside their keys
    Preshared {
        /// Where to put it; never overwritten
        file: PathBuf,
    },
}

/// Makes a key, or prints the public part of one.
///
/// # Errors
/// When a key file cannot be read or written.
pub fn run(arguments: &Arguments) -> Outcome {
    let told = |error: gateway::KeyError| error.to_string();
    match &arguments.command {
        Command::Generate { file } => {
            let public = gateway::generate_key(file).map_err(told)?;
            values::print(&format!("{public}\n"))
        }
        Command::Show { file } => {
            let public = gateway::public_key(file).map_err(told)?;
            values::print(&format!("{public}\n"))
        }
        Command::Preshared { file } => gateway::generate_preshared_key(file).map_err(told),
    }
}
