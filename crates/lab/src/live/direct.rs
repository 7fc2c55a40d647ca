//! A network without an emulator, for what a machine can do at most.
//!
//! ```text
//!   client ── terminal ── hub ── server      four namespaces joined by veth with offloads
//!             system      system
//! ```

use super::Usage;
use super::gateways::Gateways;
use super::system::{LinkFacts, OtherSystem, RunningSystem};
use crate::LabError;
use rt::Clock;
use std::io;
use std::net::SocketAddr;
use testbed::traffic::Way;
use testbed::{Satellite, SatelliteConfig, addresses};
use units::{BitRate, Span};

/// What carries TCP between terminal and hub.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Carrier<'a> {
    /// The kernel's TCP from end to end: both hosts only forward packets.
    Kernel,
    /// The gateways.
    Gateways,
    /// Another system.
    Other(&'a OtherSystem),
}

/// What the network is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectConfig<'a> {
    pub(crate) carrier: Carrier<'a>,
    /// Configured rate of the link in each direction; gateways find the rate without one.
    pub(crate) rate: Option<BitRate>,
    /// Connections that the gateways accept at once.
    pub(crate) connections: usize,
}

#[derive(Debug)]
enum Running {
    Kernel,
    Gateways(Box<Gateways>),
    Other(RunningSystem),
}

/// A network that is up and running; dropping it takes everything down.
#[derive(Debug)]
pub(crate) struct DirectNetwork {
    // Dropped in this order: programs, then the hosts.
    running: Running,
    net: Satellite,
    server: SocketAddr,
}

/// Largest socket buffers of the kernel's TCP, octets: its own default.
const TCP_BUFFER: u32 = 6 << 20;
/// How long the first connection may take.
const PATIENCE: Span = Span::from_secs(30);

impl DirectNetwork {
    /// Builds the network. `serve` starts the server on its host; returns when `probe` has reached
    /// it.
    ///
    /// # Errors
    /// What could not be made or started.
    pub(crate) fn new<S>(
        config: DirectConfig<'_>,
        port: u16,
        serve: impl FnOnce(&Satellite, SocketAddr) -> Result<S, LabError>,
        probe: impl Fn((Way, SocketAddr)) -> io::Result<()> + Sync,
    ) -> Result<(Self, S), LabError> {
        let net = Satellite::new(&SatelliteConfig {
            tcp_buffer: TCP_BUFFER,
            emulated: false,
            offloads: true,
            ..SatelliteConfig::default()
        })?;
        let server = SocketAddr::new(addresses::SERVER.0.into(), port);
        let served = serve(&net, server)?;
        let running = match config.carrier {
            Carrier::Kernel => Running::Kernel,
            Carrier::Gateways => {
                // What arrives from now on came through the gateways.
                net.set_forwarding(false)?;
                let limits = format!(
                    "[limits]\ndrain = \"0s\"\nconnections = {}\n",
                    // A single client and a single terminal may have half of them.
                    (2 * config.connections).max(4096)
                );
                let keys = config.rate.map_or(String::new(), |rate| {
                    let bps = rate.as_bps();
                    format!("rate_up = \"{bps}bit\"\nrate_down = \"{bps}bit\"\n")
                });
                let link = format!("{keys}round_trip = \"1ms\"\n");
                Running::Gateways(Box::new(Gateways::start(
                    &net,
                    &link,
                    1,
                    &[limits.clone(), limits],
                )?))
            }
            Carrier::Other(system) => {
                let rate = config.rate.unwrap_or(BitRate::from_mbps(10_000));
                let link = LinkFacts { up: rate, down: rate, round_trip: Span::from_millis(1) };
                Running::Other(RunningSystem::start(system, &net, link)?)
            }
        };
        let mut network = Self { running, net, server };
        network.warm_up(probe)?;
        Ok((network, served))
    }

    /// The hosts.
    pub(crate) fn net(&self) -> &Satellite {
        &self.net
    }

    /// How clients connect to the server.
    pub(crate) fn reach(&self) -> (Way, SocketAddr) {
        match &self.running {
            Running::Kernel | Running::Gateways(_) => (Way::Direct, self.server),
            Running::Other(system) => system.reach(self.server),
        }
    }

    /// The server's address on its own host.
    pub(crate) fn server(&self) -> SocketAddr {
        self.server
    }

    /// What the programs at the terminal and the hub use of the machine; none where there are none.
    ///
    /// # Errors
    /// When one has ended.
    pub(crate) fn usage(&mut self) -> Result<Option<[Usage; 2]>, LabError> {
        match &mut self.running {
            Running::Kernel => Ok(None),
            Running::Gateways(gateways) => {
                gateways.check()?;
                gateways.usage().map(Some)
            }
            Running::Other(system) => {
                system.check()?;
                Ok(Some(system.usage()))
            }
        }
    }

    fn warm_up(
        &mut self,
        probe: impl Fn((Way, SocketAddr)) -> io::Result<()> + Sync,
    ) -> Result<(), LabError> {
        let clock = Clock::new();
        let patience = clock.now() + PATIENCE;
        loop {
            let reach = self.reach();
            let Err(error) = self.net.client.run(|| probe(reach)) else { return Ok(()) };
            self.usage()?;
            if clock.now() > patience {
                let reason = format!("no connection to the server within {PATIENCE}: {error}");
                return Err(LabError::Request(reason));
            }
            clock.sleep_until(clock.now() + Span::from_millis(200));
        }
    }
}
