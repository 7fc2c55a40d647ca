//! TCP or QUIC, chosen at run time.

use super::{Quic, QuicId, StreamEvent, Tcp, TcpId, Transport};
use crate::Streams;
use crate::network::{Address, NodeId, Outbox, Packet};
use simtcp::quic::QuicConfig;
use simtcp::{Counters, Snapshot, TcpConfig};
use units::Instant;

/// The configuration of an [`EndToEnd`].
#[derive(Clone, Debug)]
pub enum EndToEndConfig {
    /// A TCP.
    Tcp(TcpConfig),
    /// QUIC.
    Quic(QuicConfig),
}

/// The transport of a host in which a scenario chooses between TCP and QUIC.
#[derive(Debug)]
pub enum EndToEnd {
    /// TCP.
    Tcp(Tcp),
    /// QUIC.
    Quic(Quic),
}

/// Identifies a stream of an [`EndToEnd`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndToEndId {
    /// A connection of TCP.
    Tcp(TcpId),
    /// A connection of QUIC.
    Quic(QuicId),
}

impl EndToEnd {
    /// A client: streams are opened to `server`.
    pub fn client(node: NodeId, config: &EndToEndConfig, server: Address) -> Self {
        match config {
            EndToEndConfig::Tcp(tcp) => Self::Tcp(Tcp::client(node, tcp, server)),
            EndToEndConfig::Quic(quic) => Self::Quic(Quic::client(node, quic, server)),
        }
    }

    /// A server: connections are accepted on `port`.
    pub fn server(node: NodeId, config: &EndToEndConfig, port: u16) -> Self {
        match config {
            EndToEndConfig::Tcp(tcp) => Self::Tcp(Tcp::server(node, tcp, port)),
            EndToEndConfig::Quic(quic) => Self::Quic(Quic::server(node, quic, port)),
        }
    }

    /// Variables and counters of the first connection, as long as it is known.
    pub fn first(&self) -> Option<(Snapshot, Counters)> {
        match self {
            Self::Tcp(tcp) => {
                tcp.connections().next().map(|(_, one)| (one.snapshot(), *one.counters()))
            }
            Self::Quic(quic) => {
                quic.connections().next().map(|(_, one)| (one.snapshot(), *one.counters()))
            }
        }
    }
}

/// The result of a call on the transport that `stream` belongs to; `None` of another one.
macro_rules! on_stream {
    ($transport:expr, $stream:expr, $call:ident ($($before:expr),*; $($after:expr),*)) => {
        match ($transport, $stream) {
            (EndToEnd::Tcp(tcp), EndToEndId::Tcp(id)) => Some(tcp.$call($($before,)* id, $($after),*)),
            (EndToEnd::Quic(quic), EndToEndId::Quic(id)) => Some(quic.$call($($before,)* id, $($after),*)),
            _ => None,
        }
    };
}

impl Streams for EndToEnd {
    type Id = EndToEndId;

    fn open(&mut self, now: Instant) -> EndToEndId {
        match self {
            Self::Tcp(tcp) => EndToEndId::Tcp(tcp.open(now)),
            Self::Quic(quic) => EndToEndId::Quic(quic.open(now)),
        }
    }

    fn write(&mut self, now: Instant, stream: EndToEndId, bytes: &[u8]) -> usize {
        on_stream!(self, stream, write(now; bytes)).unwrap_or(0)
    }

    fn end(&mut self, now: Instant, stream: EndToEndId) {
        on_stream!(self, stream, end(now;)).unwrap_or_default();
    }

    fn peek(&self, stream: EndToEndId) -> &[u8] {
        on_stream!(self, stream, peek(;)).unwrap_or_default()
    }

    fn consume(&mut self, now: Instant, stream: EndToEndId, count: usize) {
        on_stream!(self, stream, consume(now; count)).unwrap_or_default();
    }
}

impl Transport for EndToEnd {
    fn wants(&self, packet: &Packet) -> bool {
        match self {
            Self::Tcp(tcp) => tcp.wants(packet),
            Self::Quic(quic) => quic.wants(packet),
        }
    }

    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        match self {
            Self::Tcp(tcp) => tcp.handle_packet(now, packet),
            Self::Quic(quic) => quic.handle_packet(now, packet),
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        match self {
            Self::Tcp(tcp) => tcp.poll_transmit(now, out),
            Self::Quic(quic) => quic.poll_transmit(now, out),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Tcp(tcp) => tcp.poll_timeout(),
            Self::Quic(quic) => quic.poll_timeout(),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Tcp(tcp) => tcp.handle_timeout(now),
            Self::Quic(quic) => quic.handle_timeout(now),
        }
    }

    fn poll_event(&mut self) -> Option<StreamEvent<EndToEndId>> {
        match self {
            Self::Tcp(tcp) => tcp.poll_event().map(|event| event.map(EndToEndId::Tcp)),
            Self::Quic(quic) => quic.poll_event().map(|event| event.map(EndToEndId::Quic)),
        }
    }
}
