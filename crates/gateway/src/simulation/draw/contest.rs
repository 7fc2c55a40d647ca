//! Honest clients beside a hostile one, on links without faults.
//!
//! The hostile client starts [`LEAD`] before the honest ones. Each honest client transfers one
//! file, all at the same time and in the same direction, so the max-min share of each is the link's
//! rate divided by the number of clients. A hostile client that transfers data counts as one
//! client. For one that only opens connections, the rate of its openings is subtracted from the
//! link's rate first.

use super::Storm;
use super::clients::{ATTACKS, Attack, Clients, IPV6};
use super::site::{Layout, Options, Site, server_address};
use crate::simulation::net::faults::Faults;
use crate::simulation::net::link::Link;
use crate::simulation::net::{Answer, Record};
use crate::simulation::task::{ClientKind, Ending, Plan, Reading, Task};
use std::collections::BTreeMap;
use units::{BitRate, Instant, RngStream, Span};

/// Start of the hostile client.
const BEGIN: Instant = Instant::from_nanos(2_000_000_000);
/// Time from that to the start of the honest clients.
const LEAD: Span = Span::from_secs(8);
/// Time in which an honest client transfers its file at its share of the link.
const LENGTH: Span = Span::from_secs(5);
/// The gateway of the honest clients.
const HONEST_NODE: usize = 0;

/// Stream bytes of a full packet at the minimum path MTU that gateways assume, and the length of
/// that packet as a UDP payload.
const PAYLOAD: (u64, u64) = (1_120, 1_200);

/// A contest, and the run that contains it.
pub(in crate::simulation) struct Contest {
    pub(in crate::simulation) storm: Storm,
    pub(in crate::simulation) attack: Attack,
    rate: BitRate,
    honest: u64,
    /// The hostile client is at another terminal.
    is_apart: bool,
}

impl Contest {
    /// Returns the contest of `seed`.
    pub(in crate::simulation) fn draw(seed: u64) -> Self {
        let mut rng = RngStream::new(seed, 0, "gateway/simulation/contest");
        let rng = &mut rng;
        let attack = ATTACKS[rng.below(ATTACKS.len() as u64) as usize];
        let rate = BitRate::from_kbps(1000 << rng.below(3));
        let mut addresses = RngStream::new(seed, 0, "gateway/simulation/addresses");
        let options = options(rng, &mut addresses, rate);
        let delay = options.delay;
        let site = Site::new(rng, &options, &options, |_, rate| Link::ideal(rate, delay));
        let honest = 1 + rng.below(3);
        let up = attack == Attack::TarpitServers || attack != Attack::Greed && rng.chance(0.3);
        let count = match attack {
            // At the maximum rate of one client, for as long as the others run.
            Attack::Churn | Attack::HalfOpen => 1_000 + rng.below(500),
            _ => 20 + rng.below(180),
        };
        let mut clients = Clients {
            rng,
            addresses,
            terminals: site.terminals(),
            intercepted: false,
            mean_octets: 0,
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
            faults_end: BEGIN + LEAD + LENGTH,
            rough: false,
            harsh: false,
        };
        Self { storm, attack, rate, honest, is_apart }
    }

    /// Returns the time at which the honest clients start.
    pub(in crate::simulation) fn begin(&self) -> Instant {
        BEGIN + LEAD
    }

    /// Returns the max-min share of each honest client in stream bytes, while the hostile client
    /// opens connections that use `openings` bit/s.
    pub(in crate::simulation) fn share(&self, openings: u64) -> BitRate {
        let rate = self.rate.as_bps();
        // A hub divides its link among terminals first, and then among the clients of each.
        let equal = rate / if self.is_apart { 2 * self.honest } else { self.honest + 1 };
        let share = match self.attack {
            // It uses its whole share while kernels and gateways have buffer space for it.
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
        rates_configured: true,
        encrypted: rng.chance(0.5),
        first_data_wait: Span::from_millis(4),
        memory: rng.chance(0.5).then_some("4mb"),
        connections: if rng.chance(0.5) { 64 } else { 4096 },
        fail: ["wait", "refuse"],
        priorities: [1, 1],
        rates: [rate; 2],
        delay: Span::from_millis([20, 150, 300][rng.below(3) as usize]),
        ipv6: addresses.chance(IPV6),
        uses_client_address: addresses.chance(0.4),
        dns: false,
        compress: [false; 2],
    }
}

/// Adds a client that transfers `bytes`, `up` or down, and its server.
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
    // Addresses that no hostile client has, because slots are counted by address.
    let from = clients.from(&kind, server, (100, 1 + place), number);
    let ends = (HONEST_NODE, from, server);
    let task = Task::new((number, BEGIN + LEAD), kind, ends, plans);
    clients.tasks.push((task, Answer::Accept));
}
