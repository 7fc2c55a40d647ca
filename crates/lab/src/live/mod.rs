//! A network with an emulated satellite link and one transport over it.
//!
//! ```text
//!   client ── terminal ══ emulator ══ hub ── server
//!             gateway                gateway        (Way::Bentpipe; Way::Single: the hub's)
//! ```
//!
//! Client and server are the same programs with the kernel's TCP for every transport. The emulator
//! is a thread of this process with its own scheduling; the gateways are processes of the program
//! that operators run.

mod direct;
mod emulation;
mod gateways;
mod hosts;
mod keys;
mod meter;
mod program;
mod system;
mod udp_link;
mod usage;

pub(crate) use direct::{Carrier, DirectConfig, DirectNetwork};
pub use emulation::Emulation;
pub(crate) use emulation::spawn_emulator;
pub use gateways::{Counters, GATEWAY_VARIABLE, GatewayRates};
pub(crate) use gateways::{Gateway, gateway_program};
pub(crate) use hosts::{Hosts, HostsConfig, bytes_by, whole};
pub(crate) use keys::Acquainted;
pub use meter::{Reading, Traffic};
pub(crate) use program::Program;
pub use system::{Clients, OtherSystem, parse_systems};
pub(crate) use udp_link::UdpLink;
pub(crate) use usage::Usage;

use crate::LabError;
use gateways::Gateways;
use rt::Clock;
use rt::emulator::Summary;
use satlink::LinkConfig;
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use system::{LinkFacts, RunningSystem};
use testbed::traffic::{self, FileServer, Served, WebServer};
use testbed::{Satellite, SatelliteConfig, addresses};
use units::Span;

/// Keys of gateways' `[link]` without a configured rate.
pub(crate) const UNCONFIGURED: &str =
    "rate_up = \"auto\"\nrate_down = \"auto\"\ncontroller = \"steady\"";

/// How TCP crosses the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// End-to-end TCP with CUBIC at the sender.
    Cubic,
    /// End-to-end TCP with BBR at the sender.
    Bbr,
    /// One gateway at the hub with two-segment splitting: the kernel's TCP on both sides, BBR
    /// towards the satellite, shaped to its rate.
    Single,
    /// A pair of gateways, with the kernel's default congestion control on either side.
    Bentpipe,
    /// The same without a configured rate, which the gateways estimate.
    Unconfigured,
    /// A pair of gateways whose link uses TLS, with BBR below it.
    Tls,
    /// The same with CUBIC below it.
    TlsCubic,
    /// Through a system of a command file.
    Other(&'static OtherSystem),
}

impl Serialize for Way {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Way {
    /// The transports of the demo, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Cubic, Self::Bbr, Self::Single, Self::Bentpipe];

    /// Returns the name in tables, JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Single => "single",
            Self::Bentpipe => "bentpipe",
            Self::Unconfigured => "unconfigured",
            Self::Tls => "tls",
            Self::TlsCubic => "tls-cubic",
            Self::Other(system) => system.name.as_str(),
        }
    }

    /// Returns the sender's congestion control as [`testbed::traffic`] names it.
    pub const fn congestion(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Single
            | Self::Bentpipe
            | Self::Unconfigured
            | Self::Tls
            | Self::TlsCubic
            | Self::Other(_) => "-",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Way {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let mut all = Self::ALL.into_iter().chain([Self::Unconfigured, Self::Tls, Self::TlsCubic]);
        all.find(|way| way.name() == text).ok_or_else(|| {
            LabError::Request(format!(
                "way: found {text:?}, expected cubic, bbr, single, bentpipe, unconfigured, tls or tls-cubic"
            ))
        })
    }
}

/// Settings of a [`TestNetwork`].
#[derive(Clone, Debug)]
pub struct TestNetworkConfig {
    /// The satellite link.
    pub link: LinkConfig,
    /// The transport.
    pub way: Way,
    /// Link rates that the gateways are configured with; `None` for those of the link.
    pub rates: Option<GatewayRates>,
    /// Keys of the gateways' `[link]` in place of rates.
    pub keys: Option<String>,
    /// Additional traffic over the link.
    pub beside: CrossTraffic,
    /// Seed of the link's random processes.
    pub seed: u64,
}

/// Additional traffic over the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrossTraffic {
    /// Nothing.
    #[default]
    Nothing,
    /// Plain TCP to [`TestNetwork::bypass`], which gateways do not intercept.
    PlainTcp,
    /// A second pair of gateways, which [`TestNetwork::second`] leads through.
    Gateways,
}

impl TestNetworkConfig {
    /// Returns the link's rates as configured at the gateways.
    fn gateway_rates(&self) -> Result<GatewayRates, LabError> {
        self.rates.map_or_else(|| GatewayRates::of(&self.link), Ok)
    }

    /// Link parameters for other systems.
    fn facts(&self) -> Result<LinkFacts, LabError> {
        let GatewayRates { forward, return_ } = self.gateway_rates()?;
        Ok(LinkFacts { up: return_, down: forward, round_trip: self.link.round_trip() })
    }

    /// Returns the keys of the gateways' `[link]` other than addresses.
    fn link_keys(&self) -> Result<String, LabError> {
        let round_trip = self.link.round_trip();
        let unconfigured = (self.way == Way::Unconfigured).then_some(UNCONFIGURED);
        if let Some(keys) = self.keys.as_deref().or(unconfigured) {
            return Ok(format!("{keys}\nround_trip = \"{}ms\"\n", round_trip.as_millis().max(1)));
        }
        Ok(self.gateway_rates()?.as_toml(round_trip))
    }
}

/// A running network; dropping it removes everything.
#[derive(Debug)]
pub struct TestNetwork {
    way: Way,
    // Dropped in this order: programs, emulator, hosts.
    files: FileServer,
    bypass: Option<FileServer>,
    web: WebServer,
    gateways: Option<Gateways>,
    other: Option<RunningSystem>,
    second: Option<Gateways>,
    emulation: Emulation,
    net: Satellite,
}

/// Ports of the server's programs.
const FILES: u16 = 7000;
const BYPASS: u16 = 7001;
const WEB: u16 = 80;
/// Port of the second terminal gateway's SOCKS5 proxy.
const SOCKS: u16 = 1080;

impl TestNetwork {
    /// Creates the network and starts everything; returns after the first successful request.
    ///
    /// # Errors
    /// If a component cannot be created or started.
    pub fn new(config: &TestNetworkConfig) -> Result<Self, LabError> {
        let net = Satellite::new(&SatelliteConfig::default())?;
        let emulation = Emulation::start(&net, &config.link, config.seed)?;
        let beside = config.beside;
        let mut second = None;
        let gateways = match config.way {
            Way::Cubic | Way::Bbr | Way::Other(_) => None,
            Way::Single => Some(Gateways::start_single(&net, config, BYPASS)?),
            Way::Bentpipe | Way::Unconfigured | Way::Tls | Way::TlsCubic => {
                let link = config.link_keys()?;
                // From here on, traffic passes the gateways or is meant to bypass them.
                net.set_forwarding(beside == CrossTraffic::PlainTcp)?;
                if beside == CrossTraffic::Gateways {
                    second = Some(Gateways::start_second(&net, &link, SOCKS)?);
                }
                let tls = [Way::Tls, Way::TlsCubic].contains(&config.way).then_some(config.way);
                let tls = tls.map(|way| if way == Way::Tls { "bbr" } else { "cubic" });
                Some(Gateways::start(&net, &link, BYPASS, &gateways::tables(tls))?)
            }
        };
        let other = match config.way {
            Way::Other(system) => Some(RunningSystem::start(system, &net, config.facts()?)?),
            _ => None,
        };
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let files = FileServer::start(Some(&net.server), SocketAddr::new(any, FILES))?;
        let bypass = match beside {
            CrossTraffic::PlainTcp => {
                Some(FileServer::start(Some(&net.server), SocketAddr::new(any, BYPASS))?)
            }
            CrossTraffic::Nothing | CrossTraffic::Gateways => None,
        };
        let congestion = config.way.congestion();
        let address = SocketAddr::new(any, WEB);
        let web = WebServer::start_with(Some(&net.server), address, congestion)?;
        let mut network =
            Self { way: config.way, files, bypass, web, gateways, other, second, emulation, net };
        network.warm_up()?;
        Ok(network)
    }

    /// Returns the transport.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Returns the address of the file server.
    pub fn files(&self) -> SocketAddr {
        SocketAddr::new(addresses::SERVER.0.into(), FILES)
    }

    /// How a client reaches `server` by what carries TCP here.
    pub fn reach(&self, server: SocketAddr) -> (traffic::Way, SocketAddr) {
        match &self.other {
            Some(system) => system.reach(server),
            None => (traffic::Way::Direct, server),
        }
    }

    /// The address of a file server that no gateway takes, with [`CrossTraffic::PlainTcp`].
    pub fn bypass(&self) -> SocketAddr {
        debug_assert!(self.bypass.is_some() || self.gateways.is_none());
        let port = if self.bypass.is_some() { BYPASS } else { FILES };
        SocketAddr::new(addresses::SERVER.0.into(), port)
    }

    /// Returns the route through the second pair of gateways, with [`CrossTraffic::Gateways`].
    pub fn second(&self) -> traffic::Way {
        match self.second {
            Some(_) => {
                let lan = addresses::TERMINAL_LAN.0.into();
                traffic::Way::Socks5(SocketAddr::new(lan, SOCKS))
            }
            None => traffic::Way::Direct,
        }
    }

    /// Returns the address of the web server.
    pub fn web(&self) -> SocketAddr {
        debug_assert_eq!(self.web.address().port(), WEB);
        SocketAddr::new(addresses::SERVER.0.into(), WEB)
    }

    /// Returns the namespaces of the five hosts.
    pub fn net(&self) -> &Satellite {
        &self.net
    }

    /// Returns the emulator.
    pub fn emulation(&self) -> &Emulation {
        &self.emulation
    }

    /// Returns the server's counters of the transfer of the file `seed`, waiting up to 1 s for its
    /// end.
    pub fn served(&self, seed: u64) -> Option<Served> {
        let clock = Clock::new();
        for _ in 0..20 {
            if let Some(served) = self.files.served(seed) {
                return Some(served);
            }
            clock.sleep_until(clock.now() + Span::from_millis(50));
        }
        None
    }

    /// Stops everything in order.
    ///
    /// # Errors
    /// If the emulator, a gateway or another system had stopped on its own.
    pub fn close(mut self) -> Result<Outcome, LabError> {
        // Without a system that has failed, the hosts would forward the clients' packets.
        if let Some(system) = &mut self.other {
            system.check()?;
        }
        let gateways = self.gateways.take().map(Gateways::stop).transpose()?;
        self.second.take().map(Gateways::stop).transpose()?;
        let Self { emulation, .. } = self;
        Ok(Outcome { emulator: emulation.stop()?, gateways })
    }

    /// Waits for the gateways' sessions, and fills the kernel's caches, before the measurement.
    fn warm_up(&mut self) -> Result<(), LabError> {
        let (way, server) = self.reach(self.files());
        let clock = Clock::new();
        // With a return channel of 1 kbit/s this takes some seconds.
        let patience = clock.now() + Span::from_secs(60);
        loop {
            let exchange =
                self.net.client.run(|| traffic::ask(way, server, (64, 64), Span::from_secs(15)));
            let Some(error) = exchange.error else { return Ok(()) };
            if let Some(gateways) = &mut self.gateways {
                gateways.check()?;
            }
            if let Some(system) = &mut self.other {
                system.check()?;
            }
            if clock.now() > patience {
                let text = format!("no request gets across the network: {error}");
                return Err(LabError::Emulator(text));
            }
            clock.sleep_until(clock.now() + Span::from_millis(200));
        }
    }
}

/// Summaries at the end.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Summary of the emulator.
    pub emulator: Summary,
    /// Counters of the gateways, terminal and hub.
    pub gateways: Option<Counters>,
}
