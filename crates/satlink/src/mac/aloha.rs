//! Slotted Aloha: whoever has something sends, and sends again what collided.
//!
//! ```text
//!   offer ──▶ cells ──▶ a slot of the next `window`, any carrier ──alone──▶ arrived
//!                            ▲                             └──others──▶ noticed a round trip
//!                            └──── window doubled, up to a limit ◀───── later
//! ```
//!
//! Nobody waits for a plan, so a lone terminal needs one way; with `G` bursts in a slot on average
//! `G·e^-G` of them come through (Roberts 1972, for many terminals), which is 0.37 at most: a test
//! holds that. Cells of a packet are sent each on its own, one in a slot; the packet arrives with
//! the last.
//!
//! ```
//! use satlink::mac::aloha::{Aloha, AlohaConfig};
//! use units::{BitRate, Instant, Span};
//!
//! let config = AlohaConfig::new(BitRate::from_kbps(100), Span::from_millis(270));
//! let mut channel: Aloha<Vec<u8>> = Aloha::new(&config, 20, 1, 0)?;
//! channel.offer(Instant::ZERO, 3, vec![0; 40]);
//! let at = channel.poll_timeout().unwrap();
//! let arrived = channel.poll_arrival(at).or_else(|| channel.poll_arrival(at + config.way));
//! assert!(arrived.is_some_and(|arrived| arrived.terminal == 3));
//! # Ok::<(), satlink::mac::schedule::ScheduleError>(())
//! ```

use super::arrivals::{Arrivals, Arrived};
use super::schedule::ScheduleError;
use super::slots::SlotFormat;
use crate::{Admission, DropCause, Frame, Tally};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::vec::Vec;
use units::{BitRate, Instant, RngStream, Span};

/// A channel of slotted Aloha and its terminals, all alike.
#[derive(Clone, Debug, PartialEq)]
pub struct AlohaConfig {
    /// Bits per second of one carrier.
    pub rate: BitRate,
    /// Carriers; a burst takes one of them by chance.
    pub carriers: u32,
    /// What a slot carries.
    pub format: SlotFormat,
    /// Time between two slots.
    pub guard: Span,
    /// From a terminal to the hub.
    pub way: Span,
    /// A burst takes one of so many slots by chance, the first time.
    pub window: u32,
    /// Each collision doubles that, up to so many.
    pub most: u32,
    /// How often a cell is sent before its packet is given up; `None`: as often as it takes.
    pub tries: Option<u32>,
    /// Packets that wait in a terminal, at most.
    pub queue: usize,
}

impl AlohaConfig {
    /// One carrier of ATM cells; bursts begin in the next slot, and what collided is spread over
    /// 16 slots and more.
    pub fn new(rate: BitRate, way: Span) -> Self {
        Self {
            rate,
            carriers: 1,
            format: SlotFormat::Atm,
            guard: Span::ZERO,
            way,
            window: 1,
            most: 1_024,
            tries: None,
            queue: 256,
        }
    }

    /// The time of one slot, with its guard.
    pub fn slot(&self) -> Span {
        self.rate.time_for(self.format.on_air()) + self.guard
    }

    /// Checks every number.
    ///
    /// # Errors
    /// The first setting that makes no sense.
    pub fn validate(&self) -> Result<(), ScheduleError> {
        let error = |setting, expected| Err(ScheduleError { setting, expected });
        if self.carriers == 0 || self.carriers > 10_000 {
            return error("carriers", "1 to 10,000");
        }
        if self.window == 0 || self.most < self.window || self.most > 1 << 20 {
            return error("window, most", "1 to most, and most at most 2^20");
        }
        if self.tries == Some(0) {
            return error("tries", "at least 1, or none");
        }
        if self.queue == 0 {
            return error("queue", "at least 1");
        }
        Ok(())
    }
}

/// Slots over which a first collision is spread, whatever the first window was.
const FIRST_SPREAD: u32 = 16;

/// The accounts; at every moment `offered = delivered + overflowed + given_up + left + held`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlohaCounters {
    /// Handed in.
    pub offered: Tally,
    /// Handed out.
    pub delivered: Tally,
    /// Waiting, on air, or arrived and not yet fetched.
    pub held: Tally,
    /// Dropped: no room in the terminal.
    pub overflowed: Tally,
    /// Dropped: a cell of it collided as often as is tried.
    pub given_up: Tally,
    /// Bursts sent.
    pub bursts: u64,
    /// Of those, bursts that came through.
    pub through: u64,
    /// Slots, each carrier's counted, in which anybody sent.
    pub busy: u64,
    /// Gave up its place here after a collision: see [`Aloha::set_again`].
    pub left: Tally,
}

impl AlohaCounters {
    /// Whether the accounts balance.
    pub fn balances(&self) -> bool {
        let sum = |part: fn(&Tally) -> u64| {
            [self.delivered, self.held, self.overflowed, self.given_up, self.left]
                .iter()
                .map(part)
                .sum::<u64>()
        };
        sum(|tally| tally.packets) == self.offered.packets
            && sum(|tally| tally.bytes) == self.offered.bytes
    }
}

/// A packet that is on its way, cell by cell.
#[derive(Debug)]
struct Packet<F> {
    terminal: usize,
    frame: F,
    /// Cells that have not come through.
    left: u64,
    offered_at: Instant,
}

/// A packet that will not be tried again here.
#[derive(Debug)]
pub(super) struct Left<F> {
    /// When its terminal hears of the collision.
    pub(super) at: Instant,
    pub(super) terminal: usize,
    pub(super) frame: F,
    pub(super) offered_at: Instant,
}

/// A cell that is to be sent.
#[derive(Clone, Copy, Debug)]
struct Burst {
    packet: u64,
    tries: u32,
    window: u32,
}

/// A channel of slotted Aloha.
#[derive(Debug)]
pub struct Aloha<F> {
    config: AlohaConfig,
    /// By terminal: chance, packets, and the slot after the last one that it sends in.
    terminals: Vec<(RngStream, usize, u64)>,
    packets: BTreeMap<u64, Packet<F>>,
    next_packet: u64,
    /// What is sent in which slot: terminal, carrier, burst.
    slots: BTreeMap<u64, Vec<(usize, u32, Burst)>>,
    arrived: Arrivals<F>,
    /// The chance with which what collided is tried again.
    again: f64,
    left: VecDeque<Left<F>>,
    counters: AlohaCounters,
    now: Instant,
}

impl<F: Frame> Aloha<F> {
    /// A channel of `terminals`, whose randomness comes from `seed` and `run`.
    ///
    /// # Errors
    /// When a setting makes no sense.
    pub fn new(
        config: &AlohaConfig,
        terminals: usize,
        seed: u64,
        run: u64,
    ) -> Result<Self, ScheduleError> {
        config.validate()?;
        let terminal = |place| (RngStream::new(seed, run, &format!("satlink/aloha/{place}")), 0, 0);
        Ok(Self {
            config: config.clone(),
            terminals: (0..terminals).map(terminal).collect(),
            packets: BTreeMap::new(),
            next_packet: 0,
            slots: BTreeMap::new(),
            arrived: Arrivals::new(),
            again: 1.0,
            left: VecDeque::new(),
            counters: AlohaCounters::default(),
            now: Instant::ZERO,
        })
    }

    /// Gives `terminal` a packet for the hub.
    ///
    /// # Panics
    /// When there is no such terminal.
    pub fn offer(&mut self, now: Instant, terminal: usize, frame: F) -> Admission<F> {
        self.advance(now);
        let bytes = frame.len() as u64;
        self.counters.offered.add(bytes);
        if self.terminals[terminal].1 >= self.config.queue {
            self.counters.overflowed.add(bytes);
            return Admission::Dropped(DropCause::QueueFull, frame);
        }
        self.counters.held.add(bytes);
        self.terminals[terminal].1 += 1;
        let (number, left) = (self.next_packet, self.config.format.slots_for(bytes));
        self.next_packet += 1;
        let packet = Packet { terminal, frame, left, offered_at: self.now };
        self.packets.insert(number, packet);
        for _ in 0..left {
            let burst = Burst { packet: number, tries: 0, window: self.config.window };
            self.send(self.now, terminal, burst);
        }
        Admission::Queued
    }

    /// The chance with which a packet whose cell collides from now on is tried again; otherwise it
    /// leaves, for another channel. 1 at first.
    pub fn set_again(&mut self, now: Instant, chance: f64) {
        self.advance(now);
        self.again = chance;
    }

    /// The next packet that left. Its time may be yet to come.
    pub(super) fn poll_left(&mut self) -> Option<Left<F>> {
        self.left.pop_front()
    }

    /// When to call [`Aloha::poll_arrival`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let slot = self.slots.keys().next().map(|&slot| self.end_of(slot));
        [self.arrived.next_at(), slot].into_iter().flatten().min()
    }

    /// The next packet that arrived by `now`.
    pub fn poll_arrival(&mut self, now: Instant) -> Option<Arrived<F>> {
        self.advance(now);
        self.arrived.fetch(now, &mut self.counters.held, &mut self.counters.delivered)
    }

    /// The accounts.
    pub fn counters(&self) -> &AlohaCounters {
        &self.counters
    }

    /// Packets of `terminal` that have not come through.
    pub fn backlog(&self, terminal: usize) -> usize {
        self.terminals[terminal].1
    }

    /// Whether the accounts balance, with what is held counted again.
    pub fn audit(&self) -> bool {
        let mut held = Tally::default();
        self.packets.values().for_each(|packet| held.add(packet.frame.len() as u64));
        self.arrived.count_into(&mut held);
        held == self.counters.held && self.counters.balances()
    }

    fn end_of(&self, slot: u64) -> Instant {
        Instant::ZERO + self.config.slot() * (slot + 1)
    }

    /// Puts a burst into a slot that begins after `from`: of those that its window allows, the
    /// first in which its terminal does not send yet.
    fn send(&mut self, from: Instant, terminal: usize, burst: Burst) {
        let first = from.as_nanos().div_ceil(self.config.slot().as_nanos());
        let (rng, _, busy) = &mut self.terminals[terminal];
        let mut slot = first + rng.below(u64::from(burst.window));
        if burst.tries == 0 {
            // Cells of one terminal follow each other.
            slot = slot.max(*busy);
            *busy = slot + 1;
        }
        let carrier = rng.below(u64::from(self.config.carriers)) as u32;
        self.slots.entry(slot).or_default().push((terminal, carrier, burst));
    }

    fn advance(&mut self, now: Instant) {
        while let Some((&slot, _)) = self.slots.first_key_value() {
            let at = self.end_of(slot);
            if at > now {
                break;
            }
            let Some(mut bursts) = self.slots.remove(&slot) else { break };
            self.now = self.now.max(at);
            // Of a packet that is not here any more nothing is tried again.
            bursts
                .retain(|(.., burst)| burst.tries == 0 || self.packets.contains_key(&burst.packet));
            for (place, &(terminal, carrier, burst)) in bursts.iter().enumerate() {
                self.counters.bursts += 1;
                let first = bursts[..place].iter().all(|other| other.1 != carrier);
                self.counters.busy += u64::from(first);
                let mut others = bursts.iter().enumerate().filter(|(other, _)| *other != place);
                // A terminal has one transmitter.
                let hit = others.any(|(_, other)| other.1 == carrier || other.0 == terminal);
                if hit { self.collided(at, terminal, burst) } else { self.came(at, burst) }
            }
        }
        self.now = self.now.max(now);
    }

    fn came(&mut self, at: Instant, burst: Burst) {
        self.counters.through += 1;
        let Some(packet) = self.packets.get_mut(&burst.packet) else { return };
        packet.left -= 1;
        if packet.left > 0 {
            return;
        }
        let Some(packet) = self.packets.remove(&burst.packet) else { return };
        let Packet { terminal, frame, offered_at, .. } = packet;
        self.terminals[terminal].1 -= 1;
        let at = at + self.config.way;
        self.arrived.push(Arrived { at, terminal, frame, offered_at });
    }

    fn collided(&mut self, at: Instant, terminal: usize, burst: Burst) {
        let Burst { packet, tries, window } = burst;
        let tries = tries + 1;
        if self.config.tries.is_some_and(|most| tries >= most) {
            if let Some(packet) = self.packets.remove(&packet) {
                let bytes = packet.frame.len() as u64;
                self.terminals[terminal].1 -= 1;
                self.counters.held.remove(bytes);
                self.counters.given_up.add(bytes);
            }
            return;
        }
        if !self.packets.contains_key(&packet) {
            return;
        }
        // The hub says what came through, and that takes a round trip.
        let heard = at + self.config.way + self.config.way;
        if self.again < 1.0 && !self.terminals[terminal].0.chance(self.again) {
            self.leave(heard, packet);
            return;
        }
        let window = (window.max(FIRST_SPREAD / 2) * 2).min(self.config.most);
        self.send(heard, terminal, Burst { packet, tries, window });
    }

    fn leave(&mut self, at: Instant, packet: u64) {
        let Some(packet) = self.packets.remove(&packet) else { return };
        let Packet { terminal, frame, offered_at, .. } = packet;
        self.terminals[terminal].1 -= 1;
        let bytes = frame.len() as u64;
        self.counters.held.remove(bytes);
        self.counters.left.add(bytes);
        self.left.push_back(Left { at, terminal, frame, offered_at });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(change: impl FnOnce(&mut AlohaConfig), terminals: usize) -> Aloha<Vec<u8>> {
        let mut config = AlohaConfig::new(BitRate::from_kbps(100), Span::from_millis(270));
        change(&mut config);
        Aloha::new(&config, terminals, 3, 0).unwrap()
    }

    /// Poisson arrivals of one cell, `load` in a slot on each carrier, for `slots` slots.
    fn offer(channel: &mut Aloha<Vec<u8>>, terminals: u64, load: f64, slots: f64) {
        let mut rng = RngStream::new(5, 0, "arrivals");
        let slot = channel.config.slot().as_secs_f64();
        let gap = slot / load / f64::from(channel.config.carriers);
        let (mut at, end) = (0.0, slots * slot);
        while at < end {
            at += rng.exponential(gap);
            let now = Instant::ZERO + Span::from_secs_f64(at);
            channel.offer(now, rng.below(terminals) as usize, alloc::vec![0; 40]);
            while channel.poll_arrival(now).is_some() {}
            assert!(channel.audit());
        }
    }

    /// S = G·e^-G.
    #[test]
    fn throughput_is_as_the_formula_has_it() {
        for carriers in [1, 4] {
            for load in [0.1, 0.5, 1.0, 2.0] {
                let mut channel =
                    channel(|config| (config.tries, config.carriers) = (Some(1), carriers), 2_000);
                offer(&mut channel, 2_000, load, 20_000.0 / f64::from(carriers));
                let counters = channel.counters();
                let through = counters.through as f64 / 20_000.0;
                let sent = counters.bursts as f64 / 20_000.0;
                assert!((sent - load).abs() < 0.03 * load + 0.01, "{sent} for {load}");
                let expected = sent * libm::exp(-sent);
                assert!((through - expected).abs() < 0.015, "{load}: {through} for {expected}");
            }
        }
    }

    #[test]
    fn a_lone_terminal_needs_one_way_and_a_slot() {
        let mut channel = channel(|_| {}, 2);
        channel.offer(Instant::ZERO, 0, alloc::vec![0; 120]);
        let end = Instant::ZERO + Span::from_secs(1);
        let arrived = channel.poll_arrival(end).unwrap();
        // Three cells in three slots.
        let expected = Span::from_millis(270) + channel.config.slot() * 3;
        assert_eq!(arrived.at.since(Instant::ZERO), expected);
        assert_eq!(channel.counters().bursts, 3);
    }

    #[test]
    fn below_its_capacity_everything_comes_through_in_the_end() {
        let mut channel = channel(|_| {}, 100);
        offer(&mut channel, 100, 0.2, 5_000.0);
        while channel.poll_arrival(Instant::ZERO + Span::from_secs(600)).is_some() {}
        let counters = *channel.counters();
        assert_eq!(counters.delivered, counters.offered);
        assert!(counters.bursts > counters.through, "some collided");
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let error = |change: fn(&mut AlohaConfig)| {
            let mut config = AlohaConfig::new(BitRate::from_kbps(100), Span::ZERO);
            change(&mut config);
            config.validate().unwrap_err().setting
        };
        assert_eq!(error(|config| config.carriers = 0), "carriers");
        assert_eq!(error(|config| config.window = 0), "window, most");
        assert_eq!(error(|config| config.tries = Some(0)), "tries");
        assert_eq!(error(|config| config.queue = 0), "queue");
    }
}
