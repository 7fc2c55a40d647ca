//! Two endpoints and the link between them.

mod observe;

pub use observe::End;

use crate::faults::FaultSource;
use crate::series::Recorders;
use crate::{Capture, EventQueue, Faults, Meter, TraceHash, capture::PacketDirection};
use satlink::{Admission, ConfigError, Direction, Frame, Link, LinkConfig};
use units::{Instant, RngStream, Span};

/// Octets of IPv4 and UDP headers.
const IPV4_UDP: usize = 28;

/// A sans-IO protocol with its application.
pub trait Endpoint {
    /// Handles a datagram that arrived at `now`; its content may be overwritten.
    fn handle_datagram(&mut self, now: Instant, datagram: &mut [u8]);
    /// Sends all datagrams that may be sent at `now`.
    fn poll_transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8]));
    /// Returns when to call [`Endpoint::handle_timeout`], and then [`Endpoint::poll_transmit`].
    fn poll_timeout(&self) -> Option<Instant>;
    /// Handles the timers that have expired at `now`.
    fn handle_timeout(&mut self, now: Instant);
}

/// A datagram on the link: its octets, and the length of the headers before it.
#[derive(Clone, Debug)]
pub struct Datagram {
    bytes: Vec<u8>,
    header: usize,
}

impl Frame for Datagram {
    fn len(&self) -> usize {
        self.header + self.bytes.len()
    }
}

/// Parameters of a path.
#[derive(Clone, Debug)]
pub struct PathConfig {
    /// The link.
    pub link: LinkConfig,
    /// With `run` the source of all randomness.
    pub seed: u64,
    /// The replication.
    pub run: u64,
    /// Octets of IP and UDP before each datagram.
    pub header: usize,
    /// Faults other than those of the link.
    pub faults: Faults,
}

impl PathConfig {
    /// A path over `link` with IPv4 and UDP headers, seed 1 and no faults.
    pub fn new(link: LinkConfig) -> Self {
        Self { link, seed: 1, run: 0, header: IPV4_UDP, faults: Faults::default() }
    }
}

/// A scheduled change.
#[derive(Clone, Debug)]
pub enum Change {
    /// Replaces the link's configuration.
    Link(Box<LinkConfig>),
    /// Replaces the faults.
    Faults(Faults),
}

/// Two endpoints, the link between them, and time. The terminal's datagrams take the return
/// direction, the hub's the forward direction.
#[derive(Debug)]
pub struct Path<T, H> {
    /// The endpoint at the terminal.
    pub terminal: T,
    /// The endpoint at the hub.
    pub hub: H,
    link: Link<Datagram>,
    header: usize,
    faults: Faults,
    sources: [FaultSource; 2],
    changes: EventQueue<Change>,
    offered: [Meter; 2],
    delivered: [Meter; 2],
    trace: TraceHash,
    now: Instant,
    /// Iterations at one instant.
    rounds: u32,
    /// At the terminal, and at the hub.
    captures: [Option<Box<Capture>>; 2],
    recorders: Recorders<Self>,
}

impl<T: Endpoint, H: Endpoint> Path<T, H> {
    /// Connects `terminal` and `hub` at time zero.
    pub fn new(config: &PathConfig, terminal: T, hub: H) -> Result<Self, ConfigError> {
        let source = |name| FaultSource::new(RngStream::new(config.seed, config.run, name));
        let meters = || [(); 2].map(|()| Meter::new(Span::from_millis(10)));
        Ok(Self {
            terminal,
            hub,
            link: Link::new(&config.link, config.seed, config.run)?,
            header: config.header,
            faults: config.faults,
            sources: [source("sim/faults/forward"), source("sim/faults/return")],
            changes: EventQueue::new(),
            offered: meters(),
            delivered: meters(),
            trace: TraceHash::new(),
            now: Instant::ZERO,
            rounds: 0,
            captures: [None, None],
            recorders: Recorders::default(),
        })
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The link, for its counters.
    pub fn link(&self) -> &Link<Datagram> {
        &self.link
    }

    /// Octets offered to the link, headers included.
    pub fn offered(&self, direction: Direction) -> &Meter {
        &self.offered[direction as usize]
    }

    /// Octets delivered by the link, headers included.
    pub fn delivered(&self, direction: Direction) -> &Meter {
        &self.delivered[direction as usize]
    }

    /// A hash of the run; equal for equal runs.
    pub fn trace_hash(&self) -> u64 {
        self.trace.value()
    }

    /// Schedules a change of the link or the faults.
    pub fn change_at(&mut self, at: Instant, change: Change) {
        self.changes.push(at, change);
    }

    /// Runs until `end`, events at `end` included.
    pub fn run_until(&mut self, end: Instant) {
        self.run_while(end, |_| true);
    }

    /// Runs while `go_on` returns true, until `end` at most; returns whether it stopped before.
    ///
    /// # Panics
    /// If packet conservation does not hold on the link at the end.
    pub fn run_while(&mut self, end: Instant, mut go_on: impl FnMut(&Self) -> bool) -> bool {
        let stopped = loop {
            self.transmit();
            if !go_on(self) {
                break true;
            }
            match self.next_at() {
                Some(at) if at <= end => self.step(at),
                Some(_) | None => {
                    self.now = self.now.max(end);
                    break false;
                }
            }
            self.record();
        };
        assert!(
            self.link.audit(),
            "at {:?} packet conservation does not hold on the link",
            self.now
        );
        stopped
    }

    fn next_at(&self) -> Option<Instant> {
        [
            self.link.poll_timeout(),
            self.terminal.poll_timeout(),
            self.hub.poll_timeout(),
            self.changes.next_at(),
            Some(self.recorders.next_at()).filter(|&at| at < Instant::FAR_FUTURE),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Advances to `at`, unless that is in the past, and processes all events due.
    fn step(&mut self, at: Instant) {
        if at > self.now {
            self.now = at;
            self.rounds = 0;
        } else {
            self.rounds += 1;
            assert!(self.rounds < 100_000, "at {:?} no progress of time: {at:?}", self.now);
        }
        let now = self.now;
        while let Some((_, change)) = self.changes.pop_due(now) {
            match change {
                Change::Link(config) => {
                    self.link.reconfigure(now, &config).expect("a change must be a valid link");
                }
                Change::Faults(faults) => self.faults = faults,
            }
        }
        while let Some(delivery) = self.link.poll_delivery(now) {
            let direction = delivery.direction;
            observe::capture(
                &mut self.captures,
                now,
                direction,
                PacketDirection::Inbound,
                &delivery.frame,
            );
            self.delivered[direction as usize].count(now, delivery.frame.len() as u64);
            let source = &mut self.sources[direction as usize];
            for mut datagram in source.apply(&self.faults, delivery.frame.bytes) {
                self.trace.event(now, direction as u64, &datagram);
                match direction {
                    Direction::Forward => self.terminal.handle_datagram(now, &mut datagram),
                    Direction::Return => self.hub.handle_datagram(now, &mut datagram),
                }
            }
        }
        if self.terminal.poll_timeout().is_some_and(|due| due <= now) {
            self.terminal.handle_timeout(now);
        }
        if self.hub.poll_timeout().is_some_and(|due| due <= now) {
            self.hub.handle_timeout(now);
        }
    }

    fn transmit(&mut self) {
        let now = self.now;
        for direction in Direction::BOTH {
            let (link, meter) = (&mut self.link, &mut self.offered[direction as usize]);
            let captures = &mut self.captures;
            let header = self.header;
            let mut send = |bytes: &[u8]| {
                let datagram = Datagram { bytes: bytes.to_vec(), header };
                meter.count(now, datagram.len() as u64);
                observe::capture(captures, now, direction, PacketDirection::Outbound, &datagram);
                match link.offer(now, direction, datagram) {
                    Admission::Queued | Admission::Dropped(..) => {}
                }
            };
            match direction {
                Direction::Forward => self.hub.poll_transmit(now, &mut send),
                Direction::Return => self.terminal.poll_transmit(now, &mut send),
            }
        }
    }
}

#[cfg(test)]
mod tests;
