//! A host that receives and verifies bulk flows.

use super::content_of;
use super::hosts::Connections;
use crate::Meter;
use crate::network::{Address, Node, Outbox, Packet};
use simtcp::{HostCache, TcpConfig};
use std::collections::BTreeMap;
use units::{Instant, Span};

/// Initial length of a flow meter's bins, and their maximum number.
const BIN: Span = Span::from_millis(100);
const BINS: usize = 4_096;

/// Results of one flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Octets received in order, over time.
    pub arrived: Meter,
    /// Octets received in order.
    pub bytes: u64,
    /// When the last of them arrived.
    pub last: Option<Instant>,
    /// Whether the sender has closed and everything was read.
    pub finished: bool,
}

/// A host that accepts connections on one port and reads all data immediately.
#[derive(Debug)]
pub struct TcpSink {
    tcp: TcpConfig,
    port: u16,
    connections: Connections,
    cache: HostCache,
    numbers: BTreeMap<Address, usize>,
    flows: Vec<Flow>,
    /// Segments without a connection.
    unmatched: u64,
}

impl TcpSink {
    /// Accepts connections on `port` with this TCP.
    pub fn new(tcp: TcpConfig, port: u16) -> Self {
        let (connections, numbers) = (Connections::new(), BTreeMap::new());
        let cache = HostCache::new(u64::from(port));
        Self { tcp, port, connections, cache, numbers, flows: Vec::new(), unmatched: 0 }
    }

    /// The flow from `client`.
    pub fn flow(&self, client: Address) -> Option<&Flow> {
        self.numbers.get(&client).map(|&number| &self.flows[number])
    }

    /// All flows, in the order of their start.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Segments without a connection.
    pub fn unmatched(&self) -> u64 {
        self.unmatched
    }
}

impl Node for TcpSink {
    /// # Panics
    /// If octets differ from the flow's pattern.
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        // It sends nothing that could exceed an MTU.
        let Some(segment) = packet.segment() else { return };
        let known = self.numbers.get(&packet.from).copied();
        let opens = segment.flags.syn && packet.to.port == self.port;
        let number = match known {
            Some(number) => number,
            None if opens => {
                let client = content_of(packet.from);
                let peer = packet.from.node.index() as u64;
                let endpoint = self.cache.listen(peer, &self.tcp, self.port, !client);
                let number = self.connections.add(packet.from.node, endpoint);
                self.numbers.insert(packet.from, number);
                let arrived = Meter::bounded(BIN, BINS);
                self.flows.push(Flow { arrived, bytes: 0, last: None, finished: false });
                number
            }
            None => {
                self.unmatched += 1;
                return;
            }
        };
        let (endpoint, flow) = (self.connections.get_mut(number), &mut self.flows[number]);
        endpoint.handle_segment(now, segment);
        self.cache.learn(packet.from.node.index() as u64, endpoint);
        while let Some(piece) = endpoint.read(u64::MAX) {
            let expected = (content_of(packet.from), flow.bytes);
            assert_eq!((piece.content, piece.offset), expected, "the flow's bytes, in order");
            flow.bytes += piece.len;
            flow.last = Some(now);
            flow.arrived.count(now, piece.len);
        }
        if endpoint.is_finished() && !flow.finished {
            flow.finished = true;
            endpoint.close();
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        self.connections.transmit(now, out, |_, _| {});
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connections.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.connections.handle_timeout(now);
    }
}
