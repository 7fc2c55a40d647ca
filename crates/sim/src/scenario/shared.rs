//! Flows that share a satellite bottleneck: sessions of XSTP and TCPs, each with its own hosts.
//!
//! ```text
//!   sender ── own delay ──┐                                   ┌── receiver
//!   sender ── own delay ──┤ router ── rate, delay, queue ── router ├── receiver
//!   sender ── own delay ──┘          the bottleneck           └── receiver
//! ```
//!
//! All have endless data in the forward direction. The bound is the project's: of a full packet
//! of 1500 bytes 1440 are the user's, and a fair share is an equal part of it.

mod watch;

use crate::host::Datagrams;
use crate::network::{Address, LinkId, Network, Node, NodeId, Outbox, Packet};
use crate::session_endpoint::SessionEndpoint;
use crate::tcp::{FlowPlan, TcpSink, TcpSource};
use satlink::{Direction, DirectionConfig, LinkConfig, QueueConfig};
use simtcp::TcpConfig;
use units::{Instant, Span};
use xstp::session::{Session, SessionConfig};

/// IPv4, UDP, and an association's header and tag.
const HEADERS: usize = 52;
/// The user's part of a full packet.
const USEFUL: f64 = 1_440.0 / 1_500.0;
/// The port on which sinks accept, and that sessions use.
const PORT: u16 = 7_000;

/// What a flow is carried by.
#[derive(Clone, Debug)]
pub enum Carrier {
    /// A session of its own, without gateways; what its sender and its receiver are told.
    Xstp(Box<SessionConfig>, Box<SessionConfig>),
    /// A connection of its own.
    Tcp(Box<TcpConfig>),
}

/// One flow.
#[derive(Clone, Debug)]
pub struct SharedFlow {
    /// By what.
    pub carrier: Carrier,
    /// When it begins.
    pub start: Span,
    /// How much longer its round trip is than the bottleneck's.
    pub further: Span,
}

impl SharedFlow {
    /// A session that sends by `config`, from the beginning.
    pub fn xstp(config: &SessionConfig) -> Self {
        // What the receiver sends is little, and paced at any rate that a return channel has.
        Self::session(config, &SessionConfig::gateway(units::BitRate::from_mbps(1)))
    }

    /// The same with what the receiver is told.
    pub fn session(config: &SessionConfig, back: &SessionConfig) -> Self {
        Self::of(Carrier::Xstp(Box::new(config.clone()), Box::new(back.clone())))
    }

    /// A TCP connection, from the beginning.
    pub fn tcp(config: &TcpConfig) -> Self {
        Self::of(Carrier::Tcp(Box::new(config.clone())))
    }

    fn of(carrier: Carrier) -> Self {
        Self { carrier, start: Span::ZERO, further: Span::ZERO }
    }

    /// The same, begun at `start`.
    #[must_use]
    pub fn at(self, start: Span) -> Self {
        Self { start, ..self }
    }

    /// The same with a round trip that is longer by `further`.
    #[must_use]
    pub fn further(self, further: Span) -> Self {
        Self { further, ..self }
    }
}

/// A bottleneck and the flows on it.
pub struct Shared {
    /// The network, to be looked into or changed between runs.
    pub net: Network,
    /// The bottleneck.
    pub bottleneck: LinkId,
    near: NodeId,
    link: LinkConfig,
    ends: Vec<FlowNodes>,
}

/// Where a flow's two ends are.
#[derive(Clone, Copy, Debug)]
enum FlowNodes {
    Xstp { sender: NodeId, receiver: NodeId },
    Tcp { sender: NodeId, receiver: NodeId },
}

/// What each flow had of the bottleneck in some time.
#[derive(Clone, Debug)]
pub struct Shares {
    /// Bytes in order at the receiver, as bits per second.
    pub goodput_bps: Vec<f64>,
    /// The same as a multiple of the fair share.
    pub of_fair: Vec<f64>,
    /// Jain's index of fairness: 1 when all have the same, `1 / n` when one has all.
    pub jain: f64,
    /// All goodput together, as a share of the bound.
    pub used: f64,
}

impl Shared {
    /// `flows` on `link`, which is the bottleneck.
    ///
    /// # Panics
    /// When the link or a configuration is not valid.
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

    /// Bytes that arrived in order on the flow `index`, from `from` to `to`.
    pub fn bytes(&self, index: usize, from: Instant, to: Instant) -> u64 {
        let arrived = match self.ends[index] {
            FlowNodes::Xstp { receiver, .. } => {
                let node = self.net.node::<Later<Datagrams<SessionEndpoint>>>(receiver);
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

    /// The sending session of the flow `index`; `None` where it is TCP's.
    pub fn session(&self, index: usize) -> Option<&Session> {
        match self.ends[index] {
            FlowNodes::Xstp { sender, .. } => {
                Some(&self.net.node::<Datagrams<SessionEndpoint>>(sender).endpoint.session)
            }
            FlowNodes::Tcp { .. } => None,
        }
    }

    /// The sending connection of the flow `index`; `None` where it is a session, or not begun.
    pub fn connection(&self, index: usize) -> Option<&simtcp::Endpoint> {
        match self.ends[index] {
            FlowNodes::Xstp { .. } => None,
            FlowNodes::Tcp { sender, .. } => self.net.node::<TcpSource>(sender).connection(0),
        }
    }

    /// What waits at the bottleneck, as a time.
    ///
    /// # Panics
    /// When the bottleneck has no rate.
    pub fn queue(&self) -> Span {
        let bytes = self.net.line(self.bottleneck).backlog(Direction::Forward).bytes;
        self.link.forward.rate.expect("a bottleneck has a rate").time_for(bytes)
    }

    /// Who had what from `from` to `to`.
    ///
    /// # Panics
    /// When the bottleneck has no rate.
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
    let (sender, receiver, ends) = match &flow.carrier {
        Carrier::Xstp(config, back) => {
            let hub = SessionEndpoint::new(Session::listen(config), 7, u64::MAX, false);
            let sender = net.host(Datagrams::new(hub, PORT, None).with_header(HEADERS));
            let terminal = SessionEndpoint::new(Session::connect(back, begin, 1), 7, 0, false);
            let to = Some(Address::new(sender, PORT));
            let inner = Datagrams::new(terminal, PORT, to).with_header(HEADERS);
            let receiver = net.host(Later { begin, begun: false, inner });
            (sender, receiver, FlowNodes::Xstp { sender, receiver })
        }
        Carrier::Tcp(tcp) => {
            let tcp = TcpConfig::clone(tcp);
            let receiver = net.host(TcpSink::new(tcp.clone(), PORT));
            let to = Address::new(receiver, PORT);
            let plan = FlowPlan { start: begin, stop: None, bytes: u64::MAX, to, tcp };
            let sender = net.host_with(|node| TcpSource::new(node, vec![plan]));
            (sender, receiver, FlowNodes::Tcp { sender, receiver })
        }
    };
    net.link(sender, near, &access(flow.further / 2));
    net.link(far, receiver, &access(Span::ZERO));
    ends
}

/// A way that takes `delay` in each direction and holds nothing up.
fn access(delay: Span) -> LinkConfig {
    let queue = QueueConfig { limit: satlink::Limit::Packets(u64::MAX), ..QueueConfig::default() };
    LinkConfig::symmetric(DirectionConfig { queue, delay, ..DirectionConfig::default() })
}

/// A node that says nothing before `begin`.
struct Later<N> {
    begin: Instant,
    begun: bool,
    inner: N,
}

impl<N: Node> Node for Later<N> {
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
