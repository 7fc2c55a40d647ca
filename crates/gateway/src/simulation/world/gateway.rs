//! A gateway as the simulation runs it: built from its configuration, and driven by readiness and
//! time as in the [`driver`](crate::driver).

use super::World;
use crate::engine::Held;
use crate::engine::single::{Facing, Single};
use crate::engine::{self, Admission, Engine, HeldSyns, Kind, LinkSocket, Machine, RelaySet};
use crate::relay_settings::{path_plans, relay_config};
use crate::simulation::host::{MemoryHost, MemoryListener, MemorySyns, platform};
use crate::simulation::net::{Listener, PacketFilter, Shared};
use crate::state::State;
use crate::{AcceptMode, Config, Role};
use std::net::SocketAddr;
use units::{Instant, RngStream, Span};

/// Maximum number of consecutive rounds without effect. After that the engine waits for at least 1
/// ms for a due timer that has no effect, plus one round for the round's own timers.
const MAX_EMPTY_ROUNDS: u64 = 10;
/// Additional rounds for each millisecond since then, for that wait and other timers. A busy loop
/// has 14 in 1 ms, at 20 to 120 µs each.
const MAX_EMPTY_ROUNDS_PER_MS: u64 = 2;
/// Additional rounds for each connection, whose own timers may all be due.
const MAX_EMPTY_ROUNDS_EACH: u64 = 4;
/// Start of the simulation in seconds since 1970.
const EPOCH: u64 = 1_700_000_000;

/// The engine of a gateway.
enum Role_ {
    Pair(Box<Engine>),
    Single(Box<Single>),
}

/// A running gateway.
pub(in crate::simulation) struct Engaged {
    machine: Role_,
    /// Time of its next round without readiness.
    pub(super) next: Instant,
    empty: EmptyRounds,
}

/// Counts consecutive rounds without effect.
#[derive(Default)]
struct EmptyRounds {
    /// Time of the last effect.
    since: Instant,
    count: u64,
    max_count: u64,
    /// Number of transferred bytes and packets after the last round.
    moved: u64,
}

impl EmptyRounds {
    fn count(&mut self, now: Instant, is_empty: bool) {
        if !is_empty {
            (self.since, self.count) = (now, 0);
            return;
        }
        self.count += 1;
        self.max_count = self.max_count.max(self.count);
    }

    /// Returns whether the count is too high for a gateway with so many connections.
    fn are_too_many(&self, now: Instant, connections: usize) -> bool {
        let max_count = MAX_EMPTY_ROUNDS
            + MAX_EMPTY_ROUNDS_PER_MS * now.since(self.since).as_millis()
            + MAX_EMPTY_ROUNDS_EACH * connections as u64;
        self.count > max_count
    }
}

impl Engaged {
    fn machine(&mut self) -> &mut dyn Machine {
        match &mut self.machine {
            Role_::Pair(engine) => &mut **engine,
            Role_::Single(single) => &mut **single,
        }
    }

    /// Returns the engine of one of a pair of gateways.
    pub(super) fn engine(&mut self) -> Option<&mut Engine> {
        match &mut self.machine {
            Role_::Pair(engine) => Some(engine),
            Role_::Single(_) => None,
        }
    }

    pub(super) fn single(&mut self) -> Option<&mut Single> {
        match &mut self.machine {
            Role_::Pair(_) => None,
            Role_::Single(single) => Some(single),
        }
    }

    /// Returns the resources that it holds for connections.
    pub(super) fn held(&mut self) -> Held {
        match &mut self.machine {
            Role_::Pair(engine) => engine.held(),
            Role_::Single(single) => single.held(),
        }
    }

    /// Returns the largest number of consecutive rounds without effect.
    pub(super) fn max_empty_rounds(&self) -> u64 {
        self.empty.max_count
    }

    pub(super) fn is_draining(&self) -> bool {
        match &self.machine {
            Role_::Pair(engine) => engine.is_draining(),
            Role_::Single(single) => single.is_draining(),
        }
    }

    /// Returns whether it was ordered to drain and has done so.
    pub(super) fn has_drained(&mut self, now: Instant) -> bool {
        match &mut self.machine {
            Role_::Pair(engine) => engine.has_drained(now),
            Role_::Single(single) => single.has_drained(now),
        }
    }

    /// Returns whether a hub has a session with the terminal of this name.
    pub(super) fn is_connected_to(&mut self, now: Instant, terminal: &str) -> bool {
        let Some(engine) = self.engine() else { return false };
        let seen = engine.view(now, 0).terminals("");
        seen.iter().any(|peer| peer.connected && peer.terminal.starts_with(terminal))
    }

    /// Passes readiness events to it; returns whether there were any.
    pub(super) fn handle_readiness(&mut self, now: Instant, net: &Shared, node: usize) -> bool {
        let mut news = false;
        loop {
            let ready = net.net().next_ready(node);
            let Some((source, ready)) = ready else { return news };
            news = true;
            self.machine().handle_readiness(now, source, ready);
        }
    }

    /// Returns its status of its peers as JSON.
    pub(super) fn status(&mut self, now: Instant) -> String {
        let status = self.engine().map(|engine| engine.view(now, 0).terminals(""));
        serde_json::to_string(&status).unwrap_or_default()
    }

    /// Runs one round, which takes `cost`, and the steps of the driver after it; returns whether
    /// intercepted connections are handled differently from now on.
    pub(super) fn round(
        &mut self,
        now: Instant,
        news: bool,
        cost: Span,
        net: &Shared,
        node: usize,
    ) -> Result<bool, String> {
        let busy = self.machine().round(now);
        let changed = self
            .engine()
            .is_some_and(|engine| change_filter(engine, now, &mut net.net().nodes[node].filter));
        // A failed transmission also counts as an effect.
        let failed = self.engine().map_or(0, |engine| engine.udp_counters().send_errors);
        let moved = self.machine().moved() + failed;
        let is_empty = !news && moved == self.empty.moved;
        self.empty.moved = moved;
        self.empty.count(now, is_empty);
        // Counting connections takes time. Streams whose connections have just ended count as well.
        let is_suspect = self.empty.are_too_many(now, 0);
        let held = if is_suspect { self.held() } else { Held::default() };
        let connections = held.connections + held.streams;
        if self.empty.are_too_many(now, connections) {
            return Err(format!(
                "gateway {node} is in a busy loop: due {:?} at {now:?}, {:?}",
                self.machine().poll_timeout(now),
                self.held()
            ));
        }
        let due = if busy { now } else { self.machine().poll_timeout(now) };
        self.next = due.max(now + cost);
        Ok(changed)
    }
}

/// Applies the engine's changes to the packet filter immediately; returns whether the bypass was
/// enabled or disabled.
fn change_filter(engine: &mut Engine, now: Instant, filter: &mut PacketFilter) -> bool {
    let before = filter.bypass;
    if let Some(bypass) = engine.wanted_bypass(now) {
        filter.bypass = bypass;
        engine.set_bypass(bypass, true);
    }
    if engine.wants_filter(now) {
        let wanted = engine.filter();
        filter.deferred.clone_from(&wanted.deferred);
        engine.set_applied_filter(now, Some(wanted));
    }
    before != filter.bypass
}

impl World {
    /// Starts a gateway at `node`.
    pub(super) fn start(&mut self, node: usize, config: &Config) -> Result<Engaged, String> {
        let now = self.net.net().now;
        let filter = PacketFilter {
            can_hold: self.site.can_hold[node],
            confirm: confirms(config),
            ..PacketFilter::default()
        };
        self.net.net().nodes[node].filter = filter;
        let machine = match &config.role {
            Role::Single(_) => Role_::Single(Box::new(self.single(node, config)?)),
            Role::Terminal(_) | Role::Hub(_) => Role_::Pair(Box::new(self.engine(node, config)?)),
        };
        let since = EmptyRounds { since: now, ..EmptyRounds::default() };
        Ok(Engaged { machine, next: now, empty: since })
    }

    fn engine(&mut self, node: usize, config: &Config) -> Result<Engine, String> {
        let now = self.net.net().now;
        let platform = (platform(&self.net, node), now);
        let state = State::open(None, EPOCH);
        let seed = self.entropy.next_u64();
        let mut draws = 0;
        let mut entropy = move || {
            draws += 1;
            RngStream::new(seed, draws, "gateway/simulation/entropy")
        };
        let words = |error: std::io::Error| error.to_string();
        let mut host = MemoryHost { net: self.net.clone(), node };
        let link_sockets =
            config.effective_paths().into_iter().map(|way| LinkSocket::open(&way, &mut host));
        let mut link_sockets = link_sockets.collect::<Result<Vec<_>, _>>().map_err(words)?;
        let engine = match &config.role {
            Role::Terminal(section) => {
                let plans = path_plans(config, section, &state);
                let mut plans = plans.map_err(|error| error.to_string())?;
                plans.iter_mut().for_each(|plan| plan.relay.wall_clock_ns = 0);
                let relays = RelaySet::terminal(plans, config.health.demands, now, entropy);
                let bounds = (&config.limits, config.fail);
                let held = || Box::new(MemorySyns { net: self.net.clone(), node });
                let held = self.site.can_hold[node].then(|| held() as Box<dyn HeldSyns>);
                let kinds = [Kind::Transparent, Kind::Socks5, Kind::HttpConnect];
                let listeners = (self.listen(node, &kinds), held);
                Engine::terminal(platform, relays, link_sockets, section, bounds, listeners, state)
            }
            Role::Hub(section) => {
                let mut relay = relay_config(config, &config.link);
                relay.wall_clock_ns = 0;
                relay.security = config.keys().map_err(|error| error.to_string())?;
                let memory = section.memory(config.limits.memory);
                let relays = RelaySet::hub(&relay, &state, &memory, entropy());
                let admission = Admission::new(section, &config.limits);
                let admission = admission.map_err(|error| error.to_string())?;
                let link_socket = link_sockets.pop().ok_or("no path")?;
                Engine::hub(
                    platform,
                    relays,
                    link_socket,
                    section,
                    admission,
                    &config.limits,
                    state,
                )
            }
            Role::Single(_) => return Err("a single gateway".to_owned()),
        };
        engine.map_err(words)
    }

    fn single(&mut self, node: usize, config: &Config) -> Result<Single, String> {
        let Role::Single(section) = &config.role else { return Err("a pair".to_owned()) };
        let platform = (platform(&self.net, node), self.net.net().now);
        let listeners = self.listen(node, &[Kind::Transparent]).into_iter();
        let facing = listeners.map(|listener| Facing { listener, clients: node == 0 }).collect();
        Single::new(platform, section, &config.limits, facing).map_err(|error| error.to_string())
    }

    fn listen(&self, node: usize, kinds: &[Kind]) -> Vec<engine::Listener> {
        let listener = |&kind: &Kind| {
            let port = match kind {
                Kind::Transparent => 9999,
                Kind::Socks5 => 1080,
                Kind::HttpConnect => 8080,
                Kind::Dns => 53,
            };
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let mut net = self.net.net();
            let number = net.listeners.len();
            let (source, backlog) = (None, Default::default());
            net.listeners.push(Listener { node, kind, address, source, backlog, open: true });
            let socket = Box::new(MemoryListener { net: self.net.clone(), number });
            engine::Listener::new(socket, kind, (address, address))
        };
        kinds.iter().map(listener).collect()
    }
}

/// Returns whether a gateway with this configuration holds intercepted clients' SYNs.
pub(super) fn confirms(config: &Config) -> bool {
    match &config.role {
        Role::Terminal(section) => section.accept.others == AcceptMode::Confirm,
        Role::Hub(_) | Role::Single(_) => false,
    }
}
