//! A hub with the right key that sends invalid data to an honest terminal.

use super::super::load::{Load, LoadConfig};
use super::super::network::{PORT, Setup, Side, TestNetwork};
use super::super::{ProofConfig, Verdict, failed, noise, sleep_ms};
use super::Watch;
use super::wild::{Pace, Wild};
use crate::LabError;
use association::{Config, Hub, HubReceived, OVERHEAD, PeerId, Sealed, TransmitBatch};
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
    sleep_ms(500);
    let mut watch = Watch::new(&mut network, Side::Terminal)?;
    network.kill(Side::Hub);
    let stop = Arc::new(AtomicBool::new(false));
    let mut attack = Attack::new(&network, config.seed)?;
    let flag = Arc::clone(&stop);
    let thread = network.net.hub.spawn("wild hub", move || attack.run(&flag).map(|()| attack));
    // Clients connect during the attack; they must not receive wrong data.
    let load = Load::start(&network, LoadConfig { workers: 12, ..LoadConfig::new(config.seed) });
    // A hub may keep a client waiting while its session lasts: the limit is shorter than the time
    // limit of the load's clients, so that only clients of lost sessions wait longer.
    let looks = if config.quick { 10 } else { 80 };
    for _ in 0..looks {
        sleep_ms(500);
        watch.look(&mut network)?;
    }
    stop.store(true, Ordering::Relaxed);
    let gone = |_| LabError::Proof("the wild hub panicked".to_owned());
    let mut attack = thread.join().map_err(gone)?.map_err(failed("the wild hub"))?;
    attack.socket = None; // The real hub uses the port.
    verdict.figure("wild_payloads", attack.wild.sent as f64);
    verdict.figure("sessions", attack.sessions as f64);
    verdict.figure("heard_from_terminal", attack.heard as f64);
    verdict.demand(attack.wild.sent > 100, "malformed payloads are sent inside an association");
    // With the real hub everything must work immediately.
    let from = load.so_far();
    network.start(Side::Hub)?;
    let back = network.await_path(Span::from_secs(30))?;
    sleep_ms(2_000);
    let tally = load.finish(&network);
    verdict.figure("new_connection_after_s", back.as_secs_f64());
    verdict.demand(back <= Span::from_secs(10), "connections are relayed within 10 s of its end");
    verdict.demand(tally.complete > from.complete, "clients are served again");
    // The hub is trusted for what servers have sent. The terminal must not fail, and clients must
    // not hang.
    verdict.demand(tally.hung == 0, "no client hangs");
    verdict.note(format!("ended early by the hostile hub: {}", tally.truncated));
    verdict.load = Some(tally);
    sleep_ms(3_000);
    watch.evaluate(&mut network, verdict)
}

struct Attack {
    hub: Hub,
    socket: Option<UdpSocket>,
    peer: Option<PeerId>,
    session: Session,
    config: SessionConfig,
    wild: Wild,
    clock: Clock,
    sessions: u64,
    heard: u64,
}

impl Attack {
    fn new(network: &TestNetwork, seed: u64) -> Result<Self, LabError> {
        let security = noise(network.hub_key.clone(), "site", network.terminal_key.public())?;
        let config = SessionConfig::gateway(BitRate::from_mbps(20));
        Ok(Self {
            hub: Hub::new(Config { security, ..Config::new("hub") }, SystemEntropy),
            socket: None,
            peer: None,
            session: Session::listen(&config),
            config,
            wild: Wild::new(seed),
            clock: Clock::new(),
            sessions: 0,
            heard: 0,
        })
    }

    fn run(&mut self, stop: &AtomicBool) -> std::io::Result<()> {
        let socket = UdpSocket::bind(SocketAddr::new(addresses::HUB.0.into(), PORT))?;
        socket.set_read_timeout(Some(Duration::from_millis(1)))?;
        self.socket = Some(socket);
        let mut pace = Pace::new(self.clock.now(), EVERY);
        let mut buffer = [0; 2048];
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            let Some(socket) = &self.socket else { return Ok(()) };
            if let Ok((len, from)) = socket.recv_from(&mut buffer) {
                self.hear(now, from, &mut buffer[..len]);
            }
            self.answer();
            if let Some(peer) = self.peer {
                self.wild.to_send += pace.due(now);
                self.speak(now, peer);
            }
        }
        Ok(())
    }

    fn hear(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        let Ok(HubReceived::Payload { peer, payload, first, .. }) =
            self.hub.handle_datagram(now, from, datagram)
        else {
            return;
        };
        self.heard += 1;
        if first {
            self.sessions += 1;
            self.session = Session::listen(&self.config);
        }
        self.peer = Some(peer);
        let _ = self.session.handle_segment(now, payload, &mut self.wild);
    }

    fn answer(&mut self) {
        let mut room = [0; 2048];
        let mut batch = TransmitBatch::new(&mut room, 1);
        while let Some(to) = self.hub.poll_transmit(&mut batch) {
            batch.datagrams().for_each(|datagram| self.put(to, datagram));
            batch.clear();
        }
    }

    fn speak(&mut self, now: Instant, peer: PeerId) {
        self.session.handle_timeout(now);
        self.session.wake();
        let mut segment = [0; 1400];
        for _ in 0..32 {
            let Some(len) = self.session.poll_transmit(now, &mut self.wild, &mut segment) else {
                return;
            };
            let mut datagram = vec![0; len + OVERHEAD];
            datagram[8..8 + len].copy_from_slice(&segment[..len]);
            self.wild.spoil(&mut datagram[8..8 + len]);
            if let Some(to) = self.hub.seal(now, peer, Sealed::Data, &mut datagram) {
                self.put(to, &datagram);
            }
        }
    }

    fn put(&self, to: SocketAddr, datagram: &[u8]) {
        if let Some(socket) = &self.socket {
            let _ = socket.send_to(datagram, to); // What is lost is lost: it is an attack.
        }
    }
}
