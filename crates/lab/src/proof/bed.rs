//! The network and the two gateways of a proof.

use super::pause_ms;
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
/// Where the server's files are.
const FILES: u16 = 7000;
/// The terminal's proxies.
pub(super) const SOCKS: u16 = 1080;
pub(super) const CONNECT: u16 = 3128;

/// What a proof wants to be different.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// The link, in the emulator's words.
    pub(super) link: &'static str,
    /// Keys of `[link]`, for both gateways.
    pub(super) rates: &'static str,
    /// `early` or `confirm`.
    pub(super) accept: &'static str,
    /// Keys of `[limits]`, for both.
    pub(super) limits: &'static str,
    /// Keys before the first table and further tables, of both.
    pub(super) top: String,
    pub(super) tables: String,
    /// Further tables of the terminal.
    pub(super) terminal_tables: String,
    /// Further tables of the hub.
    pub(super) hub_tables: String,
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
            seed,
        }
    }
}

/// Which gateway.
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

/// The network, running; dropping it takes everything down.
#[derive(Debug)]
pub(super) struct Bed {
    // Dropped in this order.
    pub(super) files: FileServer,
    terminal: Option<Gateway>,
    hub: Option<Gateway>,
    emulation: Option<Emulation>,
    pub(super) net: Satellite,
    link: LinkConfig,
    seed: u64,
    configs: [String; 2],
    /// The hub's key, and that of a second terminal which it knows.
    pub(super) hub_key: PrivateKey,
    pub(super) terminal_key: PrivateKey,
    pub(super) wild_key: PrivateKey,
}

impl Bed {
    /// Builds the network, starts both gateways and waits until a request has crossed it.
    pub(super) fn new(setup: &Setup) -> Result<Self, LabError> {
        let mut bed = Self::without_gateways(setup)?;
        bed.start_both()?;
        Ok(bed)
    }

    /// Starts both gateways and waits until a request has crossed the network.
    pub(super) fn start_both(&mut self) -> Result<(), LabError> {
        for side in [Side::Hub, Side::Terminal] {
            self.start(side)?;
        }
        self.await_path(Span::from_secs(30)).map(drop)
    }

    /// As [`Bed::new`], with no gateways yet.
    pub(super) fn without_gateways(setup: &Setup) -> Result<Self, LabError> {
        let link =
            words::parse_link(setup.link).map_err(|error| LabError::Request(error.to_string()))?;
        let net = Satellite::new(&SatelliteConfig::default())?;
        let emulation = Some(Emulation::start(&net, &link, setup.seed)?);
        let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), FILES);
        let files = FileServer::start(Some(&net.server), any)?;
        // What is opened came through the gateways. Packets of a connection that a gateway has no
        // more, or has not had yet when it was killed, go their ordinary way nevertheless, as they
        // do in the field, and are reset by whoever does not know them.
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
            net,
            link,
            seed,
            configs,
            hub_key,
            terminal_key,
            wild_key,
        })
    }

    /// Changes what a gateway is configured with when it is started next.
    pub(super) fn reconfigure(&mut self, side: Side, from: &str, to: &str) {
        let config = &mut self.configs[side as usize];
        *config = config.replacen(from, to, 1);
    }

    /// The file server, as the client knows it.
    pub(super) fn server(&self) -> SocketAddr {
        SocketAddr::new(addresses::SERVER.0.into(), FILES)
    }

    /// A port of the terminal's, as the client knows it.
    pub(super) fn proxy(&self, port: u16) -> SocketAddr {
        SocketAddr::new(addresses::TERMINAL_LAN.0.into(), port)
    }

    fn gateway(&mut self, side: Side) -> &mut Option<Gateway> {
        match side {
            Side::Terminal => &mut self.terminal,
            Side::Hub => &mut self.hub,
        }
    }

    /// Starts a gateway.
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

    /// Kills a gateway: it has no time for a word to anybody.
    pub(super) fn kill(&mut self, side: Side) {
        *self.gateway(side) = None;
    }

    /// Its process number.
    pub(super) fn process(&mut self, side: Side) -> u32 {
        self.gateway(side).as_mut().map_or(0, Gateway::id)
    }

    pub(super) fn usage(&mut self, side: Side) -> Result<Usage, LabError> {
        Usage::of(self.process(side))
    }

    /// What it wrote to its log last.
    pub(super) fn said(&mut self, side: Side) -> String {
        self.gateway(side).as_ref().map(Gateway::said).unwrap_or_default()
    }

    /// Whether those that were started still run.
    pub(super) fn check(&mut self) -> Result<(), LabError> {
        for side in Side::BOTH {
            if let Some(gateway) = self.gateway(side) {
                gateway.check()?;
            }
        }
        Ok(())
    }

    /// The host of a gateway.
    pub(super) fn host(&self, side: Side) -> &Host {
        match side {
            Side::Terminal => &self.net.terminal,
            Side::Hub => &self.net.hub,
        }
    }

    /// Whether a gateway has ended, or was not started.
    pub(super) fn has_ended(&mut self, side: Side) -> bool {
        self.gateway(side).as_mut().is_none_or(|gateway| gateway.check().is_err())
    }

    /// Ends the emulator, and later another begins.
    pub(super) fn stop_emulation(&mut self) {
        self.emulation = None;
    }

    pub(super) fn start_emulation(&mut self) -> Result<(), LabError> {
        self.emulation = Some(Emulation::start(&self.net, &self.link, self.seed)?);
        Ok(())
    }

    /// Whether one request and its answer cross the network now.
    pub(super) fn passes(&self, way: Way) -> bool {
        let server = self.server();
        // Short, so that a client's second SYN is not waited for.
        let patience = Span::from_millis(700);
        self.net.client.run(|| traffic::ask(way, server, (64, 64), patience)).error.is_none()
    }

    /// Waits until a request crosses the network; how long that took.
    pub(super) fn await_path(&mut self, patience: Span) -> Result<Span, LabError> {
        let clock = Clock::new();
        let from = clock.now();
        // An interception that is not in place yet refuses; a proxy tells when it is.
        while !self.passes(Way::Direct) {
            self.check()?;
            if past(&clock, from, patience) {
                let said = Side::BOTH.map(|side| self.said(side)).join("\n");
                return Err(LabError::Proof(format!(
                    "no request crosses the network within {patience}: {said}"
                )));
            }
            pause_ms(20);
        }
        Ok(clock.now().since(from))
    }
}

fn past(clock: &Clock, from: Instant, patience: Span) -> bool {
    clock.now().since(from) >= patience
}

/// The terminal's configuration and the hub's.
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
    fn the_gateways_take_these_configurations() {
        let [hub, terminal, wild] = [(); 3].map(|()| PrivateKey::generate(&mut SystemEntropy));
        for config in configs(&Setup::new(1), &hub, &terminal, &wild) {
            gateway::Config::parse("proof.toml", &config).expect("a configuration");
        }
    }
}
