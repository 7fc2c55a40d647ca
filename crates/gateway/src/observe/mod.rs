//! Observability: the control socket, metrics, and captures of decrypted traffic.
//!
//! ```text
//!   bentpipe status, top, capture ──▶ control socket ─┐
//!                                                     ├─▶ Observer ──▶ EngineView of the engine
//!   Prometheus ──▶ HTTP, /metrics ────────────────────┘    (a turn in each round of the loop)
//! ```
//!
//! The gateway's own loop serves all clients and never waits for one: the unread output of a
//! client and its requests per round are bounded.

mod capture;
mod control;
mod former_names;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzzing;
mod histogram;
mod metrics;
mod pipe;
mod process;
mod question;
mod socket;
mod status;

pub use crate::report::AssociationCounters;
pub use capture::PORT as CAPTURE_PORT;
pub use former_names::to_json;
pub use histogram::Histogram;
pub use question::VERSION as CONTROL_VERSION;
pub use status::{
    CommitmentStatus, ConnectionStatus, Counted, DnsStatus, GatewayStatus, LoopStatus, Page,
    PathCounters, ProcessStatus, ReportStatus, ReportedMessageStatus, ReportedPathStatus,
    ResolverStatus, ShardStatus, Status, TerminalStatus,
};

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use {
    fuzzing::{control as play_control, metrics as play_metrics},
    metrics::read_request,
    question::parse as read_question,
};

use crate::config::ControlSocket;
use crate::engine::EngineView;
use crate::{Config, Error, Role};
use control::{Control, Desk};
use metrics::{Format, Http};
use mio::{Registry, Token};
use std::net::SocketAddr;
use std::time::Duration;
use units::{Instant, Span};

/// First token of the observer.
pub(crate) const FIRST_TOKEN: usize = 1 << 28;
const CONTROL: usize = FIRST_TOKEN;
const METRICS: usize = FIRST_TOKEN + 1;
const CONTROL_CLIENTS: usize = FIRST_TOKEN + 0x100;
const METRICS_CLIENTS: usize = FIRST_TOKEN + 0x200;
const _: () = assert!(control::MAX_CLIENTS <= 0x100 && metrics::MAX_CLIENTS < 0x100);

/// Time for which a page of metrics is cached: with hundreds of terminals it is expensive.
const PAGE_LIFE: Span = Span::from_millis(500);

/// The observed gateway.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    role: &'static str,
    name: String,
    controller: &'static str,
    started: Instant,
}

/// Serves status, captures and metrics.
#[derive(Debug)]
pub(crate) struct Observer {
    identity: Identity,
    control: Option<Control>,
    metrics: Option<Http>,
    registry: Option<Registry>,
    rounds: LoopStatus,
    /// The cached page of metrics, and its time.
    page: Option<(Instant, Format, String)>,
}

impl Observer {
    /// Opens the sockets of `config`. Only a configured control socket must be available.
    pub(crate) fn open(config: &Config, now: Instant) -> Result<Self, Error> {
        let (role, name) = match &config.role {
            Role::Terminal(terminal) => ("terminal", terminal.name.clone()),
            Role::Hub(hub) => ("hub", hub.id.clone()),
            Role::Single(single) => ("single", single.id.clone()),
        };
        let controller = match &config.role {
            Role::Terminal(_) | Role::Hub(_) => config.link.controller.name(),
            Role::Single(_) => "tcp",
        };
        let control = match &config.control {
            None | Some(ControlSocket::Off) => None,
            Some(ControlSocket::At(path)) => {
                let listen = Control::listen(path);
                Some(listen.map_err(|source| Error::Control { path: path.clone(), source })?)
            }
            Some(ControlSocket::Usual(path)) => Control::listen(path)
                .inspect_err(|error| {
                    tracing::info!(socket = %path.display(), %error, "control socket unavailable");
                })
                .ok(),
        };
        let metrics = config.metrics.map(|address| {
            let key = "metrics.listen";
            Http::bind(address).map_err(|source| Error::Listen { key, address, source })
        });
        Ok(Self {
            identity: Identity { role, name, controller, started: now },
            control,
            metrics: metrics.transpose()?,
            registry: None,
            rounds: LoopStatus::default(),
            page: None,
        })
    }

    /// Returns the address of the metrics.
    pub(crate) fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.address().ok()
    }

    /// Registers the sockets with the loop.
    pub(crate) fn register(&mut self, registry: &Registry) -> std::io::Result<()> {
        if let Some(control) = &mut self.control {
            control.register(registry, Token(CONTROL), CONTROL_CLIENTS)?;
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.register(registry, Token(METRICS), METRICS_CLIENTS)?;
        }
        self.registry = Some(registry.try_clone()?);
        Ok(())
    }

    /// Handles a readiness event of the observer.
    pub(crate) fn ready(&mut self, event: &mio::event::Event) {
        let Token(number) = event.token();
        match (&mut self.control, &mut self.metrics) {
            (Some(control), _) if number == CONTROL => control.is_ready(),
            (_, Some(metrics)) if number == METRICS => metrics.is_ready(),
            (_, Some(metrics)) if number >= METRICS_CLIENTS => {
                metrics.client_is_ready(number - METRICS_CLIENTS, event);
            }
            (Some(control), _) if (CONTROL_CLIENTS..METRICS_CLIENTS).contains(&number) => {
                control.client_is_ready(number - CONTROL_CLIENTS, event);
            }
            (_, _) => {}
        }
    }

    /// Whether a turn would have an effect; called in each round.
    pub(crate) fn has_work(&self, now: Instant) -> bool {
        self.control.as_ref().is_some_and(|control| control.has_work(now))
            || self.metrics.as_ref().is_some_and(|metrics| metrics.has_work(now))
    }

    /// Returns when it needs a turn without readiness.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let control = self.control.as_ref().and_then(Control::poll_timeout);
        let metrics = self.metrics.as_ref().and_then(Http::poll_timeout);
        control.into_iter().chain(metrics).min()
    }

    /// Returns the timeliness of the loop, to be counted.
    pub(crate) fn rounds(&mut self) -> &mut LoopStatus {
        &mut self.rounds
    }

    /// Serves the clients; returns whether there is more to do immediately.
    pub(crate) fn turn(&mut self, mut view: EngineView<'_>) -> bool {
        let Some(registry) = &self.registry else { return false };
        let (identity, rounds) = (&self.identity, &self.rounds);
        let mut make = |view: &mut EngineView<'_>| status(identity, rounds, view);
        let mut more = false;
        if let Some(control) = &mut self.control {
            let mut desk = Desk { identity, view: &mut view, status: &mut make };
            more = control.turn(registry, &mut desk);
        }
        if let Some(metrics) = &mut self.metrics {
            let (now, page) = (view.now, &mut self.page);
            metrics.turn(now, registry, |format| match page {
                Some((at, of, text)) if *of == format && now.since(*at) < PAGE_LIFE => text.clone(),
                Some(_) | None => {
                    let text = metrics::render(&make(&mut view), format);
                    *page = Some((now, format, text.clone()));
                    text
                }
            });
        }
        more
    }

    /// Ends captures when the gateway ends.
    pub(crate) fn close(&mut self, mut view: EngineView<'_>) {
        let (identity, rounds) = (&self.identity, &self.rounds);
        let mut make = |view: &mut EngineView<'_>| status(identity, rounds, view);
        if let Some(mut control) = self.control.take() {
            control.close(&mut Desk { identity, view: &mut view, status: &mut make });
        }
        self.metrics = None;
    }
}

fn status(identity: &Identity, rounds: &LoopStatus, view: &mut EngineView<'_>) -> Status {
    let epoch = Duration::from_nanos(view.epoch_unix_ns());
    let started = epoch + Duration::from_nanos(identity.started.as_nanos());
    Status {
        gateway: GatewayStatus {
            role: identity.role,
            name: identity.name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            controller: identity.controller,
            link: view.link.map(|address| address.to_string()),
            waiting: view.waiting.clone(),
            pid: std::process::id(),
            started_unix_seconds: started.as_secs_f64(),
            uptime_seconds: view.now.since(identity.started).as_secs_f64(),
        },
        counted: view.counted(),
        terminals: view.terminals(&identity.name),
        rounds: view.rounds().unwrap_or_else(|| rounds.clone()),
        process: process::status(),
    }
}
