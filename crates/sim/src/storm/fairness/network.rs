//! A hub, its terminals, and the link that they share.
//!
//! ```text
//!   clients ── terminal 0 ──┐  return link: one rate, one queue ┌── hub ── servers
//!   clients ── terminal 1 ──┼───────────────────────────────────┤
//!                           └─ forward link: one rate, one queue┘
//! ```

use super::super::fault::{Fault, FaultCounts};
use super::super::gateways::Ledger;
use super::super::report::Violation;
use super::link_direction::{HEADERS, LinkDirection, udp};
use super::plan::{BEGIN, Behaviour, Client, Direction, StormPlan};
use super::users::{ClientOctets, PRIORITY, Users, add_lost_packets};
use crate::{EventQueue, TraceHash};
use relay::{
    Destination, Event, Hub, Owner, PeerId, Relay, RelayConfig, StreamId, Target, TransmitBatch,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use units::{Instant, RngStream, Span};
use xstp::session::Coverage;

/// Octets of the header of a DATAGRAM frame.
const DATAGRAM_HEADER: u64 = 3;
/// Octets of IP, UDP and association headers of each segment, and of the header of an SD.
const LOWER_HEADERS: u64 = HEADERS + 24;
const SD_HEADER: u64 = 4;
/// Shortest interval between two iterations of the event loop.
const TICK: Span = Span::from_micros(10);
/// Maximum time until all terminals are connected.
const CONNECT: Span = Span::from_secs(60);

/// A scheduled action of a client.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// The client starts.
    Begin(usize),
    /// Opens the client's stream of this number.
    Open(usize, u32),
    /// The client's interval has passed.
    Tick(usize),
    /// Resets a stream.
    Reset(usize, StreamId),
}

/// The gateway of one terminal and its clients.
struct Site {
    relay: Relay,
    users: Users,
    wake: Option<Instant>,
    is_connected: bool,
}

/// All gateways, the link, and virtual time.
pub(super) struct Network<'m> {
    plan: &'m StormPlan,
    /// Maps a client to the quota owner of its streams.
    owner: fn(usize) -> Owner,
    configs: Vec<RelayConfig>,
    now: Instant,
    sites: Vec<Site>,
    hub: Hub,
    peers: BTreeMap<PeerId, usize>,
    servers: Vec<Users>,
    hub_wake: Option<Instant>,
    lines: [LinkDirection; 2],
    events: EventQueue<Action>,
    /// Of the terminals; the hub's is last.
    ledgers: Vec<Ledger>,
    fault_counts: FaultCounts,
    trace: TraceHash,
    /// Octets of unsplit packets that arrived for each client, by link direction.
    flooded: Vec<[u64; 2]>,
}

/// The source address of a terminal's datagrams.
fn address(terminal: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, terminal as u8)), 4500)
}

/// The address of a client; it contains the client's number.
fn source(client: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, client as u8)), 1000)
}

impl<'m> Network<'m> {
    pub(super) fn new(plan: &'m StormPlan, owner: fn(usize) -> Owner) -> Self {
        let configs = plan.configs();
        let rng = |run: usize, name: &str| RngStream::new(plan.seed, run as u64, name);
        let users = |is_hub| Users::new(plan.seed, is_hub, plan.clients.len());
        let sites = configs[..plan.terminals].iter().enumerate().map(|(number, config)| Site {
            relay: Relay::terminal(config, BEGIN, rng(number, "terminal")),
            users: users(false),
            wake: Some(BEGIN),
            is_connected: false,
        });
        Self {
            plan,
            owner,
            now: BEGIN,
            sites: sites.collect(),
            hub: Hub::new(&configs[plan.terminals], rng(0, "hub")),
            peers: BTreeMap::new(),
            servers: (0..plan.terminals).map(|_| users(true)).collect(),
            hub_wake: None,
            lines: [0, 1].map(|line| {
                LinkDirection::new(plan.lines[line], plan.terminals, rng(line, "line"))
            }),
            events: EventQueue::new(),
            ledgers: (0..=plan.terminals).map(|_| Ledger::new(false)).collect(),
            fault_counts: FaultCounts::default(),
            trace: TraceHash::new(),
            flooded: vec![[0; 2]; plan.clients.len()],
            configs,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn trace(&self) -> u64 {
        self.trace.value()
    }

    pub(super) fn fault_counts(&self) -> &FaultCounts {
        &self.fault_counts
    }

    pub(super) fn packets(&self) -> u64 {
        self.lines.iter().map(|line| line.packets).sum()
    }

    /// The session states and events that occurred.
    pub(super) fn coverage(&self) -> Coverage {
        let mut coverage = Coverage::default();
        self.ledgers.iter().for_each(|ledgers| coverage.merge(ledgers.coverage()));
        coverage
    }

    /// Runs until every terminal is connected, then schedules the start of the clients.
    pub(super) fn connect(&mut self) -> Result<(), Violation> {
        self.run(BEGIN + CONNECT, true)?;
        if !self.sites.iter().all(|site| site.is_connected) {
            return Err(Violation::new(format!("not all terminals are connected after {CONNECT}")));
        }
        for (number, client) in self.plan.clients.iter().enumerate() {
            self.events.push(self.now + client.at, Action::Begin(number));
        }
        Ok(())
    }

    /// Runs until `end`, or with `until_connected` until all terminals are connected.
    pub(super) fn run(&mut self, end: Instant, until_connected: bool) -> Result<(), Violation> {
        loop {
            if until_connected && self.sites.iter().all(|site| site.is_connected) {
                return Ok(());
            }
            let in_flight = self.lines.iter().filter_map(|line| line.in_flight.next_at());
            let wakes = self.sites.iter().filter_map(|site| site.wake);
            let next =
                in_flight.chain(wakes).chain(self.hub_wake).chain(self.events.next_at()).min();
            let Some(next) = next.filter(|&next| next <= end) else {
                self.now = self.now.max(end);
                return Ok(());
            };
            self.now = self.now.max(next);
            self.step();
            self.check()?;
            // Limits the rate of event-loop iterations.
            self.now += TICK;
        }
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some((_, (terminal, mut datagram))) = self.lines[1].in_flight.pop_due(now) {
            self.trace.event(now, terminal as u64, &datagram);
            // The association counts duplicates and damaged datagrams.
            let _ = self.sites[terminal].relay.handle_datagram(now, &mut datagram);
            self.sites[terminal].wake = Some(now);
        }
        while let Some((_, (terminal, mut datagram))) = self.lines[0].in_flight.pop_due(now) {
            self.trace.event(now, 1 << 8 | terminal as u64, &datagram);
            // The association counts duplicates and damaged datagrams.
            let _ = self.hub.handle_datagram(now, address(terminal), &mut datagram);
            self.hub_wake = Some(now);
        }
        while let Some((_, action)) = self.events.pop_due(now) {
            self.perform(action);
        }
        for terminal in 0..self.sites.len() {
            if self.sites[terminal].wake.is_some_and(|at| at <= now) {
                self.serve_terminal(terminal);
            }
        }
        if self.hub_wake.is_some_and(|at| at <= now) {
            self.serve_hub();
        }
    }

    fn serve_terminal(&mut self, terminal: usize) {
        let now = self.now;
        self.sites[terminal].relay.handle_timeout(now);
        self.attend_terminal(terminal);
        let mut buffer = [0; 1500];
        loop {
            let mut batch = TransmitBatch::new(&mut buffer, 1);
            if self.sites[terminal].relay.poll_transmit(now, &mut batch).is_none() {
                break;
            }
            for datagram in batch.datagrams() {
                if !self.lines[0].offer(now, terminal, datagram) {
                    self.fault_counts.count(Fault::Loss);
                }
            }
            self.attend_terminal(terminal);
        }
        let site = &mut self.sites[terminal];
        site.wake = site.relay.poll_timeout();
    }

    fn attend_terminal(&mut self, terminal: usize) {
        let Site { relay, users, is_connected, .. } = &mut self.sites[terminal];
        while let Some(event) = relay.poll_event() {
            self.ledgers[terminal].on_event(&event);
            *is_connected |= event == Event::Connected;
            users.on_event(self.now, &event, relay);
        }
        while let Some(packet) = relay.take_datagram() {
            self.flooded[usize::from(packet[15])][1] += packet.len() as u64 + DATAGRAM_HEADER;
        }
        self.ledgers[terminal].check_limits(self.now, None, relay, &self.configs[terminal]);
    }

    fn serve_hub(&mut self) {
        let now = self.now;
        self.hub.handle_timeout(now);
        self.attend_hub();
        let mut buffer = [0; 1500];
        loop {
            let mut batch = TransmitBatch::new(&mut buffer, 1);
            let Some((to, _)) = self.hub.poll_transmit(now, &mut batch) else { break };
            let terminal = match to.ip() {
                IpAddr::V4(ip) => usize::from(ip.octets()[3]),
                IpAddr::V6(_) => unreachable!("terminals have IPv4 addresses"),
            };
            for datagram in batch.datagrams() {
                if !self.lines[1].offer(now, terminal, datagram) {
                    self.fault_counts.count(Fault::Loss);
                }
            }
            self.attend_hub();
        }
        self.hub_wake = self.hub.poll_timeout();
    }

    fn attend_hub(&mut self) {
        let ledgers = &mut self.ledgers[self.plan.terminals];
        while let Some((peer, event)) = self.hub.poll_event() {
            ledgers.on_event(&event);
            let at = self.hub.address(peer);
            let terminal = *self.peers.entry(peer).or_insert_with(|| match at.map(|at| at.ip()) {
                Some(IpAddr::V4(ip)) => usize::from(ip.octets()[3]),
                Some(IpAddr::V6(_)) | None => unreachable!("terminals have IPv4 addresses"),
            });
            let users = &mut self.servers[terminal];
            let Some(relay) = self.hub.peer(peer) else { continue };
            if let Event::Opened { stream, target } = &event {
                let client = client_of(target);
                let Client { direction, behaviour, .. } = self.plan.clients[client];
                relay.set_owner(*stream, (self.owner)(client));
                if !matches!(behaviour, Behaviour::HalfOpen { .. }) {
                    // A stream that is already closed has an event in the queue.
                    let _ = relay.accept(*stream);
                }
                users.begin(self.now, (client, direction, behaviour), *stream, relay);
            } else {
                users.on_event(self.now, &event, relay);
            }
        }
        while let Some((_, packet)) = self.hub.take_datagram() {
            self.flooded[usize::from(packet[15])][0] += packet.len() as u64 + DATAGRAM_HEADER;
        }
        for &peer in self.peers.keys() {
            if let Some(relay) = self.hub.peer(peer) {
                ledgers.check_limits(
                    self.now,
                    Some(peer),
                    relay,
                    &self.configs[self.plan.terminals],
                );
            }
        }
    }

    fn check(&self) -> Result<(), Violation> {
        let users = self.sites.iter().map(|site| &site.users).chain(&self.servers);
        if let Some(error) = users.filter_map(Users::error).next() {
            return Err(Violation::new(error.to_owned()));
        }
        let mut ledgers = self.ledgers.iter().zip(&self.configs);
        ledgers.try_for_each(|(ledgers, config)| ledgers.check(&config.name))
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Begin(client) => self.begin(client),
            Action::Open(client, left) => {
                self.open(client);
                if left > 1 {
                    // Streams start at different times.
                    self.events
                        .push(self.now + Span::from_millis(1), Action::Open(client, left - 1));
                }
            }
            Action::Tick(client) => self.tick(client),
            Action::Reset(terminal, stream) => {
                let Site { relay, users, .. } = &mut self.sites[terminal];
                users.reset(stream, relay);
                self.sites[terminal].wake = Some(self.now);
            }
        }
    }

    fn begin(&mut self, client: usize) {
        let now = self.now;
        match self.plan.clients[client].behaviour {
            Behaviour::Bulk { streams }
            | Behaviour::Stall { streams, .. }
            | Behaviour::HalfOpen { streams } => {
                self.events.push(now, Action::Open(client, streams));
            }
            Behaviour::Drip { streams, every, .. } | Behaviour::Trickle { streams, every } => {
                self.events.push(now, Action::Open(client, streams));
                self.events.push(now + every, Action::Tick(client));
            }
            Behaviour::Churn { .. } | Behaviour::Flood { .. } => {
                self.events.push(now, Action::Tick(client));
            }
        }
    }

    /// Opens a stream for the client unless the hub's limits refuse it.
    fn open(&mut self, client: usize) -> Option<StreamId> {
        let Client { terminal, direction, behaviour, .. } = self.plan.clients[client];
        let Site { relay, users, wake, .. } = &mut self.sites[terminal];
        let target = Target::name("server.example", 80).from(source(client));
        let stream = relay.open(self.now, target, PRIORITY).ok()?;
        relay.set_owner(stream, (self.owner)(client));
        users.begin(self.now, (client, direction, behaviour), stream, relay);
        *wake = Some(self.now);
        Some(stream)
    }

    fn tick(&mut self, client: usize) {
        let Client { terminal, direction, behaviour, .. } = self.plan.clients[client];
        let every = match behaviour {
            Behaviour::Trickle { every, .. } => {
                self.allow(client, direction == Direction::Up, (1, 0));
                every
            }
            Behaviour::Drip { octets, every, .. } => {
                self.allow(client, direction == Direction::Down, (0, octets));
                every
            }
            Behaviour::Churn { every, reset, .. } => {
                if let (Some(stream), Some(after)) = (self.open(client), reset) {
                    self.events.push(self.now + after, Action::Reset(terminal, stream));
                }
                every
            }
            Behaviour::Flood { flows, dscp, octets, every } => {
                self.flood(client, (flows, dscp, octets));
                every
            }
            Behaviour::Bulk { .. } | Behaviour::Stall { .. } | Behaviour::HalfOpen { .. } => return,
        };
        self.events.push(self.now + every.max(TICK), Action::Tick(client));
    }

    /// Lets a client's streams continue at the terminal or at the hub.
    fn allow(&mut self, client: usize, at_terminal: bool, more: (u64, u64)) {
        let terminal = self.plan.clients[client].terminal;
        if at_terminal {
            let Site { relay, users, wake, .. } = &mut self.sites[terminal];
            users.allow(self.now, client, more, relay);
            *wake = Some(self.now);
        } else if let Some(relay) = self.peer_of(terminal).and_then(|peer| self.hub.peer(peer)) {
            self.servers[terminal].allow(self.now, client, more, relay);
            self.hub_wake = Some(self.now);
        }
    }

    fn peer_of(&self, terminal: usize) -> Option<PeerId> {
        self.peers.iter().find(|(_, at)| **at == terminal).map(|(&peer, _)| peer)
    }

    /// Sends one packet of a flood.
    fn flood(&mut self, client: usize, (flows, dscp, octets): (u16, u8, usize)) {
        let Client { terminal, direction, .. } = self.plan.clients[client];
        // The time selects the flow, so that all flows have about the same rate.
        let port = (self.now.as_nanos() / 1_000 % u64::from(flows)) as u16;
        let packet = udp(client, port, dscp, octets);
        let owner = (self.owner)(client);
        match direction {
            Direction::Up => {
                let Site { relay, wake, .. } = &mut self.sites[terminal];
                relay.send_datagram_as(self.now, &packet, (owner, None));
                *wake = Some(self.now);
            }
            Direction::Down => {
                let Some(peer) = self.peer_of(terminal) else { return };
                if let Some(relay) = self.hub.peer(peer) {
                    relay.send_datagram_as(self.now, &packet, (owner, None));
                }
                self.hub_wake = Some(self.now);
            }
        }
    }

    /// Octets of IP packets per link direction and terminal, and of these the octets of POLLs,
    /// STATs and USTATs, standalone or piggybacked.
    pub(super) fn octets(&mut self) -> [Vec<[u64; 2]>; 2] {
        let mut octets =
            self.lines.each_ref().map(|line| line.octets.iter().map(|&all| [all, 0]).collect());
        let [up, down]: &mut [Vec<[u64; 2]>; 2] = &mut octets;
        for (site, up) in self.sites.iter().zip(up) {
            up[1] = control(&site.relay);
        }
        for (peer, &terminal) in &self.peers {
            down[terminal][1] = self.hub.peer(*peer).map_or(0, |relay| control(relay));
        }
        octets
    }

    /// Octets of each client per link direction: payload read by its receiver, and everything sent
    /// for the client.
    pub(super) fn client_octets(&mut self) -> Vec<[ClientOctets; 2]> {
        let flooded =
            |&[up, down]: &[u64; 2]| [up, down].map(|sent| ClientOctets { sent, read: 0 });
        let mut sums: Vec<[ClientOctets; 2]> = self.flooded.iter().map(flooded).collect();
        for (terminal, site) in self.sites.iter_mut().enumerate() {
            add_lost_packets(self.plan, &mut sums, (terminal, Direction::Up), &site.relay);
            let (client_octets, _) = site.users.client_octets(&site.relay);
            for (sum, client_octets) in sums.iter_mut().zip(client_octets) {
                sum[0].sent += client_octets.sent;
                sum[1].read += client_octets.read;
            }
        }
        for (&peer, &terminal) in &self.peers {
            let Some(relay) = self.hub.peer(peer) else { continue };
            add_lost_packets(self.plan, &mut sums, (terminal, Direction::Down), relay);
            let (client_octets, lost) = self.servers[terminal].client_octets(relay);
            for (sum, client_octets) in sums.iter_mut().zip(client_octets) {
                sum[1].sent += client_octets.sent;
                sum[0].read += client_octets.read;
            }
            let resets = |client: &Client| {
                client.terminal == terminal
                    && matches!(client.behaviour, Behaviour::Churn { reset: Some(_), .. })
            };
            let resetters = self.plan.clients.iter().filter(|client| resets(client)).count() as u64;
            for (sum, client) in sums.iter_mut().zip(&self.plan.clients) {
                if resets(client) {
                    sum[1].sent += lost / resetters;
                }
            }
        }
        sums
    }
}

/// Octets that a session has sent in packets without data, and as control frames in packets with
/// data.
fn control(relay: &Relay) -> u64 {
    let Some(counted) = relay.session_statistics() else { return 0 };
    let data = counted.data_sent + counted.data_retransmitted;
    let payload = counted.data_bytes_sent + counted.data_bytes_retransmitted;
    let all = counted.octets_sent + counted.segments_sent * LOWER_HEADERS;
    all - payload - data * (LOWER_HEADERS + SD_HEADER)
}

/// Returns the client of a stream.
fn client_of(target: &Target) -> usize {
    debug_assert!(matches!(target.destination, Destination::Name(..)));
    match target.source.map(|source| source.ip()) {
        Some(IpAddr::V4(ip)) => usize::from(ip.octets()[3]),
        Some(IpAddr::V6(_)) | None => unreachable!("clients have IPv4 addresses"),
    }
}
