//! `bentpipe enroll`.

use crate::{Outcome, values};
use clap::Args;
use gateway::HubAddress;
use gateway::enrolment::{SiteOptions, Token, enroll};
use std::io::Read;
use std::path::PathBuf;

/// The port of hubs in the guides.
const PORT: u16 = 7000;

/// Make this machine a site of a hub: register a key and write the configuration
///
/// The hub's operator makes the token by `bentpipe site add`. If this command fails, repeat it.
#[derive(Args)]
#[command(after_help = "Example: bentpipe enroll hub.example TOKEN --intercept lan0")]
pub struct Arguments {
    /// The hub's name or address; the port is 7000 unless given
    #[arg(value_parser = hub)]
    hub: HubAddress,
    /// The token, or - for standard input, so that other users do not see it
    token: String,
    /// The configuration to write; an existing one for the same hub is kept
    #[arg(long, value_name = "FILE", default_value = "/etc/bentpipe/terminal.toml")]
    config: PathBuf,
    /// The private key to write
    #[arg(long, value_name = "FILE", default_value = "/etc/bentpipe/key")]
    key: PathBuf,
    /// Intercept connections from this interface; without it there are proxies on loopback
    #[arg(long, value_name = "INTERFACE")]
    intercept: Vec<String>,
}

fn hub(text: &str) -> Result<HubAddress, String> {
    let with_port = [text.to_owned(), format!("{text}:{PORT}"), format!("[{text}]:{PORT}")];
    let found = with_port.iter().find_map(|text| text.parse().ok());
    found.ok_or_else(|| "expected a name or an address, such as hub.example:7000".to_owned())
}

/// Enrolls this machine as a site.
///
/// # Errors
/// If the token is invalid, the hub does not register the key, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Outcome {
    let Arguments { hub, token, config, key, intercept } = arguments;
    let mut text = token.clone();
    if text == "-" {
        text.clear();
        let read = std::io::stdin().take(4096).read_to_string(&mut text);
        read.map_err(|error| format!("standard input: {error}"))?;
    }
    let token: Token = text.parse().map_err(|error| format!("{error}"))?;
    for file in [config, key] {
        if !file.is_absolute() {
            return Err(format!("{}: expected an absolute path", file.display()));
        }
    }
    let options = SiteOptions {
        hub: hub.clone(),
        config: config.clone(),
        key: key.clone(),
        intercept: intercept.clone(),
        token,
    };
    let public = enroll(&options).map_err(|error| error.to_string())?;
    let (name, config) = (&options.token.name, config.display());
    values::print(&format!(
        "enrolled as {name} with the key {public}\n\
         next: bentpipe doctor --config {config}\n\
         then: systemctl enable --now bentpipe@terminal\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::hub;

    #[test]
    fn a_hub_has_a_port_unless_given() {
        for (text, whole) in [
            ("hub.example", "hub.example:7000"),
            ("hub.example:7001", "hub.example:7001"),
            ("192.0.2.1", "192.0.2.1:7000"),
            ("2001:db8::1", "[2001:db8::1]:7000"),
            ("[2001:db8::1]:7001", "[2001:db8::1]:7001"),
        ] {
            assert_eq!(hub(text).map(|hub| hub.to_string()).as_deref(), Ok(whole));
        }
        assert!(hub("hub example").is_err());
    }
}
