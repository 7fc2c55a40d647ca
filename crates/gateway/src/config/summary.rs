//! Summary of a configuration in a few lines, for `bentpipe check`.

use super::{
    AcceptMode, Config, HubSection, LinkSection, PathSection, PlanSection, QuicMode, Role,
    SecuritySection, SingleSection, SourceMode, TerminalSection, WhenFail, joins,
};
use crate::kernel::available_congestion_controls;
use relay::plan::{Plan, Rates};
use std::fmt;
use units::BitRate;

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.role {
            Role::Terminal(section) => terminal(f, section, &self.link)?,
            Role::Hub(section) => hub(f, section, &self.link)?,
            Role::Single(section) => return write_single(f, section),
        }
        secured(f, self)?;
        writeln!(f, "controller {}", self.link.controller)?;
        if self.paths.is_empty() {
            let LinkSection { rate_up, rate_down, .. } = self.link;
            writeln!(
                f,
                "rate up {}, rate down {}",
                rate_or_auto(rate_up),
                rate_or_auto(rate_down)
            )?;
        }
        beside(f, self)?;
        match &self.state {
            Some(path) => writeln!(f, "path metrics are cached in {}", path.display())?,
            None => writeln!(f, "path metrics are not cached: there is no `state`")?,
        }
        let limits = &self.limits;
        writeln!(
            f,
            "at most {} connections; at exit, running ones have {} to finish",
            limits.connections, limits.drain
        )?;
        if let Some(idle) = limits.idle {
            writeln!(f, "connections that move no byte for {idle} are ended")?;
        }
        if let Some(user) = &self.user {
            writeln!(f, "started by root, it switches to the user {user}")?;
        }
        Ok(())
    }
}

/// Writes the security suite and, with one path, its keys.
fn secured(f: &mut fmt::Formatter<'_>, config: &Config) -> fmt::Result {
    for (number, path) in config.paths.iter().enumerate() {
        write_path(f, path)?;
        if let Some(first) = joins(&config.paths, number) {
            let first = &config.paths[first].name;
            writeln!(f, "  bonded with path {first:?}: each connection uses both")?;
        }
    }
    let SecuritySection::Noise(noise) = &config.security else {
        return writeln!(f, "the link is NOT encrypted");
    };
    match &config.role {
        Role::Terminal(_) if config.paths.is_empty() => {
            let hub = noise.hub.as_ref().map(|key| key.public.to_string()).unwrap_or_default();
            writeln!(f, "own key in {}, the hub's public key is {hub}", noise.private)
        }
        Role::Hub(hub) => {
            let count = hub.terminals.len();
            writeln!(f, "own key in {}, terminals known by their keys: {count}", noise.private)
        }
        Role::Terminal(_) | Role::Single(_) => Ok(()),
    }
}

fn ports(link: &LinkSection) -> String {
    link.ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}

fn write_path(f: &mut fmt::Formatter<'_>, path: &PathSection) -> fmt::Result {
    let PathSection { name, link, interface, priority, weight, keys } = path;
    write!(f, "path {name:?}")?;
    if let Some(hub) = &link.peer {
        write!(f, " to the hub at {hub}")?;
    }
    if let Some(interface) = interface {
        write!(f, " by {interface}")?;
    }
    writeln!(f, ", priority {priority}, weight {weight}")?;
    writeln!(
        f,
        "  rate up {}, rate down {}",
        rate_or_auto(link.rate_up),
        rate_or_auto(link.rate_down)
    )?;
    let Some(noise) = keys else { return Ok(()) };
    let hub = noise.hub.as_ref().map(|key| key.public.to_string()).unwrap_or_default();
    writeln!(f, "  own key in {}, the hub's public key is {hub}", noise.private)
}

/// Writes the functions of a gateway of a pair other than relaying connections.
fn beside(f: &mut fmt::Formatter<'_>, config: &Config) -> fmt::Result {
    if let Some(forward) = &config.forward {
        match &config.role {
            Role::Hub(_) => writeln!(f, "other packets are forwarded unsplit")?,
            Role::Terminal(_) | Role::Single(_) => {
                let interfaces = forward.interfaces.join(", ");
                writeln!(f, "other packets from {interfaces} are forwarded unsplit")?;
            }
        }
    }
    if matches!(config.role, Role::Terminal(_)) {
        let word = match config.fail.unreachable {
            WhenFail::Wait => "wait",
            WhenFail::Refuse => "are refused",
            WhenFail::Open => "bypass the gateway, NOT encrypted",
        };
        writeln!(f, "while no hub answers, new connections {word}")?;
    }
    if !config.resolver.nameservers.is_empty() {
        let servers = config.resolver.nameservers.iter().map(ToString::to_string);
        writeln!(f, "names are looked up at {}", servers.collect::<Vec<_>>().join(", "))?;
    }
    match config.metrics {
        Some(address) => writeln!(f, "metrics at http://{address}/metrics"),
        None => Ok(()),
    }
}

/// Returns a configured rate, or `auto`.
fn rate_or_auto(rate: Option<BitRate>) -> String {
    rate.map_or_else(|| "auto".to_owned(), |rate| rate.to_string())
}

fn terminal(
    f: &mut fmt::Formatter<'_>,
    section: &TerminalSection,
    link: &LinkSection,
) -> fmt::Result {
    match &link.peer {
        Some(hub) => writeln!(f, "terminal {:?}, of the hub at {hub}", section.name)?,
        None => writeln!(f, "terminal {:?}", section.name)?,
    }
    if !link.ports.is_empty() {
        write!(f, "further ports of the hub: {}", ports(link))?;
        link.hop.iter().try_for_each(|hop| write!(f, ", the next one after {hop}"))?;
        writeln!(f)?;
    }
    for (name, addresses) in [("SOCKS5", &section.socks5), ("HTTP CONNECT", &section.connect)] {
        for address in addresses {
            writeln!(f, "{name} proxy on {address}")?;
        }
    }
    for address in section.dns.iter().flat_map(|dns| &dns.listen) {
        writeln!(f, "DNS forwarder on {address}")?;
    }
    if let Some(tls) = &section.tls {
        writeln!(f, "the link can use TLS: {tls}")?;
    }
    if let Some(intercept) = &section.intercept {
        writeln!(f, "TCP connections from {} are intercepted", intercept.interfaces.join(", "))?;
        if !intercept.include.is_empty() || !intercept.include_ports.is_empty() {
            writeln!(f, "  but only those that `include` and `include_ports` name")?;
        }
        if !intercept.exclude.is_empty() || !intercept.exclude_ports.is_empty() {
            writeln!(f, "  but not those that `exclude` and `exclude_ports` name")?;
        }
        let quic = match intercept.quic {
            QuicMode::Refuse => "is refused, so that browsers use TCP",
            QuicMode::Forward => "is forwarded by the gateways, not accelerated",
            QuicMode::Bypass => "bypasses the gateways, not accelerated",
        };
        writeln!(f, "QUIC (UDP port 443) from these {quic}")?;
    }
    match section.accept.others {
        AcceptMode::Early => {
            writeln!(f, "clients are accepted early, before the server has accepted")?;
        }
        AcceptMode::Confirm => writeln!(f, "clients are accepted when the server has accepted")?,
    }
    match section.accept.rules.len() {
        0 => {}
        rules => writeln!(f, "  unless one of {rules} rules decides otherwise")?,
    }
    for (index, rule) in section.accept.rules.iter().enumerate() {
        if !rule.protocols.is_empty() {
            let protocols: Vec<String> = rule.protocols.iter().map(ToString::to_string).collect();
            writeln!(f, "  rule {} is for {} only", index + 1, protocols.join(" and "))?;
        }
    }
    Ok(())
}

fn hub(f: &mut fmt::Formatter<'_>, section: &HubSection, link: &LinkSection) -> fmt::Result {
    write!(f, "hub, on {}", link.listen)?;
    if !link.ports.is_empty() {
        write!(f, ", also on ports {}", ports(link))?;
    }
    writeln!(f)?;
    if let Some(tls) = &section.tls {
        writeln!(f, "TLS from terminals {tls}")?;
    }
    match section.source {
        SourceMode::Own => writeln!(f, "servers see the hub's address")?,
        SourceMode::Client => writeln!(f, "servers see the client's address")?,
    }
    if section.shards > 1 {
        writeln!(f, "its terminals are divided among {} threads", section.shards)?;
    }
    if let Some(path) = &section.mac {
        writeln!(f, "connection counts are sent to a MAC scheduler at {}", path.display())?;
    }
    for commitment in super::commitments(link, section).iter().filter(|one| one.is_exceeded()) {
        writeln!(f, "{}", commitment.describe())?;
    }
    plans(f, section)?;
    if section.guarded {
        writeln!(f, "the hub's own addresses are refused to terminals")
    } else {
        writeln!(f, "terminals may reach the hub's own addresses")
    }
}

/// Writes each configured plan with its terminals.
fn plans(f: &mut fmt::Formatter<'_>, section: &HubSection) -> fmt::Result {
    let all = super::for_relay(&section.plans, &section.terminals);
    for PlanSection { plan, .. } in &section.plans {
        let Plan { name, down, up, weight, shared_weight } = plan;
        let whose = if *shared_weight { "of all together" } else { "of each" };
        writeln!(f, "plan {name:?}, weight {weight} {whose}")?;
        for (direction, rates) in [("down", down), ("up", up)] {
            let Rates { committed, peak, total } = *rates;
            let each = [("committed", committed), ("at most", peak), ("in all at most", total)];
            let each = each.iter().filter_map(|(what, rate)| Some(format!("{what} {}", (*rate)?)));
            let each: Vec<String> = each.collect();
            if !each.is_empty() {
                writeln!(f, "  {direction}: {}", each.join(", "))?;
            }
        }
        let number = all.plans.iter().position(|other| other.name == *name);
        let members = all.terminals.iter().filter(|(_, its)| Some(**its) == number);
        let members: Vec<&str> = members.map(|(terminal, _)| terminal.as_str()).collect();
        match (members.is_empty(), number) {
            (_, Some(0)) => writeln!(f, "  of all terminals that have no other")?,
            (true, _) => writeln!(f, "  of NO terminal")?,
            (false, _) => writeln!(f, "  of {}", members.join(", "))?,
        }
    }
    Ok(())
}

fn write_single(f: &mut fmt::Formatter<'_>, section: &SingleSection) -> fmt::Result {
    writeln!(f, "single, with the satellite behind {}", section.satellite.join(", "))?;
    match section.rate {
        Some(rate) => writeln!(f, "sends at most {rate} over it, {} at once", section.burst)?,
        None => writeln!(f, "sends over it as fast as the congestion control permits")?,
    }
    let congestion = section.congestion.as_deref().unwrap_or("the system's");
    writeln!(f, "congestion control: {congestion}")?;
    let known = available_congestion_controls();
    if section.congestion.as_ref().is_some_and(|wanted| !known.contains(wanted)) {
        writeln!(f, "this kernel does not have it at present, but {}", known.join(", "))?;
    }
    match section.initial_window {
        Some(window) => writeln!(f, "initial window: {window} segments"),
        None => writeln!(f, "initial window: the system's"),
    }
}
