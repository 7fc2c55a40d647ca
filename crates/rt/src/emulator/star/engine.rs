//! The event loop of a running star: poll the ports, read packets, offer them at their timestamps,
//! send due packets, wait. As between two interfaces, the horizon is the time up to which all
//! arrived packets have been read.

use super::super::EmulatorError;
use super::super::carried::Carried;
use super::super::commands::CommandReceiver;
use super::super::ports::drain_interface;
use super::super::wait::Waiter;
use super::config::StarEmulatorConfig;
use super::control::{Command, forward_only};
use super::observe::Observer;
use super::port::Port;
use super::summary::{ReturnEntry, StarSummary};
use super::switch::Switch;
use crate::counts::Receiver;
use crate::packet::{PacketError, PacketSocket};
use crate::{Clock, sched};
use satlink::mac::mf_tdma::MfTdma;
use satlink::mac::weights::Weights;
use satlink::{Admission, Direction, Frame, Link};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Instant, Span};

/// Packets read and not yet offered per port, above which the port is not read.
const PENDING: usize = 4096;
/// Messages with connection counts read per iteration.
const MESSAGES: usize = 64;
/// Interval at which the stop flag is checked.
const LONGEST_WAIT: Span = Span::from_millis(100);
/// Maximum delay between a packet's timestamp and its reading.
const STALE: Span = Span::from_secs(60);
/// Maximum duration of reading per iteration.
const AHEAD: Span = Span::from_millis(100);
/// The hub's index among the ports; terminals follow in command.
pub(super) const HUB: usize = 0;

/// A running star.
pub(super) struct Engine {
    pub(super) config: StarEmulatorConfig,
    pub(super) ports: Vec<Port>,
    pub(super) commands: CommandReceiver<Command>,
    pub(super) listener: Option<Receiver>,
    pub(super) down: Link<Carried>,
    pub(super) up: MfTdma<Carried>,
    pub(super) switch: Switch,
    pub(super) weights: Weights,
    /// The weight of each terminal, for the report.
    pub(super) weighs: Vec<u32>,
    pub(super) frame: (u32, f64),
    pub(super) clock: Clock,
    /// Nanoseconds since 1970 at the clock's zero, for timestamps; the first reading is reported.
    pub(super) epoch_unix_ns: u64,
    pub(super) first_epoch_unix_ns: u64,
    pub(super) horizon: Instant,
    /// Packets read and not yet offered, by arrival and in command of reading.
    pub(super) pending: BTreeMap<(Instant, u64), (usize, Carried)>,
    pub(super) reads: u64,
    pub(super) given: VecDeque<(Instant, Command)>,
    pub(super) stopped: bool,
    pub(super) observer: Observer,
    pub(super) waiter: Waiter,
    pub(super) tallies: Tallies,
    pub(super) log: Vec<ReturnEntry>,
}

/// Counters of the engine.
#[derive(Default)]
pub(super) struct Tallies {
    pub(super) late_stamps: u64,
    pub(super) out_of_memory: u64,
    pub(super) unheard: u64,
    pub(super) messages: u64,
    pub(super) malformed: u64,
}

impl Engine {
    pub(super) fn new(
        config: StarEmulatorConfig,
        sockets: Vec<PacketSocket>,
        listener: Option<Receiver>,
        commands: CommandReceiver<Command>,
        clock: Clock,
    ) -> Result<Self, EmulatorError> {
        let names = config.names();
        let mac = config.star.with_terminals(&names).map_err(EmulatorError::Star)?;
        let refused = |error| EmulatorError::Star(satlink::mac::star::StarError::Mac(error));
        let up = MfTdma::new(&mac, config.seed, config.run).map_err(refused)?;
        let forward = forward_only(config.star.forward.clone());
        let down = Link::new(&forward, config.seed, config.run).map_err(EmulatorError::Link)?;
        let contracts = mac.terminals.iter().map(|terminal| terminal.contract);
        let named = names.iter().map(String::as_str).zip(contracts.clone());
        let epoch_unix_ns = clock.epoch_unix_ns();
        let mut engine = Self {
            weights: Weights::new(named, config.star.keep),
            weighs: contracts.map(|contract| contract.weight).collect(),
            frame: (mac.positions() * mac.carriers, mac.period.as_secs_f64()),
            switch: Switch::new(names.len()),
            observer: Observer::new(config.report_every),
            ports: sockets.into_iter().map(Port::new).collect(),
            config,
            commands,
            listener,
            down,
            up,
            clock,
            epoch_unix_ns,
            first_epoch_unix_ns: epoch_unix_ns,
            horizon: Instant::ZERO,
            pending: BTreeMap::new(),
            reads: 0,
            given: VecDeque::new(),
            stopped: false,
            waiter: Waiter::new(),
            tallies: Tallies::default(),
            log: Vec::new(),
        };
        engine.watch_ports();
        Ok(engine)
    }

    /// Describes what is about to start.
    pub(super) fn greeting(&self) -> String {
        let (slots, seconds) = self.frame;
        let mut text = format!(
            "forward: {} -> {} terminals; return: {slots} slots every {}",
            self.ports[HUB].name,
            self.ports.len() - 1,
            Span::from_secs_f64(seconds),
        );
        for note in self.ports.iter().flat_map(|port| &port.notes) {
            text.push_str("\nnote: ");
            text.push_str(note);
        }
        text
    }

    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<StarSummary, EmulatorError> {
        let scheduling = sched::ask(&self.config.scheduling);
        let cpu_before = Clock::thread_time();
        let outcome = self.rounds(stop);
        sched::give_back(&scheduling);
        outcome?;
        let cpu = Clock::thread_time() - cpu_before;
        Ok(self.finish(scheduling, cpu))
    }

    fn rounds(&mut self, stop: &AtomicBool) -> Result<(), EmulatorError> {
        let end = self.config.duration.map_or(Instant::FAR_FUTURE, |span| Instant::ZERO + span);
        loop {
            self.take_in()?;
            self.hand_out();
            let now = self.clock.now();
            self.observer.tick(now, &self.down, &self.up);
            if self.stopped || now >= end || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.wait(end)?;
        }
    }

    /// Waits on the ports and on the socket for connection counts.
    fn watch_ports(&mut self) {
        // poll ignores negative descriptors.
        let of = |port: &Port| port.socket.as_ref().map_or(-1, |one| one.as_fd().as_raw_fd());
        let mut descriptors: Vec<RawFd> = self.ports.iter().map(of).collect();
        descriptors.extend(self.listener.as_ref().map(AsRawFd::as_raw_fd));
        self.waiter.set(self.commands.descriptor(), &descriptors);
    }

    /// Reads arrived packets, and offers those that arrived up to the new horizon.
    fn take_in(&mut self) -> Result<(), EmulatorError> {
        let epoch = self.clock.epoch_unix_ns();
        // Readings differ by some nanoseconds; only steps of the clock matter.
        if epoch.abs_diff(self.epoch_unix_ns) > 1_000_000 {
            self.epoch_unix_ns = epoch;
        }
        let now = self.clock.now();
        // An empty port had no packet before `now`.
        if self.waiter.wait(Span::ZERO, true).map_err(EmulatorError::Wait)? {
            self.commands.reset();
        }
        let mut horizon = now;
        for port in 0..self.ports.len() {
            if self.ports[port].pending >= PENDING {
                horizon = horizon.min(self.ports[port].last);
            } else if (self.waiter.is_ready(port) || self.ports[port].is_down())
                && let Some(known) = self.read(port, now)?
            {
                horizon = horizon.min(known);
            }
        }
        // Fetched after the packets: commands given before the arrival of one of them are included.
        self.given.extend(self.commands.fetch());
        self.horizon = self.horizon.max(horizon);
        self.hear_of_connections();
        self.catch_up();
        Ok(())
    }

    /// Reads the packets queued at `port`. Returns the arrival of the last one if there may be
    /// more.
    fn read(&mut self, port: usize, now: Instant) -> Result<Option<Instant>, EmulatorError> {
        let Self { ports, epoch_unix_ns, horizon, pending, reads, tallies, .. } = self;
        let side = &mut ports[port];
        let Some(socket) = &mut side.socket else { return Ok(None) };
        let arrival = |unix_ns: Option<u64>| {
            let at = unix_ns
                .map_or(now, |stamp| Instant::from_nanos(stamp.saturating_sub(*epoch_unix_ns)));
            // A clock step invalidates single timestamps.
            if at + STALE < now || at > now + AHEAD { now } else { at }
        };
        let more = drain_interface(socket, &mut |unix_ns, packet| {
            let at = arrival(unix_ns);
            tallies.late_stamps += u64::from(at < *horizon);
            let at = at.max(*horizon);
            (side.received, side.pending) = (side.received + 1, side.pending + 1);
            side.last = side.last.max(at);
            pending.insert((at, *reads), (port, packet));
            *reads += 1;
        });
        match more {
            Ok(more) => Ok(more.map(|unix_ns| arrival(Some(unix_ns)))),
            Err(EmulatorError::Packet(PacketError::Gone { .. })) if port != HUB => {
                self.lose(port);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Handles the removal of a terminal's interface: the terminal vanishes, the others continue.
    fn lose(&mut self, port: usize) {
        let side = &mut self.ports[port];
        if let Some(mut socket) = side.socket.take() {
            side.kernel_dropped = socket.kernel_counts().dropped;
        }
        side.notes.push(format!("{}: gone at {:.1} s", side.name, self.horizon.as_secs_f64()));
        self.up.vanish(self.horizon, port - 1);
        self.watch_ports();
    }

    fn hear_of_connections(&mut self) {
        for _ in 0..MESSAGES {
            let Some(heard) = self.listener.as_mut().and_then(Receiver::receive) else { break };
            let Ok(message) = heard else {
                self.tallies.malformed += 1;
                continue;
            };
            self.tallies.messages += 1;
            for count in message.terminals {
                let told = self.weights.tell(self.horizon, &count.name, count.connections);
                told.into_iter().for_each(|(terminal, weight)| self.weigh(terminal, weight));
            }
        }
        while let Some((terminal, weight)) = self.weights.poll_stale(self.horizon) {
            self.weigh(terminal, weight);
        }
    }

    fn weigh(&mut self, terminal: usize, weight: u32) {
        self.weighs[terminal] = weight;
        self.up.set_weight(self.horizon, terminal, weight);
    }

    /// Executes commands and offers packets that arrived by the horizon, commands first.
    fn catch_up(&mut self) {
        loop {
            let command = self.given.front().map(|&(at, _)| at);
            let packet = self.pending.first_key_value().map(|(&(at, _), _)| at);
            let order_first = command.is_some_and(|at| packet.is_none_or(|packet| at <= packet));
            match (command, packet) {
                (Some(at), _) if order_first && at <= self.horizon => {
                    self.given
                        .pop_front()
                        .into_iter()
                        .for_each(|(at, command)| self.apply(at, command));
                }
                (_, Some(at)) if !order_first && at <= self.horizon => {
                    let Some((_, (port, packet))) = self.pending.pop_first() else { return };
                    self.offer(port, at, packet);
                }
                (_, _) => return,
            }
        }
    }

    fn offer(&mut self, port: usize, at: Instant, packet: Carried) {
        self.ports[port].pending -= 1;
        let bytes = packet.len();
        // The counters of link and MAC record the result.
        if port != HUB {
            self.switch.learn(port - 1, &packet.bytes);
            let class = self.config.star.class_of(bytes);
            self.note(ReturnEntry { at, terminal: port - 1, bytes, arrived: false });
            match self.up.offer(at, port - 1, class, packet) {
                Admission::Queued | Admission::Dropped(..) => {}
            }
            return;
        }
        let held = self.down.counters(Direction::Forward).held.bytes;
        if held + bytes as u64 > self.config.memory {
            self.tallies.out_of_memory += 1;
            return;
        }
        match self.down.offer(at, Direction::Forward, packet) {
            Admission::Queued | Admission::Dropped(..) => {}
        }
    }

    fn note(&mut self, entry: ReturnEntry) {
        if self.config.log.is_some_and(|room| self.log.len() < room) {
            self.log.push(entry);
        }
    }

    fn apply(&mut self, at: Instant, command: Command) {
        match command {
            Command::Stop => self.stopped = true,
            Command::Forward(link) => {
                // Handles accept valid links only.
                let changed = self.down.reconfigure(at, &link);
                debug_assert!(changed.is_ok(), "{changed:?}");
            }
            Command::Weight(terminal, weight) => self.weigh(terminal, weight),
            Command::Off(terminal) => self.up.log_off(at, terminal),
            Command::On(terminal) => self.up.log_on(at, terminal),
            Command::Vanish(terminal) => self.up.vanish(at, terminal),
            Command::Claim(terminal, claim) => self.up.set_claim(at, terminal, claim),
            Command::Intrude(terminal, carrier) => self.up.intrude(at, terminal, carrier),
        }
    }

    /// Sends due packets.
    fn hand_out(&mut self) {
        while let Some(delivery) = self.down.poll_delivery(self.horizon) {
            let waited = delivery.sent_at.since(delivery.offered_at);
            self.observer.delivered(Direction::Forward, waited);
            self.broadcast(delivery.at, delivery.frame);
        }
        while let Some(arrived) = self.up.poll_arrival(self.horizon) {
            let taken = arrived.at.since(arrived.offered_at);
            self.observer.delivered(Direction::Return, taken);
            let (at, terminal, bytes) = (arrived.at, arrived.terminal, arrived.frame.len());
            self.note(ReturnEntry { at, terminal, bytes, arrived: true });
            self.leave(HUB, arrived.at, arrived.frame);
        }
        let Self { ports, clock, observer, .. } = self;
        ports.iter_mut().for_each(|port| port.flush(*clock, observer));
    }

    /// The forward link is a broadcast; the frame is sent to the terminals that may need it.
    fn broadcast(&mut self, at: Instant, packet: Carried) {
        if let Some(terminal) = self.switch.find(&packet.bytes) {
            if self.up.is_on(terminal) {
                self.leave(terminal + 1, at, packet);
            } else {
                self.tallies.unheard += 1;
            }
            return;
        }
        for port in 1..self.ports.len() {
            if self.up.is_on(port - 1) {
                self.leave(port, at, packet.clone());
            }
        }
    }

    fn leave(&mut self, port: usize, at: Instant, packet: Carried) {
        let Self { ports, clock, observer, .. } = self;
        ports[port].leave(at, packet, *clock, observer);
    }

    fn wait(&mut self, end: Instant) -> Result<(), EmulatorError> {
        if !self.pending.is_empty() || !self.given.is_empty() {
            return Ok(());
        }
        let due = [self.down.poll_timeout(), self.up.poll_timeout(), self.weights.poll_timeout()];
        let due = due.into_iter().flatten().min().unwrap_or(Instant::FAR_FUTURE).min(end);
        let longest = due.since(self.clock.now()).min(LONGEST_WAIT);
        if !longest.is_zero() && self.waiter.wait(longest, true).map_err(EmulatorError::Wait)? {
            self.commands.reset();
        }
        Ok(())
    }
}
