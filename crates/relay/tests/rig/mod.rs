//! Two relays and a link with impairments under virtual time, and applications on both ends that
//! verify every octet.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part of the rig")]

use relay::{
    DisconnectReason, Event, Hub, Owner, PeerId, Priority, RefuseReason, Relay, RelayConfig,
    ResetReason, StreamId, Target, TransmitBatch,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use units::{BitRate, Instant, RngStream, Serializer, Span};

/// Probabilities of the impairments of each datagram.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub loss: f64,
    pub duplicate: f64,
    pub reorder: f64,
    pub corrupt: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Terminal,
    Hub,
}

/// Behaviour of an application on a stream.
#[derive(Clone, Debug, Default)]
pub struct App {
    /// Octets to write before the FIN.
    pub to_write: u64,
    pub written: u64,
    pub read: u64,
    /// Sends a FIN when all is written (and, for an echo, all is read).
    pub end: bool,
    pub end_sent: bool,
    /// Echoes what it reads.
    pub echo: bool,
    /// Its peer echoes.
    pub echoed: bool,
    /// Does not read.
    pub deaf: bool,
    /// Reads so many octets and then stops.
    pub deaf_after: Option<u64>,
    pub accepted: bool,
    pub ended: bool,
    pub refused: Option<RefuseReason>,
    pub reset: Option<ResetReason>,
    pub released: bool,
    pub opened_at: Instant,
    pub first_byte_at: Option<Instant>,
    pub ended_at: Option<Instant>,
}

impl App {
    /// Writes `bytes` and sends a FIN.
    pub fn writer(bytes: u64) -> Self {
        Self { to_write: bytes, end: true, ..Self::default() }
    }

    pub fn is_over(&self) -> bool {
        self.released || self.refused.is_some() || self.reset.is_some()
    }
}

/// Returns the octet at `offset` of a stream in either direction.
pub fn pattern(stream: StreamId, back: bool, offset: u64) -> u8 {
    let mixed = (offset ^ u64::from(stream.number()) << 20 ^ u64::from(back) << 60)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

type Key = (Side, StreamId);

/// A further path of the terminal.
pub struct Link {
    pub delay: Span,
    /// End of an outage.
    pub dark_until: Instant,
    lines: [Serializer; 2],
    /// Octets at the IP layer that each side has sent.
    pub octets: [u64; 2],
}

pub struct Rig {
    pub now: Instant,
    pub terminal: Relay,
    pub hub: Hub,
    pub terminal_config: RelayConfig,
    pub hub_config: RelayConfig,
    pub faults: Faults,
    /// One direction.
    pub delay: Span,
    /// Path MTU of IP packets.
    pub path_mtu: usize,
    /// End of an outage.
    pub dark_until: Instant,
    lines: [Serializer; 2],
    /// Further paths; the first one is described by the fields above.
    pub links: Vec<Link>,
    queue: Span,
    wire: BTreeMap<(Instant, u64), (Side, usize, Vec<u8>)>,
    sequence: u64,
    rng: RngStream,
    pub peer: Option<PeerId>,
    pub apps: BTreeMap<Key, App>,
    /// All events, for tests that inspect them.
    pub disconnected: Vec<(Side, DisconnectReason)>,
    /// Streams that are closed in both directions, and the octets read from each.
    pub over: Vec<(Side, StreamId, u64)>,
    pub connected: Vec<(Side, Instant)>,
    /// Octets and packets at the IP layer that each side has sent.
    pub offered: [(u64, u64); 2],
    /// Maximum receive buffer of each side.
    pub fullest: [usize; 2],
    seed: u64,
}

/// The client of a stream.
fn owner(target: &Target) -> Owner {
    let source = target.source.map(|source| source.ip());
    match source {
        Some(IpAddr::V4(address)) => Owner(u128::from(u32::from(address))),
        Some(IpAddr::V6(_)) | None => Owner::default(),
    }
}

/// Returns the address of the terminal on a path.
fn home(path: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + path as u8], 4500))
}

impl Rig {
    /// Creates two relays with one-way delays of 300 ms, and `rate` from the hub and to it.
    pub fn new(seed: u64, down: BitRate, up: BitRate) -> Self {
        let terminal = RelayConfig::new("boat").with_rates(Some(up), Some(down));
        let hub = RelayConfig::new("hub").with_rates(Some(down), Some(up));
        Self::with(seed, terminal, hub)
    }

    pub fn with(seed: u64, terminal: RelayConfig, hub: RelayConfig) -> Self {
        let line = |rate: Option<BitRate>| Serializer::new(rate.unwrap_or(BitRate::from_mbps(10)));
        let now = Instant::ZERO + Span::from_secs(1);
        Self {
            now,
            terminal: Relay::terminal(&terminal, now, RngStream::new(seed, 0, "terminal")),
            hub: Hub::new(&hub, RngStream::new(seed, 0, "hub")),
            faults: Faults::default(),
            delay: Span::from_millis(300),
            path_mtu: 1500,
            dark_until: Instant::ZERO,
            lines: [line(terminal.send_rate), line(hub.send_rate)],
            links: Vec::new(),
            terminal_config: terminal,
            hub_config: hub,
            queue: Span::from_millis(600),
            wire: BTreeMap::new(),
            sequence: 0,
            rng: RngStream::new(seed, 0, "pipe"),
            peer: None,
            apps: BTreeMap::new(),
            disconnected: Vec::new(),
            over: Vec::new(),
            connected: Vec::new(),
            offered: [(0, 0); 2],
            fullest: [0; 2],
            seed,
        }
    }

    /// Sets the rates of the links from the terminal and from the hub.
    pub fn set_lines(&mut self, up: BitRate, down: BitRate) {
        self.lines = [up, down].map(Serializer::new);
    }

    /// Adds a path, called `name`, with these rates from the hub and to it.
    pub fn add_path(&mut self, name: &str, delay: Span, [down, up]: [BitRate; 2]) {
        let config = RelayConfig {
            name: name.into(),
            ..self.terminal_config.clone().with_rates(Some(up), Some(down))
        };
        let rng = RngStream::new(self.seed, self.links.len() as u64 + 1, "terminal");
        let number = self.terminal.add_path(&config, self.now, rng);
        let lines = [up, down].map(Serializer::new);
        self.links.push(Link { delay, dark_until: Instant::ZERO, lines, octets: [0; 2] });
        assert_eq!(number, self.links.len());
    }

    pub fn restart_hub(&mut self) {
        self.seed += 1;
        self.hub = Hub::new(&self.hub_config, RngStream::new(self.seed, 0, "hub"));
        self.peer = None;
        self.apps.retain(|(side, _), _| *side != Side::Hub);
    }

    pub fn restart_terminal(&mut self) {
        self.seed += 1;
        let rng = RngStream::new(self.seed, 0, "terminal");
        self.terminal = Relay::terminal(&self.terminal_config, self.now, rng);
        self.apps.retain(|(side, _), _| *side != Side::Terminal);
    }

    pub fn relay(&mut self, side: Side) -> Option<&mut Relay> {
        match side {
            Side::Terminal => Some(&mut self.terminal),
            Side::Hub => self.peer.and_then(|peer| self.hub.peer(peer)),
        }
    }

    /// Opens a stream at the terminal. The name selects the server's behaviour: `echo`, `sink`,
    /// `source-N`, `refuse`, `deaf`.
    #[allow(clippy::needless_pass_by_value, reason = "made for the call, mostly")]
    pub fn open(&mut self, server: &str, app: App) -> StreamId {
        self.open_as(server, Priority::Normal, &app).expect("opened")
    }

    pub fn open_as(
        &mut self,
        server: &str,
        priority: Priority,
        app: &App,
    ) -> Result<StreamId, relay::OpenError> {
        self.open_for(Target::name(server, 80), priority, app)
    }

    /// Opens a stream of the client with this number, at both ends.
    pub fn open_by(&mut self, client: u8, server: &str, app: &App) -> StreamId {
        let source = SocketAddr::from(([10, 0, 0, client], 1));
        let target = Target::name(server, 80).from(source);
        self.open_for(target, Priority::Normal, app).expect("opened")
    }

    fn open_for(
        &mut self,
        target: Target,
        priority: Priority,
        app: &App,
    ) -> Result<StreamId, relay::OpenError> {
        let relay::Destination::Name(server, _) = &target.destination else { panic!("{target}") };
        let (server, owner) = (server.clone(), owner(&target));
        let stream = self.terminal.open(self.now, target, priority)?;
        self.terminal.set_owner(stream, owner);
        let app = App { opened_at: self.now, echoed: server == "echo", ..app.clone() };
        self.apps.insert((Side::Terminal, stream), app);
        self.pump(Side::Terminal, stream);
        Ok(stream)
    }

    pub fn app(&self, side: Side, stream: StreamId) -> &App {
        &self.apps[&(side, stream)]
    }

    /// Runs until `done` or for `limit`; returns whether it was done.
    pub fn run(&mut self, limit: Span, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + limit;
        loop {
            self.settle();
            if done(self) {
                return true;
            }
            let next = self
                .wire
                .first_key_value()
                .map(|(key, _)| key.0)
                .into_iter()
                .chain(self.terminal.poll_timeout())
                .chain(self.hub.poll_timeout())
                .min()
                .unwrap_or(end);
            if next > end || self.now >= end {
                self.now = end;
                return false;
            }
            self.now = next.max(self.now + Span::from_micros(10));
            self.arrive();
            self.terminal.handle_timeout(self.now);
            self.hub.handle_timeout(self.now);
        }
    }

    /// Processes all due events.
    fn settle(&mut self) {
        self.take_events();
        self.transmit();
        self.take_events();
        let hub =
            self.peer.and_then(|peer| self.hub.peer(peer)).map_or(0, |r| r.receive_allocated());
        let terminal = self.terminal.receive_allocated();
        self.fullest = [self.fullest[0].max(terminal), self.fullest[1].max(hub)];
    }

    fn transmit(&mut self) {
        let mut buffer = vec![0; 16 * 1500];
        for path in 0..=self.links.len() {
            loop {
                let mut batch = TransmitBatch::new(&mut buffer, 16);
                if self.terminal.poll_transmit_on(self.now, path, &mut batch).is_none() {
                    break;
                }
                let datagrams: Vec<Vec<u8>> = batch.datagrams().map(<[u8]>::to_vec).collect();
                for datagram in datagrams {
                    self.offer(Side::Terminal, path, datagram);
                }
            }
        }
        loop {
            let mut batch = TransmitBatch::new(&mut buffer, 16);
            let Some((to, _)) = self.hub.poll_transmit(self.now, &mut batch) else { break };
            let path = (0..=self.links.len()).find(|&path| to == home(path));
            let path = path.expect("an address of the terminal");
            let datagrams: Vec<Vec<u8>> = batch.datagrams().map(<[u8]>::to_vec).collect();
            for datagram in datagrams {
                self.offer(Side::Hub, path, datagram);
            }
        }
    }

    fn offer(&mut self, from: Side, path: usize, mut datagram: Vec<u8>) {
        let size = datagram.len() + 28;
        let offered = &mut self.offered[from as usize];
        *offered = (offered.0 + size as u64, offered.1 + 1);
        let link = path.checked_sub(1).map(|further| &mut self.links[further]);
        let (lines, delay, dark_until) = match link {
            Some(link) => {
                link.octets[from as usize] += size as u64;
                (&mut link.lines, link.delay, link.dark_until)
            }
            None => (&mut self.lines, self.delay, self.dark_until),
        };
        let line = &mut lines[from as usize];
        if size > self.path_mtu || line.free_at() > self.now + self.queue {
            return;
        }
        let sent = line.send(self.now, size as u64);
        if self.rng.chance(self.faults.loss) || self.now < dark_until {
            return;
        }
        if self.rng.chance(self.faults.corrupt) {
            let at = self.rng.below(datagram.len() as u64) as usize;
            datagram[at] ^= 1 << self.rng.below(8);
        }
        let mut at = sent + delay;
        if self.rng.chance(self.faults.reorder) {
            at += Span::from_millis(self.rng.below(100));
        }
        if self.rng.chance(self.faults.duplicate) {
            let again = at + Span::from_millis(self.rng.below(100));
            self.put(again, (from, path), datagram.clone());
        }
        self.put(at, (from, path), datagram);
    }

    fn put(&mut self, at: Instant, (from, path): (Side, usize), datagram: Vec<u8>) {
        self.sequence += 1;
        self.wire.insert((at, self.sequence), (from, path, datagram));
    }

    fn arrive(&mut self) {
        while let Some(entry) = self.wire.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (from, path, mut datagram) = entry.remove();
            // Damaged and duplicated datagrams cause errors without further effect.
            match from {
                Side::Terminal => {
                    let _ = self.hub.handle_datagram(self.now, home(path), &mut datagram);
                }
                Side::Hub => {
                    let _ = self.terminal.handle_datagram_on(self.now, path, &mut datagram);
                }
            }
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.terminal.poll_event() {
            self.on_event(Side::Terminal, event);
        }
        while let Some((peer, event)) = self.hub.poll_event() {
            if event == Event::Connected {
                self.peer = Some(peer);
            }
            if self.peer == Some(peer) {
                self.on_event(Side::Hub, event);
            }
        }
    }

    fn on_event(&mut self, side: Side, event: Event) {
        match event {
            Event::Connected => self.connected.push((side, self.now)),
            Event::Disconnected { reason } => {
                self.disconnected.push((side, reason));
                self.apps.retain(|(other, _), _| *other != side);
                if side == Side::Hub {
                    self.peer = None;
                }
            }
            Event::Opened { stream, target } => self.serve(stream, &target),
            Event::Accepted { stream } => self.app_mut(side, stream).accepted = true,
            Event::Refused { stream, reason } => {
                self.app_mut(side, stream).refused = Some(reason);
            }
            Event::Readable { stream }
            | Event::Writable { stream }
            | Event::Ending { stream, .. } => self.pump(side, stream),
            Event::Ended { stream } => {
                let now = self.now;
                let app = self.app_mut(side, stream);
                app.ended = true;
                app.ended_at = Some(now);
                app.end |= app.echo;
                self.pump(side, stream);
            }
            Event::Reset { stream, reason } => self.app_mut(side, stream).reset = Some(reason),
            Event::Released { stream } => {
                let app = self.app_mut(side, stream);
                app.released = true;
                let read = app.read;
                self.over.push((side, stream, read));
            }
        }
    }

    fn app_mut(&mut self, side: Side, stream: StreamId) -> &mut App {
        self.apps.get_mut(&(side, stream)).expect("an event of a stream that is known")
    }

    /// Starts the server's side of a new stream.
    fn serve(&mut self, stream: StreamId, target: &Target) {
        let relay::Destination::Name(name, 80) = &target.destination else { panic!("{target}") };
        let mut app = App { opened_at: self.now, accepted: true, ..App::default() };
        match name.split_once('-') {
            Some(("deaf", bytes)) => app.deaf_after = bytes.parse().ok(),
            Some(("source", bytes)) => app = App { ..App::writer(bytes.parse().expect("number")) },
            _ if name == "echo" => app.echo = true,
            _ if name == "sink" => app.end = true,
            _ if name == "deaf" => app.deaf = true,
            _ if name == "refuse" => {
                let relay = self.relay(Side::Hub).expect("hub");
                relay.refuse(stream, RefuseReason::ConnectionRefused).expect("known");
                return;
            }
            _ => panic!("no server {name}"),
        }
        self.apps.insert((Side::Hub, stream), app);
        let relay = self.relay(Side::Hub).expect("hub");
        relay.set_owner(stream, owner(target));
        relay.accept(stream).expect("known");
        self.pump(Side::Hub, stream);
    }

    /// Reads and writes as much as possible.
    pub fn pump(&mut self, side: Side, stream: StreamId) {
        let now = self.now;
        let Some(mut app) = self.apps.remove(&(side, stream)) else { return };
        let back = side == Side::Hub;
        let relay = self.relay(side).expect("a relay");
        let most = app.deaf_after.unwrap_or(u64::MAX);
        while !app.deaf && app.read < most && !relay.peek(stream).is_empty() {
            let piece = relay.peek(stream);
            let piece = &piece[..piece.len().min((most - app.read) as usize)];
            for (at, &byte) in (app.read..).zip(piece) {
                assert_eq!(byte, pattern(stream, !back && !app.echoed, at), "{stream} at {at}");
            }
            let len = piece.len();
            app.first_byte_at.get_or_insert(now);
            app.read += len as u64;
            if app.echo {
                app.to_write += len as u64;
            }
            relay.consume(now, stream, len).expect("consumed");
        }
        while app.to_write > 0 {
            let len = app.to_write.min(relay.room(stream) as u64).min(20_000);
            if len == 0 {
                break;
            }
            let data: Vec<u8> = (app.written..app.written + len)
                .map(|at| pattern(stream, back && !app.echo, at))
                .collect();
            let taken = relay.write(now, stream, &data).expect("written") as u64;
            app.written += taken;
            app.to_write -= taken;
        }
        if app.end && app.to_write == 0 && !app.end_sent && !app.is_over() {
            app.end_sent = true;
            relay.end(stream).expect("ended");
        }
        self.apps.insert((side, stream), app);
    }

    /// Returns true if every application at `side` has finished.
    pub fn all_over(&self, side: Side) -> bool {
        self.apps.iter().all(|((at, _), app)| *at != side || app.is_over())
    }

    /// Asserts that no state of streams remains at either end.
    pub fn assert_clean(&mut self) {
        for side in [Side::Terminal, Side::Hub] {
            let Some(relay) = self.relay(side) else { continue };
            let statistics = relay.statistics();
            assert_eq!(statistics.streams, 0, "{side:?} {statistics:?}");
            assert_eq!(statistics.send_buffered, 0, "{side:?}");
            assert_eq!(statistics.receive_credit, 0, "{side:?}");
            assert_eq!(relay.receive_allocated(), 0, "{side:?}");
        }
    }
}
