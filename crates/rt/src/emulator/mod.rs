//! The emulator: a [`satlink::Link`] in real time.
//!
//! ```text
//!           side A                                        side B
//!   hub ──▶ interface ──▶ offer ─▶ ┌──────┐ ─▶ deliver ──▶ interface ──▶ terminal   forward
//!       ◀── or target ◀── deliver ◀┤ Link │ ◀─ offer  ◀── or clients ◀──            return
//!                                  └──────┘
//! ```
//!
//! It is a wire between two Ethernet interfaces, for anything that Ethernet carries, or, where
//! there are no privileges, a UDP relay. One thread does everything, in rounds: take in what has
//! arrived, hand out what is due, wait.
//!
//! Departures are computed from *arrivals*, which the kernel stamps as packets come in, so it
//! does not matter to a packet's schedule when the emulator gets to run. What does depend on it
//! is how late a packet leaves after its time, and whether the kernel has to drop packets that
//! nobody reads: both are measured, and an emulator that could not keep up says so
//! ([`summary::End::kept_up`]).
//!
//! The link is the very one of the simulator: the captures of both sides, the seed, the run and
//! the epoch, all of which are reported, are enough to see the same again under virtual time.
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
    /// Where forward packets come in and return packets go out.
    A,
    /// The other.
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

/// Why an emulator could not start, or could not go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum EmulatorError {
    /// An interface could not be had, or hands on what is not a packet.
    Packet(PacketError),
    /// A UDP socket could not be had, or failed.
    Socket(io::Error),
    /// The link's configuration is not a valid one.
    Link(satlink::ConfigError),
    /// A capture could not be written.
    Capture {
        /// Its file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Waiting failed.
    Wait(io::Error),
    /// The star's terminals, or its return link, make no sense.
    Star(satlink::mac::star::StarError),
    /// The socket for connection counts could not be had.
    Counts {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
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

/// An emulator whose sides are open: packets are being stamped, and wait for it to run.
pub struct Emulator {
    engine: Engine,
    handle: Handle,
    relay_address: Option<SocketAddr>,
}

impl Emulator {
    /// Opens both sides, in the calling thread's network namespace, and starts the link's time.
    ///
    /// # Errors
    /// Whatever is wrong with the sides, the link or the captures.
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

    /// Makes an emulator between two interfaces that are open already, maybe in different
    /// network namespaces; the configuration's ports are not looked at.
    ///
    /// # Errors
    /// Whatever is wrong with the link or the captures.
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

    /// What steers the emulator while it runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Where the UDP relay listens; `None` between interfaces.
    pub fn relay_address(&self) -> Option<SocketAddr> {
        self.relay_address
    }

    /// Runs until `stop` is true (looked at ten times a second), the handle says so, or the
    /// configured duration is over. To be called at once, and in a thread of its own: the thread
    /// gets real-time priority for as long as this takes, if the machine grants it.
    ///
    /// # Errors
    /// Whatever makes going on pointless; see [`EmulatorError`].
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
