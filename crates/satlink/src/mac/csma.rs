//! Carrier sense multiple access, p-persistent and half-duplex, as in KISS.
//!
//! ```text
//!                 frames queued                    draw ≤ p
//!      ┌──────┐ ───────────▶ ┌──────────────────┐ ──────────▶ ┌────────┐ ─▶ ┌────────┐ ─▶ ┌──────┐
//!      │ idle │              │ channel idle?    │             │ key up │    │ frames │    │ tail │
//!      └──────┘ ◀───┐        └─┬──────▲───────┬─┘             └────────┘    └────────┘    └──┬───┘
//!                   │    busy: │      │       │ draw > p: wait a slot                        │
//!                   │  defer to its end ◀─────┘                                              │
//!                   └─────────────────────────────────────────────────── queue empty ◀───────┘
//! ```
//!
//! Stations detect a carrier's start and end after [`CsmaConfig::propagation`] and
//! [`CsmaConfig::detection`]; two that key up within that time collide. A frame is lost if another
//! station is on air at the same time, if its receiver is transmitting, or on a bit error. The
//! sender is not informed: recovery is left to higher layers.
//!
//! ```
//! use satlink::mac::csma::{Csma, CsmaConfig};
//! use units::{BitRate, Instant};
//!
//! let mut config = CsmaConfig::kiss(BitRate::from_bps(1_200));
//! config.persistence = 255;
//! let mut channel: Csma<Vec<u8>> = Csma::new(&config, 2, 1, 0)?;
//! channel.offer(Instant::ZERO, 0, 1, vec![0; 235]);
//! let mut heard = None;
//! while let Some(at) = channel.poll_timeout() {
//!     heard = channel.poll_delivery(at).or(heard);
//! }
//! // 500 ms to key up, then 255 bytes at 1,200 bit/s.
//! assert_eq!(heard.unwrap().at.as_secs_f64(), 0.5 + 1.7);
//! # Ok::<(), satlink::mac::csma::CsmaError>(())
//! ```
//!
//! Source: Chepponis and Karn, "The KISS TNC", section 6; [`CsmaConfig`] gives their names of the
//! parameters. A transmission contains the frames that are queued at the end of each frame, up to
//! [`CsmaConfig::most_frames`].

mod config;
mod station;

pub use config::{CsmaConfig, CsmaError};

use crate::{Admission, DropCause, Frame, Tally};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::vec::Vec;
use station::{Phase, Station, Waiting};
use units::{Instant, RngStream, Serializer, Span};

/// A frame received by its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard<F> {
    /// When its last bit arrived.
    pub at: Instant,
    /// Source.
    pub from: usize,
    /// Destination.
    pub to: usize,
    /// The frame.
    pub frame: F,
    /// When it was offered.
    pub offered_at: Instant,
}

/// Counters of a channel, or of one station's frames.
///
/// At all times `offered = delivered + dropped + held`; see [`CsmaCounters::balances`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsmaCounters {
    /// Offered.
    pub offered: Tally,
    /// Delivered.
    pub delivered: Tally,
    /// Queued, on air, or received and not yet fetched.
    pub held: Tally,
    /// Dropped at a full queue of the station.
    pub overflowed: Tally,
    /// Lost: another station was on air at the same time.
    pub collided: Tally,
    /// Lost: the receiver was transmitting.
    pub unheard: Tally,
    /// Lost: a bit error.
    pub corrupted: Tally,
    /// Transmitted; octets include framing.
    pub sent: Tally,
    /// Number of transmissions.
    pub transmissions: u64,
    /// Sum of the stations' times on air, overlaps counted each.
    pub on_air: Span,
}

impl CsmaCounters {
    /// Whether packet conservation holds.
    pub fn balances(&self) -> bool {
        let sum = |part: fn(&Tally) -> u64| {
            let dropped = [self.overflowed, self.collided, self.unheard, self.corrupted];
            dropped.iter().chain([&self.delivered, &self.held]).map(part).sum::<u64>()
        };
        sum(|tally| tally.packets) == self.offered.packets
            && sum(|tally| tally.bytes) == self.offered.bytes
    }
}

/// A half-duplex channel shared by stations.
///
/// As for a [`Link`](crate::Link), all events are computed from scheduled times: late calls change
/// nothing. If time runs backwards it counts as unchanged.
#[derive(Debug)]
pub struct Csma<F> {
    config: CsmaConfig,
    stations: Vec<Station<F>>,
    bursts: Vec<Burst>,
    /// Frames on air or in propagation, by time of arrival.
    under_way: BTreeMap<(Instant, u64), UnderWay<F>>,
    next_frame: u64,
    heard: VecDeque<Heard<F>>,
    counters: CsmaCounters,
    now: Instant,
}

/// A transmission of a station.
#[derive(Clone, Copy, Debug)]
struct Burst {
    station: usize,
    start: Instant,
    /// Unknown before the end of the last frame.
    end: Option<Instant>,
}

impl Burst {
    /// Whether any of it is on air between `from` and `to`.
    fn touches(&self, from: Instant, to: Instant) -> bool {
        self.start < to && self.end.is_none_or(|end| end > from)
    }
}

#[derive(Debug)]
struct UnderWay<F> {
    from: usize,
    waiting: Waiting<F>,
    first_bit: Instant,
    last_bit: Instant,
    corrupted: bool,
}

/// Carrier sense of a station.
enum Carrier {
    Free,
    /// Busy until this time.
    Until(Instant),
    /// Busy with an unknown end.
    On,
}

impl<F: Frame> Csma<F> {
    /// A channel of `stations` stations, whose random numbers derive from `seed` and `run`.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn new(
        config: &CsmaConfig,
        stations: usize,
        seed: u64,
        run: u64,
    ) -> Result<Self, CsmaError> {
        config.validate()?;
        let station = |index| Station {
            phase: Phase::Idle,
            queue: VecDeque::new(),
            line: Serializer::new(config.rate),
            access: RngStream::new(seed, run, &format!("satlink/csma/access/{index}")),
            noise: RngStream::new(seed, run, &format!("satlink/csma/noise/{index}")),
        };
        Ok(Self {
            config: config.clone(),
            stations: (0..stations).map(station).collect(),
            bursts: Vec::new(),
            under_way: BTreeMap::new(),
            next_frame: 0,
            heard: VecDeque::new(),
            counters: CsmaCounters::default(),
            now: Instant::ZERO,
        })
    }

    /// Queues a frame of station `from` for station `to`.
    ///
    /// # Panics
    /// If a station does not exist, or both are the same.
    pub fn offer(&mut self, now: Instant, from: usize, to: usize, frame: F) -> Admission<F> {
        assert!(to < self.stations.len() && to != from, "from {from} to {to}: no such pair");
        self.advance(now);
        let bytes = frame.len() as u64;
        self.counters.offered.add(bytes);
        let station = &mut self.stations[from];
        if station.queue.len() >= self.config.queue {
            self.counters.overflowed.add(bytes);
            return Admission::Dropped(DropCause::QueueFull, frame);
        }
        self.counters.held.add(bytes);
        station.queue.push_back(Waiting { to, frame, offered_at: self.now });
        if station.phase == Phase::Idle {
            station.phase = Phase::Look { at: self.now };
        }
        Admission::Queued
    }

    /// Returns when to call [`Csma::poll_delivery`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        if let Some(heard) = self.heard.front() {
            return Some(heard.at);
        }
        self.next_event()
    }

    /// The next frame received by `now`.
    pub fn poll_delivery(&mut self, now: Instant) -> Option<Heard<F>> {
        self.advance(now);
        let heard = self.heard.pop_front()?;
        let bytes = heard.frame.len() as u64;
        self.counters.held.remove(bytes);
        self.counters.delivered.add(bytes);
        Some(heard)
    }

    /// Counters.
    pub fn counters(&self) -> &CsmaCounters {
        &self.counters
    }

    /// Whether packet conservation holds, with the held frames recounted.
    pub fn audit(&self) -> bool {
        let mut held = Tally::default();
        let waiting = self.stations.iter().flat_map(|station| &station.queue);
        let on_air = self.under_way.values().map(|frame| &frame.waiting);
        for frame in waiting.chain(on_air) {
            held.add(frame.frame.len() as u64);
        }
        for heard in &self.heard {
            held.add(heard.frame.len() as u64);
        }
        held == self.counters.held && self.counters.balances()
    }

    /// Frames queued in `station`, except those on air.
    pub fn backlog(&self, station: usize) -> usize {
        self.stations[station].queue.len()
    }

    /// Whether `station` has no frame queued or on air.
    pub fn is_silent(&self, station: usize) -> bool {
        self.stations[station].phase == Phase::Idle
    }

    fn next_event(&self) -> Option<Instant> {
        let arrival = self.under_way.keys().next().map(|&(at, _)| at);
        let stations = self.stations.iter().filter_map(|station| station.phase.due());
        stations.chain(arrival).min()
    }

    /// Processes all events due by `now` in order of time; arrivals first, then stations by number.
    fn advance(&mut self, now: Instant) {
        while let Some(at) = self.next_event().filter(|&at| at <= now) {
            self.now = self.now.max(at);
            while let Some(entry) = self.under_way.first_entry()
                && entry.key().0 <= at
            {
                let frame = entry.remove();
                self.arrive(at, frame);
            }
            for index in 0..self.stations.len() {
                if self.stations[index].phase.due().is_some_and(|due| due <= at) {
                    self.act(at, index);
                }
            }
        }
        self.now = self.now.max(now);
    }

    fn act(&mut self, at: Instant, index: usize) {
        match self.stations[index].phase {
            Phase::Idle | Phase::Deferring => {}
            Phase::Look { .. } => self.look(at, index),
            Phase::Sending { frames, .. } => self.send(at, index, frames),
            Phase::Tail { .. } => {
                let station = &mut self.stations[index];
                let more = !station.queue.is_empty();
                station.phase = if more { Phase::Look { at } } else { Phase::Idle };
            }
        }
    }

    /// Senses the channel; if it is idle, draws.
    fn look(&mut self, at: Instant, index: usize) {
        let carrier = self.carrier(at, index);
        let station = &mut self.stations[index];
        station.phase = match carrier {
            Carrier::Until(end) => Phase::Look { at: end },
            Carrier::On => Phase::Deferring,
            Carrier::Free if station.access.chance(self.config.probability()) => {
                self.bursts.push(Burst { station: index, start: at, end: None });
                self.counters.transmissions += 1;
                Phase::Sending { next: at + self.config.key_up, frames: 0 }
            }
            Carrier::Free => Phase::Look { at: at + self.config.slot },
        };
    }

    fn carrier(&self, at: Instant, index: usize) -> Carrier {
        let late = self.config.propagation + self.config.detection;
        let others = self.bursts.iter().filter(|burst| burst.station != index);
        let heard = others.filter(|burst| burst.start + late < at);
        let mut found = Carrier::Free;
        for burst in heard {
            match (burst.end, &found) {
                (None, _) => return Carrier::On,
                (Some(end), Carrier::Until(other)) if end + late <= *other => {}
                (Some(end), _) if end + late > at => found = Carrier::Until(end + late),
                (Some(_), _) => {}
            }
        }
        found
    }

    /// Sends the next frame of a transmission, or ends it.
    fn send(&mut self, at: Instant, index: usize, frames: u32) {
        let station = &mut self.stations[index];
        let more = frames < self.config.most_frames;
        let Some(waiting) = more.then(|| station.queue.pop_front()).flatten() else {
            let until = at + self.config.tail;
            station.phase = Phase::Tail { until };
            self.unkey(index, until);
            return;
        };
        let on_air = self.config.framing.on_air(waiting.frame.len() as u64);
        let last_bit = station.line.send(at, on_air);
        let kept = libm::pow(1.0 - self.config.bit_error_ratio, on_air as f64 * 8.0);
        let corrupted = station.noise.chance(1.0 - kept);
        station.phase = Phase::Sending { next: last_bit, frames: frames + 1 };
        self.counters.sent.add(on_air);
        let key = (last_bit + self.config.propagation, self.next_frame);
        self.next_frame += 1;
        let frame = UnderWay { from: index, waiting, first_bit: at, last_bit, corrupted };
        self.under_way.insert(key, frame);
    }

    /// Ends the transmission of station `index` at `end`: deferring stations sense the channel when
    /// they detect that.
    fn unkey(&mut self, index: usize, end: Instant) {
        let late = self.config.propagation + self.config.detection;
        for burst in &mut self.bursts {
            if burst.station == index && burst.end.is_none() {
                burst.end = Some(end);
                self.counters.on_air += end.since(burst.start);
            }
        }
        for (other, station) in self.stations.iter_mut().enumerate() {
            if other != index && station.phase == Phase::Deferring {
                station.phase = Phase::Look { at: end + late };
            }
        }
        self.forget();
    }

    /// Discards transmissions that can no longer be sensed or collide.
    fn forget(&mut self) {
        let late = self.config.propagation * 2 + self.config.detection;
        let needed = self.under_way.values().map(|frame| frame.first_bit).min();
        let needed = needed.unwrap_or(self.now).min(self.now);
        self.bursts.retain(|burst| burst.end.is_none_or(|end| end + late >= needed));
    }

    /// Handles the arrival of a frame's last bit at its receiver.
    fn arrive(&mut self, at: Instant, frame: UnderWay<F>) {
        let UnderWay { from, waiting, first_bit, last_bit, corrupted } = frame;
        let to = waiting.to;
        let way = self.config.propagation;
        let others = self.bursts.iter().filter(|burst| burst.station != from);
        let (mut collided, mut deaf) = (false, false);
        for burst in others {
            if burst.station == to {
                deaf |= burst.touches(first_bit + way, last_bit + way);
            } else {
                collided |= burst.touches(first_bit, last_bit);
            }
        }
        let bytes = waiting.frame.len() as u64;
        let drops = if deaf {
            &mut self.counters.unheard
        } else if collided {
            &mut self.counters.collided
        } else if corrupted {
            &mut self.counters.corrupted
        } else {
            let Waiting { to, frame, offered_at } = waiting;
            self.heard.push_back(Heard { at, from, to, frame, offered_at });
            return;
        };
        drops.add(bytes);
        self.counters.held.remove(bytes);
    }
}

#[cfg(test)]
mod tests;
