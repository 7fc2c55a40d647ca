//! A gateway as a whole: its sockets, its place in the kernel's tables, and its loop.

use crate::engine::{Carrier, Engine, Kind, Listener, Udp};
use crate::intercept::{self, HubRules, InterceptError, Interception, TerminalRules};
use crate::{
    Config, HubSection, InterceptSection, Report, Role, SourceMode, Stop, TerminalSection,
};
use rt::Clock;
use std::io;
use std::net::SocketAddr;

/// Why a gateway does not start, or stops before it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address that the configuration names cannot be listened on.
    #[error("{key}: cannot listen on {address}: {source}")]
    Listen {
        /// The key in the configuration.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The transparent listeners, or the kernel's tables.
    #[error("intercept: {0}")]
    Intercept(#[from] InterceptError),
    /// The transparent listeners.
    #[error("intercept.port: cannot listen on port {port} transparently: {source}{advice}")]
    Transparent {
        /// The port.
        port: u16,
        /// What the kernel said.
        source: io::Error,
        /// What to do about it.
        advice: &'static str,
    },
    /// The readiness loop itself.
    #[error("the readiness loop: {0}")]
    Loop(#[from] io::Error),
}

/// Where a gateway listens; with port 0 in the configuration, the system has chosen.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// For datagrams.
    pub link: Option<SocketAddr>,
    /// For SOCKS5.
    pub socks5: Vec<SocketAddr>,
    /// For HTTP CONNECT.
    pub connect: Vec<SocketAddr>,
    /// For intercepted connections.
    pub transparent: Vec<SocketAddr>,
}

/// An engine that is ready to run, and what stands around it.
pub(crate) struct Parts<C> {
    pub(crate) engine: Engine<C>,
    pub(crate) addresses: Addresses,
    /// Taken away when it is dropped.
    pub(crate) interception: Option<Interception>,
    role: &'static str,
}

impl<C: Carrier> Parts<C> {
    /// Opens every socket that `config` names; `make` makes the carrier.
    pub(crate) fn open(config: &Config, make: impl FnOnce() -> C) -> Result<Self, Error> {
        let address = config.link.listen;
        let udp = Udp::bind(address).map_err(|source| listen("link.listen", address, source))?;
        let addresses = Addresses { link: udp.local_address().ok(), ..Addresses::default() };
        match &config.role {
            Role::Terminal(section) => open_terminal(config, section, udp, addresses, make),
            Role::Hub(section) => open_hub(config, section, udp, addresses, make),
        }
    }

    /// Runs until `stop` is asked for.
    pub(crate) fn run(mut self, stop: &Stop) -> Result<Report, Error> {
        let clock = Clock::from_here();
        let result = self.engine.run(stop);
        if let Some(interception) = self.interception.take()
            && let Err(error) = interception.remove()
        {
            tracing::warn!(%error, "the interception could not be taken away whole");
        }
        result?;
        Ok(Report {
            role: self.role,
            seconds: clock.now().as_secs_f64(),
            connections: self.engine.counters().clone(),
            udp: self.engine.udp_counters().clone(),
            relay: self.engine.carrier_statistics(),
        })
    }
}

fn open_terminal<C: Carrier>(
    config: &Config,
    section: &TerminalSection,
    udp: Udp,
    mut addresses: Addresses,
    make: impl FnOnce() -> C,
) -> Result<Parts<C>, Error> {
    let mut listeners = Vec::new();
    for (key, kind, wanted, bound) in [
        ("socks5.listen", Kind::Socks5, &section.socks5, &mut addresses.socks5),
        ("connect.listen", Kind::HttpConnect, &section.connect, &mut addresses.connect),
    ] {
        for &address in wanted {
            let listener =
                Listener::bind(address, kind).map_err(|source| listen(key, address, source))?;
            bound.push(listener.address);
            listeners.push(listener);
        }
    }
    let mut interception = None;
    if let Some(section) = &section.intercept {
        let transparent = transparent_listeners(section)?;
        addresses.transparent = transparent.iter().map(|listener| listener.address).collect();
        listeners.extend(transparent);
        let port = addresses.transparent.first().map_or(section.port, SocketAddr::port);
        let installed = Interception::terminal(&terminal_rules(section, port))?;
        log_notes(&installed);
        interception = Some(installed);
    }
    let engine = Engine::terminal(make(), udp, section, &config.limits, listeners)?;
    tracing::info!(?addresses, "terminal");
    Ok(Parts { engine, addresses, interception, role: "terminal" })
}

fn open_hub<C: Carrier>(
    config: &Config,
    section: &HubSection,
    udp: Udp,
    addresses: Addresses,
    make: impl FnOnce() -> C,
) -> Result<Parts<C>, Error> {
    let interception = match section.source {
        SourceMode::Own => None,
        SourceMode::Client => {
            let installed = Interception::hub(&hub_rules(section))?;
            log_notes(&installed);
            Some(installed)
        }
    };
    let engine = Engine::hub(make(), udp, section, &config.limits)?;
    tracing::info!(?addresses, "hub");
    Ok(Parts { engine, addresses, interception, role: "hub" })
}

fn transparent_listeners(section: &InterceptSection) -> Result<Vec<Listener>, Error> {
    let transparent = |source: io::Error| {
        let advice = match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => "; this needs CAP_NET_ADMIN",
            Some(_) | None => "",
        };
        Error::Transparent { port: section.port, source, advice }
    };
    let both = intercept::listen(section.port).map_err(transparent)?;
    [Some(both.v4), both.v6]
        .into_iter()
        .flatten()
        .map(|socket| Listener::from_std(socket, Kind::Transparent).map_err(Error::Loop))
        .collect()
}

fn terminal_rules(section: &InterceptSection, port: u16) -> TerminalRules {
    let interfaces: Vec<&str> = section.interfaces.iter().map(String::as_str).collect();
    let mut rules = TerminalRules::new(&section.id, &interfaces, port);
    rules.include_destinations.extend(&section.include);
    rules.exclude_destinations.extend(&section.exclude);
    rules.include_ports.extend(&section.include_ports);
    rules.exclude_ports.extend(&section.exclude_ports);
    rules.mark = section.marking.mark.unwrap_or(rules.mark);
    rules.table = section.marking.table.unwrap_or(rules.table);
    rules.priority = section.marking.priority.unwrap_or(rules.priority);
    rules
}

fn hub_rules(section: &HubSection) -> HubRules {
    let mut rules = HubRules::new(&section.id);
    rules.interfaces.clone_from(&section.interfaces);
    rules.mark = section.marking.mark.unwrap_or(rules.mark);
    rules.table = section.marking.table.unwrap_or(rules.table);
    rules.priority = section.marking.priority.unwrap_or(rules.priority);
    rules
}

fn log_notes(interception: &Interception) {
    for note in interception.notes() {
        tracing::warn!(%note, "interception");
    }
}

fn listen(key: &'static str, address: SocketAddr, source: io::Error) -> Error {
    Error::Listen { key, address, source }
}
