//! The run of a seed: gateways and their configurations, clients and servers, faults.

pub(super) mod clients;
pub(super) mod contest;
pub(super) mod site;
mod trouble;

use super::host::DESCRIPTORS;
use super::net::faults::{Call, Faults};
use super::net::link::Link;
use super::net::{Answer, NO_TASK, Record};
use super::task::{ClientKind, Ending, Task};
use super::world::{Act, World};
use clients::{ATTACKS, Clients, IPV6};
use site::{Layout, Options, Site};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use units::{BitRate, Instant, RngStream, Span};

/// The initial state of a run.
#[derive(Clone)]
pub(super) struct Storm {
    pub(super) seed: u64,
    pub(super) options: Options,
    pub(super) site: Site,
    pub(super) tasks: Vec<(Task, Answer)>,
    pub(super) names: BTreeMap<String, Record>,
    /// Addresses of names at which no server accepts, with the behaviour of the host there.
    pub(super) dead: BTreeMap<SocketAddr, Answer>,
    pub(super) acts: BTreeMap<Instant, Act>,
    pub(super) faults: Faults,
    pub(super) room: usize,
    /// End of all faults.
    pub(super) faults_end: Instant,
    /// Set if links or gateways have faults that delay connections.
    pub(super) rough: bool,
    /// Set if `rough`, or if a link is slow.
    pub(super) harsh: bool,
}

impl fmt::Display for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options {
            layout,
            confirms,
            rates_configured,
            fail,
            ipv6,
            uses_client_address,
            compress,
            rates: [back, forward],
            ..
        } = &self.options;
        let accept = if *confirms { "confirm" } else { "early" };
        let hostile = self.tasks.iter().filter(|(task, _)| task.hostile).count();
        let loss: Vec<u64> = self.site.links.iter().map(|(_, link)| link.loss).collect();
        write!(
            f,
            "seed {}: {layout:?}, {accept}, {forward} forward, {back} back, rates configured {rates_configured}, delay {}, \
             loss {loss:?} per thousand, buffers of {} octets, {} connections, {hostile} hostile, \
             partial {}, errors {:?}, fail {fail:?}, IPv6 {ipv6}, client addresses {uses_client_address}, compress {compress:?}, faults end at {:?}, {:?}",
            self.seed,
            self.options.delay,
            self.room,
            self.tasks.len(),
            self.faults.partial,
            self.faults.errors,
            self.faults_end,
            self.acts
        )
    }
}

impl Storm {
    /// Returns the run of `seed`.
    pub(super) fn draw(seed: u64) -> Self {
        let mut rng = RngStream::new(seed, 0, "gateway/simulation/storm");
        let rng = &mut rng;
        let mut addresses = RngStream::new(seed, 0, "gateway/simulation/addresses");
        let mut names = RngStream::new(seed, 0, "gateway/simulation/names");
        let mut options = options(rng, &mut addresses);
        let mut links = RngStream::new(seed, 0, "gateway/simulation/links");
        if options.layout == Layout::Pair && links.chance(0.25) {
            options.layout = Layout::TwoLinks;
        }
        let mut compression = RngStream::new(seed, 0, "gateway/simulation/compression");
        options.compress = [compression.chance(0.5), compression.chance(0.5)];
        options.dns = options.layout != Layout::Single && names.chance(0.4);
        let reloaded = reloaded(rng, &options);
        let delay = options.delay;
        let mut site =
            Site::new(rng, &options, &reloaded, |rng, rate| trouble::link(rng, rate, delay));
        let faults_end = Instant::ZERO + Span::from_secs(6 + rng.below(10));
        let (mut acts, mut harsh) = trouble::acts(rng, &site, faults_end);
        if options.layout == Layout::TwoLinks {
            let mut rng = RngStream::new(seed, 0, "gateway/simulation/bonded");
            harsh |= trouble::bonded(&mut rng, &mut acts, &mut site, faults_end);
        }
        if options.dns {
            trouble::add_queries(&mut names, &mut acts, &site, faults_end);
        }
        let acts = acts.into_iter().map(|(at, act)| (at, act.within(&options))).collect();
        let budget = options.rates[1].bytes_in(Span::from_secs(10)).min(1_500_000);
        let count = 2 + rng.below(22);
        let crowd = rng.chance(0.2).then(|| draw_start(rng, faults_end));
        let starts: Vec<Instant> =
            (0..count).map(|_| crowd.unwrap_or_else(|| draw_start(rng, faults_end))).collect();
        let attack = rng.chance(0.08).then(|| ATTACKS[rng.below(ATTACKS.len() as u64) as usize]);
        let faults = trouble::faults(rng);
        let room = 1024 << rng.below(9);
        let mut clients = Clients {
            rng,
            addresses,
            terminals: site.terminals(),
            intercepted: options.layout == Layout::Single,
            mean_octets: budget / count,
            names: BTreeMap::new(),
            dead: BTreeMap::new(),
            tasks: Vec::new(),
        };
        starts.into_iter().for_each(|start| clients.add(start));
        if let Some(attack) = attack {
            let (start, count) = (draw_start(clients.rng, faults_end), 5 + clients.rng.below(30));
            clients.add_crowd(start, attack, count as usize);
        }
        let Clients { names, dead, tasks, .. } = clients;
        let rough = harsh || site.links.iter().any(|(_, link)| link.loss > 30);
        let is_slow = |(_, link): &(_, Link)| link.rate < BitRate::from_mbps(1);
        let harsh = rough || site.links.iter().any(is_slow);
        Self {
            seed,
            options,
            site,
            tasks,
            names,
            dead,
            acts,
            faults,
            room,
            faults_end,
            rough,
            harsh,
        }
    }

    /// Creates the simulated world.
    ///
    /// # Errors
    /// Returns a message if a configuration is invalid.
    pub(super) fn world(&self) -> Result<World, String> {
        let mut world = World::new(self.seed, &self.site)?;
        world.acts = self.acts.clone();
        {
            let mut net = world.net.net();
            net.room = self.room;
            net.faults = self.faults.clone();
            net.names = self.names.clone();
            if self.options.dns {
                net.servers.insert(site::NAME_SERVER, (Answer::Accept, NO_TASK));
            }
            for (address, answer) in &self.dead {
                net.servers.insert(*address, (*answer, NO_TASK));
            }
            for (task, answer) in &self.tasks {
                net.servers.insert(task.server, (*answer, task.number));
            }
        }
        world.tasks = self.tasks.iter().map(|(task, _)| task.clone()).collect();
        // A client whose SYN is reinjected late is accepted as a new one, and one whose SYN was not
        // answered in time retransmits it.
        let may_come_again = self.harsh || self.is_short();
        for task in world.tasks.iter_mut().filter(|it| it.kind == ClientKind::Intercepted) {
            task.excuses.opened_again = may_come_again && self.site.can_hold[task.node];
        }
        Ok(world)
    }

    /// Ends all faults: links, calls and descriptors are without fault, and clients that never end
    /// by themselves close.
    pub(super) fn end_faults(&self, world: &mut World) {
        let mut net = world.net.net();
        net.links.values_mut().for_each(Link::end_faults);
        net.faults.end_faults();
        net.path_mtu = 1500;
        net.nodes.iter_mut().for_each(|node| node.limit = DESCRIPTORS);
        let stays =
            |task: &&mut Task| task.sides.iter().any(|side| side.plan.ending == Ending::Never);
        for task in world.tasks.iter_mut().filter(stays) {
            task.leave(&mut net);
        }
    }

    /// Returns whether the server of a task accepts, and its name has an address.
    pub(super) fn is_reachable(&self, task: &Task) -> bool {
        self.answer(task) == Answer::Accept && self.has_address(task)
    }

    /// Returns the response of a task's server to a SYN.
    pub(super) fn answer(&self, task: &Task) -> Answer {
        self.tasks[task.number].1
    }

    /// Returns the responses at all addresses that the name of a task's server has.
    pub(super) fn answers(&self, task: &Task) -> Vec<Answer> {
        let mut all = vec![self.answer(task)];
        if let ClientKind::Socks(Some(name)) = &task.kind
            && let Some(record) = self.names.get(name)
        {
            let port = task.server.port();
            let dead = |ip: &IpAddr| self.dead.get(&SocketAddr::new(*ip, port)).copied();
            all.extend(record.addresses.iter().filter_map(dead));
        }
        all
    }

    /// Returns whether the name that a task's client requests has an address; true if it requests
    /// none.
    pub(super) fn has_address(&self, task: &Task) -> bool {
        let ClientKind::Socks(Some(name)) = &task.kind else { return true };
        self.names.get(name).is_some_and(|record| !record.addresses.is_empty())
    }

    /// Returns whether descriptors run out, so that connections may be refused and idle ones reset.
    pub(super) fn is_short(&self) -> bool {
        let fails = |call| self.faults.errors.contains_key(&call);
        let acts = self.acts.values().any(|act| matches!(act, Act::Descriptors(..)));
        acts || fails(Call::Accept) || fails(Call::Connect)
    }
}

/// Returns a random time before the faults end, after the gateways have started.
fn draw_start(rng: &mut RngStream, faults_end: Instant) -> Instant {
    let within = faults_end.since(Instant::ZERO).as_millis().saturating_sub(1_500).max(1);
    Instant::ZERO + Span::from_millis(1_200 + rng.below(within))
}

fn options(rng: &mut RngStream, addresses: &mut RngStream) -> Options {
    const FAIL: [&str; 3] = ["wait", "refuse", "open"];
    let forward = BitRate::from_kbps(500 << rng.below(6));
    let back = if rng.chance(0.4) { BitRate::from_kbps(64 << rng.below(5)) } else { forward };
    let layout = match rng.below(10) {
        0..=4 => Layout::Pair,
        5 | 6 => Layout::TwoHubs,
        7 | 8 => Layout::TwoTerminals,
        _ => Layout::Single,
    };
    Options {
        layout,
        confirms: rng.chance(0.5),
        rates_configured: rng.chance(0.6),
        encrypted: rng.chance(0.5),
        first_data_wait: Span::from_millis(if rng.chance(0.3) { 0 } else { 4 }),
        memory: rng.chance(0.3).then_some("4mb"),
        connections: 4096,
        fail: [FAIL[rng.below(3) as usize], FAIL[rng.below(2) as usize]],
        priorities: [1, 1 + rng.below(2) as u32],
        rates: [back, forward],
        delay: Span::from_millis([5, 40, 280, 600][rng.below(4) as usize]),
        ipv6: addresses.chance(IPV6),
        uses_client_address: addresses.chance(0.4),
        dns: false,
        compress: [false; 2],
    }
}

/// Returns the options with random changes that a reload applies.
fn reloaded(rng: &mut RngStream, options: &Options) -> Options {
    Options {
        confirms: options.confirms != rng.chance(0.5),
        first_data_wait: Span::from_millis(rng.below(10)),
        connections: if rng.chance(0.5) { 2048 } else { 4096 },
        ..options.clone()
    }
}
