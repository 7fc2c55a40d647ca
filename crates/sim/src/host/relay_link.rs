//! The gateways' relay as a transport: all streams of a gateway on one session, by UDP.
//!
//! With [`Split`](crate::pep::Split) it makes the product's gateways for hosts with a TCP of their
//! own: `Split<Tcp, RelayLink>` at the terminal and at the hub.

use super::{Interceptor, StreamAddresses, StreamEvent, Transport};
use crate::Streams;
use crate::invariants::SessionWatch;
use crate::network::{Address, NodeId, Outbox, Packet, Protocol};
use relay::{
    Destination, Event, Hub, PeerId, Priority, Relay, RelayConfig, ResetReason, StreamId, Target,
    TransmitBatch,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use units::{Instant, RngStream};
use xstp::session::Snapshot;

/// The port of both gateways.
const PORT: u16 = 4_500;
/// Maximum size of a datagram in octets.
const DATAGRAM: usize = 1_500;

/// Identifies a stream of a [`RelayLink`]. Relays number the streams of each session from zero, so
/// this number is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelayStream(u64);

/// The relay of one gateway, at the terminal or at the hub, with one peer.
pub struct RelayLink {
    node: NodeId,
    /// The peer's address; the hub learns it from the first datagram.
    peer: Option<Address>,
    end: End,
    open: BTreeMap<RelayStream, Open>,
    by_id: BTreeMap<StreamId, RelayStream>,
    opened: u64,
    connections: u32,
    rejected: u64,
    /// Whether there may be something to send.
    awake: bool,
    events: VecDeque<StreamEvent<RelayStream>>,
    watch: SessionWatch,
}

enum End {
    Terminal(Box<Relay>),
    Hub(Box<Hub>, Option<PeerId>),
}

impl End {
    fn relay(&self) -> Option<&Relay> {
        match self {
            Self::Terminal(relay) => Some(relay),
            Self::Hub(hub, peer) => {
                hub.relays().find(|(id, _)| Some(*id) == *peer).map(|one| one.1)
            }
        }
    }
}

struct Open {
    id: StreamId,
    ends: StreamAddresses,
    /// Whether this side has ended it.
    ended: bool,
}

impl RelayLink {
    /// The terminal's relay at `node`, which connects to the hub at the node `hub`.
    pub fn terminal(node: NodeId, config: &RelayConfig, hub: NodeId, rng: RngStream) -> Self {
        let relay = Relay::terminal(config, Instant::ZERO, rng);
        Self::new(node, Some(Address::new(hub, PORT)), End::Terminal(Box::new(relay)))
    }

    /// The hub's relay at `node`.
    pub fn hub(node: NodeId, config: &RelayConfig, rng: RngStream) -> Self {
        Self::new(node, None, End::Hub(Box::new(Hub::new(config, rng)), None))
    }

    fn new(node: NodeId, peer: Option<Address>, end: End) -> Self {
        Self {
            node,
            peer,
            end,
            open: BTreeMap::new(),
            by_id: BTreeMap::new(),
            opened: 0,
            connections: 0,
            rejected: 0,
            awake: true,
            events: VecDeque::new(),
            watch: SessionWatch::default(),
        }
    }

    /// The relay; `None` at a hub without a terminal.
    pub fn relay(&self) -> Option<&Relay> {
        self.end.relay()
    }

    /// The variables of the session, if there is one.
    pub fn snapshot(&self, now: Instant) -> Option<Snapshot> {
        self.relay()?.snapshot(now)
    }

    /// Number of sessions with the peer so far.
    pub fn connections(&self) -> u32 {
        self.connections
    }

    /// Datagrams rejected.
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    fn relay_mut(&mut self) -> Option<&mut Relay> {
        match &mut self.end {
            End::Terminal(relay) => Some(relay),
            End::Hub(hub, peer) => peer.and_then(|peer| hub.peer(peer)),
        }
    }

    fn stream_mut(&mut self, stream: RelayStream) -> Option<(StreamId, &mut Relay)> {
        let id = self.open.get(&stream)?.id;
        self.awake = true;
        self.relay_mut().map(|relay| (id, relay))
    }

    fn insert(&mut self, id: StreamId, ends: StreamAddresses) -> RelayStream {
        let stream = self.number();
        self.open.insert(stream, Open { id, ends, ended: false });
        self.by_id.insert(id, stream);
        stream
    }

    fn number(&mut self) -> RelayStream {
        self.opened += 1;
        RelayStream(self.opened)
    }

    fn remove(&mut self, id: StreamId, broken: bool) {
        let Some(stream) = self.by_id.remove(&id) else { return };
        self.open.remove(&stream);
        if broken {
            self.events.push_back(StreamEvent::Broken(stream));
        }
        self.events.push_back(StreamEvent::Gone(stream));
    }

    /// Translates the relay's events.
    fn translate(&mut self) {
        loop {
            let event = match &mut self.end {
                End::Terminal(relay) => relay.poll_event(),
                End::Hub(hub, peer) => hub.poll_event().map(|(id, event)| {
                    *peer = Some(id);
                    event
                }),
            };
            let Some(event) = event else { return };
            self.on_event(event);
        }
    }

    fn on_event(&mut self, event: Event) {
        let known = |stream: StreamId| self.by_id.get(&stream).copied();
        match event {
            Event::Connected => self.connections += 1,
            Event::Accepted { .. } => {}
            Event::Opened { stream, target } => self.accept(stream, &target),
            Event::Readable { stream } | Event::Ending { stream, .. } => {
                self.events.extend(known(stream).map(StreamEvent::Readable));
            }
            Event::Writable { stream } => {
                self.events.extend(known(stream).map(StreamEvent::Writable));
            }
            Event::Ended { stream } => self.events.extend(known(stream).map(StreamEvent::Ended)),
            Event::Released { stream } => self.remove(stream, false),
            Event::Refused { stream, .. } | Event::Reset { stream, .. } => {
                self.remove(stream, true);
            }
            Event::Disconnected { .. } => {
                while let Some((&id, _)) = self.by_id.first_key_value() {
                    self.remove(id, true);
                }
            }
        }
    }

    fn accept(&mut self, id: StreamId, target: &Target) {
        let (Destination::Address(server), Some(client)) = (&target.destination, target.source)
        else {
            return;
        };
        let ends = StreamAddresses { client: from_socket(client), server: from_socket(*server) };
        let stream = self.insert(id, ends);
        if let Some((id, relay)) = self.stream_mut(stream) {
            // A stream that is already closed has an event in the queue.
            let _ = relay.accept(id);
        }
        self.events.push_back(StreamEvent::Opened(stream));
    }
}

fn to_socket(address: Address) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(address.node.ip()), address.port)
}

fn from_socket(socket: SocketAddr) -> Address {
    let IpAddr::V4(ip) = socket.ip() else { unreachable!("nodes have IPv4 addresses") };
    Address::new(NodeId::with_address(ip), socket.port())
}

impl Streams for RelayLink {
    type Id = RelayStream;

    /// # Panics
    ///
    /// Always: a gateway opens streams between the addresses of two hosts.
    fn open(&mut self, _: Instant) -> RelayStream {
        panic!("a relay's streams have a client and a server")
    }

    fn write(&mut self, now: Instant, stream: RelayStream, bytes: &[u8]) -> usize {
        // A closed stream accepts nothing; its event follows.
        self.stream_mut(stream)
            .and_then(|(id, relay)| relay.write(now, id, bytes).ok())
            .unwrap_or(0)
    }

    fn end(&mut self, _: Instant, stream: RelayStream) {
        if let Some((id, relay)) = self.stream_mut(stream) {
            // The stream is already closed.
            let _ = relay.end(id);
        }
        if let Some(open) = self.open.get_mut(&stream) {
            open.ended = true;
        }
    }

    fn peek(&self, stream: RelayStream) -> &[u8] {
        let open = self.open.get(&stream).zip(self.relay());
        open.map_or(&[], |(open, relay)| relay.peek(open.id))
    }

    fn consume(&mut self, now: Instant, stream: RelayStream, count: usize) {
        if let Some((id, relay)) = self.stream_mut(stream) {
            relay.consume(now, id, count).expect("what was peeked can be consumed");
        }
        self.translate();
    }
}

impl Transport for RelayLink {
    fn wants(&self, packet: &Packet) -> bool {
        packet.protocol == Protocol::Udp && packet.to == Address::new(self.node, PORT)
    }

    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let from = packet.from;
        let handled = match &mut self.end {
            End::Terminal(relay) => relay.handle_datagram(now, packet.bytes_mut()).is_ok(),
            End::Hub(hub, _) => {
                hub.handle_datagram(now, to_socket(from), packet.bytes_mut()).is_ok()
            }
        };
        self.peer.get_or_insert(from);
        self.rejected += u64::from(!handled);
        self.awake = true;
        self.translate();
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        let mut buffer = [0; DATAGRAM];
        loop {
            let mut batch = TransmitBatch::new(&mut buffer, 1);
            let sent = match &mut self.end {
                End::Terminal(relay) => relay.poll_transmit(now, &mut batch).is_some(),
                End::Hub(hub, _) => hub.poll_transmit(now, &mut batch).is_some(),
            };
            let Some(to) = self.peer.filter(|_| sent) else { break };
            for datagram in batch.datagrams() {
                let mut bytes = out.buffer(datagram.len());
                bytes.copy_from_slice(datagram);
                out.send(Packet::udp(Address::new(self.node, PORT), to, bytes));
            }
            if let Some(session) = self.end.relay().and_then(Relay::session) {
                self.watch.check_sent(now, session);
            }
        }
        self.awake = false;
        self.translate();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.awake {
            return Some(Instant::ZERO);
        }
        match &self.end {
            End::Terminal(relay) => relay.poll_timeout(),
            End::Hub(hub, _) => hub.poll_timeout(),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match &mut self.end {
            End::Terminal(relay) => relay.handle_timeout(now),
            End::Hub(hub, _) => hub.handle_timeout(now),
        }
        self.awake = true;
        self.translate();
    }

    fn poll_event(&mut self) -> Option<StreamEvent<RelayStream>> {
        self.events.pop_front()
    }
}

/// Relays open streams in frames of their session, so no packet is seen to open one. The relay
/// acknowledges ends itself.
impl Interceptor for RelayLink {
    fn opens(&self, _: &Packet) -> bool {
        false
    }

    fn stream_of(&self, _: &Packet) -> Option<RelayStream> {
        None
    }

    fn ends(&self, stream: RelayStream) -> Option<StreamAddresses> {
        self.open.get(&stream).map(|open| open.ends)
    }

    /// A stream that cannot be opened is reported as broken: at a hub without a terminal, or above
    /// the peer's limit.
    fn open_between(&mut self, now: Instant, ends: StreamAddresses) -> RelayStream {
        let target = Target::address(to_socket(ends.server)).from(to_socket(ends.client));
        let id = self.relay_mut().and_then(|relay| relay.open(now, target, Priority::Normal).ok());
        self.awake = true;
        match id {
            Some(id) => self.insert(id, ends),
            None => {
                let stream = self.number();
                self.events.push_back(StreamEvent::Broken(stream));
                self.events.push_back(StreamEvent::Gone(stream));
                stream
            }
        }
    }

    fn reset(&mut self, _: Instant, stream: RelayStream) {
        let Some((id, relay)) = self.stream_mut(stream) else { return };
        // The stream is already closed.
        let _ = relay.reset(id, ResetReason::Aborted);
        self.remove(id, false);
    }

    fn is_confirmed(&self, stream: RelayStream) -> bool {
        let open = self.open.get(&stream).zip(self.relay());
        open.is_none_or(|(open, relay)| open.ended && relay.held(open.id) == 0)
    }

    fn confirm(&mut self, _: Instant, _: RelayStream) {}

    fn held(&self, stream: RelayStream) -> u64 {
        let open = self.open.get(&stream).zip(self.relay());
        open.map_or(0, |(open, relay)| relay.held(open.id) + relay.peek(open.id).len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Network;
    use crate::gateways::acquaint;
    use crate::host::{Host, Tcp, TcpId};
    use crate::pep::Split;
    use crate::traffic::{Client, ConnectionPlan, Server};
    use simtcp::TcpConfig;
    use units::Span;

    type Gateway = Split<Tcp, RelayLink>;

    /// A user fetches a page of 30 elements and a file of 500,000 octets through two gateways, with
    /// a server that is at the hub's side or at the terminal's.
    fn fetch(words: &str, server_at_hub: bool) -> (Span, u64) {
        let tcp = TcpConfig::linux_cubic();
        let at = |secs| Instant::ZERO + Span::from_secs(secs);
        let mut net = Network::new(5, 0);
        let server =
            net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), Server::<TcpId>::new()));
        let user = net.host_with(|node| {
            let mut plans = ConnectionPlan::page(at(5), 30, 212_207, 6);
            plans.push(ConnectionPlan::download(at(6), 500_000));
            let transport = Tcp::client(node, &tcp, Address::new(server, 80));
            Host::new(transport, Client::<TcpId>::new(plans))
        });
        let (far, near) = if server_at_hub { (server, user) } else { (user, server) };
        let (mut terminal, mut hub) = (RelayConfig::new("terminal"), RelayConfig::new("hub"));
        acquaint(&mut terminal, &mut hub, 5);
        let rng = |name| RngStream::new(5, 0, name);
        let hub = net.gateway_with(|node| {
            let relay = RelayLink::hub(node, &hub, rng("hub"));
            Split::new(Tcp::gateway(node, &tcp), relay, [far])
        });
        let terminal = net.gateway_with(|node| {
            let relay = RelayLink::terminal(node, &terminal, hub, rng("terminal"));
            Split::new(Tcp::gateway(node, &tcp), relay, [near])
        });
        let lan = satlink::words::parse_link("rate 100mbit delay 1ms").expect("right words");
        let space = satlink::words::parse_link(words).expect("right words");
        net.link(far, hub, &lan);
        let space = net.link(hub, terminal, &space);
        net.link(terminal, near, &lan);
        net.run_until(at(300));
        let seen = &net.node::<Host<Tcp, Client<TcpId>>>(user).application;
        assert!(seen.is_done() && seen.lost() == 0, "{:?}", seen.exchanged());
        for gateway in [hub, terminal] {
            let gateway = net.node::<Gateway>(gateway);
            assert_eq!((gateway.carried(), gateway.usage().connections), (0, 7));
            assert_eq!((gateway.right.connections(), gateway.right.rejected()), (1, 0));
        }
        let last = seen.exchanged().iter().filter_map(|one| one.done).max().expect("exchanges");
        let lost = net.line(space).counters(satlink::Direction::Forward).dropped_in_all().packets;
        (last.since(at(5)), lost)
    }

    #[test]
    fn connections_pass_two_gateways_from_either_side_and_close() {
        for server_at_hub in [true, false] {
            let (took, lost) = fetch("profile geo", server_at_hub);
            assert_eq!(lost, 0);
            // 712 kB at 10 or 1 Mbit/s, after two or three round trips of 600 ms.
            assert!((Span::from_secs(1)..Span::from_secs(15)).contains(&took), "{took}");
        }
    }

    #[test]
    fn losses_on_the_satellite_link_are_retransmitted() {
        let (took, lost) = fetch("profile geo loss 3%", true);
        assert!(lost > 5 && took < Span::from_secs(15), "{lost} {took}");
    }
}
