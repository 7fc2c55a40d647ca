//! The emulator: a [`satlink::Link`] in real time.
//!
//! ```text
//!           side A                                        side B
//!   hub ──▶ interface ──▶ offer ─▶ ┌──────┐ ─▶ deliver ──▶ interface ──▶ terminal   forward
//!       ◀── or target ◀── deliver ◀┤ Link │ ◀─ offer  ◀── or clients ◀──            return
//!                                  └──────┘
//! ```
//!
//! It connects two Ethernet interfaces like a wire, or without privileges runs as a UDP relay. One
//! thread runs all steps in a loop: receive arrived packets, send due packets, wait.
//!
//! Departures are computed from *arrivals*, which the kernel timestamps, so the schedule of a
//! packet does not depend on when the emulator runs. Packets can still leave late, and the kernel
//! can drop packets that are not read in time: both are measured, and the report states whether the
//! emulator kept up ([`summary::End::kept_up`]).
//!
//! The link is the same code as in the simulator: the captures of both sides, seed, run and epoch,
//! which are all reported, suffice to reproduce a run under virtual time.
//!
//! ```no_run
//! use rt::emulator::{Emulator, EmulatorConfig};
//! use std::sync::atomic::AtomicBool;
//!
//! let words = ["eth0", "eth1", "delay", "300ms", "rate", "10mbit", "limit", "1bdp"];
//! let config = EmulatorConfig::from_words(&words.map(String::from))?;
//! let emulator = Emulator::open(config)?;
//! let handle = emulator.handle(); // For another thread: handle.line("outage 10s")
//! let summary = emulator.run(&AtomicBool::new(false))?;
//! println!("{}", summary.to_json());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod carried;
mod commands;
mod config;
mod control;
mod engine;
mod foreground;
mod lateness;
mod observe;
mod ports;
pub mod star;
pub mod summary;
#[cfg(test)]
mod tests;
mod udp;
mod wait;

pub use config::{EmulatorConfig, Ports, WordsError};
pub use control::{ControlError, Handle};
pub use foreground::{Foreground, ForegroundError, run_in_foreground};
pub use lateness::Lateness;
pub use summary::{LogEntry, LogEvent, Summary};

use crate::Clock;
use crate::packet::{Options, PacketError, PacketSocket};
use crate::pcap::Capture;
use engine::Engine;
use observe::Observer;
use ports::Attached;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The two sides of an emulated link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Input of the forward direction and output of the return direction.
    A,
    /// The other side.
    B,
}

impl Side {
    const BOTH: [Self; 2] = [Self::A, Self::B];

    fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }
}

/// Why an emulator failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum EmulatorError {
    /// An interface could not be opened, or delivers invalid packets.
    Packet(PacketError),
    /// A UDP socket could not be opened, or failed.
    Socket(io::Error),
    /// The link's configuration is invalid.
    Link(satlink::ConfigError),
    /// A capture could not be written.
    Capture {
        /// Its file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Waiting failed.
    Wait(io::Error),
    /// The star's terminals or its return link are invalid.
    Star(satlink::mac::star::StarError),
    /// The socket for connection counts could not be opened.
    Counts {
        /// Its path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl fmt::Display for EmulatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(error) => write!(f, "{error}"),
            Self::Socket(error) => write!(f, "UDP relay: {error}"),
            Self::Link(error) => write!(f, "link: {error}"),
            Self::Capture { path, source } => write!(f, "capture {}: {source}", path.display()),
            Self::Wait(error) => write!(f, "waiting for packets: {error}"),
            Self::Star(error) => write!(f, "{error}"),
            Self::Counts { path, source } => {
                write!(f, "socket for connection counts {}: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for EmulatorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Packet(error) => Some(error),
            Self::Socket(error) | Self::Wait(error) => Some(error),
            Self::Link(error) => Some(error),
            Self::Capture { source, .. } | Self::Counts { source, .. } => Some(source),
            Self::Star(error) => Some(error),
        }
    }
}

/// An emulator with open sides: packets are timestamped and queued until it runs.
pub struct Emulator {
    engine: Engine,
    handle: Handle,
    relay_address: Option<SocketAddr>,
}

impl Emulator {
    /// Opens both sides, in the calling thread's network namespace, and starts the link's time.
    ///
    /// # Errors
    /// An error of the sides, the link or the captures.
    pub fn open(config: EmulatorConfig) -> Result<Self, EmulatorError> {
        let attached = match &config.ports {
            Ports::Interfaces { a, b } => {
                let open = |name: &str| open_interface(name, config.socket_buffer).map(Box::new);
                Attached::Interfaces { a: open(a)?, b: open(b)? }
            }
            Ports::UdpRelay { listen, target } => {
                let relay = udp::UdpRelay::open(*listen, *target, config.socket_buffer)
                    .map_err(EmulatorError::Socket)?;
                Attached::Relay(Box::new(relay))
            }
        };
        Self::with(config, attached)
    }

    /// Creates an emulator between two open interfaces, which may be in different network
    /// namespaces; the configuration's ports are ignored.
    ///
    /// # Errors
    /// An error of the link or the captures.
    pub fn between(
        config: EmulatorConfig,
        a: PacketSocket,
        b: PacketSocket,
    ) -> Result<Self, EmulatorError> {
        Self::with(config, Attached::Interfaces { a: Box::new(a), b: Box::new(b) })
    }

    fn with(config: EmulatorConfig, attached: Attached) -> Result<Self, EmulatorError> {
        let relay_address = match &attached {
            Attached::Interfaces { .. } => None,
            Attached::Relay(relay) => Some(relay.local()),
        };
        let capture = |path: &Option<PathBuf>, side| match path {
            None => Ok(None),
            Some(path) => open_capture(path, &attached, side).map(Some),
        };
        let captures = [capture(&config.pcap_a, Side::A)?, capture(&config.pcap_b, Side::B)?];
        let clock = Clock::from_here();
        let (handle, orders) = control::pair(&config.link, clock).map_err(EmulatorError::Wait)?;
        let observer = Observer::new(config.report_every, config.log, clock, handle.published());
        let engine = Engine::new(config, attached, captures, orders, observer, clock)?;
        Ok(Self { engine, handle, relay_address })
    }

    /// A handle that controls the emulator while it runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The address of the UDP relay; `None` between interfaces.
    pub fn relay_address(&self) -> Option<SocketAddr> {
        self.relay_address
    }

    /// Runs until `stop` is true (checked ten times per second), the handle stops it, or the
    /// configured duration is over. Call it without delay in a thread of its own: the thread gets
    /// real-time priority for the duration, if available.
    ///
    /// # Errors
    /// An error that ends the run; see [`EmulatorError`].
    pub fn run(self, stop: &AtomicBool) -> Result<Summary, EmulatorError> {
        self.engine.run(stop)
    }
}

fn open_interface(name: &str, socket_buffer: usize) -> Result<PacketSocket, EmulatorError> {
    let options = Options {
        receive_buffer: socket_buffer,
        send_buffer: socket_buffer / 4,
        ..Options::default()
    };
    PacketSocket::open(name, &options).map_err(EmulatorError::Packet)
}

fn open_capture(path: &Path, attached: &Attached, side: Side) -> Result<Capture, EmulatorError> {
    Capture::create(path, attached.link_type(), &attached.name(side))
        .map_err(|source| EmulatorError::Capture { path: path.to_owned(), source })
}
