//! Paths of a terminal to its hubs: a relay for each, or for several that are joined, and the
//! selection of a path for new connections.
//!
//! ```text
//!   new connection ──▶ best health, first priority, turns by weight ──▶ path 0: relay 0 ── hub A
//!                                                                      path 1: relay 1 ── hub A or B
//!                                                                      path 2: relay 1
//! ```
//!
//! A connection stays with its relay and waits while all paths of it are in an outage.

mod succession;

use crate::engine::host::{Host, Route};
use crate::engine::peers::handshake_log::HandshakeLog;
use crate::engine::peers::naming::{hub_name, is_same};
use crate::engine::peers::outgoing::Outgoing;
use crate::engine::peers::peer::Peer;
use association::{Entropy, OpenError};
use relay::health::{HealthCriteria, HealthState, PathSelector};
use relay::{Event, PathView, ReceiveError, Relay, RelayConfig, TransmitBatch};
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
    /// Further ports of the hub.
    pub(crate) ports: Vec<u16>,
    pub(crate) priority: u32,
    pub(crate) weight: u32,
    /// The earlier path to which this one is joined.
    pub(crate) joins: Option<usize>,
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
    /// Its relay, and its number there.
    pub(crate) seat: (usize, usize),
    /// The configuration for its next relay.
    config: RelayConfig,
    pub(crate) route: Route,
    pub(crate) hub_name: Option<Arc<str>>,
    pub(crate) name: String,
    handshake_log: HandshakeLog,
    /// Whether its socket is bound.
    pub(crate) bound: bool,
    /// Whether its datagrams are carried by TLS.
    pub(crate) uses_tls: bool,
    /// The hub's further ports, and the one in use if it is another than that of `route`.
    ports: Vec<u16>,
    port: Option<u16>,
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

    /// Returns where datagrams are sent by UDP.
    pub(crate) fn destination(&self) -> SocketAddr {
        let hub = self.route.peer;
        SocketAddr::new(hub.ip(), self.port.unwrap_or(hub.port()))
    }

    /// Whether `from` is an address of the hub, at any of its ports.
    fn is_hub(&self, from: SocketAddr) -> bool {
        let hub = self.route.peer;
        let has_port = from.port() == hub.port() || self.ports.contains(&from.port());
        has_port && is_same(hub, SocketAddr::new(from.ip(), hub.port()))
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
    /// The relays, of which each has one path or several.
    pub(crate) present: Vec<Relay>,
    selector: PathSelector,
    /// Relay whose events are polled first.
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
        let mut selector = PathSelector::default();
        let mut all: Vec<Path> = Vec::new();
        let mut count = 0;
        for plan in plans {
            selector.add(plan.priority, plan.weight, demands);
            let label = if plan.name.is_empty() { String::new() } else { plan.relay.name.clone() };
            let relay = plan.joins.and_then(|earlier| all.get(earlier)).map(|path| path.seat.0);
            let relay = relay.unwrap_or(count);
            count = count.max(relay + 1);
            let number = all.iter().filter(|path| path.seat.0 == relay).count();
            let PathPlan { name, relay: config, route, hub_name, ports, .. } = plan;
            let handshake_log = HandshakeLog::default();
            let seat = (relay, number);
            all.push(Path {
                label,
                seat,
                config,
                route,
                hub_name,
                name,
                handshake_log,
                bound: true,
                uses_tls: false,
                ports,
                port: None,
            });
        }
        let mut make = RelayMaker::new(entropy);
        let present = (0..count).map(|relay| make.relay(configs(&all, relay), now)).collect();
        Self { all, present, selector, turn: 0, formers: Formers::default(), make }
    }

    /// Sets the health criteria, and the time without a message from the hub after which a path is
    /// probed.
    pub(crate) fn set_health(&mut self, demands: HealthCriteria, keep_alive: Span) {
        self.selector.set_demands(demands);
        for path in &mut self.all {
            path.config.keep_alive = keep_alive;
        }
        self.present.iter_mut().for_each(|relay| relay.set_keep_alive(keep_alive));
    }

    /// Sets the rates of the path called `name`.
    pub(crate) fn set_rates(
        &mut self,
        name: &str,
        send: Option<BitRate>,
        receive: Option<BitRate>,
    ) {
        for path in self.all.iter_mut().filter(|path| path.name == name) {
            (path.config.send_rate, path.config.receive_rate) = (send, receive);
            let (relay, number) = path.seat;
            self.present[relay].set_rates_on(number, send, receive);
        }
    }

    /// Selects the relay for a new connection.
    pub(crate) fn choose(&mut self) -> usize {
        match self.selector.choose() {
            Some(number) => self.all[number].seat.0,
            None => self.first(),
        }
    }

    /// Returns the relay for packets that belong to no connection. While no path is up it is that
    /// of the first whose socket is bound.
    pub(crate) fn first(&self) -> usize {
        let number = self.selector.first_of(|number| self.all[number].bound).unwrap_or(0);
        self.all[number].seat.0
    }

    /// Returns the first path of a relay, and whether it has others.
    pub(crate) fn first_of(&self, relay: usize) -> Option<(&Path, bool)> {
        let mut its = self.all.iter().filter(|path| path.seat.0 == relay);
        its.next().map(|first| (first, its.next().is_some()))
    }

    /// Returns the state of path `number`.
    pub(crate) fn view(&self, number: usize) -> Option<PathView<'_>> {
        let (relay, number) = self.all.get(number)?.seat;
        self.present.get(relay)?.path(number)
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
            let (relay, seat) = path.seat;
            let Some(present) = self.present[relay].path(seat) else { continue };
            let last = self.formers.of(relay).last().filter(|_| !present.is_connected());
            let last = last.and_then(|last| last.relay.path(seat));
            let mut seen = last.unwrap_or(present).sample();
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
        let path = self.all.get_mut(number).filter(|path| path.is_hub(from))?;
        let (relay, number) = path.seat;
        let present = &mut self.present[relay];
        if present.is_addressed_on(number, datagram) {
            return Some(present.handle_datagram_on(now, number, datagram));
        }
        let mut formers = self.formers.of(relay);
        Some(match formers.find(|former| former.relay.is_addressed_on(number, datagram)) {
            Some(former) => former.relay.handle_datagram_on(now, number, datagram),
            None if !is_last => Err(ReceiveError::Association(OpenError::Elsewhere)),
            None => present.handle_datagram_on(now, number, datagram),
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
        let (relay, number) = path.seat;
        let present = &mut self.present[relay];
        if let Some(view) = present.path(number) {
            path.handshake_log.log_unanswered(view, path.address());
        }
        let destination = path.destination();
        let transmit = present.poll_transmit_on(now, number, batch).or_else(|| {
            let mut formers = self.formers.of(relay);
            formers.find_map(|former| former.relay.poll_transmit_on(now, number, batch))
        })?;
        Some(Outgoing { destination, len: transmit.len, segment_size: transmit.segment_size })
    }

    /// Returns the next event and its hub.
    pub(crate) fn poll_event(&mut self) -> Option<(Peer, Event)> {
        if let Some((id, event)) = self.formers.poll_event() {
            return Some((Peer::Former(id), event));
        }
        let count = self.present.len();
        for offset in 0..count {
            let number = (self.turn + offset) % count;
            if let Some(event) = self.present[number].poll_event() {
                self.turn = number;
                return Some((Peer::Path(number), event));
            }
        }
        None
    }

    /// Returns when the next timer of a path expires.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let relays = self.present.iter().filter_map(|relay| relay.poll_timeout());
        relays.chain(self.formers.poll_timeout()).chain(self.selector.poll_timeout()).min()
    }

    /// Sends datagrams of path `number` to this port of its hub from now on.
    pub(crate) fn set_port(&mut self, number: usize, port: u16) {
        let Some(path) = self.all.get_mut(number).filter(|path| path.destination().port() != port)
        else {
            return;
        };
        path.port = Some(port);
        tracing::debug!(hub = %path.destination(), "the hub's port");
        self.on_carrier_change(number);
    }

    /// Handles a change of what carries the datagrams of path `number`.
    pub(crate) fn on_carrier_change(&mut self, number: usize) {
        let Some(path) = self.all.get(number) else { return };
        let (relay, seat) = path.seat;
        self.present[relay].on_carrier_change(seat);
        self.formers.of(relay).for_each(|former| former.relay.on_carrier_change(seat));
    }

    /// Updates the MTU hints of all paths.
    pub(crate) fn check(&mut self, host: &dyn Host) {
        for path in self.all.iter().filter(|path| path.address().is_some()) {
            let (relay, number) = path.seat;
            update_mtu_hint(host, (&mut self.present[relay], number), &path.route);
            for former in self.formers.of(relay) {
                update_mtu_hint(host, (&mut former.relay, number), &path.route);
            }
        }
    }
}

/// Returns the configurations of the paths of a relay, of which each is joined to the first one.
fn configs(all: &[Path], relay: usize) -> impl Iterator<Item = &RelayConfig> {
    all.iter().filter(move |path| path.seat.0 == relay).map(|path| &path.config)
}

fn known_as(hub: Option<&str>, address: SocketAddr) -> String {
    hub.map_or_else(|| hub_name(address), |name| format!("{name}:{}", address.port()))
}

fn cache_key(name: &str, hub: &str) -> String {
    if name.is_empty() { hub.to_owned() } else { format!("{hub} by {name}") }
}

/// Passes the MTU of the first link of `route` to a path of `relay`, if the host has it.
pub(crate) fn update_mtu_hint(
    host: &dyn Host,
    (relay, number): (&mut Relay, usize),
    route: &Route,
) {
    match host.path_mtu(route) {
        Ok(mtu) => relay.hint_mtu_on(number, mtu),
        Err(error) => tracing::debug!(peer = %route.peer, %error, "unknown path MTU"),
    }
}
