//! Two gateways, their clients and servers, and time.

use super::link::Link;
use super::net::{Listener, Net, Node, Shared};
use super::sockets::{MemoryHost, MemoryListener, platform};
use super::task::Task;
use crate::engine::Held;
use crate::engine::{self, Admission, Engine, Kind, LinkSocket, Machine, RelaySet};
use crate::gateway::{path_plans, relay_config};
use crate::state::State;
use crate::{Config, Role};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use units::{Instant, RngStream, Span};

/// Rounds in a row in which nothing moves and nothing has happened: an engine that goes round so
/// often has no end.
const MOST_STILL: u32 = 20_000;
/// Where the gateways are, terminal first.
pub(super) const LINKS: [([u8; 4], u16); 2] = [([10, 3, 0, 1], 7000), ([10, 3, 0, 2], 7000)];

/// A gateway at work.
struct Gateway {
    engine: Engine,
    config: Config,
    next: Instant,
    still: u32,
    moved: u64,
}

/// Something that happens at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing passes in this direction for so long.
    Dark(usize, Span),
    /// A gateway dies and begins anew.
    Restart(usize),
    /// So many more descriptors are left to a gateway.
    Descriptors(usize, usize),
    /// The first link takes packets of this size.
    PathMtu(usize),
}

/// What is simulated.
pub(super) struct World {
    pub(super) net: Shared,
    gateways: Vec<Gateway>,
    pub(super) tasks: Vec<Task>,
    listeners: [usize; 3],
    pub(super) acts: BTreeMap<Instant, Act>,
    rng: RngStream,
    entropy: RngStream,
    pub(super) rounds: u64,
}

impl World {
    /// Two gateways, of which the terminal comes first, on `links`.
    ///
    /// # Errors
    /// Where a configuration is wrong.
    pub(super) fn new(seed: u64, configs: [Config; 2], links: [Link; 2]) -> Result<Self, String> {
        let mut net = Net::new(RngStream::new(seed, 0, "gateway/simulation/net"));
        for (place, link) in LINKS.into_iter().zip(links) {
            net.links.insert(SocketAddr::from(place), link);
            net.nodes.push(Node { limit: 100_000, ..Node::default() });
        }
        let ports: [(_, u16); 3] =
            [(Kind::Transparent, 9999), (Kind::Socks5, 1080), (Kind::HttpConnect, 8080)];
        for (_, port) in ports {
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let backlog = Default::default();
            net.listeners.push(Listener { node: 0, address, source: None, backlog });
        }
        let mut world = Self {
            net: Shared::new(net),
            gateways: Vec::new(),
            tasks: Vec::new(),
            listeners: [0, 1, 2],
            acts: BTreeMap::new(),
            rng: RngStream::new(seed, 0, "gateway/simulation/costs"),
            entropy: RngStream::new(seed, 0, "gateway/simulation/entropy"),
            rounds: 0,
        };
        for (node, config) in configs.into_iter().enumerate() {
            let gateway = world.gateway(node, config)?;
            world.gateways.push(gateway);
        }
        Ok(world)
    }

    fn gateway(&mut self, node: usize, config: Config) -> Result<Gateway, String> {
        let now = self.net.net().now;
        let platform = (platform(&self.net, node), now);
        let state = State::open(None, 1_700_000_000);
        let seed = self.entropy.next_u64();
        let mut draws = 0;
        let mut entropy = || {
            draws += 1;
            RngStream::new(seed, draws, "gateway/simulation/entropy")
        };
        let ways = config.ways();
        let way = ways.first().ok_or("no path")?;
        let mut host = MemoryHost { net: self.net.clone(), node };
        let words = |error: std::io::Error| error.to_string();
        let link_socket = LinkSocket::open(way, &mut host).map_err(words)?;
        let engine = match &config.role {
            Role::Terminal(section) => {
                let plans = path_plans(&config, section, &state);
                let mut plans = plans.map_err(|error| error.to_string())?;
                plans.iter_mut().for_each(|plan| plan.relay.wall_clock_ns = 0);
                let relays = RelaySet::terminal(plans, config.health.demands, now, entropy);
                let bounds = (&config.limits, config.fail);
                let listeners = (self.listen(), None);
                Engine::terminal(
                    platform,
                    relays,
                    vec![link_socket],
                    section,
                    bounds,
                    listeners,
                    state,
                )
            }
            Role::Hub(section) => {
                let mut relay = relay_config(&config, &config.link);
                relay.wall_clock_ns = 0;
                relay.security = config.keys().map_err(|error| error.to_string())?;
                let memory = section.memory(config.limits.memory);
                let relays = RelaySet::hub(&relay, &state, &memory, entropy());
                let admission = Admission::new(section, &config.limits);
                let admission = admission.map_err(|error| error.to_string())?;
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
            Role::Single(_) => return Err("a gateway without a partner".to_owned()),
        };
        let engine = engine.map_err(words)?;
        Ok(Gateway { engine, config, next: now, still: 0, moved: 0 })
    }

    fn listen(&self) -> Vec<engine::Listener> {
        let kinds = [Kind::Transparent, Kind::Socks5, Kind::HttpConnect];
        let all = kinds.into_iter().zip(self.listeners).map(|(kind, number)| {
            let address = self.net.net().listeners[number].address;
            let socket = Box::new(MemoryListener { net: self.net.clone(), number });
            engine::Listener::new(socket, kind, (address, address))
        });
        all.collect()
    }

    /// The time.
    pub(super) fn now(&self) -> Instant {
        self.net.net().now
    }

    /// What each gateway holds.
    pub(super) fn held(&mut self) -> [Held; 2] {
        let mut all = self.gateways.iter_mut().map(|gateway| gateway.engine.held());
        [all.next().unwrap_or_default(), all.next().unwrap_or_default()]
    }

    /// Runs until `done`, or until then; whether it is done.
    ///
    /// # Errors
    /// What a gateway has done wrong.
    pub(super) fn run(
        &mut self,
        until: Instant,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> Result<bool, String> {
        loop {
            let now = self.now();
            self.net.net().advance(now);
            while let Some((&at, &act)) = self.acts.first_key_value()
                && at <= now
            {
                self.acts.remove(&at);
                self.act(now, act)?;
            }
            self.drive_tasks(now)?;
            for node in 0..self.gateways.len() {
                self.drive_gateway(now, node)?;
            }
            self.drive_tasks(now)?;
            if done(self) {
                return Ok(true);
            }
            let due = self.due();
            if due > until {
                self.net.net().now = until;
                return Ok(false);
            }
            self.net.net().now = due.max(now);
        }
    }

    fn due(&self) -> Instant {
        let net = self.net.net();
        let gateways = self.gateways.iter().map(|gateway| gateway.next);
        let tasks = self.tasks.iter().filter_map(Task::due);
        let acts = self.acts.first_key_value().map(|(at, _)| *at);
        let all = gateways.chain(tasks).chain(acts).chain(net.due());
        all.min().unwrap_or(Instant::FAR_FUTURE)
    }

    fn drive_tasks(&mut self, now: Instant) -> Result<(), String> {
        let mut net = self.net.net();
        let woken = std::mem::take(&mut net.woken);
        for task in &mut self.tasks {
            let is_due = task.due().is_some_and(|due| due <= now);
            if is_due || woken.contains(&task.number) {
                task.drive(&mut net, self.listeners)?;
            }
        }
        Ok(())
    }

    fn drive_gateway(&mut self, now: Instant, node: usize) -> Result<(), String> {
        let gateway = &mut self.gateways[node];
        let mut news = false;
        loop {
            let ready = self.net.net().next_ready(node);
            let Some((source, ready)) = ready else { break };
            news = true;
            gateway.engine.handle_readiness(now, source, ready);
        }
        if !news && now < gateway.next {
            return Ok(());
        }
        self.rounds += 1;
        let busy = gateway.engine.round(now);
        // There is no packet filter: it does at once what it is told.
        if let Some(pass) = gateway.engine.wanted_bypass(now) {
            gateway.engine.set_bypass(pass, false);
        }
        if gateway.engine.wants_filter(now) {
            let filter = gateway.engine.filter();
            gateway.engine.set_applied_filter(now, Some(filter));
        }
        let moved = gateway.engine.moved();
        gateway.still = if news || moved != gateway.moved { 0 } else { gateway.still + 1 };
        gateway.moved = moved;
        if gateway.still > MOST_STILL {
            return Err(format!(
                "gateway {node} goes round without end: due {:?} at {now:?}, {:?}",
                gateway.engine.poll_timeout(now),
                gateway.engine.held()
            ));
        }
        let cost = Span::from_micros(20 + self.rng.below(100));
        let due = if busy { now } else { gateway.engine.poll_timeout(now) };
        gateway.next = due.max(now + cost);
        Ok(())
    }

    fn act(&mut self, now: Instant, act: Act) -> Result<(), String> {
        match act {
            Act::Dark(from, length) => {
                let address = SocketAddr::from(LINKS[from]);
                if let Some(link) = self.net.net().links.get_mut(&address) {
                    link.dark_until = now + length;
                }
            }
            Act::Restart(node) => self.restart(node)?,
            Act::Descriptors(node, left) => {
                let node = &mut self.net.net().nodes[node];
                node.limit = node.open + left;
            }
            Act::PathMtu(mtu) => self.net.net().path_mtu = mtu,
        }
        Ok(())
    }

    /// A gateway dies without a word, and another takes its place.
    fn restart(&mut self, node: usize) -> Result<(), String> {
        for task in &mut self.tasks {
            task.excused |= task.finished.is_none();
        }
        let dead = self.gateways.remove(node);
        let config = dead.config.clone();
        drop(dead);
        {
            let mut net = self.net.net();
            net.nodes[node].lookups.clear();
            net.nodes[node].updates.clear();
            // All listeners are the terminal's.
            let orphans: Vec<usize> = match node {
                0 => net.listeners.iter_mut().flat_map(|all| all.backlog.drain(..)).collect(),
                _ => Vec::new(),
            };
            for conn in orphans {
                net.nodes[node].open += 1;
                net.close(super::net::id_of(conn, 1), true);
            }
            net.nodes[node].limit = 100_000;
        }
        let gateway = self.gateway(node, config)?;
        self.gateways.insert(node, gateway);
        Ok(())
    }
}
