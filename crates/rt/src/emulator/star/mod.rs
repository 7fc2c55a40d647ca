//! A star in real time: one hub, many terminals, a broadcast forward link, and a return link shared
//! by demand assignment.
//!
//! ```text
//!                    ┌────────┐ one Link, forward: rate, queue, delay   ┌── terminal's interface
//!   hub's interface ─┤  star  ├─────────────────────────────────────────┼── terminal's interface
//!                    └────────┘ MF-TDMA: frames, slots, requests, plans └── terminal's interface
//!                        ▲
//!                        └── how many connections each terminal has (a Unix socket)
//! ```
//!
//! The return link is [`satlink::mac::mf_tdma`], the same code as in the simulator. Frames are
//! Ethernet frames: the forward link is a broadcast, but a frame is sent only to the terminal
//! behind which its destination address was learned. Frames from a terminal reach the hub only. A
//! terminal that is off receives nothing.
//!
//! ```no_run
//! use rt::emulator::star::{StarEmulator, StarEmulatorConfig};
//! use std::sync::atomic::AtomicBool;
//!
//! let star = satlink::words::parse_star("return rate 512kbit carriers 4 free weighted")?;
//! let words = ["hub0", "boat=veth1", "hut=veth2"].map(String::from);
//! let mut config = StarEmulatorConfig::from_words(star, &words)?;
//! config.counts = Some("/run/bentpipe/mac.sock".into());
//! let summary = StarEmulator::open(config)?.run(&AtomicBool::new(false))?;
//! println!("{}", summary.to_json());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accounts;
mod config;
mod control;
mod engine;
mod observe;
mod port;
pub mod summary;
mod switch;
#[cfg(test)]
mod tests;

pub use config::{PortsError, StarEmulatorConfig, TerminalPort};
pub use control::{StarHandle, StarOrderError};
pub use summary::StarSummary;

use super::foreground::{Foreground, ForegroundError, take_orders, write_report};
use super::{EmulatorError, open_interface};
use crate::Clock;
use crate::counts::Receiver;
use engine::Engine;
use std::sync::atomic::AtomicBool;

/// A star with open interfaces: packets are timestamped and queued until it runs.
pub struct StarEmulator {
    engine: Engine,
    handle: StarHandle,
}

impl StarEmulator {
    /// Opens all interfaces, in the calling thread's network namespace, and starts the star's time
    /// with its first plan.
    ///
    /// # Errors
    /// An error of the interfaces, the star, or the socket for connection counts.
    pub fn open(config: StarEmulatorConfig) -> Result<Self, EmulatorError> {
        let mac = config.star.with_terminals(&config.names()).map_err(EmulatorError::Star)?;
        let open = |name: &String| open_interface(name, config.socket_buffer);
        let terminals = config.terminals.iter().map(|port| open(&port.interface));
        let sockets: Result<Vec<_>, _> =
            std::iter::once(open(&config.hub)).chain(terminals).collect();
        let sockets = sockets?;
        let listener = match &config.counts {
            None => None,
            Some(path) => Some(
                Receiver::bind(path)
                    .map_err(|source| EmulatorError::Counts { path: path.clone(), source })?,
            ),
        };
        let forward = control::forward_only(config.star.forward.clone());
        let clock = Clock::from_here();
        let (handle, orders) = control::pair(config.names(), mac.carriers, &forward, clock)
            .map_err(EmulatorError::Wait)?;
        let engine = Engine::new(config, sockets, listener, orders, clock)?;
        Ok(Self { engine, handle })
    }

    /// A handle that controls the star while it runs.
    pub fn handle(&self) -> StarHandle {
        self.handle.clone()
    }

    /// Runs until `stop` is true (checked ten times per second), the handle stops it, or the
    /// configured duration is over. Call it without delay in a thread of its own.
    ///
    /// # Errors
    /// An error that ends the run: the hub's interface was removed, or an interface delivers
    /// invalid packets. If a terminal's interface is removed, the terminal vanishes and the others
    /// continue.
    pub fn run(self, stop: &AtomicBool) -> Result<StarSummary, EmulatorError> {
        self.engine.run(stop)
    }
}

/// Runs a star until `stop` is true; prints a line on standard error at the start and at the end.
///
/// # Errors
/// The emulator's, or that of the report's file.
pub fn run_in_foreground(
    config: StarEmulatorConfig,
    foreground: &Foreground,
    stop: &AtomicBool,
) -> Result<StarSummary, ForegroundError> {
    let emulator = StarEmulator::open(config).map_err(ForegroundError::Emulator)?;
    eprintln!("{}", emulator.engine.greeting());
    if foreground.orders_from_stdin {
        let handle = emulator.handle();
        take_orders(move |line| handle.line(line));
    }
    let summary = emulator.run(stop).map_err(ForegroundError::Emulator)?;
    eprintln!("{summary}");
    write_report(foreground, &summary.to_json())?;
    Ok(summary)
}
