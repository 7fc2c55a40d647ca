//! A configuration in a few lines, for people who check one.

use super::{
    AcceptMode, Config, HubSection, LinkSection, Role, SecuritySection, SingleSection, SourceMode,
    TerminalSection,
};
use crate::engine::single::available_congestion_controls;
use std::fmt;
use units::BitRate;

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.role {
            Role::Terminal(section) => terminal(f, section, &self.link)?,
            Role::Hub(section) => hub(f, section, &self.link)?,
            Role::Single(section) => return write_single(f, section),
        }
        match (&self.security, &self.role) {
            (SecuritySection::None, _) => writeln!(f, "NOTHING secures the link")?,
            (SecuritySection::Noise(noise), Role::Terminal(_)) => {
                let hub = noise.hub.as_ref().map(|key| key.public.to_string());
                let hub = hub.unwrap_or_default();
                writeln!(f, "own key in {}, the hub's public key is {hub}", noise.private)?;
            }
            (SecuritySection::Noise(_), Role::Single(_)) => {}
            (SecuritySection::Noise(noise), Role::Hub(hub)) => {
                let count = hub.terminals.len();
                writeln!(
                    f,
                    "own key in {}, terminals known by their keys: {count}",
                    noise.private
                )?;
            }
        }
        let rate = |rate: Option<BitRate>| match rate {
            Some(rate) => rate.to_string(),
            None => "to be found".to_owned(),
        };
        let link = &self.link;
        writeln!(f, "controller {}", link.controller)?;
        writeln!(f, "rate up {}, rate down {}", rate(link.rate_up), rate(link.rate_down))?;
        match &self.state {
            Some(path) => writeln!(f, "rates are remembered in {}", path.display())?,
            None => writeln!(f, "rates are not remembered: there is no `state`")?,
        }
        let limits = &self.limits;
        writeln!(
            f,
            "at most {} connections; asked to stop, those that run have {} to finish",
            limits.connections, limits.drain
        )?;
        if let Some(user) = &self.user {
            writeln!(f, "started by root it becomes {user}")?;
        }
        Ok(())
    }
}

fn terminal(
    f: &mut fmt::Formatter<'_>,
    section: &TerminalSection,
    link: &LinkSection,
) -> fmt::Result {
    match link.peer {
        Some(hub) => writeln!(f, "terminal {:?}, of the hub at {hub}", section.name)?,
        None => writeln!(f, "terminal {:?}", section.name)?,
    }
    for (name, addresses) in [("SOCKS5", &section.socks5), ("HTTP CONNECT", &section.connect)] {
        for address in addresses {
            writeln!(f, "clients ask by {name} on {address}")?;
        }
    }
    if let Some(intercept) = &section.intercept {
        writeln!(f, "TCP connections from {} are intercepted", intercept.interfaces.join(", "))?;
        if !intercept.include.is_empty() || !intercept.include_ports.is_empty() {
            writeln!(f, "  but only those that `include` and `include_ports` name")?;
        }
        if !intercept.exclude.is_empty() || !intercept.exclude_ports.is_empty() {
            writeln!(f, "  but not those that `exclude` and `exclude_ports` name")?;
        }
    }
    match section.accept.others {
        AcceptMode::Early => writeln!(f, "clients hear at once that they are connected")?,
        AcceptMode::Confirm => writeln!(f, "clients hear so when the server has answered")?,
    }
    match section.accept.rules.len() {
        0 => Ok(()),
        rules => writeln!(f, "  unless one of {rules} rules on that says otherwise"),
    }
}

fn hub(f: &mut fmt::Formatter<'_>, section: &HubSection, link: &LinkSection) -> fmt::Result {
    writeln!(f, "hub, on {}", link.listen)?;
    match section.source {
        SourceMode::Own => writeln!(f, "servers see the hub's address")?,
        SourceMode::Client => writeln!(f, "servers see the client's address")?,
    }
    if let Some(path) = &section.mac {
        writeln!(f, "tells a MAC scheduler at {} of connections", path.display())?;
    }
    for promised in super::promised(link, section).iter().filter(|one| one.is_too_much()) {
        writeln!(f, "{}", promised.words())?;
    }
    if let count @ 1.. = section.plans.len() {
        writeln!(f, "terminals share the link by {count} plans")?;
    }
    if section.guarded {
        writeln!(f, "the hub's own addresses are refused to terminals")
    } else {
        writeln!(f, "terminals may reach the hub's own addresses")
    }
}

fn write_single(f: &mut fmt::Formatter<'_>, section: &SingleSection) -> fmt::Result {
    writeln!(f, "single, with the satellite behind {}", section.satellite.join(", "))?;
    match section.rate {
        Some(rate) => writeln!(f, "sends at most {rate} over it, {} at once", section.burst)?,
        None => writeln!(f, "sends over it as fast as the congestion control lets it")?,
    }
    let congestion = section.congestion.as_deref().unwrap_or("the system's");
    writeln!(f, "congestion control: {congestion}")?;
    let known = available_congestion_controls();
    if section.congestion.as_ref().is_some_and(|wanted| !known.contains(wanted)) {
        writeln!(f, "which this kernel does not have at present: it has {}", known.join(", "))?;
    }
    match section.initial_window {
        Some(window) => writeln!(f, "initial window: {window} segments"),
        None => writeln!(f, "initial window: the system's"),
    }
}
