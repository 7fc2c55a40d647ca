//! `bentpipe doctor`.

use crate::{Outcome, values};
use clap::Args;
use std::path::PathBuf;

/// Find out what does not work at a site, and what to do about it
///
/// Checks the configuration, key files, clock, forwarding, firewall, MTU and the way to the hub.
/// Changes nothing. Run it as root, with or without a running gateway. The exit code is 0 if no check
/// has failed; warnings may be as intended.
#[derive(Args)]
#[command(after_help = "Example: bentpipe doctor")]
pub struct Arguments {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = "/etc/bentpipe/terminal.toml")]
    config: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints a diagnosis.
///
/// # Errors
/// If a check has failed.
pub fn run(Arguments { config, json }: &Arguments) -> Outcome {
    let diagnosis = gateway::doctor::diagnose(config);
    if *json {
        values::write_json("-".as_ref(), &diagnosis)?;
    } else {
        values::print(&diagnosis.to_string())?;
    }
    match diagnosis.failures() {
        0 => Ok(()),
        1 => Err("1 check has failed".to_owned()),
        count => Err(format!("{count} checks have failed")),
    }
}
