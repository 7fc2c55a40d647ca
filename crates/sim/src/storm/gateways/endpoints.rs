//! A terminal and a hub as endpoints of a storm: relays with applications.

use super::super::channel::Datagram;
use super::super::fault::{Fault, FaultCounts};
use super::super::report::{Record, Violation};
use super::super::runner::{Command, End};
use super::ledger::{FinalCounters, Ledger};
use super::users::{Task, Users};
use relay::{Event, Hub, PeerId, Relay, RelayConfig, TransmitBatch};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use units::{BitRate, Instant, RngStream, Span};
use xstp::session::Coverage;

/// Source address of the terminal's datagrams.
const TERMINAL: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 4500);
/// Datagrams per call after which the output counts as endless.
const BURST: u32 = 50_000;
/// Octets of headers below a segment in an IP packet.
const LOWER_HEADERS: usize = 28 + 24;

/// Parameters of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) config: RelayConfig,
    pub(crate) seed: u64,
    /// Whether streams may be lost: a seed with aborts, restarts or short timeouts.
    pub(crate) may_abort: bool,
    /// What the clients do.
    pub(crate) tasks: Vec<Task>,
}

impl Setup {
    /// The random stream of an instance.
    fn rng(&self, instance: u64) -> RngStream {
        RngStream::new(self.seed, instance, if self.tasks.is_empty() { "hub" } else { "terminal" })
    }
}

/// The terminal.
pub(crate) struct TerminalEnd {
    setup: Setup,
    relay: Relay,
    users: Users,
    ledger: Ledger,
    mtu: usize,
    fault_free: bool,
}

impl TerminalEnd {
    pub(crate) fn new(setup: Setup, now: Instant) -> Self {
        Self {
            relay: Relay::terminal(&setup.config, now, setup.rng(0)),
            users: Users::new(setup.seed, setup.tasks.clone(), now),
            ledger: Ledger::new(setup.may_abort),
            mtu: setup.config.mtu,
            fault_free: false,
            setup,
        }
    }

    fn process(&mut self, now: Instant) {
        while let Some(event) = self.relay.poll_event() {
            self.ledger.on_event(&event);
            self.users.on_event(now, &event, &mut self.relay);
        }
        self.users.open(now, &mut self.relay);
        self.ledger.check_limits(now, None, &self.relay, &self.setup.config);
    }

    fn restart(&mut self, now: Instant) {
        self.ledger.on_restart(&self.relay.totals(), 1);
        let metrics = self.relay.path_metrics();
        self.setup.config.path_metrics = metrics.or(self.setup.config.path_metrics);
        let rng = self.setup.rng(self.ledger.restarts());
        self.relay = Relay::terminal(&self.setup.config, now, rng);
        self.relay.set_mtu(now, self.mtu);
        self.users.lose_all(now);
    }
}

impl End for TerminalEnd {
    fn receive(&mut self, now: Instant, datagram: &mut Datagram) {
        // The association or the session counts rejected datagrams.
        let _ = self.relay.handle_datagram(now, &mut datagram.bytes);
        self.ledger.on_datagram();
        self.process(now);
    }

    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8], bool)) {
        self.process(now);
        let mut buffer = [0; 1500];
        for sent in 0.. {
            let mut batch = TransmitBatch::new(&mut buffer, 1);
            if self.relay.poll_transmit(now, &mut batch).is_none() {
                break;
            }
            batch.datagrams().for_each(|datagram| send(datagram, false));
            self.process(now);
            if sent > BURST {
                let text = format!("more than {BURST} datagrams at once: {}", self.describe());
                self.ledger.fail(&text);
                break;
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        self.relay.poll_timeout().into_iter().chain(self.users.due()).min()
    }

    fn timeout(&mut self, now: Instant) {
        self.relay.handle_timeout(now);
        self.process(now);
    }

    fn apply(&mut self, now: Instant, command: Command, fault_counts: &mut FaultCounts) {
        match command {
            Command::Restart { .. } => {
                fault_counts.count(Fault::ClientRestart);
                self.restart(now);
            }
            Command::Abort => {
                if self.users.abort(now, &mut self.relay) {
                    fault_counts.count(Fault::Abort);
                }
            }
            Command::Segment(bytes) => {
                fault_counts.count(Fault::MtuChange);
                self.mtu = bytes + LOWER_HEADERS;
                self.relay.set_mtu(now, self.mtu);
            }
            Command::Reading(reading) => {
                if !reading {
                    fault_counts.count(Fault::SlowReader);
                }
                self.users.set_reading(now, reading, &mut self.relay);
            }
            Command::FaultsEnd => {
                self.fault_free = true;
                self.users.set_reading(now, true, &mut self.relay);
                self.mtu = self.setup.config.mtu;
                self.relay.set_mtu(now, self.mtu);
            }
        }
        self.process(now);
    }

    fn incarnation(&self) -> u64 {
        self.ledger.restarts()
    }

    fn sessions(&self) -> u64 {
        self.ledger.sessions() + self.relay.totals().sessions
    }

    fn promised_rate(&self) -> Option<(BitRate, Span)> {
        // Data cannot be distinguished outside of the session; the session's guard checks the rate.
        None
    }

    fn check(&mut self, fault_counts: &mut FaultCounts) -> Result<(), Violation> {
        let user_totals = self.users.take_totals(fault_counts);
        self.ledger.add(user_totals, self.users.error());
        self.ledger.check("terminal")
    }

    fn is_finished(&self) -> bool {
        self.fault_free && self.users.is_done() && is_at_rest(&self.relay)
    }

    fn records(&self) -> Vec<Record> {
        self.ledger.records()
    }

    fn coverage(&self) -> Coverage {
        self.ledger.coverage()
    }

    fn describe(&self) -> String {
        let left = self.users.left();
        let relay = describe(&self.relay, self.ledger.latest());
        format!("terminal: {left} tasks left, {}; {relay}", self.users.describe(&self.relay))
    }

    fn final_counters(&self) -> Option<FinalCounters> {
        let counters = self.relay.association_counters()?;
        self.ledger.final_counters(&self.relay, *counters, self.relay.totals().segments_sent)
    }
}

/// The hub.
pub(crate) struct HubEnd {
    setup: Setup,
    hub: Hub,
    users: BTreeMap<PeerId, Users>,
    ledger: Ledger,
    mtu: usize,
    reading: bool,
}

impl HubEnd {
    pub(crate) fn new(setup: Setup, now: Instant) -> Self {
        let _ = now;
        let mut hub = Hub::new(&setup.config, setup.rng(0));
        if let Some(metrics) = setup.config.path_metrics {
            hub.cache_path_metrics("terminal", metrics);
        }
        Self {
            hub,
            users: BTreeMap::new(),
            ledger: Ledger::new(setup.may_abort),
            mtu: setup.config.mtu,
            reading: true,
            setup,
        }
    }

    fn process(&mut self, now: Instant) {
        while let Some((peer, event)) = self.hub.poll_event() {
            self.ledger.on_event(&event);
            let seed = self.setup.seed;
            let users = self.users.entry(peer).or_insert_with(|| Users::new(seed, Vec::new(), now));
            match self.hub.peer(peer) {
                Some(relay) => {
                    if event == Event::Connected {
                        relay.set_mtu(now, self.mtu);
                        users.set_reading(now, self.reading, relay);
                    }
                    users.on_event(now, &event, relay);
                }
                None => self.on_disconnected(now, peer),
            }
        }
        let peers: Vec<PeerId> = self.hub.peers().collect();
        for peer in peers {
            if let Some(relay) = self.hub.peer(peer) {
                self.ledger.check_limits(now, Some(peer), relay, &self.setup.config);
            }
        }
    }

    /// Handles the end of a terminal's session.
    fn on_disconnected(&mut self, now: Instant, peer: PeerId) {
        let Some(mut users) = self.users.remove(&peer) else { return };
        users.lose_all(now);
        self.add_totals(&mut users, &mut FaultCounts::default());
        self.ledger.forget(peer);
    }

    fn add_totals(&mut self, users: &mut Users, fault_counts: &mut FaultCounts) {
        let user_totals = users.take_totals(fault_counts);
        self.ledger.add(user_totals, users.error());
    }

    fn restart(&mut self, now: Instant, amnesia: bool) {
        self.ledger.on_restart(&self.hub.totals(), 1);
        for peer in self.users.keys().copied().collect::<Vec<_>>() {
            self.on_disconnected(now, peer);
        }
        let measured: Vec<_> = self
            .hub
            .path_metrics(now)
            .map(|(name, metrics, _)| (name.to_owned(), metrics))
            .collect();
        self.hub = Hub::new(&self.setup.config, self.setup.rng(self.ledger.restarts()));
        for (name, metrics) in measured {
            if !amnesia {
                self.hub.cache_path_metrics(&name, metrics);
            }
        }
    }

    /// Calls `act` for each relay and its applications.
    fn for_each_relay(&mut self, mut action: impl FnMut(&mut Users, &mut Relay)) {
        for (&peer, users) in &mut self.users {
            if let Some(relay) = self.hub.peer(peer) {
                action(users, relay);
            }
        }
    }

    fn set_mtu(&mut self, now: Instant, mtu: usize) {
        self.mtu = mtu;
        self.for_each_relay(|_, relay| relay.set_mtu(now, mtu));
    }

    fn set_reading(&mut self, now: Instant, reading: bool) {
        self.reading = reading;
        self.for_each_relay(|users, relay| users.set_reading(now, reading, relay));
    }
}

impl End for HubEnd {
    fn receive(&mut self, now: Instant, datagram: &mut Datagram) {
        // The association or the session counts rejected datagrams.
        let _ = self.hub.handle_datagram(now, TERMINAL, &mut datagram.bytes);
        self.ledger.on_datagram();
        self.process(now);
    }

    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8], bool)) {
        self.process(now);
        let mut buffer = [0; 1500];
        for sent in 0.. {
            let mut batch = TransmitBatch::new(&mut buffer, 1);
            if self.hub.poll_transmit(now, &mut batch).is_none() {
                break;
            }
            batch.datagrams().for_each(|datagram| send(datagram, false));
            self.process(now);
            if sent > BURST {
                let text = format!("more than {BURST} datagrams at once: {}", self.describe());
                self.ledger.fail(&text);
                break;
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        self.hub.poll_timeout()
    }

    fn timeout(&mut self, now: Instant) {
        self.hub.handle_timeout(now);
        self.process(now);
    }

    fn apply(&mut self, now: Instant, command: Command, fault_counts: &mut FaultCounts) {
        match command {
            Command::Restart { amnesia } => {
                fault_counts.count(Fault::ServerRestart);
                if amnesia {
                    fault_counts.count(Fault::Amnesia);
                }
                self.restart(now, amnesia);
            }
            Command::Abort => {
                let mut any = false;
                self.for_each_relay(|users, relay| any |= users.abort(now, relay));
                if any {
                    fault_counts.count(Fault::Abort);
                }
            }
            Command::Segment(bytes) => {
                fault_counts.count(Fault::MtuChange);
                self.set_mtu(now, bytes + LOWER_HEADERS);
            }
            Command::Reading(reading) => {
                if !reading {
                    fault_counts.count(Fault::SlowReader);
                }
                self.set_reading(now, reading);
            }
            Command::FaultsEnd => {
                self.set_reading(now, true);
                self.set_mtu(now, self.setup.config.mtu);
            }
        }
        self.process(now);
    }

    fn incarnation(&self) -> u64 {
        self.ledger.restarts()
    }

    fn sessions(&self) -> u64 {
        self.ledger.sessions() + self.hub.totals().sessions
    }

    fn promised_rate(&self) -> Option<(BitRate, Span)> {
        None
    }

    fn check(&mut self, fault_counts: &mut FaultCounts) -> Result<(), Violation> {
        let mut all = core::mem::take(&mut self.users);
        for users in all.values_mut() {
            self.add_totals(users, fault_counts);
        }
        self.users = all;
        self.ledger.check("hub")
    }

    fn is_finished(&self) -> bool {
        self.users.values().all(Users::is_done) && self.hub.relays().all(|(_, r)| is_at_rest(r))
    }

    fn records(&self) -> Vec<Record> {
        self.ledger.records()
    }

    fn coverage(&self) -> Coverage {
        self.ledger.coverage()
    }

    fn describe(&self) -> String {
        let relays = self.hub.relays().map(|(peer, relay)| {
            let users = self.users.get(&peer).map(|users| users.describe(relay));
            format!("{users:?}; {}", describe(relay, self.ledger.latest()))
        });
        format!("hub: {}", relays.collect::<Vec<_>>().join("; "))
    }

    fn final_counters(&self) -> Option<FinalCounters> {
        let mut relays = self.hub.relays();
        let (_, relay) = relays.next()?;
        if relays.next().is_some() {
            return None;
        }
        let sent = self.hub.totals().segments_sent;
        self.ledger.final_counters(relay, *self.hub.association_counters(), sent)
    }
}

/// Whether no stream is open and nothing is outstanding.
fn is_at_rest(relay: &Relay) -> bool {
    let out = relay.session().map_or(0, |session| session.outstanding_packets());
    relay.statistics().streams == 0 && out == 0
}

fn describe(relay: &Relay, now: Instant) -> String {
    let session = relay.session().map(|session| (session.state(), session.snapshot(now)));
    format!("{:?}, {session:?}", relay.statistics())
}
