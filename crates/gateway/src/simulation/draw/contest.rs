//! Honest clients beside a hostile one, on links without faults.
//!
//! The hostile client begins [`LEAD`] before the honest ones. These move one file each, all at the
//! same time and in the same direction, so the max-min share of each of them is the link's rate
//! divided by their number. A hostile client that takes bytes has a share like theirs; what one
//! that only opens connections costs comes off first.

use super::Storm;
use super::clients::{ATTACKS, Attack, Clients, IPV6};
use super::site::{Layout, Options, Site, server_address};
use crate::simulation::net::faults::Faults;
use crate::simulation::net::link::Link;
use crate::simulation::net::{Answer, Record};
use crate::simulation::task::{ClientKind, Ending, Plan, Reading, Task};
use std::collections::BTreeMap;
use units::{BitRate, Instant, RngStream, Span};

/// When the hostile client begins.
const BEGIN: Instant = Instant::from_nanos(2_000_000_000);
/// How long before the honest clients that is.
const LEAD: Span = Span::from_secs(8);
/// What an honest client moves takes this long at its share of the link.
const LENGTH: Span = Span::from_secs(5);
/// The gateway of the honest clients.
const HONEST_NODE: usize = 0;

/// Stream bytes of a full packet on a path of the least size that gateways assume, and the length
/// of that as a payload of UDP.
const PAYLOAD: (u64, u64) = (1_120, 1_200);

/// A storm of that kind.
pub(in crate::simulation) struct Contest {
    pub(in crate::simulation) storm: Storm,
    pub(in crate::simulation) attack: Attack,
    rate: BitRate,
    honest: u64,
    /// The hostile client is at another terminal.
    is_apart: bool,
}

impl Contest {
    /// The contest of `seed`.
    pub(in crate::simulation) fn draw(seed: u64) -> Self {
        let mut rng = RngStream::new(seed, 0, "gateway/simulation/contest");
        let rng = &mut rng;
        let attack = ATTACKS[rng.below(ATTACKS.len() as u64) as usize];
        let rate = BitRate::from_kbps(1000 << rng.below(3));
        let mut addresses = RngStream::new(seed, 0, "gateway/simulation/addresses");
        let options = options(rng, &mut addresses, rate);
        let delay = options.delay;
        let site = Site::new(rng, &options, &options, |_, rate| Link::calm(rate, delay));
        let honest = 1 + rng.below(3);
        let up = attack == Attack::TarpitServers || attack != Attack::Greed && rng.chance(0.3);
        let count = match attack {
            // As fast as one client may, for as long as the others are there.
            Attack::Churn | Attack::HalfOpen => 1_000 + rng.below(500),
            _ => 20 + rng.below(180),
        };
        let mut clients = Clients {
            rng,
            addresses,
            terminals: site.terminals(),
            intercepted: false,
            most: 0,
            names: BTreeMap::new(),
            dead: BTreeMap::new(),
            tasks: Vec::new(),
        };
        clients.add_crowd(BEGIN, attack, count as usize);
        let is_apart = clients.tasks.iter().any(|(task, _)| task.node != HONEST_NODE);
        for place in 0..honest {
            add_honest(&mut clients, place as u8, rate.bytes_in(LENGTH) / honest, up);
        }
        let Clients { names, dead, tasks, .. } = clients;
        let storm = Storm {
            seed,
            options,
            site,
            tasks,
            names,
            dead,
            acts: BTreeMap::new(),
            faults: Faults::default(),
            room: 16 * 1024,
            calm_at: BEGIN + LEAD + LENGTH,
            rough: false,
            harsh: false,
        };
        Self { storm, attack, rate, honest, is_apart }
    }

    /// When the honest clients begin.
    pub(in crate::simulation) fn begin(&self) -> Instant {
        BEGIN + LEAD
    }

    /// The max-min share of each honest client, in stream bytes, while the hostile one opens
    /// connections that cost `openings` bit/s.
    pub(in crate::simulation) fn share(&self, openings: u64) -> BitRate {
        let rate = self.rate.as_bps();
        // A hub divides its link among terminals first, and then among the clients of each.
        let equal = rate / if self.is_apart { 2 * self.honest } else { self.honest + 1 };
        let share = match self.attack {
            // It takes all that it is given, for as long as kernels and gateways have room for it.
            Attack::StalledReaders | Attack::TarpitServers | Attack::Greed => equal,
            _ => equal.max(rate.saturating_sub(openings) / self.honest),
        };
        let (bytes, datagram) = PAYLOAD;
        let headers = if self.storm.options.ipv6 { 48 } else { 28 };
        BitRate::from_bps(share * bytes / (datagram + headers))
    }
}

fn options(rng: &mut RngStream, addresses: &mut RngStream, rate: BitRate) -> Options {
    Options {
        layout: if rng.chance(0.3) { Layout::TwoTerminals } else { Layout::Pair },
        confirms: rng.chance(0.5),
        told: true,
        secret: rng.chance(0.5),
        first_data_wait: Span::from_millis(4),
        memory: rng.chance(0.5).then_some("4mb"),
        connections: if rng.chance(0.5) { 64 } else { 4096 },
        fail: ["wait", "refuse"],
        priorities: [1, 1],
        rates: [rate; 2],
        delay: Span::from_millis([20, 150, 300][rng.below(3) as usize]),
        ipv6: addresses.chance(IPV6),
        lends: addresses.chance(0.4),
    }
}

/// A client that moves `bytes`, `up` or down, and the server that it moves them with.
fn add_honest(clients: &mut Clients<'_>, place: u8, bytes: u64, up: bool) {
    let number = clients.tasks.len();
    let ipv6 = clients.addresses.chance(IPV6);
    let server = server_address(ipv6, 10, 2000 + number as u16);
    let kind = match clients.rng.below(4) {
        0 => ClientKind::Intercepted,
        1 => ClientKind::Connect,
        2 => ClientKind::Socks(None),
        _ => {
            let name = format!("h{number}.test");
            let (addresses, after) = (vec![server.ip()], Span::from_millis(20));
            clients.names.insert(name.clone(), Record { addresses, after });
            ClientKind::Socks(Some(name))
        }
    };
    let plan = |bytes, answers| Plan { bytes, ending: Ending::Fin, reading: Reading::All, answers };
    let plans = match up {
        true => [plan(bytes, false), plan(100, true)],
        false => [plan(100, false), plan(bytes, true)],
    };
    // Addresses that no hostile client has: slots are counted by address.
    let from = clients.from(&kind, server, (100, 1 + place), number);
    let ends = (HONEST_NODE, from, server);
    let task = Task::new((number, BEGIN + LEAD), kind, ends, plans);
    clients.tasks.push((task, Answer::Accept));
}
