//! A hub and three terminals under a script of announced limits, opened, written, read and reset
//! streams, lost datagrams, and changing rates and plans. The first terminal may announce limits
//! that differ from its own, from zero to the maximum. The last one has a second path.

use super::{Hub, Plans};
use crate::plan::Plan;
use crate::{
    Control, Event, PeerId, Priority, Relay, RelayConfig, ResetReason, StreamId, Target,
    TransmitBatch,
};
use association::Limits;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use units::{BitRate, Instant, RngStream, Span};

const TERMINALS: usize = 3;
/// Number of paths that a terminal may have.
const PATHS: usize = 2;
/// One-way delay.
const DELAY: Span = Span::from_millis(20);
/// Maximum number of datagrams that one side sends at one instant.
const BURST: usize = 4_096;
/// Maximum time in which a connected terminal transfers an octet after the script, for an outage as
/// long as the script and its lowest rate.
const RECOVERY_TIME: Span = Span::from_secs(300);
/// Minimum send buffer of each stream, with a full pool.
const EACH: u64 = 16 << 10;

/// The numbers of a terminal and of its path.
type Way = (usize, usize);

struct Rig {
    now: Instant,
    hub: Hub,
    hub_config: RelayConfig,
    terminals: Vec<(Relay, RelayConfig)>,
    /// The limits that the first terminal announces in place of its own.
    lie: Option<Limits>,
    flying: Vec<(Instant, Way, bool, Vec<u8>)>,
    /// No datagram is delivered on the path with this number.
    is_dark: [bool; PATHS],
    streams: Vec<BTreeSet<StreamId>>,
    /// Octets that the hub's users have read, by terminal.
    read: [u64; TERMINALS],
    /// Whether users read; otherwise data stays in these streams.
    reads: bool,
    unread: BTreeSet<(PeerId, StreamId)>,
}

/// Plays `script` to a hub and three terminals.
///
/// The first octets are the limits that each side announces: buffers, rates, MTU and streams; the
/// rest are steps.
///
/// # Panics
/// Panics if a side sends without end, exceeds its memory limits or its peer's MTU, has more open
/// streams than its peer permits, or if a terminal is blocked after the script.
pub fn hub(script: &[u8]) {
    let mut octets = script.iter().copied();
    let mut next = || octets.next().unwrap_or(0);
    let hub_config = config("hub", &mut next);
    let mut hub = Hub::new(&hub_config, RngStream::new(1, 0, "hub"));
    let plan = |number: u8| Plan {
        name: number.to_string(),
        weight: u32::from(number % 3),
        ..Plan::default()
    };
    let (plans, terminals) = (vec![plan(next()), plan(next())], [("t1".to_owned(), 1)].into());
    hub.set_plans(Plans { plans, terminals });
    let configs = [0, 1, 2].map(|number| config(&format!("t{number}"), &mut next));
    let lie = lie(&configs[0], &mut next);
    let terminals = configs
        .into_iter()
        .enumerate()
        .map(|(number, config)| (terminal(number, &config, lie, Instant::ZERO, 1), config));
    let mut rig = Rig {
        now: Instant::ZERO,
        hub,
        hub_config,
        terminals: terminals.collect(),
        lie,
        flying: Vec::new(),
        is_dark: [false; PATHS],
        streams: vec![BTreeSet::new(); TERMINALS],
        read: [0; TERMINALS],
        reads: true,
        unread: BTreeSet::new(),
    };
    rig.run(Span::from_secs(2));
    let steps = script.get(8 * (TERMINALS + 1)..).unwrap_or_default();
    for step in steps.chunks_exact(3) {
        rig.step([step[0], step[1], step[2]]);
        rig.audit();
    }
    rig.recover();
}

/// Returns the configuration of one side.
fn config(name: &str, next: &mut impl FnMut() -> u8) -> RelayConfig {
    let mut config = RelayConfig::new(name).with_memory(1 << 20);
    let rate = |value: u8| BitRate::new(u64::from(value & 7) * (8_000 << (value >> 4)));
    (config.send_rate, config.receive_rate) = (rate(next()), rate(next()));
    config.max_streams = [0, 1, 2, 64, 4_096, 1 << 20][usize::from(next()) % 6];
    config.stream_minimum = [0, 1_024, 16 << 10, 1 << 20][usize::from(next()) % 4];
    config.shared_credit = [0, 1_024, 1 << 18, 1 << 20][usize::from(next()) % 4];
    config.mtu = [576, 577, 1_280, 1_500, 9_000][usize::from(next()) % 5];
    config.control = Control::ALL[usize::from(next()) % 4];
    config.unsent_limit = 1 << (next() % 24);
    config
}

/// Returns false limits for a terminal with `config`, if the script says so.
fn lie(config: &RelayConfig, next: &mut impl FnMut() -> u8) -> Option<Limits> {
    let kind = next();
    let truth = config.limits();
    let word = |at: u8, truth: u32| [truth, 0, 1, u32::MAX][usize::from(kind >> at & 3)];
    let limits = Limits {
        max_datagram: word(0, truth.max_datagram),
        streams: word(2, truth.streams),
        minimum_credit: word(4, truth.minimum_credit),
        shared_credit: word(6, truth.shared_credit),
        receive_rate_bps: [truth.receive_rate_bps, 1, u64::MAX][usize::from(next()) % 3],
        capabilities: truth.capabilities,
    };
    (limits != truth).then_some(limits)
}

/// Creates the terminal with this number, in one of its incarnations.
fn terminal(
    number: usize,
    config: &RelayConfig,
    lie: Option<Limits>,
    now: Instant,
    life: u64,
) -> Relay {
    let rng = RngStream::new(life, number as u64, "terminal");
    let mut relay = match lie {
        Some(limits) if number == 0 => Relay::announcing(limits, config, now, rng),
        _ => Relay::terminal(config, now, rng),
    };
    if number == TERMINALS - 1 {
        let config = RelayConfig { name: format!("{}/x", config.name), ..config.clone() };
        relay.add_path(&config, now, RngStream::new(life, number as u64, "path"));
    }
    relay
}

fn address(terminal: usize, path: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, terminal as u8], 4500 + path as u16))
}

/// Returns the terminal and the path with an address.
fn at(address: SocketAddr) -> Option<Way> {
    let all = (0..TERMINALS).flat_map(|number| (0..PATHS).map(move |path| (number, path)));
    let mut all = all.filter(|&(number, path)| self::address(number, path) == address);
    all.next()
}

impl Rig {
    fn step(&mut self, [kind, which, value]: [u8; 3]) {
        let number = usize::from(which) % TERMINALS;
        let (now, size) = (self.now, usize::from(value) << (which >> 3 & 15));
        match kind % 10 {
            0 | 1 => self.open(number),
            2 => self.write(number, size),
            3 => self.reads = !self.reads,
            4 => {
                if let Some(stream) = self.streams[number].pop_first() {
                    // The stream may be closed.
                    let _ = self.terminals[number].0.reset(stream, ResetReason::Aborted);
                }
            }
            5 if which >> 2 & 1 == 1 => {
                let path = usize::from(which >> 3 & 1);
                self.is_dark[path] = !self.is_dark[path];
            }
            5 => self.is_dark = [!self.is_dark[0]; PATHS],
            6 => {
                let rate =
                    |value: u8| BitRate::new(u64::from(value & 15) * (8_000 << (value >> 4)));
                self.hub.set_rates(rate(value), rate(which));
            }
            7 => {
                let config = self.terminals[number].1.clone();
                let life = 2 + u64::from(value);
                self.terminals[number].0 = terminal(number, &config, self.lie, now, life);
                self.streams[number].clear();
            }
            8 => {
                self.terminals[number].0.send_datagram(now, &vec![0x45; size % 1_400 + 1]);
            }
            _ => self.hub.share_memory(),
        }
        self.run(Span::from_millis(u64::from(value)));
    }

    fn open(&mut self, number: usize) {
        let (relay, _) = &mut self.terminals[number];
        if let Ok(stream) = relay.open(self.now, Target::name("x", 1), Priority::Normal) {
            self.streams[number].insert(stream);
        }
    }

    fn write(&mut self, number: usize, size: usize) {
        if let Some(&stream) = self.streams[number].last() {
            // The stream may be closed.
            let _ = self.terminals[number].0.write(self.now, stream, &vec![0; size]);
        }
    }

    /// Advances the time by `span`.
    fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            self.serve();
            let flying = self.flying.iter().map(|flying| flying.0);
            let relays = self.terminals.iter().filter_map(|(relay, _)| relay.poll_timeout());
            let next = flying.chain(relays).chain(self.hub.poll_timeout()).min().unwrap_or(end);
            // Each side is served at most once per millisecond.
            self.now = (self.now + Span::from_millis(1)).max(next);
            if self.now >= end {
                self.now = end;
                return;
            }
            let now = self.now;
            let due = self.flying.iter().position(|flying| flying.0 > now);
            for (_, (number, path), to_hub, mut datagram) in
                self.flying.drain(..due.unwrap_or(self.flying.len())).collect::<Vec<_>>()
            {
                // A datagram of an old association is an error without effect.
                if to_hub {
                    let _ = self.hub.handle_datagram(now, address(number, path), &mut datagram);
                } else {
                    let _ = self.terminals[number].0.handle_datagram_on(now, path, &mut datagram);
                }
            }
            self.hub.handle_timeout(now);
            self.terminals.iter_mut().for_each(|(relay, _)| relay.handle_timeout(now));
        }
    }

    fn serve(&mut self) {
        self.events();
        let mut buffer = [0; 9_000];
        for (number, path) in (0..TERMINALS).flat_map(|n| (0..PATHS).map(move |path| (n, path))) {
            for sent in 0.. {
                assert!(sent < BURST, "no end to sending at one instant");
                let mut batch = TransmitBatch::new(&mut buffer, 1);
                let relay = &mut self.terminals[number].0;
                if relay.poll_transmit_on(self.now, path, &mut batch).is_none() {
                    break;
                }
                self.fly((number, path), true, &batch);
            }
        }
        for sent in 0.. {
            assert!(sent < BURST, "no end to sending at one instant");
            let mut batch = TransmitBatch::new(&mut buffer, 1);
            let Some((to, _)) = self.hub.poll_transmit(self.now, &mut batch) else { break };
            self.fly(at(to).expect("a terminal's address"), false, &batch);
        }
        self.events();
    }

    fn fly(&mut self, path: Way, to_hub: bool, batch: &TransmitBatch<'_>) {
        let number = path.0;
        let (own, peer) = (&self.terminals[number].1, &self.hub_config);
        let announced = self.lie.filter(|_| number == 0 && !to_hub);
        // The limit on datagrams is at least that of the minimum MTU.
        let said = announced.map_or(own.max_datagram(), |lie| lie.max_datagram.max(512) as usize);
        let most = said.min(peer.max_datagram());
        for datagram in batch.datagrams() {
            assert!(datagram.len() <= most, "{} octets of {most}", datagram.len());
            if !self.is_dark[path.1] {
                self.flying.push((self.now + DELAY, path, to_hub, datagram.to_vec()));
            }
        }
    }

    fn events(&mut self) {
        for (number, (relay, _)) in self.terminals.iter_mut().enumerate() {
            while let Some(event) = relay.poll_event() {
                match event {
                    Event::Disconnected { .. } => self.streams[number].clear(),
                    Event::Reset { stream, .. }
                    | Event::Refused { stream, .. }
                    | Event::Released { stream } => {
                        self.streams[number].remove(&stream);
                    }
                    _ => {}
                }
            }
        }
        while let Some((peer, event)) = self.hub.poll_event() {
            match event {
                Event::Opened { stream, .. } => {
                    let is_liar =
                        self.lie.is_some() && self.hub.address(peer) == Some(address(0, 0));
                    if let Some(relay) = self.hub.peer(peer) {
                        // The stream may be closed.
                        let _ = relay.accept(stream);
                        if is_liar {
                            // Sends what its credit permits.
                            let _ = relay.write(self.now, stream, &[0; 1 << 16]);
                        }
                    }
                }
                Event::Readable { stream } => {
                    self.unread.insert((peer, stream));
                }
                _ => {}
            }
        }
        while self.reads
            && let Some((peer, stream)) = self.unread.pop_first()
        {
            let number = self.hub.address(peer).and_then(at).map(|(number, _)| number);
            let Some((relay, number)) = self.hub.peer(peer).zip(number) else { continue };
            while let len @ 1.. = relay.peek(stream).len() {
                relay.consume(self.now, stream, len).expect("it is there");
                self.read[number] += len as u64;
            }
        }
        while self.hub.take_datagram().is_some() {}
    }

    /// Checks the limits on memory, streams and the link.
    fn audit(&self) {
        // A terminal with false limits is excluded.
        let excluded = usize::from(self.lie.is_some());
        let relays = self.terminals[excluded..].iter().map(|(relay, config)| (relay, config));
        let peers = self.hub.relays().map(|(_, relay)| (relay, &self.hub_config));
        for (relay, config) in relays.chain(peers) {
            let statistics = relay.statistics();
            let bound = config.send_pool + EACH * (statistics.streams as u64 + 1);
            assert!(statistics.send_buffered <= bound, "{statistics:?} where {bound} may be held");
            let held = relay.receive_allocated() as u64;
            let chunks = (statistics.streams as u64 + 1) * 2 * EACH;
            assert!(held <= config.receive_bound().saturating_add(chunks), "{held} octets");
            assert_eq!(statistics.credit_violations, 0, "{statistics:?}");
        }
        let total: u64 = self.hub.shares().values().sum();
        let link = self.hub.config.send_rate.map_or(u64::MAX, BitRate::as_bps);
        assert!(total <= link, "{total} of {link} bit/s are shared out");
    }

    /// Ends all impairments after the script.
    fn recover(&mut self) {
        (self.is_dark, self.reads) = ([false; PATHS], true);
        self.hub.set_rates(None, None);
        self.run(Span::from_secs(150));
        if self.hub_config.max_streams == 0 || self.hub_config.stream_minimum == 0 {
            return;
        }
        for number in usize::from(self.lie.is_some())..TERMINALS {
            let before = self.read[number];
            for _ in 0..10 {
                // The streams of the script are closed.
                while let Some(stream) = self.streams[number].pop_first() {
                    let _ = self.terminals[number].0.reset(stream, ResetReason::Aborted);
                }
                self.run(RECOVERY_TIME / 10);
                self.open(number);
                self.write(number, 1);
                self.run(RECOVERY_TIME / 10);
                if self.read[number] > before {
                    break;
                }
            }
            let relay = &self.terminals[number].0;
            assert!(self.read[number] > before, "terminal {number} stands still: {relay:?}");
        }
    }
}

/// A rate that has changed is announced in the next association, at both ends.
#[cfg(test)]
#[test]
fn changed_rates_are_announced_in_the_next_association() {
    let config = RelayConfig::new("x").with_rates(None, BitRate::new(1_000_000));
    let mut hub = Hub::new(&config, RngStream::new(1, 0, "hub"));
    let mut terminal = Relay::terminal(&config, Instant::ZERO, RngStream::new(1, 0, "terminal"));
    hub.set_rates(None, BitRate::new(2_000_000));
    let now = Instant::ZERO + Span::from_millis(1);
    let mut buffer = [0; 1_500];
    for _ in 0..4 {
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        while terminal.poll_transmit(now, &mut batch).is_some() {
            let mut datagram = batch.datagrams().next().expect("one").to_vec();
            let _ = hub.handle_datagram(now, address(0, 0), &mut datagram);
            batch.clear();
        }
        while hub.poll_transmit(now, &mut batch).is_some() {
            let mut datagram = batch.datagrams().next().expect("one").to_vec();
            let _ = terminal.handle_datagram(now, &mut datagram);
            batch.clear();
        }
    }
    assert_eq!(terminal.first().peer_rate(), BitRate::new(2_000_000));
}
