//! The service manager: systemd, or whoever speaks as it does.
//!
//! ```text
//!   start    ◀ LISTEN_FDS: sockets kept from before        FDSTORE ▶ sockets to keep
//!            READY ▶
//!   work     WATCHDOG ▶  from the readiness loop itself: one that is stuck misses it
//!   SIGHUP   RELOADING ▶ … READY ▶
//!   SIGTERM  STOPPING ▶
//! ```
//!
//! Without a manager (no `NOTIFY_SOCKET`) nothing is said, and nothing is missed.

pub(crate) mod handed;

use rt::Clock;
use sd_notify::NotifyState;
use std::os::fd::BorrowedFd;
use units::{Instant, Span};

/// How often the manager hears how many connections there are, where it keeps no watch.
const STATUS: Span = Span::from_secs(10);

/// What the service manager is told.
#[derive(Debug)]
pub(crate) struct Service {
    clock: Clock,
    /// Whether there is one.
    listens: bool,
    /// How often it wants to hear of a life; half of its patience.
    beat: Option<Span>,
    next: Instant,
    status: String,
}

impl Service {
    /// As the environment says.
    pub(crate) fn new() -> Self {
        let clock = Clock::new();
        let listens = std::env::var_os("NOTIFY_SOCKET").is_some();
        let watchdog = sd_notify::watchdog_enabled().filter(|_| listens);
        let beat = watchdog.map(|patience| {
            Span::from_nanos(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX)) / 2
        });
        Self { clock, listens, beat, next: clock.now(), status: String::new() }
    }

    /// When [`Service::beat`] wants to be called, at the latest.
    pub(crate) fn next(&self) -> Instant {
        if self.listens { self.next } else { Instant::FAR_FUTURE }
    }

    /// The gateway is alive, with so many connections.
    pub(crate) fn beat(&mut self, connections: usize) {
        if !self.listens || self.clock.now() < self.next {
            return;
        }
        self.next = self.clock.now() + self.beat.unwrap_or(STATUS).min(STATUS);
        let status = format!("{connections} connections");
        let changed = status != self.status;
        let mut states = Vec::new();
        if self.beat.is_some() {
            states.push(NotifyState::Watchdog);
        }
        if changed {
            states.push(NotifyState::Status(&status));
        }
        if !states.is_empty() {
            self.tell(&states);
        }
        self.status = status;
    }

    /// The gateway works.
    pub(crate) fn ready(&self) {
        self.tell(&[NotifyState::Ready]);
    }

    /// The gateway reads its configuration again; [`Service::ready`] follows.
    pub(crate) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.tell(&[NotifyState::Reloading, now]),
            Err(error) => tracing::warn!(%error, "the manager does not hear of the reload"),
        }
    }

    /// The gateway drains, for as long as this.
    pub(crate) fn stopping(&self, limit: Span) {
        // Beyond its own patience, if that is less.
        let extended = limit + Span::from_secs(5);
        let micros = u32::try_from(extended.as_micros()).unwrap_or(u32::MAX);
        let status = "finishing what runs";
        self.tell(&[
            NotifyState::Stopping,
            NotifyState::Status(status),
            NotifyState::ExtendTimeoutUsec(micros),
        ]);
    }

    /// Has the manager keep a socket for the next start.
    pub(crate) fn keep(&self, name: &str, socket: BorrowedFd<'_>) {
        if self.listens
            && let Err(error) = sd_notify::notify_with_fds(
                &[NotifyState::FdStore, NotifyState::FdName(name)],
                &[socket],
            )
        {
            tracing::debug!(%error, name, "the manager does not keep a socket");
        }
    }

    /// Has the manager close a socket that it keeps.
    pub(crate) fn forget(&self, name: &str) {
        self.tell(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)]);
    }

    fn tell(&self, states: &[NotifyState<'_>]) {
        if self.listens
            && let Err(error) = sd_notify::notify(states)
        {
            tracing::warn!(%error, "the service manager cannot be told");
        }
    }
}
