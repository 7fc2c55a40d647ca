//! What a seed means: configurations, connections, faults.

use super::link::Link;
use super::net::{Answer, Record};
use super::task::{Ending, Plan, Reading, Side, Stage, Task, Way};
use super::world::{Act, LINKS, World};
use crate::{Config, PrivateKey, Role};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use units::{BitRate, Instant, RngStream, Span};

/// A storm before it begins.
pub(super) struct Mix {
    pub(super) seed: u64,
    pub(super) configs: [String; 2],
    pub(super) links: [Link; 2],
    pub(super) tasks: Vec<(Task, Answer)>,
    pub(super) names: BTreeMap<String, Record>,
    pub(super) acts: BTreeMap<Instant, Act>,
    pub(super) fickle: u64,
    pub(super) room: usize,
    pub(super) calm_at: Instant,
    /// Clients of proxies are answered when the server has answered.
    pub(super) confirms: bool,
    pub(super) harsh: bool,
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accept = if self.confirms { "confirm" } else { "early" };
        let [back, forward] = self.links.each_ref().map(|link| link.rate);
        let hostile = self.tasks.iter().filter(|(task, _)| task.hostile).count();
        write!(
            f,
            "seed {}: {accept}, {forward} forward, {back} back, loss {} per thousand, buffers of \
             {} octets, {} connections, {hostile} hostile, fickle {}, {:?}",
            self.seed,
            self.links[0].loss,
            self.room,
            self.tasks.len(),
            self.fickle,
            self.acts.values().collect::<Vec<_>>()
        )
    }
}

impl Mix {
    /// The storm of `seed`.
    pub(super) fn draw(seed: u64) -> Self {
        let mut rng = RngStream::new(seed, 0, "gateway/simulation/mix");
        let rng = &mut rng;
        let forward = BitRate::from_kbps(500 << rng.below(6));
        let back = if rng.chance(0.4) { BitRate::from_kbps(64 << rng.below(5)) } else { forward };
        let delay = Span::from_millis([5, 40, 280, 600][rng.below(4) as usize]);
        let links = [back, forward].map(|rate| draw_link(rng, rate, delay));
        let calm_at = Instant::ZERO + Span::from_secs(6 + rng.below(10));
        let confirms = rng.chance(0.5);
        let (acts, harsh) = draw_acts(rng, calm_at);
        let (mut names, mut tasks) = (BTreeMap::new(), Vec::new());
        let budget = forward.bytes_in(Span::from_secs(10)).min(1_500_000);
        let count = 2 + rng.below(22);
        let crowd = rng.chance(0.2).then(|| draw_start(rng, calm_at));
        for number in 0..count as usize {
            let task = draw_task(rng, number, (calm_at, budget / count), &mut names);
            let answer = draw_answer(rng);
            tasks.push((Task { start: crowd.unwrap_or(task.start), ..task }, answer));
        }
        let fickle = if rng.chance(0.6) { rng.below(200) } else { 0 };
        let room = 1024 << rng.below(9);
        let configs = draw_configs(rng, confirms, [back, forward], delay);
        let slow = |link: &Link| link.loss > 30 || link.rate < BitRate::from_mbps(1);
        let harsh = harsh || links.iter().any(slow);
        Self { seed, configs, links, tasks, names, acts, fickle, room, calm_at, confirms, harsh }
    }

    pub(super) fn world(&self) -> Result<World, String> {
        let mut configs = Vec::new();
        for text in &self.configs {
            let mut config = Config::parse("storm.toml", text).map_err(|all| all.to_string())?;
            if let Role::Hub(hub) = &mut config.role {
                // The machine's own addresses are no part of the simulation.
                hub.guarded = false;
            }
            configs.push(config);
        }
        let configs: [Config; 2] = configs.try_into().map_err(|_| "two configurations")?;
        let mut world = World::new(self.seed, configs, self.links.clone())?;
        world.acts = self.acts.clone();
        {
            let mut net = world.net.net();
            (net.fickle, net.room) = (self.fickle, self.room);
            net.names = self.names.clone();
            for (task, answer) in &self.tasks {
                net.servers.insert(task.server, (*answer, task.number));
            }
        }
        world.tasks = self.tasks.iter().map(|(task, _)| task.clone()).collect();
        Ok(world)
    }

    /// The storm is over: links, calls and descriptors are as they should be.
    pub(super) fn calm(&self, world: &mut World) {
        let mut net = world.net.net();
        net.links.values_mut().for_each(Link::calm_down);
        net.fickle = 0;
        net.path_mtu = 1500;
        net.nodes.iter_mut().for_each(|node| node.limit = 100_000);
    }

    /// Whether the server of a task answers, and its name has an address.
    pub(super) fn is_reachable(&self, task: &Task) -> bool {
        self.tasks[task.number].1 == Answer::Accept && self.has_address(task)
    }

    fn has_address(&self, task: &Task) -> bool {
        let Way::Socks(Some(name)) = &task.way else { return true };
        self.names.get(name).is_some_and(|record| !record.addresses.is_empty())
    }

    /// The code with which a proxy refuses a connection of `task`, where it is known.
    pub(super) fn refusal(&self, task: &Task) -> Option<u16> {
        if !matches!(task.way, Way::Socks(_)) {
            return None;
        }
        match (self.has_address(task), self.tasks[task.number].1) {
            (false, _) => Some(4),
            (true, Answer::Refuse) => Some(5),
            (true, Answer::Unreachable) => Some(3),
            (true, Answer::Discard) => Some(6),
            (true, Answer::Accept) => None,
        }
    }

    /// Whether descriptors run out, so that connections may be refused.
    pub(super) fn is_short(&self) -> bool {
        self.acts.values().any(|act| matches!(act, Act::Descriptors(..)))
    }

    /// Whether the link or a gateway fails in a way that costs time.
    pub(super) fn is_harsh(&self) -> bool {
        self.harsh
    }
}

fn draw_link(rng: &mut RngStream, rate: BitRate, delay: Span) -> Link {
    let mut link = Link::calm(rate, delay);
    if rng.chance(0.5) {
        link.loss = rng.below(80);
    }
    if rng.chance(0.3) {
        link.duplicate = rng.below(60);
    }
    if rng.chance(0.3) {
        link.reorder = rng.below(120);
    }
    if rng.chance(0.2) {
        link.corrupt = rng.below(20);
    }
    link
}

fn draw_start(rng: &mut RngStream, calm_at: Instant) -> Instant {
    let within = calm_at.since(Instant::ZERO).as_millis().saturating_sub(1_500).max(1);
    Instant::ZERO + Span::from_millis(1_200 + rng.below(within))
}

fn draw_acts(rng: &mut RngStream, calm_at: Instant) -> (BTreeMap<Instant, Act>, bool) {
    let (mut acts, mut harsh) = (BTreeMap::new(), false);
    if rng.chance(0.35) {
        for _ in 0..1 + rng.below(3) {
            let length = Span::from_millis(100 << rng.below(7));
            acts.insert(draw_start(rng, calm_at), Act::Dark(rng.below(2) as usize, length));
            harsh = true;
        }
    }
    if rng.chance(0.2) {
        acts.insert(draw_start(rng, calm_at), Act::Restart(rng.below(2) as usize));
        harsh = true;
    }
    if rng.chance(0.15) {
        let act = Act::Descriptors(rng.below(2) as usize, rng.below(6) as usize);
        acts.insert(draw_start(rng, calm_at), act);
    }
    if rng.chance(0.2) {
        acts.insert(draw_start(rng, calm_at), Act::PathMtu(600 + rng.below(800) as usize));
        harsh = true;
    }
    (acts, harsh)
}

fn draw_answer(rng: &mut RngStream) -> Answer {
    match rng.below(20) {
        0 | 1 => Answer::Refuse,
        2 => Answer::Discard,
        3 => Answer::Unreachable,
        _ => Answer::Accept,
    }
}

fn draw_plan(rng: &mut RngStream, most: u64) -> Plan {
    let bytes = match rng.below(6) {
        0 => 0,
        1 => 1 + rng.below(20),
        _ => rng.below(most.max(1) * 2),
    };
    let ending = match rng.below(12) {
        0 => Ending::Reset,
        1 => Ending::Close,
        _ => Ending::Fin,
    };
    let reading = match rng.below(10) {
        0 => Reading::Slowly(500 << rng.below(6)),
        _ => Reading::All,
    };
    Plan { bytes, ending, reading, answers: false }
}

fn draw_task(
    rng: &mut RngStream,
    number: usize,
    (calm_at, most): (Instant, u64),
    names: &mut BTreeMap<String, Record>,
) -> Task {
    let server = SocketAddr::from(([192, 0, 2, 1 + rng.below(9) as u8], 2000 + number as u16));
    let mut way = match rng.below(10) {
        0..=2 => Way::Intercepted,
        3 | 4 => Way::Connect,
        _ => Way::Socks(None),
    };
    if way == Way::Socks(None) && rng.chance(0.4) {
        let name = format!("s{number}.test");
        let addresses = if rng.chance(0.85) { vec![server.ip()] } else { Vec::new() };
        // A name server that never answers is given up long before this.
        let never = addresses.is_empty() && rng.chance(0.5);
        let after = Span::from_millis(if never { 3_600_000 } else { 1 << rng.below(12) });
        names.insert(name.clone(), Record { addresses, after });
        way = Way::Socks(Some(name));
    }
    let [mut client, mut service] = [(); 2].map(|()| draw_plan(rng, most));
    // At most one of the two waits for the other, or both would.
    match rng.below(4) {
        0 => client.answers = true,
        1 | 2 => service.answers = true,
        _ => {}
    }
    let hostile = rng.chance(0.12);
    if hostile {
        match rng.below(5) {
            0 => way = Way::Silence,
            1 => way = Way::Nonsense,
            2 => client.reading = Reading::Never,
            3 => client.ending = Ending::Vanish,
            _ => service.ending = Ending::Vanish,
        }
        if client.reading == Reading::Never {
            service.bytes = 300_000;
            client.ending = Ending::Reset;
            client.answers = false;
        }
    }
    let from = SocketAddr::from(([10, 1, 0, 1 + rng.below(5) as u8], 30_000 + number as u16));
    Task {
        number,
        start: draw_start(rng, calm_at),
        way,
        from,
        server,
        stage: Stage::Waiting,
        sides: [Side::new(client), Side::new(service)],
        excused: false,
        hostile,
        finished: None,
    }
}

fn draw_configs(
    rng: &mut RngStream,
    confirms: bool,
    [back, forward]: [BitRate; 2],
    delay: Span,
) -> [String; 2] {
    let accept = if confirms { "confirm" } else { "early" };
    let first_bytes = if rng.chance(0.3) { "0ms" } else { "4ms" };
    let told = match rng.chance(0.6) {
        true => format!(
            "rate_up = \"{}kbit\"\nrate_down = \"{}kbit\"\n",
            back.as_bps() / 1000,
            forward.as_bps() / 1000
        ),
        false => String::new(),
    };
    let memory = if rng.chance(0.3) { "memory = \"4mb\"\n" } else { "" };
    let limits = format!("[limits]\nconnect = \"5s\"\nvanished = \"15s\"\n{memory}");
    let round_trip = delay.as_millis() * 2;
    let keys = [(); 2].map(|()| PrivateKey::generate(rng));
    let secret = rng.chance(0.5);
    let security = |own: usize| match secret {
        true => format!("private_key = \"{}\"\n", keys[own].to_text()),
        false => "security = \"none\"\n".to_owned(),
    };
    let [(terminal, _), (hub, _)] = LINKS.map(|(ip, port)| (SocketAddr::from((ip, port)), 0));
    let public = |of: usize| keys[of].public();
    let (peer_key, known) = match secret {
        true => (
            format!("peer_public_key = \"{}\"\n", public(1)),
            format!("[[terminal]]\nname = \"boat\"\npublic_key = \"{}\"\n", public(0)),
        ),
        false => (String::new(), String::new()),
    };
    [
        format!(
            "role = \"terminal\"\nname = \"boat\"\naccept = \"{accept}\"\n{}\
             [link]\nlisten = \"{terminal}\"\npeer = \"{hub}\"\n{peer_key}{told}\
             round_trip = \"{round_trip}ms\"\n[socks5]\nlisten = \"127.0.0.1:1080\"\n\
             [connect]\nlisten = \"127.0.0.1:8080\"\n{limits}first_bytes = \"{first_bytes}\"\n",
            security(0)
        ),
        format!(
            "role = \"hub\"\n{}[link]\nlisten = \"{hub}\"\n{told}round_trip = \"{round_trip}ms\"\n\
             {limits}memory_total = \"64mb\"\n{known}",
            security(1)
        ),
    ]
}
