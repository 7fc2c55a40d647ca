//! One readiness loop that drives sockets, relay streams and datagrams.
//!
//! ```text
//!   round:  what is due ─▶ datagrams in ─▶ events ─▶ turns ─▶ datagrams out ─▶ events ─▶ wait
//!                           (bounded)                (bounded)   (paced)
//! ```
//!
//! Nothing here blocks but the wait at the end, nothing is handed to another thread but names to
//! look up ([`resolver`]), and every part of a round has a budget, so that no client holds up the pacing of the
//! link for more than a moment.

mod about;
mod admission;
mod arrival;
mod asking;
mod carrier;
mod classes;
mod client_network;
mod complaints;
mod confirm;
mod connecting;
mod connection;
mod core;
mod destination;
mod direct;
mod door;
mod drain;
mod emptying;
mod ending;
mod fail;
mod families;
mod forward;
mod happy_eyeballs;
mod hub;
mod listener;
mod mac;
mod opening;
mod outlet;
pub(crate) mod path;
mod paths;
mod pause;
mod quota;
mod reachability;
mod reload;
mod resolver;
mod sight;
pub(crate) mod single;
pub(crate) mod slots;
mod socket;
mod splice;
mod strangers;
mod terminal;
mod timer;
mod udp;
mod wait;

use self::core::{Core, FIRST_CONNECTION};
use crate::gateway::unix_seconds;
use crate::intercept::Doorkeeper;
use crate::memory::Memory;
use crate::observe::{self, AssociationCounters, Observer};
use crate::report::{Counters, PeerReport, Traffic, UdpCounters};
use crate::state::State;
use crate::stop::{Asked, Stop};
use classes::Classes;
use confirm::Confirm;
use connection::Phase;
use direct::Direct;
use door::Door;
use fail::Fail;
use families::FamilyWatch;
use hub::Hub;
use mac::Mac;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use relay::{Keys, PublicKey};
use resolver::Resolver;
use rt::Clock;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use terminal::Terminal;
use timer::Alarm;
use units::Instant;

pub(crate) use admission::Admission;
pub(crate) use carrier::Carrier;
pub(crate) use fail::depends_on_paths;
pub(crate) use listener::{Kind, Listener, listen_on};
pub(crate) use outlet::Outlet;
pub(crate) use paths::PathPlan;
pub(crate) use sight::Sight;
pub(crate) use socket::raise_descriptor_limit;
pub(crate) use udp::Udp;

const UDP: Token = Token(0);
const ALARM: Token = Token(1);
const NAMES: Token = Token(2);
const STOP: Token = Token(3);
const KNOCKS: Token = Token(5);
/// The first listener; the others follow.
const LISTENERS: usize = 8;

/// A gateway at work.
#[derive(Debug)]
pub(crate) struct Engine {
    poll: Poll,
    clock: Clock,
    alarm: Alarm,
    core: Core,
    role: Role,
    /// The sockets for datagrams: a hub's one, or one for each path of a terminal.
    outlets: Vec<Outlet>,
    sweep_at: Instant,
    /// The addresses that the configuration names, and when to look for them.
    host: crate::host::HostAddresses,
    memory: Memory,
    state: State,
    /// What was known of peers at the end.
    peers: Vec<PeerReport>,
    names_answered: bool,
    /// Rounds in a row in which nothing moved.
    still: u32,
    /// Somebody may have asked for something.
    asked: bool,
    /// When to end, although connections still run: no new ones are taken any more.
    draining: Option<Instant>,
    /// Who looks on.
    observer: Option<Observer>,
    /// What is carried as it is goes by this.
    tunnel: Option<Box<forward::Tunnel>>,
    /// When the loop last woke.
    woke: Instant,
}

/// Why the loop has paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// To end: it was asked to, or what it was to finish is finished.
    End,
    /// It was asked to take no new connections, and to end when the running ones have.
    Drain,
    /// It was asked to read its configuration again.
    Reload,
    /// New connections are to pass from now on, or to be intercepted again.
    Pass(bool),
    /// The packet filter is to follow what is known of destinations.
    Filter,
    /// The time that it was to work until has come.
    Due,
}

#[derive(Debug)]
enum Role {
    Terminal(Box<Terminal>),
    Hub(Box<Hub>),
}

impl Engine {
    /// A terminal's engine.
    pub(crate) fn terminal(
        carrier: Carrier,
        outlets: Vec<Outlet>,
        config: &crate::TerminalSection,
        (limits, fail): (&crate::Limits, crate::FailSection),
        (listeners, keeper): (Vec<Listener>, Option<Doorkeeper>),
        state: State,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let bounds = config.intercept.as_ref().map(|section| section.confirm).unwrap_or_default();
        if let Some(keeper) = &keeper {
            keeper.register(poll.registry(), KNOCKS)?;
        }
        let confirm = keeper.map(|keeper| Confirm::new(keeper, bounds));
        let mut direct = Direct::new();
        direct.guard(config);
        let door = Door::new(config.accept.clone(), limits, Fail::new(fail), direct);
        let mut terminal = Terminal::new(door, confirm);
        terminal.listen(poll.registry(), listeners)?;
        Self::new(poll, carrier, outlets, limits, Role::Terminal(Box::new(terminal)), state)
    }

    /// A hub's engine.
    pub(crate) fn hub(
        carrier: Carrier,
        outlet: Outlet,
        config: &crate::HubSection,
        admission: Admission,
        limits: &crate::Limits,
        state: State,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mac = config.mac.as_ref().and_then(|path| Mac::new(path, &config.id));
        let (classes, promised) = (Classes::new(&config.classes), Vec::new());
        let (source, families) = (config.source, FamilyWatch::default());
        let hub = Hub { source, admission, classes, mac, promised, families };
        Self::new(poll, carrier, vec![outlet], limits, Role::Hub(Box::new(hub)), state)
    }

    fn new(
        poll: Poll,
        mut carrier: Carrier,
        mut outlets: Vec<Outlet>,
        limits: &crate::Limits,
        role: Role,
        state: State,
    ) -> io::Result<Self> {
        let alarm = Alarm::new()?;
        alarm.register(poll.registry(), ALARM)?;
        for (number, outlet) in outlets.iter_mut().enumerate() {
            outlet.register(poll.registry(), number)?;
            carrier.set_bound(number, outlet.udp().is_some());
        }
        let clock = Clock::new();
        let resolver = Resolver::new(mio::Waker::new(poll.registry(), NAMES)?);
        let core = Core::new(carrier, poll.registry().try_clone()?, limits.clone(), resolver);
        Ok(Self {
            sweep_at: clock.now() + core.sweep_interval(),
            host: crate::host::HostAddresses::default(),
            memory: Memory::new(clock.now()),
            poll,
            clock,
            alarm,
            core,
            role,
            outlets,
            state,
            peers: Vec::new(),
            names_answered: false,
            still: 0,
            asked: true,
            draining: None,
            observer: None,
            tunnel: None,
            woke: clock.now(),
        })
    }

    /// Wakes for what `stop` is asked for from here on.
    pub(crate) fn watch(&mut self, stop: &Stop) -> io::Result<()> {
        for descriptor in stop.descriptors() {
            let descriptor = descriptor.as_raw_fd();
            self.poll.registry().register(&mut SourceFd(&descriptor), STOP, Interest::READABLE)?;
        }
        Ok(())
    }

    /// Works until `stop` is asked for something, or until then.
    pub(crate) fn run(&mut self, stop: &Stop, until: Instant) -> io::Result<Pause> {
        let mut events = Events::with_capacity(1024);
        loop {
            if std::mem::take(&mut self.asked) {
                match stop.asked() {
                    Asked::Stop => return Ok(Pause::End),
                    Asked::Drain if self.draining.is_none() => return Ok(Pause::Drain),
                    Asked::Drain | Asked::Nothing => {}
                }
                if stop.take_reload() {
                    // There may be more to hear afterwards.
                    self.asked = true;
                    return Ok(Pause::Reload);
                }
            }
            let now = self.clock.now();
            if self.has_drained(now) {
                return Ok(Pause::End);
            }
            if let Some(pass) = self.wants_passing(now) {
                return Ok(Pause::Pass(pass));
            }
            if self.wants_filter(now) {
                return Ok(Pause::Filter);
            }
            if now >= until {
                return Ok(Pause::Due);
            }
            let busy = self.round() || self.wants_change(self.clock.now());
            self.wait(busy, until, &mut events)?;
            for event in &events {
                self.ready(event);
            }
        }
    }

    /// Says farewell, and writes down what is to be remembered.
    pub(crate) fn close(&mut self) {
        self.close_observer();
        self.farewell();
        self.state.close();
    }

    /// What became of connections.
    pub(crate) fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// What went through the datagram socket.
    pub(crate) fn udp_counters(&self) -> UdpCounters {
        outlet::counted(&self.outlets)
    }

    /// A hub's own public key, where it has keys.
    pub(crate) fn own_key(&self) -> Option<PublicKey> {
        self.core.carrier.own_key()
    }

    /// Takes another list of terminals at a hub: those that are not on it any more are lost.
    pub(crate) fn set_keys(&mut self, keys: Arc<Keys>) {
        self.core.carrier.set_keys(keys);
    }

    /// What associations have counted.
    pub(crate) fn association(&self) -> AssociationCounters {
        self.core.carrier.association()
    }

    /// What sessions and streams have counted.
    pub(crate) fn traffic(&mut self) -> Traffic {
        let udp = self.udp_counters();
        Traffic {
            datagrams_sent: udp.sent,
            datagrams_received: udp.received,
            ..self.core.carrier.traffic()
        }
    }

    /// Everything that can be done now, within its budget; true when there is more.
    fn round(&mut self) -> bool {
        self.core.counters.rounds += 1;
        let moved = self.moved();
        let now = self.clock.now();
        self.expire(now);
        self.look_after_outlets(now);
        self.receive(now);
        // The next session numbers its streams anew: who had one of the last is told before any opens.
        self.events(now);
        self.core.carrier.review(now);
        self.carry_in(now);
        let more_clients = match &mut self.role {
            Role::Terminal(terminal) => {
                terminal.review(&self.core, now);
                let more_knock = terminal.answer_knocks(&mut self.core, now);
                terminal.accept(&mut self.core, now) || more_knock
            }
            Role::Hub(hub) => {
                hub.announce_families(&mut self.core, now);
                false
            }
        };
        self.names(now);
        self.lead_packets(now);
        self.events(now);
        for _ in 0..self.core.waiting() {
            let Some(index) = self.core.next_turn() else { break };
            match &mut self.role {
                Role::Terminal(terminal) => terminal.turn(&mut self.core, now, index),
                Role::Hub(hub) => hub.turn(&mut self.core, now, index),
            }
        }
        let more_packets = self.carry_out(now);
        let more_to_send = self.transmit(now);
        self.events(now);
        if let Role::Hub(hub) = &mut self.role
            && let Some(mac) = &mut hub.mac
        {
            mac.tell(now, &mut self.core.slots.table, &mut self.core.counters);
        }
        let more_asked = self.observe(now);
        self.still = if moved == self.moved() { self.still.saturating_add(1) } else { 0 };
        let more_asked = more_asked || more_packets;
        let more_datagrams = self.outlets.iter().any(|outlet| outlet.readable);
        more_clients || more_to_send || more_asked || more_datagrams || self.core.waiting() > 0
    }

    fn expire(&mut self, now: Instant) {
        if self.core.carrier.poll_timeout().is_some_and(|due| due <= now) {
            self.core.carrier.handle_timeout(now);
            self.events(now);
        }
        while let Some(index) = self.core.deadlines.due(now) {
            match &mut self.role {
                Role::Terminal(terminal) => terminal.expired(&mut self.core, now, index),
                Role::Hub(hub) => hub.expired(&mut self.core, now, index),
            }
        }
        if self.sweep_at <= now {
            self.core.sweep(now);
            self.core.carrier.check_paths();
            self.core.carrier.share_memory(self.core.limits.memory);
            self.remember(now);
            self.state.save_rarely(now);
            crate::logging::report_omissions();
            self.memory.review(now, self.moved());
            self.sweep_at = now + self.core.sweep_interval();
        }
    }

    /// Notes what sessions have learnt of their ways.
    fn remember(&mut self, now: Instant) {
        let clock = &self.clock;
        self.core.carrier.remember(now, &mut self.state, |at| unix_seconds(clock, at));
    }

    fn receive(&mut self, now: Instant) {
        for (number, outlet) in self.outlets.iter_mut().enumerate() {
            outlet.receive(&mut self.core.carrier, now, number);
        }
    }

    fn events(&mut self, now: Instant) {
        while let Some((peer, event)) = self.core.carrier.poll_event() {
            match &mut self.role {
                Role::Terminal(terminal) => terminal.event(&mut self.core, now, peer, &event),
                Role::Hub(hub) => hub.event(&mut self.core, now, peer, event),
            }
        }
    }

    /// Sends what the pacers let go; true when there is more.
    fn transmit(&mut self, now: Instant) -> bool {
        let mut more = false;
        for (number, outlet) in self.outlets.iter_mut().enumerate() {
            more |= outlet.transmit(&mut self.core.carrier, now, number);
        }
        more
    }

    /// One readiness event.
    fn ready(&mut self, event: &mio::event::Event) {
        match event.token() {
            ALARM => self.alarm.expired(),
            NAMES => self.names_answered = true,
            STOP => self.asked = true,
            KNOCKS => {
                if let Role::Terminal(terminal) = &mut self.role {
                    terminal.somebody_knocks();
                }
            }
            forward::TUN => {
                if let Some(tunnel) = &mut self.tunnel {
                    tunnel.readable = true;
                }
            }
            Token(observe::FIRST_TOKEN..) => {
                if let Some(observer) = &mut self.observer {
                    observer.ready(event);
                }
            }
            token if let Some(number) = Outlet::number(token) => {
                if let Some(outlet) = self.outlets.get_mut(number) {
                    outlet.readable |= event.is_readable();
                }
            }
            Token(number) if number < FIRST_CONNECTION => {
                if let Role::Terminal(terminal) = &mut self.role {
                    terminal.is_ready(number - LISTENERS);
                }
            }
            Token(number) => self.socket_ready(number - FIRST_CONNECTION, event),
        }
    }

    fn socket_ready(&mut self, index: usize, event: &mio::event::Event) {
        // It may have closed earlier in this round; news for a closed one is harmless to another.
        let Some(connection) = self.core.connections.get_mut(index) else { return };
        // A socket that breaks while its bytes are not wanted would not be read from.
        let has_stream = matches!(
            connection.phase,
            Phase::Spliced(_) | Phase::Confirming(_) | Phase::Emptying(_)
        );
        if has_stream
            && event.is_error()
            && let Some(error) = connection.socket.as_ref().and_then(socket::taken_error)
        {
            self.core.broken(self.clock.now(), index, &error);
            return;
        }
        if let Phase::Emptying(emptying) = &mut connection.phase
            && (event.is_writable() || event.is_write_closed())
        {
            emptying.splice.socket_is_writable();
        }
        if let Phase::Spliced(splice) = &mut connection.phase {
            if event.is_readable() || event.is_read_closed() {
                splice.socket_is_readable();
            }
            if event.is_writable() || event.is_write_closed() {
                splice.socket_is_writable();
            }
        }
        self.core.queue(index);
    }
}

#[cfg(test)]
mod tests;
