//! `bentpipe gateway`.

use crate::{Outcome, values};
use std::path::PathBuf;

/// Run a gateway, at the terminal or at the hub
///
/// The configuration determines the role and all other settings. Runs until SIGINT or SIGTERM; then
/// running connections have `limits.drain` to finish (a second signal ends them), and the counters
/// are printed as one line of JSON. SIGHUP reads the configuration again. BENTPIPE_LOG=debug
/// increases the log level.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe gateway --config /etc/bentpipe/hub.toml --check")]
pub struct Arguments {
    /// The configuration, TOML
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Check the configuration, print a summary and what this machine lacks for it, and exit; fails
    /// only if the file is invalid
    #[arg(long)]
    check: bool,
    /// Print the capabilities that the configuration needs, for a service manager, and exit
    #[arg(long, conflicts_with = "check")]
    capabilities: bool,
}

/// Checks a configuration, or runs a gateway until it is stopped.
///
/// # Errors
/// If the configuration is invalid, or a permission is missing.
pub fn run(arguments: &Arguments) -> Outcome {
    let config = gateway::Config::load(&arguments.config).map_err(|error| format!("\n{error}"))?;
    if arguments.capabilities {
        return values::print(&format!("{}\n", gateway::capabilities(&config).join(" ")));
    }
    if arguments.check {
        config.keys().map_err(|error| format!("keys: {error}"))?;
        let warnings: String =
            gateway::check(&config).iter().map(|warning| format!("{warning}\n")).collect();
        return values::print(&format!("{config}{warnings}"));
    }
    let mut log = gateway::start_logging(&config.log);
    gateway::give_up_privileges(&config).map_err(|error| error.to_string())?;
    log.start_writing().map_err(|error| format!("log: {error}"))?;
    let stop = gateway::Stop::on_signals().map_err(|error| format!("signals: {error}"))?;
    let report =
        gateway::run(&config, Some(&arguments.config), &stop).map_err(|error| error.to_string())?;
    drop(log);
    let line = gateway::to_json(&report).map_err(|error| error.to_string())?;
    values::write_briefly(std::io::stdout(), format!("{line}\n"));
    Ok(())
}
