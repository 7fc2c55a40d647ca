//! A gateway without a partner, as a whole: its place in the kernel's tables, and its loop.

use crate::engine::raise_descriptor_limit;
use crate::engine::single::{Facing, Owner, Single};
use crate::engine::slots::descriptors_for;
use crate::gateway::{listen_transparently, log_notes};
use crate::intercept::{HubRules, Interception, TerminalRules};
use crate::observe::{AssociationCounters, Observer};
use crate::report::{Report, Traffic, UdpCounters};
use crate::{Config, Error, Limits, SingleSection, SourceMode, Stop};
use rt::Clock;
use std::path::PathBuf;

/// A gateway of two-segment splitting that listens and is ready to run.
#[derive(Debug)]
pub struct SingleGateway {
    engine: Single,
    around: Around,
}

/// What is around the loop.
#[derive(Debug)]
struct Around {
    /// Taken away when they are dropped.
    interceptions: Vec<Interception>,
    /// What is in force.
    config: Config,
    /// Where it was read from, to be read again.
    file: Option<PathBuf>,
}

impl Owner for Around {
    fn let_pass(&mut self) {
        for interception in &mut self.interceptions {
            if let Err(error) = interception.let_pass() {
                tracing::warn!(%error, "new connections are still intercepted");
            }
        }
    }

    fn reload(&mut self) -> Option<(Limits, bool)> {
        let config = crate::reload::read_again(&self.config, self.file.as_deref())?;
        self.config = config;
        Some((self.config.limits.clone(), self.config.log.connections))
    }
}

impl SingleGateway {
    /// Opens the listeners, and puts interception in place; `section` is that of `config`.
    ///
    /// # Errors
    /// When the kernel refuses something; nothing is left behind then.
    pub fn open(section: &SingleSection, config: &Config) -> Result<Self, Error> {
        let limits = &config.limits;
        // Two for each connection.
        let descriptors = raise_descriptor_limit();
        if descriptors < descriptors_for(limits.connections, 2) {
            tracing::warn!(descriptors, "fewer descriptors than limits.connections asks for");
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
        let mut engine = Single::new(section, limits, config.log.connections, listeners)
            .map_err(|error| Error::Single(error.to_string()))?;
        engine.set_observer(observer)?;
        engine.watch_addresses(config);
        let mut interceptions = Vec::new();
        if section.source == SourceMode::Client {
            // Answers to the client's address must come to the socket that has it.
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
        Ok(Self { engine, around })
    }

    /// Reads its configuration from `file` again when it is asked to reload.
    #[must_use]
    pub fn reloading_from(mut self, file: PathBuf) -> Self {
        self.around.file = Some(file);
        self
    }

    /// Runs until `stop` is asked for, and takes interception away again.
    ///
    /// # Errors
    /// When the readiness loop breaks.
    pub fn run(mut self, stop: &Stop) -> Result<Report, Error> {
        let clock = Clock::from_here();
        let result = self.engine.run(stop, &mut self.around);
        for interception in self.around.interceptions.drain(..) {
            if let Err(error) = interception.remove() {
                tracing::warn!(%error, "an interception could not be taken away whole");
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

fn facing(port: u16, clients: bool) -> Result<Vec<Facing>, Error> {
    let listeners = listen_transparently("single.port", port)?;
    Ok(listeners.into_iter().map(|listener| Facing { listener, clients }).collect())
}

/// Connections that come over the satellite.
fn from_clients(section: &SingleSection) -> TerminalRules {
    let interfaces: Vec<&str> = section.satellite.iter().map(String::as_str).collect();
    rules(section, &section.id, &interfaces, section.port)
}

/// Connections that lead over the satellite.
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
