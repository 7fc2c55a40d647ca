//! Terminals in one thread: association, session and streams of each, on a socket of its own.
//!
//! A process for each would take 6 MB and most of the processor time of the machine.

use crate::bench::ends::{Poll, Request, is_pause};
use gateway::{PrivateKey, SystemEntropy};
use nix::sys::epoll::EpollFlags;
use relay::{
    Capabilities, Event, Keys, Known, PresharedKey, Priority, PublicKey, Relay, RelayConfig,
    Security, StreamId, Target, TransmitBatch,
};
use rt::Clock;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use units::{Instant, Span};

/// Time between two requests of an active terminal.
const THOUGHT: Span = Span::from_millis(100);
/// Octets of a request and of its response.
const OCTETS: usize = 1_000;
/// Maximum time until a change of the activity is noticed, milliseconds.
const LOOK_UP_MS: u64 = 20;
/// Address of the first terminal; each has one of its own on the loopback interface.
const ADDRESSES: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 1);
/// Maximum size of a datagram, octets.
const DATAGRAM: usize = 2_048;

/// What the thread shares with the benchmark.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Number of terminals that send requests.
    active: AtomicUsize,
    /// Number of sessions that have started.
    sessions: AtomicUsize,
    /// Response times in seconds.
    latencies: Mutex<Vec<f64>>,
}

/// Running terminals.
#[derive(Debug)]
pub(super) struct Terminals {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Terminals {
    /// Starts a terminal with each of these keys. Active terminals connect to `server`.
    pub(super) fn start(
        keys: &[PrivateKey],
        (hub, hub_key): (SocketAddr, PublicKey),
        server: SocketAddr,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut group = Group::new(server, Arc::clone(&shared))?;
        for (number, key) in keys.iter().enumerate() {
            group.add(number, key, hub, hub_key)?;
        }
        Ok(Self { shared, thread: Some(thread::spawn(move || group.run())) })
    }

    /// Has `count` terminals send requests, one after another, or none.
    pub(super) fn set_active(&self, count: usize) {
        self.shared.active.store(count, Ordering::Relaxed);
    }

    /// Stops all requests; returns the response times since the last call, in seconds, sorted.
    pub(super) fn take_latencies(&self) -> Vec<f64> {
        self.set_active(0);
        let latencies = &self.shared.latencies;
        let mut all =
            std::mem::take(&mut *latencies.lock().unwrap_or_else(PoisonError::into_inner));
        all.sort_by(f64::total_cmp);
        all
    }

    /// Returns the number of sessions that have started.
    pub(super) fn sessions(&self) -> usize {
        self.shared.sessions.load(Ordering::Relaxed)
    }

    /// Returns whether they have not failed.
    pub(super) fn are_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // A panic has been reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A request whose response is awaited.
struct Exchange {
    stream: StreamId,
    start: Instant,
    received: usize,
}

struct Terminal {
    socket: UdpSocket,
    relay: Relay,
    /// The time of its valid timer.
    due: Option<Instant>,
    exchange: Option<Exchange>,
    /// Time of the next request, while it is active.
    next_request: Option<Instant>,
}

struct Group {
    clock: Clock,
    server: SocketAddr,
    shared: Arc<Shared>,
    poll: Poll,
    terminals: Vec<Terminal>,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    active: usize,
    buffer: Vec<u8>,
}

impl Group {
    fn new(server: SocketAddr, shared: Arc<Shared>) -> io::Result<Self> {
        Ok(Self {
            clock: Clock::new(),
            server,
            shared,
            poll: Poll::new()?,
            terminals: Vec::new(),
            timers: BinaryHeap::new(),
            active: 0,
            buffer: vec![0; DATAGRAM],
        })
    }

    fn add(
        &mut self,
        number: usize,
        key: &PrivateKey,
        hub: SocketAddr,
        hub_key: PublicKey,
    ) -> io::Result<()> {
        // One address would have to share what a hub answers to one address (ASC-7).
        let address = Ipv4Addr::from_bits(ADDRESSES.to_bits() + number as u32);
        let socket = UdpSocket::bind((address, 0))?;
        socket.connect(hub)?;
        socket.set_nonblocking(true)?;
        self.poll.add(&socket, number, EpollFlags::EPOLLIN)?;
        let known = Known { name: "hub".into(), public: hub_key, preshared: PresharedKey::NONE };
        let keys = Keys::new(key.clone(), vec![known]).map_err(io::Error::other)?;
        let config = RelayConfig {
            security: Security::Noise(keys.into()),
            capabilities: Capabilities::of_this_machine(),
            ..RelayConfig::new(&format!("site-{number}"))
        };
        let now = self.clock.now();
        let relay = Relay::terminal(&config, now, SystemEntropy);
        let (due, exchange, next_request) = (Some(now), None, None);
        self.terminals.push(Terminal { socket, relay, due, exchange, next_request });
        self.timers.push(Reverse((now, number)));
        Ok(())
    }

    fn run(mut self) -> io::Result<()> {
        while !self.shared.stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            let next = self.timers.peek().map_or(LOOK_UP_MS, |Reverse((at, _))| {
                at.since(now).as_nanos().div_ceil(1_000_000)
            });
            for number in self.poll.wait(next.min(LOOK_UP_MS) as u8)? {
                self.receive(number)?;
                self.serve(number)?;
            }
            self.change_activity()?;
            let now = self.clock.now();
            while let Some(&Reverse((at, number))) = self.timers.peek().filter(|one| one.0.0 <= now)
            {
                self.timers.pop();
                if self.terminals[number].due == Some(at) {
                    self.terminals[number].due = None;
                    self.terminals[number].relay.handle_timeout(now);
                    self.serve(number)?;
                }
            }
        }
        Ok(())
    }

    /// Starts or stops requests as the benchmark has set.
    fn change_activity(&mut self) -> io::Result<()> {
        let active = self.shared.active.load(Ordering::Relaxed).min(self.terminals.len());
        if std::mem::replace(&mut self.active, active) == active {
            return Ok(());
        }
        let now = self.clock.now();
        self.terminals.iter_mut().for_each(|terminal| terminal.next_request = None);
        for index in 0..active {
            let number = index * self.terminals.len() / active;
            self.terminals[number].next_request = Some(now);
            self.serve(number)?;
        }
        Ok(())
    }

    fn receive(&mut self, number: usize) -> io::Result<()> {
        let terminal = &mut self.terminals[number];
        loop {
            match terminal.socket.recv(&mut self.buffer) {
                // What is rejected is counted by the relay.
                Ok(len) => {
                    let now = self.clock.now();
                    let _ = terminal.relay.handle_datagram(now, &mut self.buffer[..len]);
                }
                Err(error) if is_pause(&error) => return Ok(()),
                // The hub is restarting.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Handles the terminal's events, sends what is due, and sets its timer.
    fn serve(&mut self, number: usize) -> io::Result<()> {
        let now = self.clock.now();
        let terminal = &mut self.terminals[number];
        if let Some(seconds) = terminal.handle_events(now, &self.shared.sessions) {
            let mut all = self.shared.latencies.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(seconds);
        }
        terminal.request_if_due(now, self.server);
        loop {
            let mut batch = TransmitBatch::new(&mut self.buffer, 1);
            if terminal.relay.poll_transmit(now, &mut batch).is_none() {
                break;
            }
            for datagram in batch.datagrams() {
                match terminal.socket.send(datagram) {
                    Ok(_) => {}
                    // It is lost, as on a link.
                    Err(error) if is_pause(&error) => {}
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let request = terminal.next_request.filter(|_| terminal.exchange.is_none());
        let due = terminal.relay.poll_timeout().into_iter().chain(request).min();
        // Without a session a request waits for the relay's next timer.
        let due = due.map(|due| due.max(now + Span::from_millis(1)));
        if terminal.due != due {
            terminal.due = due;
            self.timers.extend(due.map(|due| Reverse((due, number))));
        }
        Ok(())
    }
}

impl Terminal {
    /// Adds a new session to `sessions`; returns the response time in seconds of a request that is
    /// complete.
    fn handle_events(&mut self, now: Instant, sessions: &AtomicUsize) -> Option<f64> {
        let mut complete = None;
        while let Some(event) = self.relay.poll_event() {
            match event {
                Event::Connected => {
                    sessions.fetch_add(1, Ordering::Relaxed);
                }
                Event::Readable { stream } => {
                    let mut count = 0;
                    while let len @ 1.. = self.relay.peek(stream).len() {
                        count += len;
                        self.relay.consume(now, stream, len).ok()?;
                    }
                    let Some(exchange) = &mut self.exchange else { continue };
                    exchange.received += count;
                    if exchange.stream == stream && exchange.received >= OCTETS {
                        complete = Some(now.since(exchange.start).as_secs_f64());
                        let _ = self.relay.end(stream);
                        self.exchange = None;
                        self.next_request = self.next_request.map(|_| now + THOUGHT);
                    }
                }
                Event::Refused { .. } | Event::Reset { .. } | Event::Disconnected { .. } => {
                    self.exchange = None;
                    self.next_request = self.next_request.map(|_| now + THOUGHT);
                }
                _ => {}
            }
        }
        complete
    }

    fn request_if_due(&mut self, now: Instant, server: SocketAddr) {
        let due = self.next_request.is_some_and(|at| at <= now);
        if !due || self.exchange.is_some() || !self.relay.is_connected() {
            return;
        }
        let Ok(stream) = self.relay.open(now, Target::address(server), Priority::Normal) else {
            return;
        };
        let mut request = Request::Echo.encode().to_vec();
        request.resize(request.len() + OCTETS, 0x5a);
        // A new stream has room for a short request.
        let _ = self.relay.write(now, stream, &request);
        self.exchange = Some(Exchange { stream, start: now, received: 0 });
    }
}
