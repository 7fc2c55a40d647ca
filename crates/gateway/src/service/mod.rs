//! The service manager: systemd, or another one with the same protocol (sd_notify(3)).
//!
//! ```text
//!   start    ◀ LISTEN_FDS: stored sockets                  FDSTORE ▶ sockets to store
//!            READY ▶
//!   work     WATCHDOG ▶  from the readiness loop itself: one that is stuck misses it
//!   SIGHUP   RELOADING ▶ … READY ▶
//!   SIGTERM  STOPPING ▶
//! ```
//!
//! Without a manager (no `NOTIFY_SOCKET`) no messages are sent. A separate thread sends them, so
//! that a manager that does not read does not block the loop.

pub(crate) mod handed;
pub(crate) mod handover;

use rt::Clock;
use sd_notify::NotifyState;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;
use units::{Instant, Span};

/// Interval of status messages where there is no watchdog.
const STATUS: Span = Span::from_secs(10);

/// Maximum number of queued messages: one for each socket to store, and some more.
const MAX_PENDING: usize = 256;
/// Maximum time that the end of the gateway waits for a manager that does not read.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Sends one message.
type Message = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// Notifications to the service manager.
#[derive(Debug)]
pub(crate) struct Service {
    clock: Clock,
    /// Whether there is one.
    listens: bool,
    sender: Option<Sender>,
    /// Interval of watchdog messages: half of the watchdog timeout.
    beat: Option<Span>,
    next: Instant,
    status: String,
}

/// The thread that sends, and the signal of its end.
#[derive(Debug)]
struct Sender {
    messages: SyncSender<Message>,
    /// Disconnected when all messages are sent.
    finished: Receiver<()>,
}

impl Service {
    /// Creates it from the environment.
    pub(crate) fn new() -> Self {
        let clock = Clock::new();
        let listens = std::env::var_os("NOTIFY_SOCKET").is_some();
        let watchdog = sd_notify::watchdog_enabled().filter(|_| listens);
        let beat = watchdog.map(|patience| {
            Span::from_nanos(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX)) / 2
        });
        let (sender, next) = (None, clock.now());
        Self { clock, listens, sender, beat, next, status: String::new() }
    }

    /// Returns when [`Service::beat`] is to be called at the latest.
    pub(crate) fn next(&self) -> Instant {
        if self.listens { self.next } else { Instant::FAR_FUTURE }
    }

    /// Sends the watchdog and status messages, with the number of connections and the missing
    /// addresses and interfaces.
    pub(crate) fn beat(&mut self, connections: usize, waiting: &[String]) {
        if !self.listens || self.clock.now() < self.next {
            return;
        }
        self.next = self.clock.now() + self.beat.unwrap_or(STATUS).min(STATUS);
        let mut status = format!("{connections} connections");
        if !waiting.is_empty() {
            status = format!("waiting for {}; {status}", waiting.join(", "));
        }
        let changed = status != self.status;
        let beats = self.beat.is_some();
        if beats || changed {
            self.status.clone_from(&status);
            self.tell(move || {
                let beat = beats.then_some(NotifyState::Watchdog);
                let status = changed.then_some(NotifyState::Status(&status));
                sd_notify::notify(&beat.into_iter().chain(status).collect::<Vec<_>>())
            });
        }
    }

    /// Reports that the gateway is ready.
    pub(crate) fn ready(&mut self) {
        self.tell(|| sd_notify::notify(&[NotifyState::Ready]));
    }

    /// Reports that the gateway reloads its configuration; [`Service::ready`] follows.
    pub(crate) fn reloading(&mut self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.tell(|| sd_notify::notify(&[NotifyState::Reloading, now])),
            Err(error) => tracing::warn!(%error, "service manager not notified of the reload"),
        }
    }

    /// Reports that the gateway drains, for at most this time.
    pub(crate) fn stopping(&mut self, limit: Span) {
        // Extends the manager's own timeout, if that is shorter.
        let extended = limit + Span::from_secs(5);
        let micros = u32::try_from(extended.as_micros()).unwrap_or(u32::MAX);
        self.tell(move || {
            sd_notify::notify(&[
                NotifyState::Stopping,
                NotifyState::Status("draining: running connections finish"),
                NotifyState::ExtendTimeoutUsec(micros),
            ])
        });
    }

    /// Reports that the process with this id is the gateway from now on, and sends nothing more.
    pub(crate) fn replaced_by(&mut self, process: u32) {
        if std::mem::take(&mut self.listens)
            && let Err(error) = sd_notify::notify(&[NotifyState::MainPid(process)])
        {
            tracing::error!(%error, "service manager not notified of the new process");
        }
    }

    /// Stores a socket with the manager for the next start.
    pub(crate) fn keep(&mut self, name: &str, socket: BorrowedFd<'_>) {
        if !self.listens {
            return;
        }
        match socket.try_clone_to_owned() {
            Ok(socket) => {
                let name = name.to_owned();
                self.tell(move || {
                    let states = [NotifyState::FdStore, NotifyState::FdName(&name)];
                    sd_notify::notify_with_fds(&states, &[socket.as_fd()])
                });
            }
            Err(error) => tracing::debug!(%error, name, "socket not stored by the service manager"),
        }
    }

    /// Removes a socket from the manager's store.
    pub(crate) fn forget(&mut self, name: &str) {
        let name = name.to_owned();
        self.tell(move || {
            sd_notify::notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(&name)])
        });
    }

    /// Queues a message. It is dropped when the queue is full: the manager has not read for minutes
    /// then.
    fn tell(&mut self, send: impl FnOnce() -> io::Result<()> + Send + 'static) {
        if !self.listens {
            return;
        }
        if self.sender.is_none() {
            match Sender::start() {
                Ok(sender) => self.sender = Some(sender),
                Err(error) => tracing::warn!(%error, "no thread for the service manager"),
            }
        }
        if let Some(sender) = &self.sender
            && sender.messages.try_send(Box::new(send)).is_err()
        {
            tracing::debug!("message to the service manager dropped: it does not read");
        }
    }
}

impl Sender {
    fn start() -> io::Result<Self> {
        let (messages, pending) = mpsc::sync_channel::<Message>(MAX_PENDING);
        let (running, finished) = mpsc::channel();
        std::thread::Builder::new().name("service".into()).spawn(move || {
            let _until_the_end: mpsc::Sender<()> = running;
            for send in pending {
                if let Err(error) = send() {
                    tracing::warn!(%error, "message to the service manager not sent");
                }
            }
        })?;
        Ok(Self { messages, finished })
    }
}

/// Sends queued messages.
impl Drop for Service {
    fn drop(&mut self) {
        if let Some(Sender { messages, finished }) = self.sender.take() {
            drop(messages);
            let _ = finished.recv_timeout(CLOSE_LIMIT);
        }
    }
}
