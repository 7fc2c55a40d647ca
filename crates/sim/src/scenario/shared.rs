//! Flows that share a satellite bottleneck: XSTP sessions and TCP connections, each on its own
//! hosts.
//!
//! ```text
//!   sender ── own delay ──┐                                   ┌── receiver
//!   sender ── own delay ──┤ router ── rate, delay, queue ── router ├── receiver
//!   sender ── own delay ──┘          the bottleneck           └── receiver
//! ```
//!
//! All have unlimited data in the forward direction. The bound is the one of the guaranteed
//! figures: of a full packet of 1,500 octets 1,440 are payload; a fair share is an equal part of
//! it.

mod observe;

use crate::host::Datagrams;
use crate::network::{Address, LinkId, Network, Node, NodeId, Outbox, Packet};
use crate::session_endpoint::SessionEndpoint;
use crate::tcp::{FlowPlan, TcpSink, TcpSource};
use satlink::{Direction, DirectionConfig, LinkConfig, QueueConfig};
use simtcp::TcpConfig;
use units::{Instant, Span};
use xstp::session::{Session, SessionConfig};

/// Octets of IPv4, UDP and association headers and tag.
const HEADERS: usize = 52;
/// Payload fraction of a full packet.
const USEFUL: f64 = 1_440.0 / 1_500.0;
/// The port of sinks and sessions.
const PORT: u16 = 7_000;

/// The transport of a flow.
#[derive(Clone, Debug)]
pub enum FlowTransport {
    /// A session without gateways; configurations of its sender and its receiver.
    Xstp(Box<SessionConfig>, Box<SessionConfig>),
    /// A TCP connection.
    Tcp(Box<TcpConfig>),
}

/// One flow.
#[derive(Clone, Debug)]
pub struct SharedFlow {
    /// Transport.
    pub transport: FlowTransport,
    /// Start.
    pub start: Span,
    /// Difference between its round trip and the bottleneck's.
    pub extra_delay: Span,
}

impl SharedFlow {
    /// A session that sends with `config`, from the beginning.
    pub fn xstp(config: &SessionConfig) -> Self {
        // The receiver sends little; any return rate suffices.
        Self::session(config, &SessionConfig::gateway(units::BitRate::from_mbps(1)))
    }

    /// The same with the receiver's configuration.
    pub fn session(config: &SessionConfig, back: &SessionConfig) -> Self {
        Self::of(FlowTransport::Xstp(Box::new(config.clone()), Box::new(back.clone())))
    }

    /// A TCP connection, from the beginning.
    pub fn tcp(config: &TcpConfig) -> Self {
        Self::of(FlowTransport::Tcp(Box::new(config.clone())))
    }

    fn of(transport: FlowTransport) -> Self {
        Self { transport, start: Span::ZERO, extra_delay: Span::ZERO }
    }

    /// Returns the flow with another start.
    #[must_use]
    pub fn at(self, start: Span) -> Self {
        Self { start, ..self }
    }

    /// Returns the flow with a round trip that is longer by `extra_delay`.
    #[must_use]
    pub fn extra_delay(self, extra_delay: Span) -> Self {
        Self { extra_delay, ..self }
    }
}

/// A bottleneck and the flows on it.
pub struct Shared {
    /// The network, for inspection and changes between runs.
    pub net: Network,
    /// The bottleneck.
    pub bottleneck: LinkId,
    near: NodeId,
    link: LinkConfig,
    ends: Vec<FlowNodes>,
}

/// The nodes of a flow's sender and receiver.
#[derive(Clone, Copy, Debug)]
enum FlowNodes {
    Xstp { sender: NodeId, receiver: NodeId },
    Tcp { sender: NodeId, receiver: NodeId },
}

/// Goodput of each flow at the bottleneck over a time.
#[derive(Clone, Debug)]
pub struct Shares {
    /// Octets delivered in order, in bit/s.
    pub goodput_bps: Vec<f64>,
    /// The same as a multiple of the fair share.
    pub of_fair: Vec<f64>,
    /// Jain's index of fairness: 1 if all are equal, `1 / n` if one flow has everything.
    pub jain: f64,
    /// Sum of goodputs as a fraction of the bound.
    pub used: f64,
}

impl Shared {
    /// Puts `flows` on the bottleneck `link`.
    ///
    /// # Panics
    /// If the link or a configuration is invalid.
    pub fn new(link: &LinkConfig, seed: u64, run: u64, flows: &[SharedFlow]) -> Self {
        let mut net = Network::new(seed, run);
        let (near, far) = (net.router(), net.router());
        let bottleneck = net.link(near, far, link);
        let ends = flows.iter().map(|flow| join(&mut net, near, far, flow)).collect();
        Self { net, bottleneck, near, link: link.clone(), ends }
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Instant) {
        self.net.run_until(end);
    }

    /// Octets delivered in order on the flow `index` from `from` to `to`.
    pub fn bytes(&self, index: usize, from: Instant, to: Instant) -> u64 {
        let arrived = match self.ends[index] {
            FlowNodes::Xstp { receiver, .. } => {
                let node = self.net.node::<DelayedStart<Datagrams<SessionEndpoint>>>(receiver);
                node.inner.endpoint.data.arrived()
            }
            FlowNodes::Tcp { sender, receiver } => {
                let client = self.net.node::<TcpSource>(sender).address(0);
                match self.net.node::<TcpSink>(receiver).flow(client) {
                    Some(flow) => &flow.arrived,
                    None => return 0,
                }
            }
        };
        arrived.between(from, to).bytes
    }

    /// The sending session of the flow `index`; `None` for TCP.
    pub fn session(&self, index: usize) -> Option<&Session> {
        match self.ends[index] {
            FlowNodes::Xstp { sender, .. } => {
                Some(&self.net.node::<Datagrams<SessionEndpoint>>(sender).endpoint.session)
            }
            FlowNodes::Tcp { .. } => None,
        }
    }

    /// The sending connection of the flow `index`; `None` for a session, or before its start.
    pub fn connection(&self, index: usize) -> Option<&simtcp::Endpoint> {
        match self.ends[index] {
            FlowNodes::Xstp { .. } => None,
            FlowNodes::Tcp { sender, .. } => self.net.node::<TcpSource>(sender).connection(0),
        }
    }

    /// The queue of the bottleneck, as its transmission time.
    ///
    /// # Panics
    /// If the bottleneck has no rate.
    pub fn queue(&self) -> Span {
        let bytes = self.net.line(self.bottleneck).backlog(Direction::Forward).bytes;
        self.link.forward.rate.expect("a bottleneck has a rate").time_for(bytes)
    }

    /// Goodput of the flows from `from` to `to`.
    ///
    /// # Panics
    /// If the bottleneck has no rate.
    pub fn shares(&self, from: Instant, to: Instant) -> Shares {
        let seconds = to.since(from).as_secs_f64();
        let goodput_bps: Vec<f64> = (0..self.ends.len())
            .map(|index| self.bytes(index, from, to) as f64 * 8.0 / seconds)
            .collect();
        let forward = &self.link.forward;
        let rate = forward.rate.expect("a bottleneck has a rate").as_bps() as f64;
        let bound = rate * (1.0 - forward.loss) * USEFUL;
        let fair = bound / goodput_bps.len() as f64;
        Shares {
            of_fair: goodput_bps.iter().map(|bps| bps / fair).collect(),
            jain: jain(&goodput_bps),
            used: goodput_bps.iter().sum::<f64>() / bound,
            goodput_bps,
        }
    }
}

/// Jain's index: the square of the sum over `n` times the sum of the squares.
pub fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    if squares > 0.0 { sum * sum / (values.len() as f64 * squares) } else { 1.0 }
}

fn join(net: &mut Network, near: NodeId, far: NodeId, flow: &SharedFlow) -> FlowNodes {
    let begin = Instant::ZERO + flow.start;
    let (sender, receiver, ends) = match &flow.transport {
        FlowTransport::Xstp(config, back) => {
            let hub = SessionEndpoint::new(Session::listen(config), 7, u64::MAX, false);
            let sender = net.host(Datagrams::new(hub, PORT, None).with_header(HEADERS));
            let terminal = SessionEndpoint::new(Session::connect(back, begin, 1), 7, 0, false);
            let to = Some(Address::new(sender, PORT));
            let inner = Datagrams::new(terminal, PORT, to).with_header(HEADERS);
            let receiver = net.host(DelayedStart { begin, begun: false, inner });
            (sender, receiver, FlowNodes::Xstp { sender, receiver })
        }
        FlowTransport::Tcp(tcp) => {
            let tcp = TcpConfig::clone(tcp);
            let receiver = net.host(TcpSink::new(tcp.clone(), PORT));
            let to = Address::new(receiver, PORT);
            let plan = FlowPlan { start: begin, stop: None, bytes: u64::MAX, to, tcp };
            let sender = net.host_with(|node| TcpSource::new(node, vec![plan]));
            (sender, receiver, FlowNodes::Tcp { sender, receiver })
        }
    };
    net.link(sender, near, &access(flow.extra_delay / 2));
    net.link(far, receiver, &access(Span::ZERO));
    ends
}

/// A link with `delay` in each direction and no rate limit.
fn access(delay: Span) -> LinkConfig {
    let queue = QueueConfig { limit: satlink::Limit::Packets(u64::MAX), ..QueueConfig::default() };
    LinkConfig::symmetric(DirectionConfig { queue, delay, ..DirectionConfig::default() })
}

/// A node that sends nothing before `begin`.
struct DelayedStart<N> {
    begin: Instant,
    begun: bool,
    inner: N,
}

impl<N: Node> Node for DelayedStart<N> {
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        self.inner.handle_packet(now, packet);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        if now >= self.begin {
            self.begun = true;
            self.inner.poll_transmit(now, out);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.begun { self.inner.poll_timeout() } else { Some(self.begin) }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.begun {
            self.inner.handle_timeout(now);
        }
    }
}

#[cfg(test)]
mod tests;
