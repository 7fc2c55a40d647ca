//! Replacement of the running process by one of another release, without the loss of a connection.
//!
//! ```text
//!   work ──SIGUSR2──▶ new process starts ──ready──▶ hand over ──▶ drain ──last connection over──▶ end
//!     ▲                       └──failed, or 30 s──┐
//!     └───────────────────────────────────────────┘
//! ```
//!
//! The new process gets listeners and UDP sockets. This one keeps its connections and its
//! associations.

use crate::service::handover::{Passed, Starting};
use crate::tls::TlsServer;
use crate::{Gateway, privileges};
use rt::Clock;
use std::io;
use units::{Instant, Span};

/// Maximum time for the start of the new process.
const START_LIMIT: Span = Span::from_secs(30);
/// Time after which this process resets the connections that remain.
const DRAIN_LIMIT: Span = Span::from_secs(86_400);

/// Requests the upgrade of the gateway that is the process `process`.
///
/// # Errors
/// The kernel's: there is no such process, or it belongs to another user. Releases without upgrades
/// would be ended by the signal and do not get it.
pub fn request_upgrade(process: u32) -> io::Result<()> {
    if !catches(process, libc::SIGUSR2)? {
        return Err(io::Error::other("its release cannot be replaced: restart it"));
    }
    let process = libc::pid_t::try_from(process).map_err(io::Error::other)?;
    // SAFETY: kill touches no memory.
    match unsafe { libc::kill(process, libc::SIGUSR2) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a process has a handler for a signal.
fn catches(process: u32, signal: i32) -> io::Result<bool> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    Ok(caught.unwrap_or_default() >> (signal - 1) & 1 == 1)
}

/// A new process, and when it has to be ready.
#[derive(Debug)]
pub(crate) struct Upgrade {
    process: Starting,
    limit: Instant,
}

impl Gateway {
    /// Starts the new process.
    pub(crate) fn begin_upgrade(&mut self) {
        if self.upgrade.is_some() || self.engine.is_draining() {
            tracing::warn!("upgrade ignored: the gateway is being replaced or stopped");
            return;
        }
        tracing::info!("upgrade: starting the new process");
        // Its address and path are those of the new process.
        self.driver.close_observer(&mut self.engine);
        let started = self.start_successor().and_then(|process| {
            self.driver.watch_descriptor(process.descriptor())?;
            Ok(Upgrade { process, limit: self.driver.now() + START_LIMIT })
        });
        match started {
            Ok(upgrade) => self.upgrade = Some(upgrade),
            Err(error) => self.upgrade_failed(&error),
        }
    }

    fn start_successor(&self) -> io::Result<Starting> {
        if std::env::var_os("BENTPIPE_UPGRADE").is_some_and(|value| value == "off") {
            let why = "the service manager starts another process when this one ends: restart it";
            return Err(io::Error::other(why));
        }
        if self.config.forward.is_some() {
            return Err(io::Error::other("with [forward] the gateway has to be restarted"));
        }
        if !self.engine.can_overlap() {
            let why = "the hub's release supports one association only: restart the gateway";
            return Err(io::Error::other(why));
        }
        let mut passed = Passed::default();
        let sockets = self.config.effective_paths().into_iter().zip(self.engine.sockets());
        for (number, (path, socket)) in sockets.enumerate() {
            // The new process opens another port where any will do.
            let socket = socket.filter(|_| path.link.listen.port() != 0);
            // What arrives there for this process takes the channel of the first port.
            passed.listeners.extend(socket.iter().flat_map(|socket| socket.further()));
            let descriptor = socket.and_then(|socket| socket.descriptor());
            passed.datagrams.extend(descriptor.map(|descriptor| (number, descriptor)));
        }
        passed.listeners.extend(self.engine.listening_descriptors());
        passed.listeners.extend(self.tls.iter().map(TlsServer::listener));
        let interception = self.interception.as_ref();
        passed.filters = interception.and_then(|one| one.filter()).into_iter().collect();
        privileges::keep_over_exec();
        Starting::start(&passed)
    }

    /// Hands over if the new process is ready.
    pub(crate) fn review_upgrade(&mut self, now: Instant) {
        let Some(upgrade) = &mut self.upgrade else { return };
        match upgrade.process.poll_ready() {
            None if now < upgrade.limit => {}
            None => self.upgrade_failed(&io::Error::from(io::ErrorKind::TimedOut)),
            Some(Err(error)) => self.upgrade_failed(&error),
            Some(Ok(())) => self.hand_over(now),
        }
    }

    /// Returns when the new process has to be ready.
    pub(crate) fn upgrade_limit(&self) -> Option<Instant> {
        self.upgrade.as_ref().map(|upgrade| upgrade.limit)
    }

    fn hand_over(&mut self, now: Instant) {
        let Some(Upgrade { mut process, .. }) = self.upgrade.take() else { return };
        let connections = self.engine.connections();
        let channels = std::mem::take(&mut process.channels);
        self.engine.hand_over(now, DRAIN_LIMIT, channels);
        self.tls.iter().for_each(TlsServer::stop_accepting);
        self.rules = None;
        if let Some(interception) = self.interception.take() {
            interception.leave();
        }
        self.service.replaced_by(process.id());
        match process.go() {
            Ok(()) => {
                let process = process.id();
                tracing::info!(process, connections, "upgrade: new process serves new connections");
            }
            Err(error) => tracing::error!(%error, "upgrade: new process ended, connections drain"),
        }
        self.is_replaced = true;
    }

    fn upgrade_failed(&mut self, error: &io::Error) {
        tracing::error!(%error, "upgrade failed: this process continues");
        if let Some(Upgrade { process, .. }) = self.upgrade.take() {
            process.give_up();
        }
        if let Some(interception) = &mut self.interception
            && let Err(error) = interception.restore()
        {
            tracing::error!(%error, "interception not restored: restart the gateway");
        }
        let observer = crate::observe::Observer::open(&self.config, Clock::new().now());
        let observed = match observer {
            Ok(observer) => self.driver.set_observer(observer).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = observed {
            tracing::error!(error, "status and metrics unavailable until the next start");
        }
    }
}
