//! `bentpipe gateway`.

use crate::Outcome;
use std::path::PathBuf;

/// Run a gateway, at the terminal or at the hub
///
/// The role and everything else stands in the configuration. Runs until SIGINT or SIGTERM.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The configuration, TOML
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Check the configuration and stop
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let config = gateway::Config::load(&arguments.config).map_err(|error| format!("\n{error}"))?;
    if arguments.check {
        return Ok(());
    }
    let role = match config.role {
        gateway::Role::Terminal(_) => "terminal",
        gateway::Role::Hub(_) => "hub",
    };
    Err(format!("this build cannot run a {role} yet; --check checks its configuration"))
}
