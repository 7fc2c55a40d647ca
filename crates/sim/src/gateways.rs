//! Two gateways as endpoints: the relays of the product with clients and servers. The local
//! networks have no delay.

use crate::invariants::SessionWatch;
use crate::traffic::{Client, ConnectionPlan, Server};
use crate::{Endpoint, Streams};
use relay::{
    Event, Hub, Keys, Known, PeerId, PresharedKey, Priority, PrivateKey, Relay, RelayConfig,
    Security, StreamId, Target, TransmitBatch,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use units::{Instant, RngStream};

/// Source address of the terminal's datagrams.
const TERMINAL: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 4500);
/// The server of all requests.
const SERVER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1)), 80);
/// Datagrams in a batch: one, so that the guard checks each.
const BATCH: usize = 1;

/// The terminal's gateway and its clients.
pub struct Terminal {
    /// The gateway.
    pub relay: Relay,
    /// The clients.
    pub client: Client<StreamId>,
    /// Datagrams rejected.
    pub bad: u64,
    connected: u32,
    watch: SessionWatch,
}

/// Configures keys drawn from `seed` at two gateways.
///
/// # Panics
/// Never: two different keys are a valid configuration.
pub fn acquaint(terminal: &mut RelayConfig, hub: &mut RelayConfig, seed: u64) {
    let mut rng = RngStream::new(seed, 0, "sim/gateways/keys");
    let [boat, shore] = [(); 2].map(|()| PrivateKey::generate(&mut rng));
    let preshared = PresharedKey::generate(&mut rng);
    let know = |config: &mut RelayConfig, own: &PrivateKey, name: &str, other: &PrivateKey| {
        let (public, preshared) = (other.public(), preshared.clone());
        let known = Known { name: name.to_owned(), public, preshared };
        let keys = Keys::new(own.clone(), vec![known]).expect("one key that is known");
        config.security = Security::Noise(keys.into());
    };
    know(terminal, &boat, &hub.name, &shore);
    know(hub, &shore, &terminal.name, &boat);
}

/// The hub's gateway and its servers.
pub struct HubSide {
    /// The gateway.
    pub hub: Hub,
    /// The terminal, once it is connected.
    pub peer: Option<PeerId>,
    /// The servers.
    pub server: Server<StreamId>,
    /// Datagrams rejected.
    pub bad: u64,
    watches: BTreeMap<PeerId, SessionWatch>,
}

impl Terminal {
    /// A gateway with clients that follow `plans`.
    pub fn new(config: &RelayConfig, rng: RngStream, plans: Vec<ConnectionPlan>) -> Self {
        let relay = Relay::terminal(config, Instant::ZERO, rng);
        let watch = SessionWatch::default();
        Self { relay, client: Client::new(plans), bad: 0, connected: 0, watch }
    }

    /// How often the gateway has connected to its hub.
    pub fn connected(&self) -> u32 {
        self.connected
    }

    fn events(&mut self, now: Instant) {
        while let Some(event) = self.relay.poll_event() {
            let streams = &mut OnRelay(&mut self.relay);
            match event {
                Event::Connected => self.connected += 1,
                Event::Readable { stream } | Event::Ending { stream, .. } => {
                    self.client.readable(now, stream, streams);
                }
                Event::Writable { stream } => self.client.writable(now, stream, streams),
                Event::Refused { stream, .. }
                | Event::Reset { stream, .. }
                | Event::Released { stream } => self.client.gone(stream),
                Event::Disconnected { .. } => self.client.all_gone(),
                Event::Accepted { .. } | Event::Ended { .. } | Event::Opened { .. } => {}
            }
        }
        self.client.handle_timeout(now, &mut OnRelay(&mut self.relay));
    }
}

impl Endpoint for Terminal {
    fn handle_datagram(&mut self, now: Instant, datagram: &mut [u8]) {
        self.bad += u64::from(self.relay.handle_datagram(now, datagram).is_err());
        self.events(now);
    }
    fn poll_transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8])) {
        self.events(now);
        let mut buffer = [0; BATCH * 1500];
        loop {
            let mut batch = TransmitBatch::new(&mut buffer, BATCH);
            if self.relay.poll_transmit(now, &mut batch).is_none() {
                break;
            }
            if let Some(session) = self.relay.session() {
                self.watch.check_sent(now, session);
            }
            batch.datagrams().for_each(&mut *send);
            self.events(now);
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let timers = [self.relay.poll_timeout(), self.client.poll_timeout()];
        timers.into_iter().flatten().min()
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.relay.handle_timeout(now);
        self.events(now);
    }
}

impl HubSide {
    /// A gateway with servers that answer every request.
    pub fn new(config: &RelayConfig, rng: RngStream) -> Self {
        let hub = Hub::new(config, rng);
        Self { hub, peer: None, server: Server::new(), bad: 0, watches: BTreeMap::new() }
    }

    fn events(&mut self, now: Instant) {
        while let Some((peer, event)) = self.hub.poll_event() {
            let Some(relay) = self.hub.peer(peer) else { continue };
            self.peer = Some(peer);
            match event {
                Event::Opened { stream, .. } => {
                    // A stream that is already closed has an event in the queue.
                    let _ = relay.accept(stream);
                    self.server.opened(stream);
                }
                Event::Readable { stream } | Event::Ending { stream, .. } => {
                    self.server.readable(now, stream, &mut OnRelay(relay));
                }
                Event::Writable { stream } => {
                    self.server.writable(now, stream, &mut OnRelay(relay));
                }
                Event::Ended { stream } => self.server.ended(now, stream, &mut OnRelay(relay)),
                Event::Refused { stream, .. }
                | Event::Reset { stream, .. }
                | Event::Released { stream } => self.server.gone(stream),
                Event::Disconnected { .. } => self.server.all_gone(),
                Event::Connected | Event::Accepted { .. } => {}
            }
        }
    }
}

impl Endpoint for HubSide {
    fn handle_datagram(&mut self, now: Instant, datagram: &mut [u8]) {
        self.bad += u64::from(self.hub.handle_datagram(now, TERMINAL, datagram).is_err());
        self.events(now);
    }
    fn poll_transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8])) {
        self.events(now);
        let mut buffer = [0; BATCH * 1500];
        loop {
            let mut batch = TransmitBatch::new(&mut buffer, BATCH);
            if self.hub.poll_transmit(now, &mut batch).is_none() {
                break;
            }
            for (peer, relay) in self.hub.relays() {
                if let Some(session) = relay.session() {
                    self.watches.entry(peer).or_default().check_sent(now, session);
                }
            }
            batch.datagrams().for_each(&mut *send);
            self.events(now);
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.hub.poll_timeout()
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.hub.handle_timeout(now);
        self.events(now);
    }
}

/// A relay's streams, for clients and servers.
struct OnRelay<'a>(&'a mut Relay);

impl Streams for OnRelay<'_> {
    type Id = StreamId;
    fn open(&mut self, now: Instant) -> StreamId {
        let target = Target::address(SERVER);
        self.0.open(now, target, Priority::Normal).expect("a plan asks for what is allowed")
    }
    fn write(&mut self, now: Instant, stream: StreamId, bytes: &[u8]) -> usize {
        // A closed stream accepts nothing; its event follows.
        self.0.write(now, stream, bytes).unwrap_or(0)
    }
    fn end(&mut self, _: Instant, stream: StreamId) {
        // The stream is already closed.
        let _ = self.0.end(stream);
    }
    fn peek(&self, stream: StreamId) -> &[u8] {
        self.0.peek(stream)
    }
    fn consume(&mut self, now: Instant, stream: StreamId, count: usize) {
        self.0.consume(now, stream, count).expect("what was peeked can be consumed");
    }
}
