//! A terminal and a hub as ends of a storm: relays, with users above them.

use super::super::arena::{End, Order};
use super::super::fault::{Fault, Strikes};
use super::super::report::{Damage, Record};
use super::super::weather::Flying;
use super::accounts::{Account, Books};
use super::users::{Task, Users};
use relay::{Event, Hub, PeerId, Relay, RelayConfig, TransmitBatch};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use units::{BitRate, Instant, RngStream, Span};
use xstp::session::Coverage;

/// Where the terminal's datagrams come from.
const TERMINAL: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 4500);
/// Datagrams at one time, after which there is no end to them.
const BURST: u32 = 50_000;
/// What a segment needs below it to make an IP packet.
const BELOW: usize = 28 + 24;

/// What an end is set to.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) config: RelayConfig,
    pub(crate) seed: u64,
    /// Whether streams may be lost: somebody gives up, starts anew, or has no patience.
    pub(crate) lethal: bool,
    /// What the clients do.
    pub(crate) tasks: Vec<Task>,
}

impl Setup {
    /// The chance of the end's `life`.
    fn rng(&self, life: u64) -> RngStream {
        RngStream::new(self.seed, life, if self.tasks.is_empty() { "hub" } else { "terminal" })
    }
}

/// The terminal.
pub(crate) struct TerminalEnd {
    setup: Setup,
    relay: Relay,
    users: Users,
    books: Books,
    mtu: usize,
    calm: bool,
}

impl TerminalEnd {
    pub(crate) fn new(setup: Setup, now: Instant) -> Self {
        Self {
            relay: Relay::terminal(&setup.config, now, setup.rng(0)),
            users: Users::new(setup.seed, setup.tasks.clone(), now),
            books: Books::new(setup.lethal),
            mtu: setup.config.mtu,
            calm: false,
            setup,
        }
    }

    fn attend(&mut self, now: Instant) {
        while let Some(event) = self.relay.poll_event() {
            self.books.note(&event);
            self.users.on_event(now, &event, &mut self.relay);
        }
        self.users.open(now, &mut self.relay);
        self.books.look(now, None, &self.relay, &self.setup.config);
    }

    fn restart(&mut self, now: Instant) {
        self.books.bury(&self.relay.totals(), 1);
        let metrics = self.relay.path_metrics();
        self.setup.config.path_metrics = metrics.or(self.setup.config.path_metrics);
        let rng = self.setup.rng(self.books.restarts());
        self.relay = Relay::terminal(&self.setup.config, now, rng);
        self.relay.set_mtu(now, self.mtu);
        self.users.lose_all(now);
    }
}

impl End for TerminalEnd {
    fn receive(&mut self, now: Instant, flying: &mut Flying) {
        // What is not taken is counted by the association or the session.
        let _ = self.relay.handle_datagram(now, &mut flying.bytes);
        self.books.handled();
        self.attend(now);
    }

    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8], bool)) {
        self.attend(now);
        let mut buffer = [0; 1500];
        for sent in 0.. {
            let mut batch = TransmitBatch::new(&mut buffer, 1);
            if self.relay.poll_transmit(now, &mut batch).is_none() {
                break;
            }
            batch.datagrams().for_each(|datagram| send(datagram, false));
            self.attend(now);
            if sent > BURST {
                let text = format!("more than {BURST} datagrams at once: {}", self.describe());
                self.books.fail(&text);
                break;
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        self.relay.poll_timeout().into_iter().chain(self.users.due()).min()
    }

    fn timeout(&mut self, now: Instant) {
        self.relay.handle_timeout(now);
        self.attend(now);
    }

    fn obey(&mut self, now: Instant, order: Order, strikes: &mut Strikes) {
        match order {
            Order::Restart { .. } => {
                strikes.count(Fault::ClientRestart);
                self.restart(now);
            }
            Order::Abort => {
                if self.users.abort(now, &mut self.relay) {
                    strikes.count(Fault::Abort);
                }
            }
            Order::Segment(bytes) => {
                strikes.count(Fault::MtuChange);
                self.mtu = bytes + BELOW;
                self.relay.set_mtu(now, self.mtu);
            }
            Order::Reading(reading) => {
                if !reading {
                    strikes.count(Fault::SlowReader);
                }
                self.users.set_reading(now, reading, &mut self.relay);
            }
            Order::Calm => {
                self.calm = true;
                self.users.set_reading(now, true, &mut self.relay);
                self.mtu = self.setup.config.mtu;
                self.relay.set_mtu(now, self.mtu);
            }
        }
        self.attend(now);
    }

    fn incarnation(&self) -> u64 {
        self.books.restarts()
    }

    fn lives(&self) -> u64 {
        self.books.sessions() + self.relay.totals().sessions
    }

    fn promised_rate(&self) -> Option<(BitRate, Span)> {
        // What is data cannot be seen from outside; the guard of the session sees it.
        None
    }

    fn verdict(&mut self, strikes: &mut Strikes) -> Result<(), Damage> {
        let tale = self.users.take_tale(strikes);
        self.books.take(tale, self.users.wrong());
        self.books.verdict("terminal")
    }

    fn is_settled(&self) -> bool {
        self.calm && self.users.is_done() && is_at_rest(&self.relay)
    }

    fn records(&self) -> Vec<Record> {
        self.books.records()
    }

    fn coverage(&self) -> Coverage {
        self.books.coverage()
    }

    fn describe(&self) -> String {
        let left = self.users.left();
        let relay = describe(&self.relay, self.books.latest());
        format!("terminal: {left} tasks left, {}; {relay}", self.users.describe(&self.relay))
    }

    fn account(&self) -> Option<Account> {
        let counters = self.relay.association_counters()?;
        self.books.account(&self.relay, *counters, self.relay.totals().segments_sent)
    }
}

/// The hub.
pub(crate) struct HubEnd {
    setup: Setup,
    hub: Hub,
    users: BTreeMap<PeerId, Users>,
    books: Books,
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
            books: Books::new(setup.lethal),
            mtu: setup.config.mtu,
            reading: true,
            setup,
        }
    }

    fn attend(&mut self, now: Instant) {
        while let Some((peer, event)) = self.hub.poll_event() {
            self.books.note(&event);
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
                None => self.part(now, peer),
            }
        }
        let peers: Vec<PeerId> = self.hub.peers().collect();
        for peer in peers {
            if let Some(relay) = self.hub.peer(peer) {
                self.books.look(now, Some(peer), relay, &self.setup.config);
            }
        }
    }

    /// A terminal's session is over.
    fn part(&mut self, now: Instant, peer: PeerId) {
        let Some(mut users) = self.users.remove(&peer) else { return };
        users.lose_all(now);
        self.hear(&mut users, &mut Strikes::default());
        self.books.forget(peer);
    }

    fn hear(&mut self, users: &mut Users, strikes: &mut Strikes) {
        let tale = users.take_tale(strikes);
        self.books.take(tale, users.wrong());
    }

    fn restart(&mut self, now: Instant, amnesia: bool) {
        self.books.bury(&self.hub.totals(), 1);
        for peer in self.users.keys().copied().collect::<Vec<_>>() {
            self.part(now, peer);
        }
        let measured: Vec<_> = self
            .hub
            .path_metrics(now)
            .map(|(name, metrics, _)| (name.to_owned(), metrics))
            .collect();
        self.hub = Hub::new(&self.setup.config, self.setup.rng(self.books.restarts()));
        for (name, metrics) in measured {
            if !amnesia {
                self.hub.cache_path_metrics(&name, metrics);
            }
        }
    }

    /// Does something to each relay and what is above it.
    fn each(&mut self, mut act: impl FnMut(&mut Users, &mut Relay)) {
        for (&peer, users) in &mut self.users {
            if let Some(relay) = self.hub.peer(peer) {
                act(users, relay);
            }
        }
    }

    fn set_mtu(&mut self, now: Instant, mtu: usize) {
        self.mtu = mtu;
        self.each(|_, relay| relay.set_mtu(now, mtu));
    }

    fn set_reading(&mut self, now: Instant, reading: bool) {
        self.reading = reading;
        self.each(|users, relay| users.set_reading(now, reading, relay));
    }
}

impl End for HubEnd {
    fn receive(&mut self, now: Instant, flying: &mut Flying) {
        // What is not taken is counted by the association or the session.
        let _ = self.hub.handle_datagram(now, TERMINAL, &mut flying.bytes);
        self.books.handled();
        self.attend(now);
    }

    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8], bool)) {
        self.attend(now);
        let mut buffer = [0; 1500];
        for sent in 0.. {
            let mut batch = TransmitBatch::new(&mut buffer, 1);
            if self.hub.poll_transmit(now, &mut batch).is_none() {
                break;
            }
            batch.datagrams().for_each(|datagram| send(datagram, false));
            self.attend(now);
            if sent > BURST {
                let text = format!("more than {BURST} datagrams at once: {}", self.describe());
                self.books.fail(&text);
                break;
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        self.hub.poll_timeout()
    }

    fn timeout(&mut self, now: Instant) {
        self.hub.handle_timeout(now);
        self.attend(now);
    }

    fn obey(&mut self, now: Instant, order: Order, strikes: &mut Strikes) {
        match order {
            Order::Restart { amnesia } => {
                strikes.count(Fault::ServerRestart);
                if amnesia {
                    strikes.count(Fault::Amnesia);
                }
                self.restart(now, amnesia);
            }
            Order::Abort => {
                let mut any = false;
                self.each(|users, relay| any |= users.abort(now, relay));
                if any {
                    strikes.count(Fault::Abort);
                }
            }
            Order::Segment(bytes) => {
                strikes.count(Fault::MtuChange);
                self.set_mtu(now, bytes + BELOW);
            }
            Order::Reading(reading) => {
                if !reading {
                    strikes.count(Fault::SlowReader);
                }
                self.set_reading(now, reading);
            }
            Order::Calm => {
                self.set_reading(now, true);
                self.set_mtu(now, self.setup.config.mtu);
            }
        }
        self.attend(now);
    }

    fn incarnation(&self) -> u64 {
        self.books.restarts()
    }

    fn lives(&self) -> u64 {
        self.books.sessions() + self.hub.totals().sessions
    }

    fn promised_rate(&self) -> Option<(BitRate, Span)> {
        None
    }

    fn verdict(&mut self, strikes: &mut Strikes) -> Result<(), Damage> {
        let mut all = core::mem::take(&mut self.users);
        for users in all.values_mut() {
            self.hear(users, strikes);
        }
        self.users = all;
        self.books.verdict("hub")
    }

    fn is_settled(&self) -> bool {
        self.users.values().all(Users::is_done) && self.hub.relays().all(|(_, r)| is_at_rest(r))
    }

    fn records(&self) -> Vec<Record> {
        self.books.records()
    }

    fn coverage(&self) -> Coverage {
        self.books.coverage()
    }

    fn describe(&self) -> String {
        let relays = self.hub.relays().map(|(peer, relay)| {
            let users = self.users.get(&peer).map(|users| users.describe(relay));
            format!("{users:?}; {}", describe(relay, self.books.latest()))
        });
        format!("hub: {}", relays.collect::<Vec<_>>().join("; "))
    }

    fn account(&self) -> Option<Account> {
        let mut relays = self.hub.relays();
        let (_, relay) = relays.next()?;
        if relays.next().is_some() {
            return None;
        }
        let sent = self.hub.totals().segments_sent;
        self.books.account(relay, *self.hub.association_counters(), sent)
    }
}

/// Whether nothing is open and nothing is under way.
fn is_at_rest(relay: &Relay) -> bool {
    let out = relay.session().map_or(0, |session| session.outstanding_packets());
    relay.statistics().streams == 0 && out == 0
}

fn describe(relay: &Relay, now: Instant) -> String {
    let session = relay.session().map(|session| (session.state(), session.snapshot(now)));
    format!("{:?}, {session:?}", relay.statistics())
}
