//! A terminal's ways to its hubs: a relay for each, and which of them new connections take.
//!
//! ```text
//!   new connection ──▶ best health, first priority, turns by weight ──▶ path 1: relay ── hub A
//!                                                                      path 2: relay ── hub A or B
//! ```
//!
//! A connection stays with its path: when that is out it waits, and goes on when the path is back.

use crate::engine::host::Host;
use crate::engine::peers::handshake_log::Strangers;
use crate::engine::peers::relay_set::{Outgoing, hub_name, is_same};
use crate::engine::peers::route::{self, Route};
use association::Entropy;
use relay::health::{Demands, Verdict, Ways};
use relay::{Event, ReceiveError, Relay, RelayConfig, TransmitBatch};
use std::net::SocketAddr;
use units::{BitRate, Instant, Span};

/// What a path is made of.
#[derive(Debug)]
pub(crate) struct PathPlan {
    /// What it is called; empty where there is only one.
    pub(crate) name: String,
    pub(crate) relay: RelayConfig,
    pub(crate) route: Route,
    pub(crate) priority: u32,
    pub(crate) weight: u32,
}

impl PathPlan {
    /// What it is remembered by.
    pub(crate) fn remembered_as(&self) -> String {
        remembered_as(&self.name, self.route.peer)
    }
}

/// One way.
#[derive(Debug)]
pub(crate) struct Path {
    /// The terminal's name and the path's; empty where there is only one.
    pub(crate) label: String,
    pub(crate) relay: Box<Relay>,
    pub(crate) route: Route,
    name: String,
    strangers: Strangers,
    /// Whether it has a socket: without its interface there is none.
    pub(crate) bound: bool,
}

impl Path {
    /// What it is remembered by.
    pub(crate) fn remembered_as(&self) -> String {
        remembered_as(&self.name, self.route.peer)
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) all: Vec<Path>,
    ways: Ways,
    /// Whose event is next.
    turn: usize,
}

impl Paths {
    /// Those of `plans`, at least one, of which `demands` are made.
    pub(crate) fn new<E: Entropy + 'static>(
        plans: Vec<PathPlan>,
        demands: Demands,
        now: Instant,
        mut entropy: impl FnMut() -> E,
    ) -> Self {
        let mut ways = Ways::default();
        let all = plans.into_iter().map(|plan| {
            ways.add(plan.priority, plan.weight, demands);
            let relay = Box::new(Relay::terminal(&plan.relay, now, entropy()));
            let label = if plan.name.is_empty() { String::new() } else { plan.relay.name.clone() };
            let PathPlan { name, route, .. } = plan;
            Path { label, relay, route, name, strangers: Strangers::default(), bound: true }
        });
        Self { all: all.collect(), ways, turn: 0 }
    }

    /// Other things are asked of them from here on, and each is tried after `keep_alive` without
    /// word from its hub.
    pub(crate) fn set_health(&mut self, demands: Demands, keep_alive: Span) {
        self.ways.set_demands(demands);
        self.all.iter_mut().for_each(|path| path.relay.set_keep_alive(keep_alive));
    }

    /// The rates of the path called `name` are others from here on.
    pub(crate) fn set_rates(
        &mut self,
        name: &str,
        send: Option<BitRate>,
        receive: Option<BitRate>,
    ) {
        let its = self.all.iter_mut().filter(|path| path.name == name);
        its.for_each(|path| path.relay.set_rates(send, receive));
    }

    /// The path for a new connection.
    pub(crate) fn choose(&mut self) -> usize {
        match self.ways.choose() {
            Some(number) => number,
            None => self.first(),
        }
    }

    /// Where all that is not a connection goes. While none answers all wait for the first; only
    /// one without its interface is known to be worse.
    pub(crate) fn first(&self) -> usize {
        self.ways.first_of(|number| self.all[number].bound).unwrap_or(0)
    }

    /// How the one of them answers that does so best, slow or lossy as it may be.
    pub(crate) fn answers(&self) -> Verdict {
        let mut all = Verdict::ALL.into_iter();
        let numbers = 0..self.all.len();
        let is = |verdict| numbers.clone().any(|n| self.ways.health(n).answers() == verdict);
        all.find(|verdict| is(*verdict)).unwrap_or(Verdict::Down)
    }

    /// How path `number` is.
    pub(crate) fn verdict(&self, number: usize) -> Verdict {
        self.ways.health(number).verdict()
    }

    /// Times that path `number` has failed.
    pub(crate) fn failures(&self, number: usize) -> u64 {
        self.ways.health(number).failures()
    }

    /// Looks how they are.
    pub(crate) fn review(&mut self, now: Instant) {
        let several = self.all.len() > 1;
        for (number, path) in self.all.iter().enumerate() {
            let mut seen = path.relay.seen();
            seen.answered &= path.bound;
            let Some(verdict) = self.ways.look(now, number, seen) else { continue };
            if several {
                let (path, hub) = (&path.name, path.route.peer);
                match verdict {
                    Verdict::Down => tracing::warn!(%path, %hub, "path down, avoided from now on"),
                    Verdict::Poor => {
                        tracing::warn!(%path, %hub, "path slow or lossy, avoided from now on");
                    }
                    Verdict::Recovering => tracing::info!(%path, %hub, "path answers again"),
                    Verdict::Well => tracing::info!(%path, %hub, "path well"),
                }
            }
        }
    }

    /// Takes a datagram that came by path `number`; `None` when it is not from its hub.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        number: usize,
        from: SocketAddr,
        datagram: &mut [u8],
    ) -> Option<Result<(), ReceiveError>> {
        let path = self.all.get_mut(number).filter(|path| is_same(path.route.peer, from))?;
        Some(path.relay.handle_datagram(now, datagram))
    }

    /// Puts what is due by path `number` into `batch`.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        number: usize,
        batch: &mut TransmitBatch<'_>,
    ) -> Option<Outgoing> {
        let path = self.all.get_mut(number)?;
        path.strangers.not_answered(&path.relay, path.route.peer);
        let transmit = path.relay.poll_transmit(now, batch)?;
        let destination = path.route.peer;
        Some(Outgoing { destination, len: transmit.len, segment_size: transmit.segment_size })
    }

    /// What happened next, and on which path.
    pub(crate) fn poll_event(&mut self) -> Option<(usize, Event)> {
        let count = self.all.len();
        for offset in 0..count {
            let number = (self.turn + offset) % count;
            if let Some(event) = self.all[number].relay.poll_event() {
                self.turn = number;
                return Some((number, event));
            }
        }
        None
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let relays = self.all.iter().filter_map(|path| path.relay.poll_timeout());
        relays.chain(self.ways.poll_timeout()).min()
    }

    /// Tells what the kernel believes that each takes by now.
    pub(crate) fn check(&mut self, host: &dyn Host) {
        for Path { relay, route, .. } in &mut self.all {
            route::tell(host, relay, route);
        }
    }
}

fn remembered_as(name: &str, hub: SocketAddr) -> String {
    let hub = hub_name(hub);
    if name.is_empty() { hub } else { format!("{hub} by {name}") }
}
