//! A whole gateway of a pair: its sockets, its rules in the kernel, and its loop.

use crate::driver::{self, Driver};
use crate::engine::{
    self, Admission, Engine, HeldSyns, Host, Kind, LinkSocket, Listener, RelaySet, TlsLink,
};
use crate::enrolment::Registrations;
use crate::forward::Forwarding;
use crate::intercept::{self, HubRules, Interception, TerminalRules};
use crate::observe::Observer;
use crate::relay_settings::{path_plans, relay_config};
use crate::reload::proxies;
use crate::service::Service;
use crate::sharded::ShardedHub;
use crate::single::SingleGateway;
use crate::state::State;
use crate::syn_gate::{self, ActiveGate};
use crate::tls::{self, TlsServer};
use crate::upgrade::Upgrade;
use crate::{
    Config, Deprecated, Error, HubSection, InterceptSection, LinkSection, PathSection, QuicMode,
    Report, Role, SourceMode, Stop, SystemEntropy, TerminalSection, privileges,
};
use relay::{Control, Entropy, Part, RelayConfig, Security};
use rt::Clock;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use units::{BitRate, Instant};

/// Addresses on which a gateway listens; the kernel chooses the port where 0 is configured.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// For datagrams.
    pub link: Option<SocketAddr>,
    /// For SOCKS5.
    pub socks5: Vec<SocketAddr>,
    /// For HTTP CONNECT.
    pub connect: Vec<SocketAddr>,
    /// For TLS from terminals.
    pub tls: Option<SocketAddr>,
    /// For DNS, by TCP and UDP.
    pub dns: Vec<SocketAddr>,
    /// For intercepted connections.
    pub transparent: Vec<SocketAddr>,
    /// For metrics.
    pub metrics: Option<SocketAddr>,
}

/// A gateway that listens and is ready to run.
#[derive(Debug)]
pub struct Gateway {
    /// The active configuration.
    pub(crate) config: Config,
    /// The file of the configuration, for reloads.
    pub(crate) file: Option<PathBuf>,
    pub(crate) engine: Engine,
    pub(crate) driver: Driver,
    pub(crate) service: Service,
    /// Names of the sockets that the service manager stores.
    pub(crate) kept: BTreeSet<String>,
    pub(crate) addresses: Addresses,
    /// Routes that are removed when this is dropped.
    pub(crate) interception: Option<Interception>,
    /// A terminal's rules for interception.
    pub(crate) rules: Option<TerminalRules>,
    /// A process that is to replace this one.
    pub(crate) upgrade: Option<Upgrade>,
    /// Whether one has.
    pub(crate) is_replaced: bool,
    /// The SYN gate in use.
    pub(crate) active_gate: Option<ActiveGate>,
    /// Keys that a hub's terminals register.
    pub(crate) registrations: Registrations,
    /// The TLS server of a hub.
    pub(crate) tls: Option<TlsServer>,
    role: &'static str,
    controller: Control,
}

/// Runs the gateway of `config` until `stop` is requested; a reload reads `file`.
///
/// # Errors
/// As [`Gateway::open`] and [`Gateway::run`].
pub fn run(config: &Config, file: Option<&Path>, stop: &Stop) -> Result<Report, Error> {
    crate::memory::settle();
    for Deprecated { line, former, present } in &config.deprecated {
        tracing::warn!(line, "configuration key {former} is deprecated, use {present}");
    }
    for key in &config.ignored {
        tracing::warn!(
            "configuration key {key} is unknown to this release, and ignored as `optional` permits"
        );
    }
    match &config.role {
        Role::Hub(hub) if hub.shards > 1 => {
            let mut hub = ShardedHub::open_then(config, || privileges::drop_unneeded(config))?;
            if let Some(file) = file {
                hub = hub.reloading_from(file.to_owned());
            }
            hub.run(stop)
        }
        Role::Terminal(_) | Role::Hub(_) => {
            let mut gateway = Gateway::open_then(config, || privileges::drop_unneeded(config))?;
            if let Some(file) = file {
                gateway = gateway.reloading_from(file.to_owned());
            }
            gateway.run(stop)
        }
        Role::Single(section) => {
            privileges::drop_unneeded(config);
            let mut gateway = SingleGateway::open(section, config)?;
            if let Some(file) = file {
                gateway = gateway.reloading_from(file.to_owned());
            }
            gateway.run(stop)
        }
    }
}

impl Gateway {
    /// Opens all sockets of `config` and installs the interception. Addresses and interfaces that
    /// this host does not have yet are waited for.
    ///
    /// # Errors
    /// When listening on an existing address fails, or the kernel refuses a call; nothing remains
    /// installed then.
    pub fn open(config: &Config) -> Result<Self, Error> {
        Self::open_then(config, || ())
    }

    /// As [`Gateway::open`]; calls `bound` after the datagram sockets are open and before the first
    /// thread starts.
    fn open_then(config: &Config, bound: impl FnOnce()) -> Result<Self, Error> {
        if config.shards() > 1 {
            return Err(Error::Shards);
        }
        let descriptors = driver::raise_descriptor_limit();
        if descriptors < engine::descriptors_for(config.limits.connections, 1) {
            tracing::warn!(descriptors, "fewer descriptors than limits.connections needs");
        }
        let mut driver = Driver::new()?;
        let mut host = driver.host()?;
        let paths = config.effective_paths();
        let sockets = paths.iter().map(|path| bind(path, &mut host));
        let sockets = sockets.collect::<Result<Vec<LinkSocket>, Error>>()?;
        bound();
        let link = sockets.first().and_then(LinkSocket::local_address);
        let addresses = Addresses { link, ..Addresses::default() };
        let observer = Observer::open(config, Clock::new().now())?;
        let addresses = Addresses { metrics: observer.metrics_address(), ..addresses };
        driver.set_observer(observer)?;
        let mut gateway = match &config.role {
            Role::Terminal(section) => open_terminal(driver, config, section, sockets, addresses),
            Role::Hub(section) => open_hub(driver, config, section, sockets, addresses),
            Role::Single(_) => Err(Error::NoPartner),
        }?;
        if let Some(section) = &config.forward {
            let forwarding = Forwarding::open(section, &config.role)?;
            gateway.engine.set_forwarding(forwarding, section.tcp)?;
        }
        gateway.engine.log_ends(config);
        gateway.engine.watch_addresses(config);
        gateway.engine.set_resolver(&config.resolver);
        Ok(gateway)
    }

    /// Returns the addresses on which it listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Runs until `stop` is requested, and removes the interception.
    ///
    /// # Errors
    /// When the readiness loop fails.
    pub fn run(mut self, stop: &Stop) -> Result<Report, Error> {
        let clock = Clock::from_here();
        let result = self.live(stop);
        remove_rules(self.interception.take());
        result?;
        let report = report_of(&mut self.engine, self.role, self.controller.name());
        Ok(Report { seconds: clock.now().as_secs_f64(), ..report })
    }
}

/// Removes the kernel's rules, if there are any.
pub(crate) fn remove_rules(interception: Option<Interception>) {
    if let Some(interception) = interception
        && let Err(error) = interception.remove()
    {
        tracing::warn!(%error, "the interception was not removed completely");
    }
}

/// Returns the report of an engine that has ended, without the time.
pub(crate) fn report_of(
    engine: &mut Engine,
    role: &'static str,
    controller: &'static str,
) -> Report {
    Report {
        role,
        seconds: 0.0,
        controller,
        peers: engine.take_peers(),
        connections: engine.counters().clone(),
        udp: engine.udp_counters(),
        association: engine.association(),
        traffic: engine.traffic(),
        single: None,
    }
}

/// Lets the sockets of a terminal's paths use TLS, if that is configured.
fn set_tls(
    driver: &Driver,
    config: &Config,
    section: &TerminalSection,
    sockets: &mut [LinkSocket],
) -> Result<(), Error> {
    let Some(tls) = &section.tls else { return Ok(()) };
    let mut host = driver.host()?;
    for (path, socket) in config.effective_paths().iter().zip(sockets) {
        let mut random = [0; 4];
        SystemEntropy.fill(&mut random);
        socket.set_tls(TlsLink::open(&mut host, path, tls, u32::from_be_bytes(random))?);
    }
    Ok(())
}

fn open_terminal(
    driver: Driver,
    config: &Config,
    section: &TerminalSection,
    mut sockets: Vec<LinkSocket>,
    mut addresses: Addresses,
) -> Result<Gateway, Error> {
    set_tls(&driver, config, section, &mut sockets)?;
    let mut listeners = Vec::new();
    for (key, kind, wanted) in proxies(section) {
        let bound = match kind {
            Kind::Socks5 => &mut addresses.socks5,
            Kind::HttpConnect | Kind::Transparent => &mut addresses.connect,
            Kind::Dns => &mut addresses.dns,
        };
        for &address in wanted {
            let listener =
                driver::bind(address, kind).map_err(|source| listen(key, address, source))?;
            if !address.ip().is_loopback() && kind != Kind::Dns {
                let proxy = key.trim_end_matches(".listen");
                tracing::warn!(%address, "{proxy} has no authentication: every host that reaches this address can use it");
            }
            bound.push(listener.address);
            listeners.push(listener);
        }
    }
    let (mut interception, mut gate, mut active_gate, mut capture) = (None, None, None, None);
    let accept = &section.accept;
    if let Some(section) = &section.intercept {
        let transparent = transparent_listeners(section)?;
        addresses.transparent = transparent.iter().map(|listener| listener.address).collect();
        listeners.extend(transparent);
        let port = addresses.transparent.first().map_or(section.port, SocketAddr::port);
        let mut rules = terminal_rules(section, port);
        gate = syn_gate::prepare(&mut rules, accept, &mut active_gate, true)?;
        let installed = syn_gate::install(&mut rules, accept, &mut gate, &mut active_gate)?;
        log_notes(&installed);
        interception = Some(installed);
        capture = Some(rules);
    }
    let state = open_state(config);
    let plans = path_plans(config, section, &state)?;
    let controller = plans.first().map_or(config.link.controller, |plan| plan.relay.control);
    let (platform, now) = (driver.platform()?, driver.now());
    let relays = RelaySet::terminal(plans, config.health.demands, now, || SystemEntropy);
    let bounds = (&config.limits, config.fail);
    let engine = Engine::terminal(
        (platform, now),
        relays,
        sockets,
        section,
        bounds,
        (listeners, gate.map(|gate| Box::new(gate) as Box<dyn HeldSyns>)),
        state,
    )?;
    log_control(config);
    tracing::info!(?addresses, "terminal");
    let config = config.clone();
    Ok(Gateway {
        config,
        file: None,
        service: Service::new(),
        kept: BTreeSet::new(),
        engine,
        driver,
        addresses,
        interception,
        rules: capture,
        upgrade: None,
        is_replaced: false,
        active_gate,
        registrations: Registrations::default(),
        tls: None,
        role: "terminal",
        controller,
    })
}

fn open_hub(
    driver: Driver,
    config: &Config,
    section: &HubSection,
    mut sockets: Vec<LinkSocket>,
    mut addresses: Addresses,
) -> Result<Gateway, Error> {
    let interception = open_hub_rules(section)?;
    let tls = open_tls(section, addresses.link)?;
    addresses.tls = tls.as_ref().map(TlsServer::address);
    let controller = config.link.controller;
    let socket = sockets.pop().ok_or(Error::NoPeer)?;
    let security = (config.keys()?, Part::default());
    let engine = hub_engine(&driver, config, section, socket, security)?;
    log_promises(config, section);
    log_control(config);
    tracing::info!(?addresses, "hub");
    Ok(Gateway {
        config: config.clone(),
        file: None,
        service: Service::new(),
        kept: BTreeSet::new(),
        engine,
        driver,
        addresses,
        interception,
        rules: None,
        upgrade: None,
        is_replaced: false,
        active_gate: None,
        registrations: Registrations::new(config.registered_keys()),
        tls,
        role: "hub",
        controller,
    })
}

/// Starts the TLS server that `section` needs, for the link socket at `link`.
pub(crate) fn open_tls(
    section: &HubSection,
    link: Option<SocketAddr>,
) -> Result<Option<TlsServer>, Error> {
    let (Some(tls), Some(link)) = (&section.tls, link) else { return Ok(None) };
    let settings = tls::hub_settings(tls.certificate.as_ref()).map_err(Error::Certificate)?;
    let started = TlsServer::start(tls.listen, (settings, tls.congestion), link);
    started.map(Some).map_err(|source| listen("tls.listen", tls.listen, source))
}

/// Installs the rules for servers' packets that `section` needs.
pub(crate) fn open_hub_rules(section: &HubSection) -> Result<Option<Interception>, Error> {
    match section.source {
        SourceMode::Own => Ok(None),
        SourceMode::Client => {
            let installed = Interception::hub(&hub_rules(section))?;
            log_notes(&installed);
            Ok(Some(installed))
        }
    }
}

/// Opens the engine of a hub, or of a shard of one.
pub(crate) fn hub_engine(
    driver: &Driver,
    config: &Config,
    section: &HubSection,
    socket: LinkSocket,
    (security, part): (Security, Part),
) -> Result<Engine, Error> {
    let state = open_state(config);
    let memory = section.memory(config.limits.memory);
    let relay = RelayConfig { security, part, ..relay_config(config, &config.link) };
    let mut relays = RelaySet::hub(&relay, &state, &memory, SystemEntropy);
    relays.set_plans(section);
    let admission = Admission::new(section, &config.limits).map_err(Error::Addresses)?;
    let platform = (driver.platform()?, driver.now());
    let mut engine =
        Engine::hub(platform, relays, socket, section, admission, &config.limits, state)?;
    engine.set_commitments(crate::config::commitments(&config.link, section));
    Ok(engine)
}

pub(crate) fn transparent_listeners(section: &InterceptSection) -> Result<Vec<Listener>, Error> {
    listen_transparently("intercept.port", section.port)
}

/// Opens listeners on both loopback addresses for intercepted connections on `port` of `key`.
pub(crate) fn listen_transparently(key: &'static str, port: u16) -> Result<Vec<Listener>, Error> {
    let transparent = |source: io::Error| {
        let advice = match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => "; this needs CAP_NET_ADMIN",
            Some(_) | None => "",
        };
        Error::Transparent { key, port, source, advice }
    };
    let both = intercept::listen(port).map_err(transparent)?;
    [Some(both.v4), both.v6]
        .into_iter()
        .flatten()
        .map(|socket| driver::from_std(socket, Kind::Transparent).map_err(Error::Loop))
        .collect()
}

pub(crate) fn terminal_rules(section: &InterceptSection, port: u16) -> TerminalRules {
    let interfaces: Vec<&str> = section.interfaces.iter().map(String::as_str).collect();
    let mut rules = TerminalRules::new(&section.id, &interfaces, port);
    rules.include_destinations.extend(&section.include);
    rules.exclude_destinations.extend(&section.exclude);
    rules.include_ports.extend(&section.include_ports);
    rules.exclude_ports.extend(&section.exclude_ports);
    rules.refuse_quic = section.quic == QuicMode::Refuse;
    rules.mark = section.marking.mark.unwrap_or(rules.mark);
    rules.table = section.marking.table.unwrap_or(rules.table);
    rules.priority = section.marking.priority.unwrap_or(rules.priority);
    rules
}

pub(crate) fn hub_rules(section: &HubSection) -> HubRules {
    let mut rules = HubRules::new(&section.id);
    rules.interfaces.clone_from(&section.interfaces);
    rules.mark = section.marking.mark.unwrap_or(rules.mark);
    rules.table = section.marking.table.unwrap_or(rules.table);
    rules.priority = section.marking.priority.unwrap_or(rules.priority);
    rules
}

/// Opens the socket of a path.
pub(crate) fn bind(path: &PathSection, host: &mut dyn Host) -> Result<LinkSocket, Error> {
    let key = if path.name.is_empty() { "link.listen" } else { "path.listen or path.interface" };
    LinkSocket::open(path, host).map_err(|source| listen(key, path.link.listen, source))
}

/// Reads the cached path metrics.
fn open_state(config: &Config) -> State {
    let clock = Clock::new();
    State::open(config.state.as_deref(), unix_seconds(&clock, clock.now()))
}

/// Returns `at` in seconds since 1970.
pub(crate) fn unix_seconds(clock: &Clock, at: Instant) -> u64 {
    (clock.epoch_unix_ns() + at.as_nanos()) / 1_000_000_000
}

/// Logs plans that commit more than the link has, which is accepted.
pub(crate) fn log_promises(config: &Config, section: &HubSection) {
    for commitment in crate::config::commitments(&config.link, section) {
        if commitment.is_exceeded() {
            tracing::warn!("{}", commitment.describe());
        }
    }
}

/// Logs the configured rates and the controller.
pub(crate) fn log_control(config: &Config) {
    let LinkSection { controller, rate_up, rate_down, .. } = &config.link;
    let rate = |rate: &Option<BitRate>| rate.map_or("auto".to_owned(), |rate| rate.to_string());
    tracing::info!(%controller, up = rate(rate_up), down = rate(rate_down), "rates");
}

pub(crate) fn log_notes(interception: &Interception) {
    for note in interception.notes() {
        tracing::warn!(%note, "interception");
    }
}

pub(crate) fn listen(key: &'static str, address: SocketAddr, source: io::Error) -> Error {
    Error::Listen { key, address, source }
}
