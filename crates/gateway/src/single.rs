//! A whole single gateway: its rules in the kernel, and its loop.

use crate::driver::{Driver, raise_descriptor_limit};
use crate::engine::descriptors_for;
use crate::engine::single::{Facing, Single};
use crate::gateway::{listen_transparently, log_notes};
use crate::intercept::{HubRules, Interception, TerminalRules};
use crate::observe::{AssociationCounters, Observer};
use crate::report::{Report, Traffic, UdpCounters};
use crate::service::{Service, handed};
use crate::stop::Asked;
use crate::{Config, Error, SingleSection, SourceMode, Stop};
use rt::Clock;
use std::io;
use std::path::PathBuf;

/// A gateway of two-segment splitting that listens and is ready to run.
#[derive(Debug)]
pub struct SingleGateway {
    engine: Single,
    driver: Driver,
    service: Service,
    around: Around,
}

/// State outside the loop.
#[derive(Debug)]
struct Around {
    /// Removed on drop.
    interceptions: Vec<Interception>,
    /// The active configuration.
    config: Config,
    /// The file of the configuration, for reloads.
    file: Option<PathBuf>,
}

impl Around {
    /// Stops intercepting new connections.
    fn stop_intercepting(&mut self) {
        for interception in &mut self.interceptions {
            if let Err(error) = interception.suspend() {
                tracing::warn!(%error, "interception not removed: new connections are still intercepted");
            }
        }
    }

    /// Reloads the configuration; returns whether it changed.
    fn reload(&mut self) -> bool {
        let Some(config) = crate::reload::read_again(&self.config, self.file.as_deref()) else {
            return false;
        };
        self.config = config;
        true
    }
}

impl SingleGateway {
    /// Opens the listeners and installs the interception; `section` is that of `config`.
    ///
    /// # Errors
    /// When the kernel refuses a call; nothing remains installed then.
    pub fn open(section: &SingleSection, config: &Config) -> Result<Self, Error> {
        let limits = &config.limits;
        // Two for each connection.
        let descriptors = raise_descriptor_limit();
        if descriptors < descriptors_for(limits.connections, 2) {
            tracing::warn!(descriptors, "fewer descriptors than limits.connections needs");
        }
        let mut listeners = Vec::new();
        let mut rules = Vec::new();
        listeners.extend(facing(section.port, true)?);
        rules.push(from_clients(section));
        if !section.network.is_empty() {
            listeners.extend(facing(section.port + 1, false)?);
            rules.push(to_clients(section));
        }
        let observer = Observer::open(config, Clock::new().now())?;
        let mut driver = Driver::new()?;
        driver.set_observer(observer)?;
        let platform = (driver.platform()?, driver.now());
        let mut engine = Single::new(platform, section, limits, listeners)
            .map_err(|error| Error::Single(error.to_string()))?;
        engine.set_limits(limits.clone(), config.log.connections);
        engine.watch_addresses(config);
        let mut interceptions = Vec::new();
        if section.source == SourceMode::Client {
            // Packets to the client's address must be delivered to the socket that has it.
            let rules = HubRules::new(&format!("{}_answers", section.id));
            interceptions.push(Interception::hub(&rules)?);
        }
        for rules in &rules {
            interceptions.push(Interception::terminal(rules)?);
        }
        interceptions.iter().for_each(log_notes);
        for note in engine.notes() {
            tracing::warn!(%note, "satellite");
        }
        tracing::info!(satellite = ?section.satellite, "single");
        let around = Around { interceptions, config: config.clone(), file: None };
        Ok(Self { engine, driver, service: Service::new(), around })
    }

    /// Sets the file that a reload reads.
    #[must_use]
    pub fn reloading_from(mut self, file: PathBuf) -> Self {
        self.around.file = Some(file);
        self
    }

    /// Runs until `stop` is requested, and removes the interception.
    ///
    /// # Errors
    /// When the readiness loop fails.
    pub fn run(mut self, stop: &Stop) -> Result<Report, Error> {
        let clock = Clock::from_here();
        let result = self.live(stop);
        for interception in self.around.interceptions.drain(..) {
            if let Err(error) = interception.remove() {
                tracing::warn!(%error, "an interception was not removed completely");
            }
        }
        result?;
        Ok(Report {
            role: "single",
            seconds: clock.now().as_secs_f64(),
            controller: "tcp",
            peers: Vec::new(),
            connections: self.engine.counters().clone(),
            udp: UdpCounters::default(),
            association: AssociationCounters::default(),
            traffic: Traffic::default(),
            single: Some(self.engine.report().clone()),
        })
    }
}

impl SingleGateway {
    /// Runs until a stop is requested. In a drain it stops intercepting, accepts no new clients, and
    /// ends with the last connection or after `limits.drain`.
    fn live(&mut self, stop: &Stop) -> io::Result<()> {
        self.driver.watch(stop)?;
        self.service.ready();
        // Sockets of an earlier process in the service manager's store that are not used any more.
        for name in handed::close_rest() {
            self.service.forget(&name);
        }
        loop {
            let connections = self.engine.connections();
            self.service.beat(connections, &self.engine.waiting());
            let now = self.driver.now();
            match stop.asked() {
                Asked::Nothing => {}
                Asked::Drain if !self.engine.is_draining() => {
                    let limit = self.around.config.limits.drain;
                    self.service.stopping(limit);
                    // Clients in the accept queues, or in handshake over the satellite, are still accepted.
                    self.around.stop_intercepting();
                    self.engine.drain(now, limit);
                }
                Asked::Drain => {}
                Asked::Stop => break,
            }
            if stop.take_reload() && self.around.reload() {
                let config = &self.around.config;
                self.engine.set_limits(config.limits.clone(), config.log.connections);
            }
            if stop.take_upgrade() {
                tracing::error!(
                    "upgrade refused: with role = \"single\" the gateway has to be restarted"
                );
            }
            if self.engine.has_drained(now) {
                break;
            }
            self.driver.step(&mut self.engine, self.service.next())?;
        }
        self.driver.close_observer(&mut self.engine);
        self.engine.end();
        Ok(())
    }
}

fn facing(port: u16, clients: bool) -> Result<Vec<Facing>, Error> {
    let listeners = listen_transparently("single.port", port)?;
    Ok(listeners.into_iter().map(|listener| Facing { listener, clients }).collect())
}

/// Rules for connections from the satellite.
fn from_clients(section: &SingleSection) -> TerminalRules {
    let interfaces: Vec<&str> = section.satellite.iter().map(String::as_str).collect();
    rules(section, &section.id, &interfaces, section.port)
}

/// Rules for connections over the satellite.
fn to_clients(section: &SingleSection) -> TerminalRules {
    let interfaces: Vec<&str> = section.network.iter().map(String::as_str).collect();
    let id = format!("{}_outward", section.id);
    let mut rules = rules(section, &id, &interfaces, section.port + 1);
    rules.include_destinations.clone_from(&section.networks);
    rules
}

fn rules(section: &SingleSection, id: &str, interfaces: &[&str], port: u16) -> TerminalRules {
    let mut rules = TerminalRules::new(id, interfaces, port);
    rules.exclude_destinations.extend(&section.exclude);
    rules.include_ports.extend(&section.include_ports);
    rules.exclude_ports.extend(&section.exclude_ports);
    rules
}
