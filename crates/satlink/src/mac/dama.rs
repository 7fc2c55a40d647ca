//! Demand-assigned circuits, a single channel per carrier: DAMA/SCPC.
//!
//! ```text
//!   packet ──▶ request ──▶ hub: carrier free? ──▶ assignment ──▶ send at the carrier's rate ──▶ …
//!                             └ no: queue                        idle for `hold`: release
//! ```
//!
//! A terminal with packets requests a carrier of its own and keeps it until it has been idle for a
//! time. This suits calls and long transfers; for short ones it costs a round trip and an idle
//! carrier. With Poisson arrivals, exponential lengths and no propagation delay it is an M/M/c
//! queue (Erlang C), which a test verifies.

use super::arrivals::{Arrivals, Arrived};
use super::schedule::ScheduleError;
use crate::{Admission, DropCause, Frame, Tally};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use units::{BitRate, Instant, Span};

/// A pool of carriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamaConfig {
    /// Rate of one carrier in bit/s.
    pub rate: BitRate,
    /// Number of carriers.
    pub carriers: u32,
    /// One-way delay from a terminal to the hub.
    pub way: Span,
    /// Idle time after which a terminal releases its carrier.
    pub hold: Span,
    /// Maximum packets queued in a terminal.
    pub queue: usize,
}

/// Counters; at all times `offered = delivered + overflowed + held`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamaCounters {
    /// Offered.
    pub offered: Tally,
    /// Delivered.
    pub delivered: Tally,
    /// Queued, on air, or arrived and not yet fetched.
    pub held: Tally,
    /// Dropped at a full queue of the terminal.
    pub overflowed: Tally,
    /// Requests for a carrier.
    pub asked: u64,
    /// Requests that found all carriers assigned.
    pub waited: u64,
    /// Sum of the times for which carriers were assigned, until the last release.
    pub assigned: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No packets.
    Idle,
    /// A carrier is requested.
    Asking,
    /// Sends until this time.
    Sending,
    /// Has a carrier and no packets since this time.
    Holding(Instant),
}

#[derive(Debug)]
struct Terminal<F> {
    state: State,
    queue: VecDeque<(F, Instant)>,
    assigned_at: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A request arrives at the hub.
    Asked,
    /// An assignment arrives at the terminal.
    Assigned,
    /// A packet is sent.
    Sent,
    /// A carrier has been idle for `hold`, if it has been idle since this time.
    Silent(Instant),
    /// A release arrives at the hub.
    Freed,
}

/// Terminals that share a pool of carriers.
#[derive(Debug)]
pub struct Dama<F> {
    config: DamaConfig,
    terminals: Vec<Terminal<F>>,
    free: u32,
    /// Terminals waiting for a carrier, first come first served.
    line: VecDeque<usize>,
    agenda: BTreeMap<(Instant, u64), (usize, Event)>,
    next_event: u64,
    arrived: Arrivals<F>,
    counters: DamaCounters,
    now: Instant,
}

impl<F: Frame> Dama<F> {
    /// A pool for `terminals` terminals.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn new(config: &DamaConfig, terminals: usize) -> Result<Self, ScheduleError> {
        let error = |setting, expected| Err(ScheduleError { setting, expected });
        if config.carriers == 0 || config.carriers > 100_000 {
            return error("carriers", "1 to 100,000");
        }
        if config.queue == 0 {
            return error("queue", "at least 1");
        }
        let terminal =
            |_| Terminal { state: State::Idle, queue: VecDeque::new(), assigned_at: Instant::ZERO };
        Ok(Self {
            config: config.clone(),
            terminals: (0..terminals).map(terminal).collect(),
            free: config.carriers,
            line: VecDeque::new(),
            agenda: BTreeMap::new(),
            next_event: 0,
            arrived: Arrivals::new(),
            counters: DamaCounters::default(),
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
        if self.terminals[terminal].queue.len() >= self.config.queue {
            self.counters.overflowed.add(bytes);
            return Admission::Dropped(DropCause::QueueFull, frame);
        }
        self.counters.held.add(bytes);
        self.terminals[terminal].queue.push_back((frame, self.now));
        match self.terminals[terminal].state {
            State::Idle => {
                self.terminals[terminal].state = State::Asking;
                self.put(self.now + self.config.way, terminal, Event::Asked);
            }
            State::Holding(_) => self.send(self.now, terminal),
            State::Asking | State::Sending => {}
        }
        Admission::Queued
    }

    /// Returns when to call [`Dama::poll_arrival`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let event = self.agenda.keys().next().map(|&(at, _)| at);
        [self.arrived.next_at(), event].into_iter().flatten().min()
    }

    /// The next packet that arrived by `now`.
    pub fn poll_arrival(&mut self, now: Instant) -> Option<Arrived<F>> {
        self.advance(now);
        self.arrived.fetch(now, &mut self.counters.held, &mut self.counters.delivered)
    }

    /// Counters.
    pub fn counters(&self) -> &DamaCounters {
        &self.counters
    }

    /// Whether packet conservation holds and no carrier is assigned twice.
    pub fn audit(&self) -> bool {
        let counters = &self.counters;
        let sum = counters.delivered.packets + counters.held.packets + counters.overflowed.packets;
        let has =
            |terminal: &&Terminal<F>| matches!(terminal.state, State::Sending | State::Holding(_));
        let assigned = self.terminals.iter().filter(has).count() as u64;
        sum == counters.offered.packets && assigned <= u64::from(self.config.carriers)
    }

    fn put(&mut self, at: Instant, terminal: usize, event: Event) {
        self.agenda.insert((at, self.next_event), (terminal, event));
        self.next_event += 1;
    }

    fn advance(&mut self, now: Instant) {
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), (terminal, event)) = entry.remove_entry();
            self.now = self.now.max(at);
            match event {
                Event::Asked => {
                    self.counters.asked += 1;
                    self.counters.waited += u64::from(self.free == 0);
                    self.line.push_back(terminal);
                    self.assign(at);
                }
                Event::Assigned => {
                    self.terminals[terminal].assigned_at = at;
                    self.send(at, terminal);
                }
                Event::Sent => self.sent(at, terminal),
                Event::Silent(since) => self.silent(at, terminal, since),
                Event::Freed => {
                    self.free += 1;
                    self.assign(at);
                }
            }
        }
        self.now = self.now.max(now);
    }

    fn assign(&mut self, at: Instant) {
        while self.free > 0
            && let Some(terminal) = self.line.pop_front()
        {
            self.free -= 1;
            self.put(at + self.config.way, terminal, Event::Assigned);
        }
    }

    /// Starts sending the next packet.
    fn send(&mut self, at: Instant, terminal: usize) {
        let Some((frame, _)) = self.terminals[terminal].queue.front() else {
            self.terminals[terminal].state = State::Holding(at);
            self.put(at + self.config.hold, terminal, Event::Silent(at));
            return;
        };
        let takes = self.config.rate.time_for(frame.len() as u64);
        self.terminals[terminal].state = State::Sending;
        self.put(at + takes, terminal, Event::Sent);
    }

    fn sent(&mut self, at: Instant, terminal: usize) {
        if let Some((frame, offered_at)) = self.terminals[terminal].queue.pop_front() {
            let at = at + self.config.way;
            self.arrived.push(Arrived { at, terminal, frame, offered_at });
        }
        self.send(at, terminal);
    }

    fn silent(&mut self, at: Instant, terminal: usize, since: Instant) {
        if self.terminals[terminal].state != State::Holding(since) {
            return;
        }
        self.terminals[terminal].state = State::Idle;
        self.counters.assigned += at.since(self.terminals[terminal].assigned_at);
        self.put(at + self.config.way, terminal, Event::Freed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::RngStream;

    fn pool(carriers: u32, way_ms: u64, hold_ms: u64, terminals: usize) -> Dama<Vec<u8>> {
        let config = DamaConfig {
            rate: BitRate::from_bps(8_000),
            carriers,
            way: Span::from_millis(way_ms),
            hold: Span::from_millis(hold_ms),
            queue: 100,
        };
        Dama::new(&config, terminals).unwrap()
    }

    /// The probability of waiting in M/M/c at an offered load of `load` Erlang.
    fn erlang_c(carriers: u32, load: f64) -> f64 {
        let mut blocked = 1.0;
        for count in 1..=carriers {
            blocked = load * blocked / (f64::from(count) + load * blocked);
        }
        let busy = load / f64::from(carriers);
        blocked / (1.0 - busy * (1.0 - blocked))
    }

    #[test]
    fn waiting_probability_matches_erlang_c() {
        let mut rng = RngStream::new(1, 0, "calls");
        let (carriers, load) = (8, 6.0);
        // Packets of 1 s on average, each from a terminal of its own.
        let calls = 30_000;
        let mut pool = pool(carriers, 0, 0, calls);
        let mut at = 0.0;
        for call in 0..calls {
            at += rng.exponential(1.0 / load);
            let bytes = (rng.exponential(1_000.0) as usize).max(1);
            let now = Instant::ZERO + Span::from_secs_f64(at);
            pool.offer(now, call, alloc::vec![0; bytes]);
            while pool.poll_arrival(now).is_some() {}
        }
        assert!(pool.audit());
        let seen = pool.counters().waited as f64 / pool.counters().asked as f64;
        let expected = erlang_c(carriers, load);
        assert!((seen - expected).abs() < 0.03, "{seen} for {expected}");
    }

    #[test]
    fn assignment_costs_one_round_trip_and_is_held() {
        let mut pool = pool(1, 270, 1_000, 2);
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let when = |pool: &mut Dama<Vec<u8>>, end| {
            pool.poll_arrival(at(end))
                .map(|arrived| (arrived.at.as_nanos() / 1_000_000, arrived.terminal))
        };
        pool.offer(at(0), 0, alloc::vec![0; 100]);
        // Request, assignment, 100 ms, and propagation.
        assert_eq!(when(&mut pool, 2_000), Some((910, 0)));
        let mut other = self::pool(1, 270, 1_000, 2);
        other.offer(at(0), 0, alloc::vec![0; 100]);
        other.offer(at(1_000), 0, alloc::vec![0; 100]);
        other.offer(at(1_000), 1, alloc::vec![0; 100]);
        assert_eq!(when(&mut other, 9_000), Some((910, 0)));
        assert_eq!(when(&mut other, 9_000), Some((1_370, 0)), "at once, while it is held");
        // The other terminal waits until 1 s of idle time has passed and the release has arrived.
        assert_eq!(when(&mut other, 9_000), Some((2_100 + 270 + 270 + 100 + 270, 1)));
        assert_eq!(other.counters().waited, 1);
    }
}
