//! The network and the gateways of a system test.

use super::sleep_ms;
use crate::LabError;
use crate::live::Usage;
use crate::live::{Emulation, Gateway, gateway_program};
use gateway::{PrivateKey, SystemEntropy};
use rt::Clock;
use satlink::{LinkConfig, words};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use testbed::traffic::{self, FileServer, Way};
use testbed::{Host, Satellite, SatelliteConfig, addresses};
use units::{Instant, Span};

/// The hub's UDP port.
pub(super) const PORT: u16 = 4500;
/// Port of the server's files.
const FILES: u16 = 7000;
/// Ports of the terminal's proxies.
pub(super) const SOCKS: u16 = 1080;
pub(super) const CONNECT: u16 = 3128;

/// Settings that a system test can change.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Link description of the emulator.
    pub(super) link: &'static str,
    /// Keys of `[link]` of both gateways.
    pub(super) rates: &'static str,
    /// Value of `accept`: `early` or `confirm`.
    pub(super) accept: &'static str,
    /// Keys of `[limits]` of both gateways.
    pub(super) limits: &'static str,
    /// Keys before the first table, and further tables, of both gateways.
    pub(super) top: String,
    pub(super) tables: String,
    /// Further tables of the terminal.
    pub(super) terminal_tables: String,
    /// Further tables of the hub.
    pub(super) hub_tables: String,
    /// Description and MTU of a second link, if there is one.
    pub(super) second: Option<(&'static str, u32)>,
    pub(super) seed: u64,
}

impl Setup {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            link: "delay 15ms rate 60mbit limit 2bdp",
            rates: "rate_up = \"60mbit\"\nrate_down = \"60mbit\"\nround_trip = \"30ms\"",
            accept: "early",
            limits: "",
            top: String::new(),
            tables: String::new(),
            terminal_tables: String::new(),
            hub_tables: String::new(),
            second: None,
            seed,
        }
    }
}

/// One of the gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Terminal,
    Hub,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Terminal, Self::Hub];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Hub => "hub",
        }
    }
}

/// A running network; dropping it removes everything.
#[derive(Debug)]
pub(super) struct TestNetwork {
    pub(super) files: FileServer,
    terminal: Option<Gateway>,
    hub: Option<Gateway>,
    emulation: Option<Emulation>,
    second: Option<Emulation>,
    pub(super) net: Satellite,
    link: LinkConfig,
    seed: u64,
    configs: [String; 2],
    /// Keys of the hub and of a second terminal that it knows.
    pub(super) hub_key: PrivateKey,
    pub(super) terminal_key: PrivateKey,
    pub(super) wild_key: PrivateKey,
}

impl TestNetwork {
    /// Creates the network, starts both gateways and waits for the first successful request.
    pub(super) fn new(setup: &Setup) -> Result<Self, LabError> {
        let mut network = Self::without_gateways(setup)?;
        network.start_both()?;
        Ok(network)
    }

    /// Starts both gateways and waits for the first successful request.
    pub(super) fn start_both(&mut self) -> Result<(), LabError> {
        for side in [Side::Hub, Side::Terminal] {
            self.start(side)?;
        }
        self.await_path(Span::from_secs(30)).map(drop)
    }

    /// Creates the network without gateways.
    pub(super) fn without_gateways(setup: &Setup) -> Result<Self, LabError> {
        let link =
            words::parse_link(setup.link).map_err(|error| LabError::Request(error.to_string()))?;
        let net = Satellite::new(&SatelliteConfig::default())?;
        let emulation = Some(Emulation::start(&net, &link, setup.seed)?);
        let mut second = None;
        if let Some((words, mtu)) = setup.second {
            net.add_second(mtu)?;
            let link =
                words::parse_link(words).map_err(|error| LabError::Request(error.to_string()))?;
            second = Some(Emulation::second(&net, &link, setup.seed + 1)?);
        }
        let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), FILES);
        let files = FileServer::start(Some(&net.server), any)?;
        // New connections pass the gateways. Packets of connections that a killed gateway had are
        // forwarded by the kernel, as in the field, and reset by their destination.
        files.open_only_to(addresses::HUB_WAN.0)?;
        let [hub_key, terminal_key, wild_key] =
            [(); 3].map(|()| PrivateKey::generate(&mut SystemEntropy));
        let configs = configs(setup, &hub_key, &terminal_key, &wild_key);
        let (terminal, hub) = (None, None);
        let seed = setup.seed;
        Ok(Self {
            files,
            terminal,
            hub,
            emulation,
            second,
            net,
            link,
            seed,
            configs,
            hub_key,
            terminal_key,
            wild_key,
        })
    }

    /// Changes the configuration that a gateway is started with next.
    pub(super) fn reconfigure(&mut self, side: Side, from: &str, to: &str) {
        let config = &mut self.configs[side as usize];
        *config = config.replacen(from, to, 1);
    }

    /// Returns the file server's address.
    pub(super) fn server(&self) -> SocketAddr {
        SocketAddr::new(addresses::SERVER.0.into(), FILES)
    }

    /// Returns the address of one of the terminal's proxies.
    pub(super) fn proxy(&self, port: u16) -> SocketAddr {
        SocketAddr::new(addresses::TERMINAL_LAN.0.into(), port)
    }

    fn gateway(&mut self, side: Side) -> &mut Option<Gateway> {
        match side {
            Side::Terminal => &mut self.terminal,
            Side::Hub => &mut self.hub,
        }
    }

    pub(super) fn start(&mut self, side: Side) -> Result<(), LabError> {
        let program = gateway_program()
            .map_err(|error| LabError::Gateway { role: side.name(), reason: error.to_string() })?;
        self.start_by(side, Command::new(program))
    }

    /// Starts a gateway by another command.
    pub(super) fn start_by(&mut self, side: Side, command: Command) -> Result<(), LabError> {
        let config = &self.configs[side as usize];
        let host = self.host(side);
        let started = Gateway::start_by(Some(host), side.name(), command, config)?;
        *self.gateway(side) = Some(started);
        Ok(())
    }

    /// Kills a gateway without a graceful shutdown.
    pub(super) fn kill(&mut self, side: Side) {
        *self.gateway(side) = None;
    }

    pub(super) fn process(&mut self, side: Side) -> u32 {
        self.gateway(side).as_mut().map_or(0, Gateway::id)
    }

    pub(super) fn usage(&mut self, side: Side) -> Result<Usage, LabError> {
        Usage::of(self.process(side))
    }

    /// Returns the last lines of its log.
    pub(super) fn said(&mut self, side: Side) -> String {
        self.gateway(side).as_ref().map(Gateway::said).unwrap_or_default()
    }

    /// Checks that the started gateways still run.
    pub(super) fn check(&mut self) -> Result<(), LabError> {
        for side in Side::BOTH {
            if let Some(gateway) = self.gateway(side) {
                gateway.check()?;
            }
        }
        Ok(())
    }

    /// Returns the host of a gateway.
    pub(super) fn host(&self, side: Side) -> &Host {
        match side {
            Side::Terminal => &self.net.terminal,
            Side::Hub => &self.net.hub,
        }
    }

    /// Returns true if a gateway has ended or was not started.
    pub(super) fn has_ended(&mut self, side: Side) -> bool {
        self.gateway(side).as_mut().is_none_or(|gateway| gateway.check().is_err())
    }

    /// Starts an outage of `length`.
    pub(super) fn outage(&self, length: Span) -> Result<(), LabError> {
        self.emulation.as_ref().map_or(Ok(()), |emulation| emulation.outage(length))
    }

    /// Starts an outage of the second link.
    pub(super) fn second_outage(&self, length: Span) -> Result<(), LabError> {
        self.second.as_ref().map_or(Ok(()), |emulation| emulation.outage(length))
    }

    /// Stops the emulator.
    pub(super) fn stop_emulation(&mut self) {
        self.emulation = None;
    }

    pub(super) fn start_emulation(&mut self) -> Result<(), LabError> {
        self.emulation = Some(Emulation::start(&self.net, &self.link, self.seed)?);
        Ok(())
    }

    /// Returns true if a request and its response cross the network.
    pub(super) fn passes(&self, way: Way) -> bool {
        let server = self.server();
        // The timeout is shorter than the retransmission of a SYN.
        let patience = Span::from_millis(700);
        self.net.client.run(|| traffic::ask(way, server, (64, 64), patience)).error.is_none()
    }

    /// Waits until a request crosses the network; returns the time that this took.
    pub(super) fn await_path(&mut self, patience: Span) -> Result<Span, LabError> {
        let clock = Clock::new();
        let from = clock.now();
        // A rule that is not installed yet causes a refusal; a proxy is known to be ready.
        while !self.passes(Way::Direct) {
            self.check()?;
            if past(&clock, from, patience) {
                let said = Side::BOTH.map(|side| self.said(side)).join("\n");
                return Err(LabError::Proof(format!(
                    "no request crosses the network within {patience}: {said}"
                )));
            }
            sleep_ms(20);
        }
        Ok(clock.now().since(from))
    }
}

fn past(clock: &Clock, from: Instant, patience: Span) -> bool {
    clock.now().since(from) >= patience
}

/// Returns the configurations of terminal and hub.
fn configs(
    setup: &Setup,
    hub_key: &PrivateKey,
    terminal_key: &PrivateKey,
    wild_key: &PrivateKey,
) -> [String; 2] {
    let Setup { rates, accept, limits, top, tables, terminal_tables, hub_tables, .. } = setup;
    let (hub, lan) = (addresses::HUB.0, addresses::TERMINAL_LAN.0);
    let terminal = format!(
        "role = \"terminal\"\nprivate_key = \"{}\"\naccept = \"{accept}\"\n{top}\n\
         [link]\npeer = \"{hub}:{PORT}\"\npeer_public_key = \"{}\"\n{rates}\n\
         [intercept]\ninterfaces = [\"lan\"]\n\
         [socks5]\nlisten = \"{lan}:{SOCKS}\"\n[connect]\nlisten = \"{lan}:{CONNECT}\"\n\
         [limits]\ndrain = \"0s\"\n{limits}\n{tables}\n{terminal_tables}\n",
        terminal_key.to_text(),
        hub_key.public(),
    );
    let hub = format!(
        "role = \"hub\"\nprivate_key = \"{}\"\n{top}\n[link]\nlisten = \"{hub}:{PORT}\"\n{rates}\n\
         [limits]\ndrain = \"0s\"\n{limits}\n{tables}\n{hub_tables}\n\
         [[terminal]]\nname = \"site\"\npublic_key = \"{}\"\n\
         [[terminal]]\nname = \"wild\"\npublic_key = \"{}\"\n",
        hub_key.to_text(),
        terminal_key.public(),
        wild_key.public(),
    );
    [terminal, hub]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configurations_are_valid() {
        let [hub, terminal, wild] = [(); 3].map(|()| PrivateKey::generate(&mut SystemEntropy));
        for config in configs(&Setup::new(1), &hub, &terminal, &wild) {
            gateway::Config::parse("proof.toml", &config).expect("a configuration");
        }
    }
}
