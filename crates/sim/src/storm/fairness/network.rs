//! A hub, its terminals, and the link that they share.
//!
//! ```text
//!   clients ── terminal 0 ──┐  line up: one rate, one queue   ┌── hub ── servers
//!   clients ── terminal 1 ──┼─────────────────────────────────┤
//!                           └── line down: one rate, one queue┘
//! ```

use super::super::fault::{Fault, Strikes};
use super::super::gateways::Books;
use super::super::report::Damage;
use super::line::{HEADERS, Line, udp};
use super::mix::{BEGIN, Client, Direction, Manner, Mix};
use super::users::{Carried, PRIORITY, Users, add_lost_packets};
use crate::{Agenda, TraceHash};
use relay::{
    Destination, Event, Hub, Owner, PeerId, Relay, RelayConfig, StreamId, Target, TransmitBatch,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use units::{Instant, RngStream, Span};
use xstp::session::Coverage;

/// Octets of the head of a DATAGRAM frame.
const HEAD: u64 = 3;
/// Octets of IP, UDP and association around each segment, and of the head of an SD.
const BELOW: u64 = HEADERS + 24;
const SD: u64 = 4;
/// The shortest time between two looks.
const TICK: Span = Span::from_micros(10);
/// How long terminals may take to connect.
const CONNECT: Span = Span::from_secs(60);

/// What clients do by themselves.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// The client begins.
    Begin(usize),
    /// It opens its stream with this number.
    Open(usize, u32),
    /// Its time has come again.
    Tick(usize),
    /// It resets a stream.
    Reset(usize, StreamId),
}

/// One terminal's gateway, and the clients behind it.
struct Site {
    relay: Relay,
    users: Users,
    wake: Option<Instant>,
    is_connected: bool,
}

/// Everything together, and time.
pub(super) struct Network<'m> {
    mix: &'m Mix,
    /// On whose account a client's streams are.
    owner: fn(usize) -> Owner,
    configs: Vec<RelayConfig>,
    now: Instant,
    sites: Vec<Site>,
    hub: Hub,
    peers: BTreeMap<PeerId, usize>,
    servers: Vec<Users>,
    hub_wake: Option<Instant>,
    lines: [Line; 2],
    agenda: Agenda<Act>,
    /// The terminals', and the hub's last.
    books: Vec<Books>,
    strikes: Strikes,
    trace: TraceHash,
    /// Octets of packets beside streams that arrived for each client, by line.
    flooded: Vec<[u64; 2]>,
}

/// Where a terminal's datagrams come from.
fn address(terminal: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, terminal as u8)), 4500)
}

/// Where a client is: its number is in the address.
fn source(client: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, client as u8)), 1000)
}

impl<'m> Network<'m> {
    pub(super) fn new(mix: &'m Mix, owner: fn(usize) -> Owner) -> Self {
        let configs = mix.configs();
        let rng = |run: usize, name: &str| RngStream::new(mix.seed, run as u64, name);
        let users = |is_hub| Users::new(mix.seed, is_hub, mix.clients.len());
        let sites = configs[..mix.terminals].iter().enumerate().map(|(number, config)| Site {
            relay: Relay::terminal(config, BEGIN, rng(number, "terminal")),
            users: users(false),
            wake: Some(BEGIN),
            is_connected: false,
        });
        Self {
            mix,
            owner,
            now: BEGIN,
            sites: sites.collect(),
            hub: Hub::new(&configs[mix.terminals], rng(0, "hub")),
            peers: BTreeMap::new(),
            servers: (0..mix.terminals).map(|_| users(true)).collect(),
            hub_wake: None,
            lines: [0, 1].map(|line| Line::new(mix.lines[line], mix.terminals, rng(line, "line"))),
            agenda: Agenda::new(),
            books: (0..=mix.terminals).map(|_| Books::new(false)).collect(),
            strikes: Strikes::default(),
            trace: TraceHash::new(),
            flooded: vec![[0; 2]; mix.clients.len()],
            configs,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn trace(&self) -> u64 {
        self.trace.value()
    }

    pub(super) fn strikes(&self) -> &Strikes {
        &self.strikes
    }

    pub(super) fn packets(&self) -> u64 {
        self.lines.iter().map(|line| line.packets).sum()
    }

    /// What sessions met.
    pub(super) fn coverage(&self) -> Coverage {
        let mut coverage = Coverage::default();
        self.books.iter().for_each(|books| coverage.merge(books.coverage()));
        coverage
    }

    /// Runs until every terminal is connected, and has the clients begin from then on.
    pub(super) fn connect(&mut self) -> Result<(), Damage> {
        self.run(BEGIN + CONNECT, true)?;
        if !self.sites.iter().all(|site| site.is_connected) {
            return Err(Damage::new(format!("not all are connected after {CONNECT}")));
        }
        for (number, client) in self.mix.clients.iter().enumerate() {
            self.agenda.put(self.now + client.at, Act::Begin(number));
        }
        Ok(())
    }

    /// Runs until `end`, or until all are connected when `until_connected`.
    pub(super) fn run(&mut self, end: Instant, until_connected: bool) -> Result<(), Damage> {
        loop {
            if until_connected && self.sites.iter().all(|site| site.is_connected) {
                return Ok(());
            }
            let flying = self.lines.iter().filter_map(|line| line.flying.next_at());
            let wakes = self.sites.iter().filter_map(|site| site.wake);
            let next = flying.chain(wakes).chain(self.hub_wake).chain(self.agenda.next_at()).min();
            let Some(next) = next.filter(|&next| next <= end) else {
                self.now = self.now.max(end);
                return Ok(());
            };
            self.now = self.now.max(next);
            self.step();
            self.verdict()?;
            // Nobody is served more often than that.
            self.now += TICK;
        }
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some((_, (terminal, mut datagram))) = self.lines[1].flying.take_due(now) {
            self.trace.event(now, terminal as u64, &datagram);
            // What came twice or was damaged is counted by the association.
            let _ = self.sites[terminal].relay.handle_datagram(now, &mut datagram);
            self.sites[terminal].wake = Some(now);
        }
        while let Some((_, (terminal, mut datagram))) = self.lines[0].flying.take_due(now) {
            self.trace.event(now, 1 << 8 | terminal as u64, &datagram);
            // As above.
            let _ = self.hub.handle_datagram(now, address(terminal), &mut datagram);
            self.hub_wake = Some(now);
        }
        while let Some((_, act)) = self.agenda.take_due(now) {
            self.perform(act);
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
                    self.strikes.count(Fault::Loss);
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
            self.books[terminal].note(&event);
            *is_connected |= event == Event::Connected;
            users.on_event(self.now, &event, relay);
        }
        while let Some(packet) = relay.take_datagram() {
            self.flooded[usize::from(packet[15])][1] += packet.len() as u64 + HEAD;
        }
        self.books[terminal].look(self.now, None, relay, &self.configs[terminal]);
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
                    self.strikes.count(Fault::Loss);
                }
            }
            self.attend_hub();
        }
        self.hub_wake = self.hub.poll_timeout();
    }

    fn attend_hub(&mut self) {
        let books = &mut self.books[self.mix.terminals];
        while let Some((peer, event)) = self.hub.poll_event() {
            books.note(&event);
            let at = self.hub.address(peer);
            let terminal = *self.peers.entry(peer).or_insert_with(|| match at.map(|at| at.ip()) {
                Some(IpAddr::V4(ip)) => usize::from(ip.octets()[3]),
                Some(IpAddr::V6(_)) | None => unreachable!("terminals have IPv4 addresses"),
            });
            let users = &mut self.servers[terminal];
            let Some(relay) = self.hub.peer(peer) else { continue };
            if let Event::Opened { stream, target } = &event {
                let client = client_of(target);
                let Client { direction, manner, .. } = self.mix.clients[client];
                relay.set_owner(*stream, (self.owner)(client));
                if !matches!(manner, Manner::HalfOpen { .. }) {
                    // One that is gone already has its event.
                    let _ = relay.accept(*stream);
                }
                users.begin(self.now, (client, direction, manner), *stream, relay);
            } else {
                users.on_event(self.now, &event, relay);
            }
        }
        while let Some((_, packet)) = self.hub.take_datagram() {
            self.flooded[usize::from(packet[15])][0] += packet.len() as u64 + HEAD;
        }
        for &peer in self.peers.keys() {
            if let Some(relay) = self.hub.peer(peer) {
                books.look(self.now, Some(peer), relay, &self.configs[self.mix.terminals]);
            }
        }
    }

    fn verdict(&self) -> Result<(), Damage> {
        let users = self.sites.iter().map(|site| &site.users).chain(&self.servers);
        if let Some(wrong) = users.filter_map(Users::wrong).next() {
            return Err(Damage::new(wrong.to_owned()));
        }
        let mut books = self.books.iter().zip(&self.configs);
        books.try_for_each(|(books, config)| books.verdict(&config.name))
    }

    fn perform(&mut self, act: Act) {
        match act {
            Act::Begin(client) => self.begin(client),
            Act::Open(client, left) => {
                self.open(client);
                if left > 1 {
                    // One after another, so that each has its own beginning.
                    self.agenda.put(self.now + Span::from_millis(1), Act::Open(client, left - 1));
                }
            }
            Act::Tick(client) => self.tick(client),
            Act::Reset(terminal, stream) => {
                let Site { relay, users, .. } = &mut self.sites[terminal];
                users.reset(stream, relay);
                self.sites[terminal].wake = Some(self.now);
            }
        }
    }

    fn begin(&mut self, client: usize) {
        let now = self.now;
        match self.mix.clients[client].manner {
            Manner::Bulk { streams }
            | Manner::Stall { streams, .. }
            | Manner::HalfOpen { streams } => self.agenda.put(now, Act::Open(client, streams)),
            Manner::Drip { streams, every, .. } | Manner::Trickle { streams, every } => {
                self.agenda.put(now, Act::Open(client, streams));
                self.agenda.put(now + every, Act::Tick(client));
            }
            Manner::Churn { .. } | Manner::Flood { .. } => self.agenda.put(now, Act::Tick(client)),
        }
    }

    /// Opens a stream for the client, if the hub lets it.
    fn open(&mut self, client: usize) -> Option<StreamId> {
        let Client { terminal, direction, manner, .. } = self.mix.clients[client];
        let Site { relay, users, wake, .. } = &mut self.sites[terminal];
        let target = Target::name("server.example", 80).from(source(client));
        let stream = relay.open(self.now, target, PRIORITY).ok()?;
        relay.set_owner(stream, (self.owner)(client));
        users.begin(self.now, (client, direction, manner), stream, relay);
        *wake = Some(self.now);
        Some(stream)
    }

    fn tick(&mut self, client: usize) {
        let Client { terminal, direction, manner, .. } = self.mix.clients[client];
        let every = match manner {
            Manner::Trickle { every, .. } => {
                self.allow(client, direction == Direction::Up, (1, 0));
                every
            }
            Manner::Drip { octets, every, .. } => {
                self.allow(client, direction == Direction::Down, (0, octets));
                every
            }
            Manner::Churn { every, reset, .. } => {
                if let (Some(stream), Some(after)) = (self.open(client), reset) {
                    self.agenda.put(self.now + after, Act::Reset(terminal, stream));
                }
                every
            }
            Manner::Flood { flows, dscp, octets, every } => {
                self.flood(client, (flows, dscp, octets));
                every
            }
            Manner::Bulk { .. } | Manner::Stall { .. } | Manner::HalfOpen { .. } => return,
        };
        self.agenda.put(self.now + every.max(TICK), Act::Tick(client));
    }

    /// Lets a client's streams go on at the terminal or at the hub.
    fn allow(&mut self, client: usize, at_terminal: bool, more: (u64, u64)) {
        let terminal = self.mix.clients[client].terminal;
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
        let Client { terminal, direction, .. } = self.mix.clients[client];
        // Which of the flows it is does not matter, so that all have their part.
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

    /// Octets of IP packets that went on each line for each terminal, and those of them that were no
    /// data: POLLs, STATs and USTATs, alone or beside data.
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

    /// What each client has had of each line: payload that was read at its end, and all that was
    /// sent on it for the client.
    pub(super) fn carried(&mut self) -> Vec<[Carried; 2]> {
        let flooded = |&[up, down]: &[u64; 2]| [up, down].map(|sent| Carried { sent, read: 0 });
        let mut sums: Vec<[Carried; 2]> = self.flooded.iter().map(flooded).collect();
        for (terminal, site) in self.sites.iter_mut().enumerate() {
            add_lost_packets(self.mix, &mut sums, (terminal, Direction::Up), &site.relay);
            let (carried, _) = site.users.carried(&site.relay);
            for (sum, carried) in sums.iter_mut().zip(carried) {
                sum[0].sent += carried.sent;
                sum[1].read += carried.read;
            }
        }
        for (&peer, &terminal) in &self.peers {
            let Some(relay) = self.hub.peer(peer) else { continue };
            add_lost_packets(self.mix, &mut sums, (terminal, Direction::Down), relay);
            let (carried, lost) = self.servers[terminal].carried(relay);
            for (sum, carried) in sums.iter_mut().zip(carried) {
                sum[1].sent += carried.sent;
                sum[0].read += carried.read;
            }
            let resets = |client: &Client| {
                client.terminal == terminal
                    && matches!(client.manner, Manner::Churn { reset: Some(_), .. })
            };
            let resetters = self.mix.clients.iter().filter(|client| resets(client)).count() as u64;
            for (sum, client) in sums.iter_mut().zip(&self.mix.clients) {
                if resets(client) {
                    sum[1].sent += lost / resetters;
                }
            }
        }
        sums
    }
}

/// Octets that a session has sent as IP packets without data in them, and as control beside data.
fn control(relay: &Relay) -> u64 {
    let Some(counted) = relay.session_statistics() else { return 0 };
    let data = counted.data_sent + counted.data_retransmitted;
    let payload = counted.data_bytes_sent + counted.data_bytes_retransmitted;
    let all = counted.octets_sent + counted.segments_sent * BELOW;
    all - payload - data * (BELOW + SD)
}

/// The client that a stream is for.
fn client_of(target: &Target) -> usize {
    debug_assert!(matches!(target.destination, Destination::Name(..)));
    match target.source.map(|source| source.ip()) {
        Some(IpAddr::V4(ip)) => usize::from(ip.octets()[3]),
        Some(IpAddr::V6(_)) | None => unreachable!("clients have IPv4 addresses"),
    }
}
