//! The readiness loop and the kernel interface of the engine: all I/O of connections is here.
//!
//! ```text
//!   Driver:  now ─▶ Machine::round ─▶ poll_timeout ─▶ wait ─▶ handle_readiness ─▶ again
//!              KernelHost: sockets · routes · name servers · descriptors
//! ```
//!
//! Only the wait blocks; only name lookups run in another thread.

mod answered_from;
mod channel;
mod descriptors;
mod host;
mod listener;
#[cfg(test)]
pub(crate) mod resolving;
mod route;
mod shards;
mod system;
mod tcp;
mod timer;
mod udp;
mod worker;

pub(crate) use channel::channel;
pub(crate) use descriptors::{KernelReserve, descriptors, raise_descriptor_limit};
pub(crate) use host::KernelHost;
pub(crate) use listener::{bind, from_std, listen_on, to_keep};
pub(crate) use route::mtu;
pub(crate) use shards::{ShardPlace, Wake};
#[cfg(test)]
pub(crate) use tcp::KernelTcp;
#[cfg(test)]
pub(crate) use tcp::unacknowledged;

use crate::engine::{EngineView, Machine, Platform, Readiness, Source};
use crate::memory::Memory;
use crate::observe::{self, LoopStatus, Observer};
use crate::stop::Stop;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rt::Clock;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;
use timer::Alarm;
use units::{Instant, Span};
use worker::Worker;

const ALARM: Token = Token(0);
const STOP: Token = Token(1);
const NAMES: Token = Token(2);
const HELD_SYNS: Token = Token(3);
const PACKETS: Token = Token(4);
/// First token of sockets for DNS queries.
const NAME_QUERIES: usize = 1 << 7;
/// First token of datagram sockets; listeners and connections follow.
const DATAGRAMS: usize = 1 << 8;
const LISTENERS: usize = 1 << 10;
const CONNECTIONS: usize = 1 << 11;
const _: () = assert!(crate::config::MAX_PATHS <= LISTENERS - DATAGRAMS);
const _: () = assert!(crate::config::MAX_DNS_LISTENERS <= DATAGRAMS - NAME_QUERIES);
const _: () = assert!(crate::engine::MAX_LISTENERS <= CONNECTIONS - LISTENERS);

/// The readiness loop.
#[derive(Debug)]
pub(crate) struct Driver {
    poll: Poll,
    events: Events,
    clock: Clock,
    alarm: Alarm,
    observer: Option<Observer>,
    /// `None` in a shard: the loop that serves its hub's observers returns memory for all.
    memory: Option<Memory>,
    shard: Option<ShardLoop>,
    /// Set when a stop, a reload or a drain may have been requested.
    requested: bool,
    /// Time of the last wake-up.
    woke: Instant,
    /// Octets that were moved by the last wake-up.
    moved: u64,
}

/// What the loop of a shard has instead of an observer.
#[derive(Debug)]
struct ShardLoop {
    place: ShardPlace,
    rounds: LoopStatus,
}

/// Minimum time between two wake-ups while each moves [`GATHER_OCTETS`] or more: 17 packets at 1 Gbit/s.
const GATHER: Span = Span::from_micros(200);
const GATHER_OCTETS: u64 = 4 << 10;

impl Driver {
    /// Creates a loop without sockets.
    ///
    /// # Errors
    /// Returns the kernel's error if no descriptor is available.
    pub(crate) fn new() -> io::Result<Self> {
        let (poll, alarm, clock) = (Poll::new()?, Alarm::new()?, Clock::new());
        alarm.register(poll.registry(), ALARM)?;
        let now = clock.now();
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            alarm,
            observer: None,
            memory: Some(Memory::new(now)),
            shard: None,
            requested: true,
            woke: now,
            moved: 0,
            clock,
        })
    }

    /// Creates the loop of a shard.
    ///
    /// # Errors
    /// As [`Driver::new`].
    pub(crate) fn of_shard(place: ShardPlace) -> io::Result<Self> {
        let wake = place.wake().as_fd().as_raw_fd();
        let this = Self::new()?;
        let token = token(Source::Datagrams(0));
        this.poll.registry().register(&mut SourceFd(&wake), token, Interest::READABLE)?;
        let shard = ShardLoop { place, rounds: LoopStatus::default() };
        Ok(Self { memory: None, shard: Some(shard), ..this })
    }

    /// Returns the durations of a shard's rounds.
    pub(crate) fn shard_rounds(&self) -> LoopStatus {
        self.shard.as_ref().map_or_else(LoopStatus::default, |shard| shard.rounds.clone())
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Sleeps until `due`.
    pub(crate) fn sleep_until(&self, due: Instant) {
        self.clock.sleep_until(due);
    }

    /// Returns the kernel as a host whose sockets are registered with this loop.
    ///
    /// # Errors
    /// Returns the kernel's error if no descriptor is available.
    pub(crate) fn host(&self) -> io::Result<KernelHost> {
        let place = self.shard.as_ref().map(|shard| shard.place.clone());
        Ok(KernelHost { registry: self.poll.registry().try_clone()?, clock: Clock::new(), place })
    }

    /// Returns all kernel interfaces that an engine needs.
    ///
    /// # Errors
    /// Returns the kernel's error if no descriptor is available.
    pub(crate) fn platform(&self) -> io::Result<Platform> {
        let waker = mio::Waker::new(self.poll.registry(), NAMES)?;
        Ok(Platform {
            host: Box::new(self.host()?),
            lookups: Box::new(Worker::new(waker)),
            descriptors: descriptors(self.shard.as_ref().map_or(1, |shard| shard.place.count())),
        })
    }

    /// Starts to serve the clients of `observer`.
    ///
    /// # Errors
    /// Returns the kernel's error if its sockets cannot be registered.
    pub(crate) fn set_observer(&mut self, mut observer: Observer) -> io::Result<()> {
        observer.register(self.poll.registry())?;
        self.observer = Some(observer);
        Ok(())
    }

    /// Wakes the loop for requests to `stop` from now on.
    ///
    /// # Errors
    /// Returns the kernel's error if it is registered already.
    pub(crate) fn watch(&mut self, stop: &Stop) -> io::Result<()> {
        stop.descriptors().iter().try_for_each(|descriptor| self.watch_requests(descriptor))
    }

    /// Makes [`Driver::take_requested`] return true when `pipe` becomes readable.
    ///
    /// # Errors
    /// As [`Driver::watch`].
    pub(crate) fn watch_requests(&mut self, pipe: &impl AsFd) -> io::Result<()> {
        let descriptor = pipe.as_fd().as_raw_fd();
        self.poll.registry().register(&mut SourceFd(&descriptor), STOP, Interest::READABLE)
    }

    /// Wakes the loop as [`Driver::watch`] when `descriptor` becomes readable.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn watch_descriptor(&mut self, descriptor: RawFd) -> io::Result<()> {
        self.poll.registry().register(&mut SourceFd(&descriptor), STOP, Interest::READABLE)
    }

    /// Returns whether `stop` may have received a request since the last call.
    pub(crate) fn take_requested(&mut self) -> bool {
        std::mem::take(&mut self.requested)
    }

    /// Makes the next call of [`Driver::take_requested`] return true.
    pub(crate) fn request_again(&mut self) {
        self.requested = true;
    }

    /// Runs a round of `machine`, and waits for the next event, until `until` at most.
    ///
    /// # Errors
    /// Returns the error of waiting.
    pub(crate) fn step(&mut self, machine: &mut impl Machine, until: Instant) -> io::Result<()> {
        let now = self.now();
        let mut busy = machine.round(now);
        busy |= self.observe(machine, now);
        if let Some(memory) = &mut self.memory {
            memory.review(now, machine.moved());
        }
        self.wait(machine, busy, until)?;
        self.dispatch(machine);
        Ok(())
    }

    /// Waits for the next event or timeout; returns immediately if `busy`.
    pub(crate) fn wait(
        &mut self,
        machine: &impl Machine,
        busy: bool,
        until: Instant,
    ) -> io::Result<()> {
        let now = self.now();
        let due = if busy {
            now
        } else {
            let observer = self.observer.as_ref().and_then(Observer::poll_timeout);
            let memory = self.memory.as_ref().map_or(until, Memory::next);
            let others = until.min(memory).min(observer.unwrap_or(until));
            machine.poll_timeout(now).min(others)
        };
        self.gather(machine, busy);
        let limit = if due <= now {
            Some(Duration::ZERO)
        } else {
            self.alarm.set(Some(due));
            None
        };
        let polled = self.poll.poll(&mut self.events, limit);
        self.note_times(now, due);
        match polled {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            other => other,
        }
    }

    /// At high rates, lets octets and datagrams gather, so that the calls of the next round move
    /// more of them.
    fn gather(&mut self, machine: &impl Machine, busy: bool) {
        let moved = machine.moved();
        if !busy && moved.wrapping_sub(self.moved) >= GATHER_OCTETS {
            self.clock.sleep_until(self.woke + GATHER);
        }
        self.moved = moved;
    }

    /// Passes readiness events to `machine`.
    pub(crate) fn dispatch(&mut self, machine: &mut impl Machine) {
        let now = self.clock.now();
        for event in &self.events {
            let source = match event.token() {
                ALARM => {
                    self.alarm.expired();
                    continue;
                }
                STOP => {
                    self.requested = true;
                    continue;
                }
                Token(observe::FIRST_TOKEN..) => {
                    if let Some(observer) = &mut self.observer {
                        observer.ready(event);
                    }
                    continue;
                }
                token => source(token),
            };
            let ready = Readiness {
                readable: event.is_readable() || event.is_read_closed(),
                writable: event.is_writable() || event.is_write_closed(),
                error: event.is_error(),
            };
            machine.handle_readiness(now, source, ready);
        }
    }

    /// Serves the clients of the observer; returns true if work remains.
    pub(crate) fn observe(&mut self, machine: &mut impl Machine, now: Instant) -> bool {
        let Some(observer) = &mut self.observer else { return false };
        observer.has_work(now) && observer.turn(view(machine, now, &self.clock))
    }

    /// Notifies the observer's clients of the end, as far as that does not block.
    pub(crate) fn close_observer(&mut self, machine: &mut impl Machine) {
        if let Some(mut observer) = self.observer.take() {
            observer.close(view(machine, self.clock.now(), &self.clock));
        }
    }

    /// Records the duration of the round that ended at `waited`, and the delay of the wake-up after
    /// `due`.
    fn note_times(&mut self, waited: Instant, due: Instant) {
        let woke = self.now();
        let rounds = match (&mut self.observer, &mut self.shard) {
            (Some(observer), _) => Some(observer.rounds()),
            (None, Some(shard)) => Some(&mut shard.rounds),
            (None, None) => None,
        };
        if let Some(rounds) = rounds {
            rounds.busy.count(waited.since(self.woke));
            if due > waited && due <= woke {
                rounds.late.count(woke.since(due));
            }
        }
        self.woke = woke;
    }
}

fn view<'a>(machine: &'a mut impl Machine, now: Instant, clock: &Clock) -> EngineView<'a> {
    machine.view(now, clock.epoch_unix_ns())
}

fn token(source: Source) -> Token {
    match source {
        Source::Names => NAMES,
        Source::HeldSyns => HELD_SYNS,
        Source::Packets => PACKETS,
        Source::NameQueries(number) => Token(NAME_QUERIES + number),
        Source::Datagrams(number) => Token(DATAGRAMS + number),
        Source::Listener(number) => Token(LISTENERS + number),
        Source::Connection(number) => Token(CONNECTIONS + number),
    }
}

fn source(token: Token) -> Source {
    match token {
        NAMES => Source::Names,
        HELD_SYNS => Source::HeldSyns,
        PACKETS => Source::Packets,
        Token(number @ CONNECTIONS..) => Source::Connection(number - CONNECTIONS),
        Token(number @ LISTENERS..) => Source::Listener(number - LISTENERS),
        Token(number @ DATAGRAMS..) => Source::Datagrams(number - DATAGRAMS),
        Token(number) => Source::NameQueries(number.saturating_sub(NAME_QUERIES)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_map_to_sources() {
        let many = [0, 1, 63];
        let numbered = many.iter().flat_map(|&number| {
            [Source::Datagrams(number), Source::Listener(number), Source::Connection(number)]
        });
        let numbered = numbered.chain([0, 1, 15].map(Source::NameQueries));
        for one in numbered.chain([Source::Names, Source::HeldSyns, Source::Packets]) {
            assert_eq!(source(token(one)), one);
        }
    }
}
