//! `bentpipe site`.

use crate::{Outcome, values};
use clap::{Args, Subcommand};
use gateway::enrolment::{self, NewSite, Site, SiteError, SiteState, Token};
use rt::Clock;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Add, list and remove the sites of a hub
///
/// Each site is a file in the folder of the hub's drop-ins, such as /etc/bentpipe/hub.d/boat.toml.
/// The running hub applies a change when it is reloaded.
#[derive(Args)]
#[command(after_help = "Example: bentpipe site add boat && systemctl reload bentpipe@hub\n\
                  then at the site: bentpipe enroll HUB TOKEN")]
pub struct Arguments {
    /// The hub's configuration
    #[arg(long, value_name = "FILE", default_value = "/etc/bentpipe/hub.toml", global = true)]
    config: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Add the site NAME and print its token
    #[command(after_help = "Example: bentpipe site add boat --plan gold --hours 24")]
    Add {
        /// 1 to 64 letters, digits, `-`, `_` and `.`
        name: String,
        /// A plan of the hub's configuration
        #[arg(long, value_name = "PLAN")]
        plan: Option<String>,
        #[command(flatten)]
        expiry: Expiry,
    },
    /// Print another token for the site NAME; its present key is rejected from the reload on
    #[command(after_help = "Example: bentpipe site token boat")]
    Token {
        /// The site
        name: String,
        #[command(flatten)]
        expiry: Expiry,
    },
    /// Remove the site NAME; its key is rejected from the reload on
    #[command(after_help = "Example: bentpipe site remove boat")]
    Remove {
        /// The site
        name: String,
    },
    /// List the sites with their plans and keys
    #[command(after_help = "Example: bentpipe site list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// The hub's state file, beside which registered keys are; default: the configured one, or
        /// the package's
        #[arg(long, value_name = "FILE")]
        state: Option<PathBuf>,
    },
}

#[derive(Args)]
struct Expiry {
    /// Hours until the token expires
    #[arg(long, value_name = "HOURS", default_value = "72", value_parser = clap::value_parser!(u64).range(1..=8760))]
    hours: u64,
}

impl Expiry {
    fn unix_s(&self) -> u64 {
        Clock::unix_s() + self.hours * 3600
    }
}

/// Changes or lists the sites of a hub.
///
/// # Errors
/// If the configuration is wrong, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Outcome {
    let Arguments { config, command } = arguments;
    let failed = |error: SiteError| error.to_string();
    match command {
        Command::Add { name, plan, expiry } => {
            let (name, plan, until_unix_s) = (name.clone(), plan.clone(), expiry.unix_s());
            let site = NewSite { name, plan, until_unix_s };
            print_token(&enrolment::add_site(config, &site).map_err(failed)?, config)
        }
        Command::Token { name, expiry } => {
            let token = enrolment::renew_token(config, name, expiry.unix_s());
            print_token(&token.map_err(failed)?, config)
        }
        Command::Remove { name } => {
            enrolment::remove_site(config, name).map_err(failed)?;
            remind(config);
            Ok(())
        }
        Command::List { json, state } => {
            let usual = package_state(config);
            let usual =
                Some(usual.as_path()).filter(|path| path.parent().is_some_and(Path::is_dir));
            let sites = enrolment::list_sites(config, state.as_deref().or(usual));
            print_list(&sites.map_err(failed)?, *json)
        }
    }
}

/// Returns the state file of the package's unit.
fn package_state(config: &Path) -> PathBuf {
    Path::new("/var/lib/bentpipe").join(values::unit_instance(config)).join("peers.toml")
}

/// The token alone goes to standard output, for scripts.
fn print_token(token: &Token, config: &Path) -> Outcome {
    remind(config);
    values::print(&format!("{token}\n"))
}

fn remind(config: &Path) {
    let instance = values::unit_instance(config);
    let text = format!("applied by the next reload: systemctl reload bentpipe@{instance}\n");
    values::write_briefly(std::io::stderr(), text);
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    plan: Option<&'a str>,
    state: &'static str,
    public_key: Option<String>,
    token_until: Option<String>,
}

fn row(Site { name, plan, state }: &Site) -> Row<'_> {
    let (state, public_key, token_until) = match state {
        SiteState::Configured(key) => ("configured", Some(key.to_string()), None),
        SiteState::Registered(key) => ("enrolled", Some(key.to_string()), None),
        SiteState::Token(until) if *until <= Clock::unix_s() => {
            ("token expired", None, Some(enrolment::utc(*until)))
        }
        SiteState::Token(until) => ("token", None, Some(enrolment::utc(*until))),
        SiteState::Named => ("no key", None, None),
    };
    Row { name, plan: plan.as_deref(), state, public_key, token_until }
}

fn print_list(sites: &[Site], json: bool) -> Outcome {
    let rows: Vec<Row<'_>> = sites.iter().map(row).collect();
    if json {
        return values::write_json("-".as_ref(), &rows);
    }
    let mut text = format!("{:<24} {:<16} {:<14} {}\n", "site", "plan", "state", "key, or expiry");
    for Row { name, plan, state, public_key, token_until } in &rows {
        let last = public_key.as_ref().or(token_until.as_ref()).map_or("-", String::as_str);
        text += &format!("{name:<24} {:<16} {state:<14} {last}\n", plan.unwrap_or("-"));
    }
    values::print(&text)
}
