//! A terminal with a valid key that sends invalid data, parallel to an honest one.

use super::super::load::{Load, LoadConfig};
use super::super::network::{PORT, Setup, Side, TestNetwork};
use super::super::{ProofConfig, Verdict, failed, noise, sleep_ms};
use super::Watch;
use super::wild::{Pace, Wild};
use crate::LabError;
use association::{Config, OVERHEAD, Sealed, Terminal, TerminalReceived, TransmitBatch};
use gateway::SystemEntropy;
use rt::Clock;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testbed::addresses;
use units::{BitRate, Instant, Span};
use xstp::session::{Session, SessionConfig};

/// Interval between invalid payloads.
const EVERY: Span = Span::from_millis(1);

pub(in super::super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let mut network = TestNetwork::new(&Setup::new(config.seed))?;
    let load = Load::start(&network, LoadConfig { workers: 12, ..LoadConfig::new(config.seed) });
    sleep_ms(1_500);
    let mut watch = Watch::new(&mut network, Side::Hub)?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut attack = Attack::new(&network, config.seed)?;
    let flag = Arc::clone(&stop);
    // From the server's side of the hub, so that the satellite does not limit the rate.
    let thread = network.net.server.spawn("wild terminal", move || {
        let result = attack.run(&flag);
        result.map(|()| attack)
    });
    let looks = if config.quick { 10 } else { 120 };
    for _ in 0..looks {
        sleep_ms(500);
        watch.look(&mut network)?;
    }
    stop.store(true, Ordering::Relaxed);
    let gone = |_| LabError::Proof("the wild terminal panicked".to_owned());
    let attack = thread.join().map_err(gone)?.map_err(failed("the wild terminal"))?;
    let tally = load.finish(&network);
    verdict.figure("wild_payloads", attack.wild.sent as f64);
    verdict.figure("sessions", attack.sessions as f64);
    verdict.figure("heard_from_hub", attack.wild.delivered as f64);
    verdict.demand(attack.wild.sent > 100, "malformed payloads are sent inside an association");
    verdict.demand(attack.heard > 0, "the hub responds in their session");
    verdict.demand(
        tally.reset + tally.refused == 0,
        "connections of the honest terminal are not affected",
    );
    verdict.evaluate(tally);
    sleep_ms(3_000);
    watch.evaluate(&mut network, verdict)
}

struct Attack {
    socket: Option<UdpSocket>,
    terminal: Terminal,
    session: Option<Session>,
    config: SessionConfig,
    wild: Wild,
    clock: Clock,
    sessions: u32,
    heard: u64,
}

impl Attack {
    fn new(network: &TestNetwork, seed: u64) -> Result<Self, LabError> {
        let security = noise(network.wild_key.clone(), "hub", network.hub_key.public())?;
        let clock = Clock::new();
        let config =
            Config { security, wall_clock_ns: clock.epoch_unix_ns(), ..Config::new("wild") };
        Ok(Self {
            socket: None,
            terminal: Terminal::new(config, clock.now(), SystemEntropy),
            session: None,
            config: SessionConfig::gateway(BitRate::from_mbps(20)),
            wild: Wild::new(seed),
            clock,
            sessions: 0,
            heard: 0,
        })
    }

    fn run(&mut self, stop: &AtomicBool) -> std::io::Result<()> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect(SocketAddr::new(addresses::HUB.0.into(), PORT))?;
        socket.set_read_timeout(Some(Duration::from_millis(1)))?;
        self.socket = Some(socket);
        let mut pace = Pace::new(self.clock.now(), EVERY);
        let mut buffer = [0; 2048];
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            let mut room = [0; 2048];
            let mut batch = TransmitBatch::new(&mut room, 1);
            while self.terminal.poll_transmit(now, &mut batch) {
                batch.datagrams().for_each(|datagram| self.put(datagram));
                batch.clear();
            }
            if self.terminal.is_established() {
                self.wild.to_send += pace.due(now);
                self.speak(now);
            }
            let Some(socket) = &self.socket else { return Ok(()) };
            if let Ok(len) = socket.recv(&mut buffer) {
                self.hear(&mut buffer[..len]);
            }
        }
        Ok(())
    }

    fn hear(&mut self, datagram: &mut [u8]) {
        let now = self.clock.now();
        match self.terminal.handle_datagram(now, datagram) {
            Ok(TerminalReceived::Established) => self.session = None,
            Ok(TerminalReceived::Payload { payload, .. }) => {
                self.heard += 1;
                if let Some(session) = &mut self.session {
                    // Responses to invalid data may be invalid.
                    let _ = session.handle_segment(now, payload, &mut self.wild);
                }
            }
            Ok(TerminalReceived::Registered { .. } | TerminalReceived::Nothing) | Err(_) => {}
        }
    }

    fn speak(&mut self, now: Instant) {
        if self.session.as_ref().is_none_or(|session| !session.state().is_connected()) {
            self.sessions += 1;
            self.session = Some(Session::connect(&self.config, now, self.sessions));
        }
        let Some(session) = &mut self.session else { return };
        session.handle_timeout(now);
        session.wake();
        let mut out = Vec::new();
        let mut segment = [0; 1400];
        while out.len() < 32
            && let Some(len) = session.poll_transmit(now, &mut self.wild, &mut segment)
        {
            let mut datagram = vec![0; len + OVERHEAD];
            datagram[8..8 + len].copy_from_slice(&segment[..len]);
            self.wild.spoil(&mut datagram[8..8 + len]);
            out.push(datagram);
        }
        for mut datagram in out {
            if self.terminal.seal(now, Sealed::Data, &mut datagram) {
                self.put(&datagram);
            }
        }
    }

    fn put(&self, datagram: &[u8]) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(datagram); // What is lost is lost: it is an attack.
        }
    }
}
