//! Paths of a terminal to its hubs: a relay for each, and the selection of a path for new
//! connections.
//!
//! ```text
//!   new connection ──▶ best health, first priority, turns by weight ──▶ path 1: relay ── hub A
//!                                                                      path 2: relay ── hub A or B
//! ```
//!
//! A connection stays with its path and waits during an outage of it.

mod succession;

use crate::engine::host::{Host, Route};
use crate::engine::peers::handshake_log::HandshakeLog;
use crate::engine::peers::naming::{hub_name, is_same};
use crate::engine::peers::outgoing::Outgoing;
use crate::engine::peers::peer::Peer;
use association::{Entropy, OpenError};
use relay::health::{HealthCriteria, HealthState, PathSelector};
use relay::{Event, ReceiveError, Relay, RelayConfig, TransmitBatch};
use std::net::SocketAddr;
use std::sync::Arc;
use succession::{Formers, RelayMaker};
use units::{BitRate, Instant, Span};

/// Configuration of a path.
#[derive(Debug)]
pub(crate) struct PathPlan {
    /// Name of the path; empty if there is only one.
    pub(crate) name: String,
    pub(crate) relay: RelayConfig,
    /// Route to the hub, whose address is unspecified until its name was looked up.
    pub(crate) route: Route,
    /// Name of the hub, if it is configured by name.
    pub(crate) hub_name: Option<Arc<str>>,
    pub(crate) priority: u32,
    pub(crate) weight: u32,
}

impl PathPlan {
    /// Returns the key of its cached path metrics.
    pub(crate) fn cache_key(&self) -> String {
        cache_key(&self.name, &known_as(self.hub_name.as_deref(), self.route.peer))
    }
}

/// A path.
#[derive(Debug)]
pub(crate) struct Path {
    /// Name of terminal and path; empty if there is only one path.
    pub(crate) label: String,
    pub(crate) relay: Box<Relay>,
    /// The configuration of its next relay.
    config: RelayConfig,
    pub(crate) route: Route,
    pub(crate) hub_name: Option<Arc<str>>,
    pub(crate) name: String,
    handshake_log: HandshakeLog,
    /// Whether its socket is bound.
    pub(crate) bound: bool,
    /// Whether its datagrams are carried by TLS.
    pub(crate) uses_tls: bool,
}

impl Path {
    /// Returns the key of its cached path metrics.
    pub(crate) fn cache_key(&self) -> String {
        cache_key(&self.name, &self.known_as())
    }

    /// Returns the hub's name and port, or its address and port.
    pub(crate) fn known_as(&self) -> String {
        known_as(self.hub_name.as_deref(), self.route.peer)
    }

    /// Sets the maximum rates of sending and receiving.
    pub(crate) fn set_rates(&mut self, send: Option<BitRate>, receive: Option<BitRate>) {
        (self.config.send_rate, self.config.receive_rate) = (send, receive);
        self.relay.set_rates(send, receive);
    }

    /// Returns the hub's address, once it is known.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        Some(self.route.peer).filter(|peer| !peer.ip().is_unspecified())
    }
}

/// All paths of a terminal.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) all: Vec<Path>,
    selector: PathSelector,
    /// Path whose events are polled first.
    turn: usize,
    formers: Formers,
    make: RelayMaker,
}

impl Paths {
    /// Paths for `plans`, of which there is at least one, with the health criteria `demands`.
    pub(crate) fn new<E: Entropy + 'static>(
        plans: Vec<PathPlan>,
        demands: HealthCriteria,
        now: Instant,
        entropy: impl FnMut() -> E + Send + 'static,
    ) -> Self {
        let mut make = RelayMaker::new(entropy);
        let mut selector = PathSelector::default();
        let all = plans.into_iter().map(|plan| {
            selector.add(plan.priority, plan.weight, demands);
            let relay = make.relay(&plan.relay, now);
            let label = if plan.name.is_empty() { String::new() } else { plan.relay.name.clone() };
            let PathPlan { name, relay: config, route, hub_name, .. } = plan;
            let handshake_log = HandshakeLog::default();
            let (bound, uses_tls) = (true, false);
            Path { label, relay, config, route, hub_name, name, handshake_log, bound, uses_tls }
        });
        let all = all.collect();
        Self { all, selector, turn: 0, formers: Formers::default(), make }
    }

    /// Sets the health criteria, and the time without a message from the hub after which a path is
    /// probed.
    pub(crate) fn set_health(&mut self, demands: HealthCriteria, keep_alive: Span) {
        self.selector.set_demands(demands);
        for path in &mut self.all {
            path.config.keep_alive = keep_alive;
            path.relay.set_keep_alive(keep_alive);
        }
    }

    /// Sets the rates of the path called `name`.
    pub(crate) fn set_rates(
        &mut self,
        name: &str,
        send: Option<BitRate>,
        receive: Option<BitRate>,
    ) {
        let its = self.all.iter_mut().filter(|path| path.name == name);
        its.for_each(|path| path.set_rates(send, receive));
    }

    /// Selects the path for a new connection.
    pub(crate) fn choose(&mut self) -> usize {
        match self.selector.choose() {
            Some(number) => number,
            None => self.first(),
        }
    }

    /// Returns the path for packets that belong to no connection. While no path is up it is the
    /// first whose socket is bound.
    pub(crate) fn first(&self) -> usize {
        self.selector.first_of(|number| self.all[number].bound).unwrap_or(0)
    }

    /// Returns the best health of all paths apart from delay and loss.
    pub(crate) fn answers(&self) -> HealthState {
        let mut all = HealthState::ALL.into_iter();
        let numbers = 0..self.all.len();
        let is = |health_state| {
            numbers.clone().any(|n| self.selector.health(n).answers() == health_state)
        };
        all.find(|health_state| is(*health_state)).unwrap_or(HealthState::Down)
    }

    /// Returns the health of path `number`.
    pub(crate) fn health_state(&self, number: usize) -> HealthState {
        self.selector.health(number).state()
    }

    /// Returns how often path `number` has failed.
    pub(crate) fn failures(&self, number: usize) -> u64 {
        self.selector.health(number).failures()
    }

    /// Updates the health of all paths.
    pub(crate) fn review(&mut self, now: Instant) {
        self.formers.review(now);
        let several = self.all.len() > 1;
        for (number, path) in self.all.iter().enumerate() {
            // Until the next process of the hub has responded, the last one shows the path's health.
            let last = self.formers.of(number).last().filter(|_| !path.relay.is_connected());
            let mut seen = last.map_or(&path.relay, |last| &last.relay).path_sample();
            seen.answered &= path.bound;
            let Some(health_state) = self.selector.update(now, number, seen) else { continue };
            if several {
                let (path, hub) = (&path.name, path.route.peer);
                match health_state {
                    HealthState::Down => {
                        tracing::warn!(%path, %hub, "path down, not used for new connections");
                    }
                    HealthState::Degraded => {
                        tracing::warn!(%path, %hub, "path degraded, not used for new connections");
                    }
                    HealthState::Recovering => {
                        tracing::info!(%path, %hub, "path recovering");
                    }
                    HealthState::Up => tracing::info!(%path, %hub, "path up"),
                }
            }
        }
    }

    /// Handles a datagram received on path `number`; `None` if it is not from its hub. Unless it
    /// `is_last`, one for none of its associations may be for another process of this terminal.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        number: usize,
        from: SocketAddr,
        (datagram, is_last): (&mut [u8], bool),
    ) -> Option<Result<(), ReceiveError>> {
        let path = self.all.get_mut(number).filter(|path| is_same(path.route.peer, from))?;
        if path.relay.is_addressed(datagram) {
            return Some(path.relay.handle_datagram(now, datagram));
        }
        let mut formers = self.formers.of(number);
        Some(match formers.find(|former| former.relay.is_addressed(datagram)) {
            Some(former) => former.relay.handle_datagram(now, datagram),
            None if !is_last => Err(ReceiveError::Association(OpenError::Elsewhere)),
            None => path.relay.handle_datagram(now, datagram),
        })
    }

    /// Writes the datagrams that are due on path `number` into `batch`.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        number: usize,
        batch: &mut TransmitBatch<'_>,
    ) -> Option<Outgoing> {
        let path = self.all.get_mut(number)?;
        path.handshake_log.log_unanswered(&path.relay, path.address());
        let destination = path.route.peer;
        let transmit = path.relay.poll_transmit(now, batch).or_else(|| {
            self.formers.of(number).find_map(|former| former.relay.poll_transmit(now, batch))
        })?;
        Some(Outgoing { destination, len: transmit.len, segment_size: transmit.segment_size })
    }

    /// Returns the next event and its hub.
    pub(crate) fn poll_event(&mut self) -> Option<(Peer, Event)> {
        if let Some((id, event)) = self.formers.poll_event() {
            return Some((Peer::Former(id), event));
        }
        let count = self.all.len();
        for offset in 0..count {
            let number = (self.turn + offset) % count;
            if let Some(event) = self.all[number].relay.poll_event() {
                self.turn = number;
                return Some((Peer::Path(number), event));
            }
        }
        None
    }

    /// Returns when the next timer of a path expires.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let relays = self.all.iter().filter_map(|path| path.relay.poll_timeout());
        relays.chain(self.formers.poll_timeout()).chain(self.selector.poll_timeout()).min()
    }

    /// Updates the MTU hints of all paths.
    pub(crate) fn check(&mut self, host: &dyn Host) {
        for Path { relay, route, .. } in self.all.iter_mut().filter(|path| path.address().is_some())
        {
            update_mtu_hint(host, relay, route);
        }
        for former in &mut self.formers.all {
            update_mtu_hint(host, &mut former.relay, &self.all[former.path].route);
        }
    }
}

fn known_as(hub: Option<&str>, address: SocketAddr) -> String {
    hub.map_or_else(|| hub_name(address), |name| format!("{name}:{}", address.port()))
}

fn cache_key(name: &str, hub: &str) -> String {
    if name.is_empty() { hub.to_owned() } else { format!("{hub} by {name}") }
}

/// Passes the MTU of the first link of `route`, to `relay`, if the host has it.
pub(crate) fn update_mtu_hint(host: &dyn Host, relay: &mut Relay, route: &Route) {
    match host.path_mtu(route) {
        Ok(mtu) => relay.hint_mtu(mtu),
        Err(error) => tracing::debug!(peer = %route.peer, %error, "unknown path MTU"),
    }
}
