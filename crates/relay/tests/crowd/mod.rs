//! A hub and many terminals on one link under virtual time: in each direction a transmitter with an
//! unlimited queue, as in a modem, and a delay of 300 ms.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part of the rig")]

use relay::{
    Event, Hub, Level, PeerId, Plans, Priority, Relay, RelayConfig, Service, StreamId, Target,
    TransmitBatch,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use units::{BitRate, Instant, RngStream, Serializer, Span};

/// One-way delay.
pub const DELAY: Span = Span::from_millis(300);

/// A terminal and the state of its applications.
pub struct Boat {
    pub relay: Relay,
    /// Its identifier at the hub while it is connected.
    pub peer: Option<PeerId>,
    /// Whether it neither sends nor receives any more.
    is_gone: bool,
    /// Octets read from each stream.
    pub read: BTreeMap<StreamId, u64>,
    /// When streams ended.
    pub ended: BTreeMap<StreamId, Instant>,
    /// Octets to write to streams, without delay.
    uploads: BTreeSet<StreamId>,
    noted: Option<Instant>,
}

pub struct Crowd {
    pub now: Instant,
    pub hub: Hub,
    pub boats: Vec<Boat>,
    /// The link from the hub, and to the hub.
    rates: [BitRate; 2],
    lines: [Serializer; 2],
    /// Maximum queuing delay of either direction.
    pub waited: [Span; 2],
    /// Octets offered to either direction.
    pub octets: [u64; 2],
    /// Octets offered by each terminal.
    pub up: Vec<u64>,
    wire: BTreeMap<(Instant, u64), (usize, bool, Vec<u8>)>,
    sequence: u64,
    wake: BTreeSet<(Instant, usize)>,
    /// Octets read at the hub, by terminal.
    pub hub_read: BTreeMap<PeerId, u64>,
    /// Datagrams for a terminal that a test implements itself, and octets sent to it.
    pub heard: Vec<Vec<u8>>,
    pub octets_to_other: u64,
    scratch: Vec<u8>,
}

fn address(boat: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, (boat >> 8) as u8, boat as u8], 4500))
}

/// Creates the terminal with a number, in a new process instance.
fn terminal(number: usize, life: u64, now: Instant, [down, up]: [BitRate; 2]) -> Relay {
    let name = format!("boat-{number}");
    let config = RelayConfig::new(&name).with_rates(Some(up), Some(down));
    Relay::terminal(&config, now, RngStream::new(life, number as u64, "boat"))
}

impl Crowd {
    /// Creates `count` terminals on a link with these rates from and to the hub.
    pub fn new(count: usize, down: BitRate, up: BitRate, plans: Plans) -> Self {
        let mut crowd = Self::with_places(count, count + 1, [down, up], plans);
        let all_here = |crowd: &Self| crowd.boats.iter().all(|boat| boat.relay.is_answered());
        assert!(crowd.run(Span::from_secs(60), all_here));
        crowd.run(Span::from_secs(1), |_| false);
        crowd
    }

    /// Creates `count` terminals that begin to connect to a hub with `places` slots.
    pub fn with_places(
        count: usize,
        places: usize,
        [down, up]: [BitRate; 2],
        plans: Plans,
    ) -> Self {
        let now = Instant::ZERO + Span::from_secs(1);
        let hub = RelayConfig {
            max_terminals: places,
            ..RelayConfig::new("hub").with_rates(Some(down), Some(up))
        };
        let mut hub = Hub::new(&hub, RngStream::new(1, 0, "hub"));
        hub.set_plans(plans);
        let boats = (0..count).map(|number| {
            let relay = terminal(number, 1, now, [down, up]);
            let (read, ended) = (BTreeMap::new(), BTreeMap::new());
            let uploads = BTreeSet::new();
            Boat { relay, peer: None, is_gone: false, read, ended, uploads, noted: None }
        });
        let mut crowd = Self {
            now,
            hub,
            boats: boats.collect(),
            rates: [down, up],
            lines: [Serializer::new(down), Serializer::new(up)],
            waited: [Span::ZERO; 2],
            octets: [0; 2],
            up: vec![0; count],
            wire: BTreeMap::new(),
            sequence: 0,
            wake: BTreeSet::new(),
            hub_read: BTreeMap::new(),
            heard: Vec::new(),
            octets_to_other: 0,
            scratch: vec![0; 1 << 16],
        };
        // They start one after another.
        for number in 0..count {
            crowd.attend(number);
            crowd.run(Span::from_millis(5), |_| false);
        }
        crowd
    }

    /// Stops a terminal gracefully.
    pub fn leave(&mut self, boat: usize) {
        self.boats[boat].relay.close(self.now);
        self.attend(boat);
        self.boats[boat].is_gone = true;
    }

    /// Restarts a terminal that has stopped.
    pub fn come_again(&mut self, boat: usize) {
        self.boats[boat].relay = terminal(boat, self.now.as_nanos(), self.now, self.rates);
        self.boats[boat].is_gone = false;
        self.attend(boat);
    }

    /// Removes a terminal without a message.
    pub fn vanish(&mut self, boat: usize) {
        self.boats[boat].is_gone = true;
    }

    /// Opens a stream: the server `bulk` sends without end, `sink` reads, `answer` sends 1,000
    /// octets and a FIN, and `urgent` does so with high priority.
    pub fn open(&mut self, boat: usize, server: &str) -> Option<StreamId> {
        let target = Target::name(server, 80);
        let stream = self.boats[boat].relay.open(self.now, target, Priority::Normal).ok()?;
        if server == "sink" {
            self.boats[boat].uploads.insert(stream);
        }
        self.attend(boat);
        Some(stream)
    }

    /// Runs until `done` or for `limit`; returns whether it was done.
    pub fn run(&mut self, limit: Span, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + limit;
        loop {
            self.serve_hub();
            if done(self) {
                return true;
            }
            let wire = self.wire.first_key_value().map(|(key, _)| key.0);
            let wake = self.wake.first().map(|key| key.0);
            let next = [wire, wake, self.hub.poll_timeout()].into_iter().flatten().min();
            let next = next.unwrap_or(end);
            if next > end || self.now >= end {
                self.now = end;
                return false;
            }
            self.now = next.max(self.now + Span::from_micros(10));
            self.arrive();
            while let Some(&(at, boat)) = self.wake.first() {
                if at > self.now {
                    break;
                }
                self.boats[boat].relay.handle_timeout(self.now);
                self.attend(boat);
            }
            self.hub.handle_timeout(self.now);
        }
    }

    /// Returns the octets read by a terminal's applications, by stream.
    pub fn read(&self, boat: usize) -> Vec<u64> {
        self.boats[boat].read.values().copied().collect()
    }

    pub fn total(&self, boat: usize) -> u64 {
        self.boats[boat].read.values().sum()
    }

    fn arrive(&mut self) {
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (boat, to_hub, mut datagram) = entry.remove();
            if to_hub {
                let _ = self.hub.handle_datagram(self.now, address(boat), &mut datagram);
            } else if boat < self.boats.len() {
                let _ = self.boats[boat].relay.handle_datagram(self.now, &mut datagram);
                self.attend(boat);
            } else {
                self.heard.push(datagram);
            }
        }
    }

    /// Lets a terminal process its events, and stores its next timeout.
    fn attend(&mut self, number: usize) {
        let now = self.now;
        let boat = &mut self.boats[number];
        if boat.is_gone {
            if let Some(at) = boat.noted.take() {
                self.wake.remove(&(at, number));
            }
            return;
        }
        for _ in 0..2 {
            self.applications(number);
            let mut sent = Vec::new();
            let mut buffer = [0; 1500];
            loop {
                let mut batch = TransmitBatch::new(&mut buffer, 1);
                if self.boats[number].relay.poll_transmit(now, &mut batch).is_none() {
                    break;
                }
                sent.extend(batch.datagrams().map(<[u8]>::to_vec));
            }
            for datagram in sent {
                self.up[number] += datagram.len() as u64 + 28;
                self.offer(true, number, datagram);
            }
        }
        let boat = &mut self.boats[number];
        if let Some(at) = boat.noted.take() {
            self.wake.remove(&(at, number));
        }
        boat.noted = boat.relay.poll_timeout().map(|at| at.max(now + Span::from_micros(10)));
        if let Some(at) = boat.noted {
            self.wake.insert((at, number));
        }
    }

    fn applications(&mut self, number: usize) {
        let now = self.now;
        let boat = &mut self.boats[number];
        while let Some(event) = boat.relay.poll_event() {
            match event {
                Event::Readable { stream } => loop {
                    let len = boat.relay.peek(stream).len();
                    if len == 0 {
                        break;
                    }
                    boat.relay.consume(now, stream, len).expect("it is there");
                    *boat.read.entry(stream).or_default() += len as u64;
                },
                Event::Ended { stream } => {
                    boat.ended.insert(stream, now);
                    let _ = boat.relay.end(stream);
                }
                _ => {}
            }
        }
        for &stream in &boat.uploads {
            fill(now, &mut boat.relay, stream, &self.scratch);
        }
    }

    /// Delivers a datagram of a terminal that a test implements itself, after all others.
    pub fn send_as_other(&mut self, datagram: Vec<u8>) {
        self.offer(true, self.boats.len(), datagram);
    }

    fn offer(&mut self, to_hub: bool, boat: usize, datagram: Vec<u8>) {
        let line = &mut self.lines[usize::from(to_hub)];
        let octets = datagram.len() as u64 + 28;
        if boat >= self.boats.len() && !to_hub {
            self.octets_to_other += octets;
        }
        let waited = line.free_at().since(self.now);
        let most = &mut self.waited[usize::from(to_hub)];
        *most = waited.max(*most);
        self.octets[usize::from(to_hub)] += octets;
        let at = line.send(self.now, octets) + DELAY;
        self.sequence += 1;
        self.wire.insert((at, self.sequence), (boat, to_hub, datagram));
    }

    fn serve_hub(&mut self) {
        self.hub_events();
        let mut buffer = [0; 16 * 1500];
        loop {
            let mut batch = TransmitBatch::new(&mut buffer, 16);
            let Some((to, _)) = self.hub.poll_transmit(self.now, &mut batch) else { break };
            let datagrams: Vec<Vec<u8>> = batch.datagrams().map(<[u8]>::to_vec).collect();
            let SocketAddr::V4(to) = to else { unreachable!("an IPv4 address") };
            let [.., high, low] = to.ip().octets();
            for datagram in datagrams {
                self.offer(false, usize::from(high) << 8 | usize::from(low), datagram);
            }
            self.hub_events();
        }
    }

    fn hub_events(&mut self) {
        let now = self.now;
        while let Some((peer, event)) = self.hub.poll_event() {
            if event == Event::Connected
                && let Some(SocketAddr::V4(at)) = self.hub.address(peer)
            {
                let [.., high, low] = at.ip().octets();
                if let Some(boat) = self.boats.get_mut(usize::from(high) << 8 | usize::from(low)) {
                    boat.peer = Some(peer);
                }
            }
            let Some(relay) = self.hub.peer(peer) else { continue };
            match event {
                Event::Opened { stream, target } => {
                    let relay::Destination::Name(server, _) = target.destination else { continue };
                    if server == "urgent" {
                        let service = Service { level: Level::Urgent, class: 1, weight: 1 };
                        relay.set_service(stream, service);
                    }
                    let _ = relay.accept(stream);
                    match &*server {
                        "bulk" => fill(now, relay, stream, &self.scratch),
                        "sink" => {}
                        _ => {
                            let _ = relay.write(now, stream, &[0; 1000]);
                            let _ = relay.end(stream);
                        }
                    }
                }
                Event::Writable { stream } => fill(now, relay, stream, &self.scratch),
                Event::Readable { stream } => {
                    let len = relay.peek(stream).len();
                    let _ = relay.consume(now, stream, len);
                    *self.hub_read.entry(peer).or_default() += len as u64;
                    while let len @ 1.. = relay.peek(stream).len() {
                        let _ = relay.consume(now, stream, len);
                        *self.hub_read.entry(peer).or_default() += len as u64;
                    }
                }
                _ => {}
            }
        }
    }
}

/// Writes until the stream is blocked, so that it reports when it is writable.
fn fill(now: Instant, relay: &mut Relay, stream: StreamId, bytes: &[u8]) {
    while relay.write(now, stream, bytes).is_ok_and(|taken| taken == bytes.len()) {}
}

/// Returns Jain's fairness index: 1 for equal shares.
pub fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    sum * sum / (shares.len() as f64 * squares)
}
