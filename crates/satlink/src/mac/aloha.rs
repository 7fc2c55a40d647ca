//! Slotted Aloha: terminals send without coordination and retransmit after collisions.
//!
//! ```text
//!   offer ──▶ cells ──▶ a slot of the next `window`, any carrier ──alone──▶ arrived
//!                            ▲                             └─collision─▶ detected a round
//!                            └──── window doubled, up to a limit ◀──────── trip later
//! ```
//!
//! Terminals need no burst time plan, so a single terminal has a delay of one way. With a load of
//! `G` bursts per slot the throughput is `G·e^-G` (Roberts 1972, for many terminals), at most 0.37;
//! a test verifies it. The cells of a packet are sent independently, one per slot; the packet
//! arrives with the last.
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

/// A slotted Aloha channel and its terminals, all alike.
#[derive(Clone, Debug, PartialEq)]
pub struct AlohaConfig {
    /// Rate of one carrier in bit/s.
    pub rate: BitRate,
    /// Number of carriers; a burst selects one at random.
    pub carriers: u32,
    /// The capacity of a slot.
    pub format: SlotFormat,
    /// Guard time between two slots.
    pub guard: Span,
    /// One-way delay from a terminal to the hub.
    pub way: Span,
    /// Initial contention window in slots.
    pub window: u32,
    /// Maximum of the window, which each collision doubles.
    pub most: u32,
    /// Maximum transmissions of a cell; `None`: unlimited.
    pub tries: Option<u32>,
    /// Maximum packets queued in a terminal.
    pub queue: usize,
}

impl AlohaConfig {
    /// One carrier of ATM cells; first transmissions use the next slot, retransmissions a window of
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

    /// Duration of one slot, guard time included.
    pub fn slot(&self) -> Span {
        self.rate.time_for(self.format.on_air()) + self.guard
    }

    /// Checks all values.
    ///
    /// # Errors
    /// The first invalid setting.
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

/// Window in slots after a first collision, regardless of the initial window.
const FIRST_SPREAD: u32 = 16;

/// Counters; at all times `offered = delivered + overflowed + given_up + left + held`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlohaCounters {
    /// Offered.
    pub offered: Tally,
    /// Delivered.
    pub delivered: Tally,
    /// Queued, on air, or arrived and not yet fetched.
    pub held: Tally,
    /// Dropped at a full queue of the terminal.
    pub overflowed: Tally,
    /// Dropped after the maximum number of collisions of a cell.
    pub given_up: Tally,
    /// Bursts sent.
    pub bursts: u64,
    /// Bursts received.
    pub through: u64,
    /// Slots with at least one burst, counted per carrier.
    pub busy: u64,
    /// Moved to another channel after a collision: see [`Aloha::set_again`].
    pub left: Tally,
}

impl AlohaCounters {
    /// Whether packet conservation holds.
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

/// A packet in transmission, cell by cell.
#[derive(Debug)]
struct Packet<F> {
    terminal: usize,
    frame: F,
    /// Cells not yet received.
    left: u64,
    offered_at: Instant,
}

/// A packet that is not retransmitted on this channel.
#[derive(Debug)]
pub(super) struct Left<F> {
    /// When its terminal detects the collision.
    pub(super) at: Instant,
    pub(super) terminal: usize,
    pub(super) frame: F,
    pub(super) offered_at: Instant,
}

/// A cell to be sent.
#[derive(Clone, Copy, Debug)]
struct Burst {
    packet: u64,
    tries: u32,
    window: u32,
}

/// A slotted Aloha channel.
#[derive(Debug)]
pub struct Aloha<F> {
    config: AlohaConfig,
    /// By terminal: random stream, packets, and the slot after its last transmission.
    terminals: Vec<(RngStream, usize, u64)>,
    packets: BTreeMap<u64, Packet<F>>,
    next_packet: u64,
    /// Transmissions by slot: terminal, carrier, burst.
    slots: BTreeMap<u64, Vec<(usize, u32, Burst)>>,
    arrived: Arrivals<F>,
    /// Probability of a retransmission after a collision.
    again: f64,
    left: VecDeque<Left<F>>,
    counters: AlohaCounters,
    now: Instant,
}

impl<F: Frame> Aloha<F> {
    /// A channel of `terminals` terminals, whose random numbers derive from `seed` and `run`.
    ///
    /// # Errors
    /// If a setting is invalid.
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

    /// Queues a packet at `terminal`.
    ///
    /// # Panics
    /// If the terminal does not exist.
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

    /// Sets the probability with which a packet is retransmitted here after a collision of its
    /// cell; otherwise it leaves for another channel. Initially 1.
    pub fn set_again(&mut self, now: Instant, chance: f64) {
        self.advance(now);
        self.again = chance;
    }

    /// The next packet that left. Its time may be in the future.
    pub(super) fn poll_left(&mut self) -> Option<Left<F>> {
        self.left.pop_front()
    }

    /// Returns when to call [`Aloha::poll_arrival`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let slot = self.slots.keys().next().map(|&slot| self.end_of(slot));
        [self.arrived.next_at(), slot].into_iter().flatten().min()
    }

    /// The next packet that arrived by `now`.
    pub fn poll_arrival(&mut self, now: Instant) -> Option<Arrived<F>> {
        self.advance(now);
        self.arrived.fetch(now, &mut self.counters.held, &mut self.counters.delivered)
    }

    /// Counters.
    pub fn counters(&self) -> &AlohaCounters {
        &self.counters
    }

    /// Packets of `terminal` not yet received.
    pub fn backlog(&self, terminal: usize) -> usize {
        self.terminals[terminal].1
    }

    /// Whether packet conservation holds, with the held packets recounted.
    pub fn audit(&self) -> bool {
        let mut held = Tally::default();
        self.packets.values().for_each(|packet| held.add(packet.frame.len() as u64));
        self.arrived.count_into(&mut held);
        held == self.counters.held && self.counters.balances()
    }

    fn end_of(&self, slot: u64) -> Instant {
        Instant::ZERO + self.config.slot() * (slot + 1)
    }

    /// Schedules a burst in a slot that starts after `from`: a random slot of its window, or the
    /// next one in which its terminal does not send yet.
    fn send(&mut self, from: Instant, terminal: usize, burst: Burst) {
        let first = from.as_nanos().div_ceil(self.config.slot().as_nanos());
        let (rng, _, busy) = &mut self.terminals[terminal];
        let mut slot = first + rng.below(u64::from(burst.window));
        if burst.tries == 0 {
            // The cells of a terminal are consecutive.
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
            // Cells of a packet that has left are not retransmitted.
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
        // The hub's acknowledgement takes a round trip.
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

    /// Poisson arrivals of single cells with `load` per slot and carrier, for `slots` slots.
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
    fn throughput_matches_the_formula() {
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
    fn single_terminal_has_a_delay_of_one_way_and_its_slots() {
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
    fn all_packets_arrive_below_capacity() {
        let mut channel = channel(|_| {}, 100);
        offer(&mut channel, 100, 0.2, 5_000.0);
        while channel.poll_arrival(Instant::ZERO + Span::from_secs(600)).is_some() {}
        let counters = *channel.counters();
        assert_eq!(counters.delivered, counters.offered);
        assert!(counters.bursts > counters.through, "some collided");
    }

    #[test]
    fn invalid_settings_are_rejected() {
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
