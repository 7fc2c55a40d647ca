//! The star with gateways in place of STP connections: the relays of the product, one session for
//! each terminal, and the same MAC. The local networks of users and servers have no delay.
//!
//! ```text
//!   users ─ relay ─┐ MF-TDMA                       ┌─ servers
//!   users ─ relay ─┴────────── satellite ─── hub ──┴─ servers
//! ```
//!
//! This is what a live run would measure on hosts without processing delay. The difference of the
//! two is due to the hosts; the difference between this and [`Star::run`] is due to the protocol.

use super::{RequestModel, SiteReport, Star, StarReport};
use relay::{
    Control, Event, Hub, PeerId, Priority, Relay, RelayConfig, StreamId, Target, TransmitBatch,
};
use satlink::Frame;
use satlink::mac::mf_tdma::{Class, MfTdma};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use units::{Instant, RngStream, Serializer, Span};

/// Time for the gateways to connect before users start.
const SETUP: Span = Span::from_secs(8);
/// Octets of a response header, as of a plain HTTP server.
const HEAD: u64 = 39;
/// The smallest time step, as of clocks and event loops.
const STEP: Span = Span::from_micros(10);

/// Segments sent by gateways, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// Data packets, retransmissions included.
    pub data: u64,
    /// Retransmitted data packets.
    pub retransmitted: u64,
    /// POLLs.
    pub polls: u64,
    /// STATs and USTATs.
    pub reports: u64,
}

/// Results of a run with gateways.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewaysReport {
    /// Results of the users.
    pub report: StarReport,
    /// Segments sent by the terminals while users were active.
    pub terminals: Segments,
    /// Segments sent by the hub in the same time.
    pub hub: Segments,
}

/// An IP packet with a datagram in it.
#[derive(Clone)]
struct Packet(Vec<u8>);

impl Frame for Packet {
    fn len(&self) -> usize {
        self.0.len() + relay::IPV4_UDP
    }
}

struct User {
    site: usize,
    requests: RequestModel,
    stream: Option<StreamId>,
    /// When the next request is due; `None`: an object is outstanding.
    next: Option<Instant>,
    asked: Instant,
    received: u64,
    rng: RngStream,
    responses: Vec<(Instant, Span)>,
}

struct Terminal {
    relay: Relay,
    users: Vec<User>,
    noted: Option<Instant>,
}

struct World<'a> {
    star: &'a Star,
    now: Instant,
    hub: Hub,
    terminals: Vec<Terminal>,
    mac: MfTdma<Packet>,
    line: Serializer,
    /// Packets on the forward link.
    down: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    sequence: u64,
    wake: BTreeSet<(Instant, usize)>,
    /// Octets of requests received, by stream.
    requests: BTreeMap<(PeerId, StreamId), u64>,
    open: Vec<u32>,
    octets: [u64; 2],
}

impl Star {
    /// Runs the star with gateways that use `control`; users start after 8 s. The transports of
    /// [`Star::stack`], random access and outages are ignored.
    ///
    /// # Panics
    /// If the MAC's settings are invalid.
    pub fn run_gateways(&self, control: Control, seed: u64, run: u64) -> GatewaysReport {
        let mut world = World::new(self, control, seed, run);
        let begin = Instant::ZERO + SETUP;
        world.run_until(begin);
        let before = world.segments_sent();
        let (octets, slots) = (world.octets, world.slots());
        world.run_until(begin + self.duration);
        let after = world.segments_sent();
        let slots_after = world.slots();
        let sites = (0..self.sites.len()).map(|site| world.site(site)).collect();
        let report = StarReport {
            sites,
            down: world.octets[0] - octets[0],
            up: world.octets[1] - octets[1],
            slots: (slots_after.0 - slots.0, slots_after.1 - slots.1),
            asked_and_free: (0, 0),
            access: (0, 0, 0),
            timeouts: 0,
            duration: self.duration,
            trace: 0,
        };
        let [terminals, hub] = [0, 1].map(|end| after[end].since(before[end]));
        GatewaysReport { report, terminals, hub }
    }
}

impl Segments {
    fn since(self, before: Self) -> Self {
        Self {
            data: self.data - before.data,
            retransmitted: self.retransmitted - before.retransmitted,
            polls: self.polls - before.polls,
            reports: self.reports - before.reports,
        }
    }

    fn add(&mut self, relay: &Relay) {
        let totals = relay.totals();
        self.data += totals.data_sent + totals.retransmitted;
        self.retransmitted += totals.retransmitted;
        self.polls += totals.polls;
        self.reports += totals.stats + totals.ustats;
    }
}

/// The address of a terminal.
fn address(terminal: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, (terminal >> 8) as u8, terminal as u8], 4500))
}

fn terminal_at(address: SocketAddr) -> usize {
    let SocketAddr::V4(address) = address else { unreachable!("an IPv4 address") };
    let [.., high, low] = address.ip().octets();
    usize::from(high) << 8 | usize::from(low)
}

impl<'a> World<'a> {
    fn new(star: &'a Star, control: Control, seed: u64, run: u64) -> Self {
        let (up, down) = (Some(star.mac.rate), Some(star.forward));
        let round_trip = (star.mac.terminals[0].up + star.mac.hub_leg) * 2;
        let config = |name: &str| RelayConfig {
            control,
            initial_rtt: round_trip,
            probe_mtu: true,
            max_terminals: star.mac.terminals.len().max(256),
            ..RelayConfig::new(name)
        };
        let hub = config("hub").with_rates(down, up);
        let hub = Hub::new(&hub, RngStream::new(seed, run, "sim/multi-access/hub"));
        let terminals = (0..star.mac.terminals.len()).map(|number| {
            let name = format!("terminal-{number}");
            let rng = RngStream::new(seed, run, &format!("sim/multi-access/{name}"));
            let relay = Relay::terminal(&config(&name).with_rates(up, down), Instant::ZERO, rng);
            Terminal { relay, users: users(star, number, seed, run), noted: None }
        });
        let channel = RngStream::new(seed, run, "sim/multi-access").next_u64();
        let mut world = Self {
            star,
            now: Instant::ZERO,
            hub,
            terminals: terminals.collect(),
            mac: MfTdma::new(&star.mac, channel, run).expect("the MAC's settings should be valid"),
            line: Serializer::new(star.forward),
            down: BTreeMap::new(),
            sequence: 0,
            wake: BTreeSet::new(),
            requests: BTreeMap::new(),
            open: vec![0; star.mac.terminals.len()],
            octets: [0; 2],
        };
        for number in 0..world.terminals.len() {
            // A weight is set by the hub, which has set none yet.
            world.mac.set_weight(Instant::ZERO, number, 1);
            world.run_terminal(number);
        }
        world
    }

    fn run_until(&mut self, end: Instant) {
        loop {
            self.serve_hub();
            let down = self.down.first_key_value().map(|(key, _)| key.0);
            let wake = self.wake.first().map(|key| key.0);
            let times = [down, wake, self.hub.poll_timeout(), self.mac.poll_timeout()];
            let next = times.into_iter().flatten().min().unwrap_or(end);
            if next > end || self.now >= end {
                self.now = end;
                return;
            }
            self.now = next.max(self.now + STEP);
            self.arrive();
            while let Some(&(_, number)) = self.wake.first().filter(|(at, _)| *at <= self.now) {
                self.terminals[number].relay.handle_timeout(self.now);
                self.run_terminal(number);
            }
            self.hub.handle_timeout(self.now);
        }
    }

    fn arrive(&mut self) {
        while let Some(arrived) = self.mac.poll_arrival(self.now) {
            self.octets[1] += arrived.frame.len() as u64;
            let (from, mut datagram) = (address(arrived.terminal), arrived.frame.0);
            // The relay counts rejected datagrams.
            let _ = self.hub.handle_datagram(self.now, from, &mut datagram);
        }
        while let Some(entry) = self.down.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (number, mut datagram) = entry.remove();
            let _ = self.terminals[number].relay.handle_datagram(self.now, &mut datagram);
            self.run_terminal(number);
        }
    }

    /// Runs a terminal and its users, and stores when to do so again.
    fn run_terminal(&mut self, number: usize) {
        let (now, mut buffer) = (self.now, [0; 1500]);
        loop {
            self.terminals[number].serve(now);
            let mut batch = TransmitBatch::new(&mut buffer, 1);
            let terminal = &mut self.terminals[number];
            if terminal.relay.poll_transmit(now, &mut batch).is_none() {
                break;
            }
            for datagram in batch.datagrams() {
                let packet = Packet(datagram.to_vec());
                // The MAC counts packets dropped at a full queue.
                let _ = self.mac.offer(now, number, Class::Data, packet);
            }
        }
        let terminal = &mut self.terminals[number];
        if let Some(at) = terminal.noted.take() {
            self.wake.remove(&(at, number));
        }
        let users = terminal.users.iter().filter_map(|user| user.next);
        let next = users.chain(terminal.relay.poll_timeout()).min();
        terminal.noted = next.map(|at| at.max(now + STEP));
        self.wake.extend(terminal.noted.map(|at| (at, number)));
    }

    fn serve_hub(&mut self) {
        let mut buffer = [0; 1500];
        loop {
            self.hub_events();
            let mut batch = TransmitBatch::new(&mut buffer, 1);
            let Some((to, _)) = self.hub.poll_transmit(self.now, &mut batch) else { return };
            let first = &self.star.mac.terminals[0];
            for datagram in batch.datagrams() {
                let octets = (datagram.len() + relay::IPV4_UDP) as u64;
                self.octets[0] += octets;
                let at = self.line.send(self.now, octets) + first.up + self.star.mac.hub_leg;
                self.sequence += 1;
                self.down.insert((at, self.sequence), (terminal_at(to), datagram.to_vec()));
            }
        }
    }

    fn hub_events(&mut self) {
        while let Some((peer, event)) = self.hub.poll_event() {
            let number = self.hub.address(peer).map(terminal_at);
            let Some((relay, number)) = self.hub.peer(peer).zip(number) else { continue };
            match event {
                Event::Opened { stream, .. } => {
                    // A stream that is already closed has an event in the queue.
                    let _ = relay.accept(stream);
                    self.requests.insert((peer, stream), 0);
                    self.open[number] += 1;
                    self.mac.set_weight(self.now, number, self.open[number]);
                }
                Event::Readable { stream } => {
                    let came = self.requests.entry((peer, stream)).or_default();
                    let sites = &mut self.star.sites.iter();
                    let Some(site) = sites.find(|site| site.terminal == number) else { continue };
                    let requests = site.requests;
                    let before = *came / requests.request;
                    *came += read(self.now, relay, stream);
                    let answers = (*came / requests.request - before) * (requests.object + HEAD);
                    let answer = vec![0; answers as usize];
                    let taken = relay.write(self.now, stream, &answer);
                    assert_eq!(taken.ok(), Some(answer.len()), "a send buffer for all answers");
                }
                _ => {}
            }
        }
    }

    fn site(&self, site: usize) -> SiteReport {
        let users = || {
            let all = self.terminals.iter().flat_map(|terminal| &terminal.users);
            all.filter(move |user| user.site == site)
        };
        let mut responses: Vec<(Instant, Span)> =
            users().flat_map(|user| user.responses.iter().copied()).collect();
        responses.sort_unstable();
        SiteReport {
            connections: users().count(),
            responses,
            received: users().map(|user| user.received).sum(),
            sent: 0,
            lost: 0,
        }
    }

    fn slots(&self) -> (u64, u64) {
        let each = (0..self.terminals.len()).map(|number| self.mac.terminal(number));
        each.fold((0, 0), |(granted, used), one| (granted + one.granted, used + one.used))
    }

    /// Segments sent by the terminals and by the hub.
    fn segments_sent(&self) -> [Segments; 2] {
        let mut all = [Segments::default(); 2];
        self.terminals.iter().for_each(|terminal| all[0].add(&terminal.relay));
        self.hub.relays().for_each(|(_, relay)| all[1].add(relay));
        all
    }
}

fn users(star: &Star, terminal: usize, seed: u64, run: u64) -> Vec<User> {
    let mut users = Vec::new();
    let sites = star.sites.iter().enumerate().filter(|(_, site)| site.terminal == terminal);
    for (place, site) in sites {
        for user in 0..site.connections {
            let name = format!("sim/multi-access/users/{place}/{user}");
            let mut rng = RngStream::new(seed, run, &name);
            let next = Instant::ZERO + SETUP + rng.exponential_span(site.requests.think);
            users.push(User {
                site: place,
                requests: site.requests,
                stream: None,
                next: Some(next),
                asked: Instant::ZERO,
                received: 0,
                rng,
                responses: Vec::new(),
            });
        }
    }
    users
}

impl Terminal {
    fn serve(&mut self, now: Instant) {
        while let Some(event) = self.relay.poll_event() {
            if let Event::Readable { stream } = event
                && let Some(user) = self.users.iter_mut().find(|user| user.stream == Some(stream))
            {
                user.read(now, &mut self.relay, stream);
            }
        }
        for user in &mut self.users {
            if user.next.is_some_and(|at| at <= now) {
                user.ask(now, &mut self.relay);
            }
        }
    }
}

impl User {
    fn ask(&mut self, now: Instant, relay: &mut Relay) {
        (self.next, self.asked) = (None, now);
        let target = Target::name("server", 80);
        let opened = self.stream.or_else(|| relay.open(now, target, Priority::Normal).ok());
        let stream = opened.expect("a stream for each user");
        self.stream = Some(stream);
        let request = vec![0; self.requests.request as usize];
        let taken = relay.write(now, stream, &request);
        assert_eq!(taken.ok(), Some(request.len()), "a send buffer for all requests");
    }

    fn read(&mut self, now: Instant, relay: &mut Relay, stream: StreamId) {
        let whole = self.requests.object + HEAD;
        let before = self.received / whole;
        self.received += read(now, relay, stream);
        if self.received / whole > before {
            self.responses.push((now, now.since(self.asked)));
            self.next = Some(now + self.rng.exponential_span(self.requests.think));
        }
    }
}

/// Reads all available octets.
fn read(now: Instant, relay: &mut Relay, stream: StreamId) -> u64 {
    let mut all = 0;
    while let len @ 1.. = relay.peek(stream).len() {
        // `peek` has just returned these octets.
        let _ = relay.consume(now, stream, len);
        all += len as u64;
    }
    all
}
