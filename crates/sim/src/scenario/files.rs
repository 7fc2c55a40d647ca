//! File transfers over a chain of links: end to end or split at gateways, optionally with cross
//! traffic.
//!
//! ```text
//!  source ─ access ─┐                     gateways, if any: before hops[gateway], and behind it
//!  source ─ access ─┴ first ── hops[0] ── node ── hops[1] ── node ── … ── end ─ sink
//!  cross traffic ───────┘                  └── its sink, before hops[gateway]
//! ```
//!
//! These are the measurements of the satellite papers with hosts, routers and emulators.

use crate::host::{BulkReceiver, BulkSender, Host, Tcp, TcpId, Xstp, XstpStream};
use crate::network::{Address, LinkId, NodeId};
use crate::pep::{BufferUsage, Split};
use crate::tcp::{FlowPlan, TcpSink, TcpSource};
use crate::traffic::{ConstantRate, ConstantSink, ConstantSource, mah};
use crate::{Meter, Network};
use satlink::{Direction, DropCause, LinkConfig, Tally};
use simtcp::TcpConfig;
use units::{BitRate, Instant, Span};
use xstp::session::SessionConfig;

/// The transports on the segments of the path.
#[derive(Clone, Debug)]
pub enum Transports {
    /// One TCP from end to end.
    Tcp(TcpConfig),
    /// One STP or XSTP from end to end.
    Stp(SessionConfig),
    /// TCP to the gateway, another TCP from there.
    SplitTcp(TcpConfig, TcpConfig),
    /// TCP to the gateway, STP or XSTP from there.
    SplitStp(TcpConfig, SessionConfig),
    /// TCP to the gateway, STP or XSTP over one hop to a second one, TCP from there.
    ThreeSegments(TcpConfig, SessionConfig, TcpConfig),
}

/// Unlimited TCP flows on the hops before the gateway.
#[derive(Clone, Debug)]
pub struct CrossTraffic {
    /// Their TCP.
    pub tcp: TcpConfig,
    /// Number of flows.
    pub flows: u32,
    /// The access link at each of their ends.
    pub access: LinkConfig,
}

/// Files to transfer, and the network.
#[derive(Clone, Debug)]
pub struct Files {
    /// Transports.
    pub carriage: Transports,
    /// Number of simultaneous files.
    pub flows: u32,
    /// Octets of each; `u64::MAX`: unlimited.
    pub bytes: u64,
    /// The link between each source and the first node; forward is away from the source.
    pub access: LinkConfig,
    /// The links from there to the sink.
    pub hops: Vec<LinkConfig>,
    /// Index of the hop before which the gateway stands and the cross traffic leaves.
    pub gateway: usize,
    /// Cross traffic before the gateway.
    pub beside: Option<CrossTraffic>,
    /// Mean rate of background web traffic over all hops, in bit/s.
    pub background_bps: f64,
    /// Constant-rate UDP over all hops.
    pub constant: Option<BitRate>,
    /// Delay between the starts of consecutive files.
    pub stagger: Span,
    /// Maximum of a random delay of the first file, and of each of the others.
    pub chance: Span,
    /// Time limit of the run.
    pub until: Span,
    /// With `run` the source of all randomness.
    pub seed: u64,
    /// The replication.
    pub run: u64,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct FilesReport {
    /// From the start of the first file to the last octet of the last; `None`: not within the
    /// limit.
    pub took: Option<Span>,
    /// Octets in order at the sink, of all files.
    pub bytes: u64,
    /// The same over time; the sum is over all files.
    pub arrived: Vec<Meter>,
    /// When the first file started.
    pub began: Instant,
    /// End of the run.
    pub ended: Instant,
    /// Packets transmitted on each hop, forward and return.
    pub sent: Vec<[Tally; 2]>,
    /// Maximum occupancy of each hop's forward queue.
    pub fullest: Vec<Tally>,
    /// Packets dropped by each hop's full forward queue.
    pub overflowed: Vec<u64>,
    /// Retransmission timeouts of the sources.
    pub timeouts: u64,
    /// Recoveries of the sources without a timeout; one per window.
    pub recoveries: u64,
    /// POLLs of the satellite segment, and standalone ones of them.
    pub polls: [u64; 2],
    /// Buffer usage of the first gateway.
    pub gateway_buffers: BufferUsage,
    /// Octets of UDP packets received, headers included.
    pub constant: u64,
}

impl FilesReport {
    /// Octets in order until `at`.
    pub fn bytes_by(&self, at: Instant) -> u64 {
        self.arrived.iter().map(|meter| meter.between(Instant::ZERO, at).bytes).sum()
    }

    /// Goodput after `settled`, in bit/s.
    pub fn rate_after(&self, settled: Span) -> f64 {
        let from = Instant::ZERO + settled;
        let bytes = self.bytes - self.bytes_by(from);
        bytes as f64 * 8.0 / self.ended.since(from).as_secs_f64()
    }
}

/// The port of the sinks.
const PORT: u16 = 80;
/// The pattern of all files.
const TAG: u64 = 7;

type TcpFrom = Host<Tcp, BulkSender<TcpId>>;
type TcpTo = Host<Tcp, BulkReceiver<TcpId>>;
type StpFrom = Host<Xstp, BulkSender<XstpStream>>;
type StpTo = Host<Xstp, BulkReceiver<XstpStream>>;
type TcpToTcp = Split<Tcp, Tcp>;
type TcpToStp = Split<Tcp, Xstp>;

impl Files {
    /// Runs the transfer.
    ///
    /// # Panics
    /// If received octets differ from those sent, or a link is invalid.
    pub fn carry(&self) -> FilesReport {
        let mut rig = Rig::new(self);
        let end = Instant::ZERO + self.until;
        let all = self.bytes.saturating_mul(u64::from(self.flows));
        let (sink, carriage) = (rig.sink, &self.carriage);
        let there = move |net: &Network| all > 0 && carriage.received(net, sink) >= all;
        let done = rig.net.run_while(end, |net| !there(net));
        rig.net.audit();
        rig.carried(self, done)
    }
}

impl Transports {
    fn received(&self, net: &Network, sink: NodeId) -> u64 {
        match self {
            Self::Tcp(_) => net.node::<TcpSink>(sink).flows().iter().map(|flow| flow.bytes).sum(),
            Self::SplitTcp(..) | Self::ThreeSegments(..) => {
                net.node::<TcpTo>(sink).application.received()
            }
            Self::Stp(_) | Self::SplitStp(..) => net.node::<StpTo>(sink).application.received(),
        }
    }

    fn arrived(&self, net: &Network, sink: NodeId) -> Vec<Meter> {
        match self {
            Self::Tcp(_) => {
                let flows = net.node::<TcpSink>(sink).flows();
                flows.iter().map(|flow| flow.arrived.clone()).collect()
            }
            Self::SplitTcp(..) | Self::ThreeSegments(..) => {
                vec![net.node::<TcpTo>(sink).application.arrived().clone()]
            }
            Self::Stp(_) | Self::SplitStp(..) => {
                vec![net.node::<StpTo>(sink).application.arrived().clone()]
            }
        }
    }

    fn last(&self, net: &Network, sink: NodeId) -> Option<Instant> {
        match self {
            Self::Tcp(_) => {
                net.node::<TcpSink>(sink).flows().iter().filter_map(|flow| flow.last).max()
            }
            Self::SplitTcp(..) | Self::ThreeSegments(..) => {
                let streams = net.node::<TcpTo>(sink).application.streams();
                streams.filter_map(|stream| stream.last).max()
            }
            Self::Stp(_) | Self::SplitStp(..) => {
                let streams = net.node::<StpTo>(sink).application.streams();
                streams.filter_map(|stream| stream.last).max()
            }
        }
    }

    fn sink(&self, net: &mut Network) -> NodeId {
        match self {
            Self::Tcp(tcp) => net.host(TcpSink::new(tcp.clone(), PORT)),
            Self::SplitTcp(_, tcp) | Self::ThreeSegments(.., tcp) => net.host_with(|node| {
                Host::new(Tcp::server(node, tcp, PORT), BulkReceiver::<TcpId>::new(TAG))
            }),
            Self::Stp(stp) | Self::SplitStp(_, stp) => net.host_with(|node| {
                Host::new(Xstp::server(node, stp, PORT), BulkReceiver::<XstpStream>::new(TAG))
            }),
        }
    }

    fn source(&self, net: &mut Network, server: Address, start: Instant, bytes: u64) -> NodeId {
        match self {
            Self::Tcp(tcp) => {
                let plan = FlowPlan { start, stop: None, bytes, to: server, tcp: tcp.clone() };
                net.host_with(|node| TcpSource::new(node, vec![plan]))
            }
            Self::SplitTcp(tcp, _) | Self::SplitStp(tcp, _) | Self::ThreeSegments(tcp, ..) => net
                .host_with(|node| {
                    let sender = BulkSender::<TcpId>::new(start, bytes, TAG);
                    Host::new(Tcp::client(node, tcp, server), sender)
                }),
            Self::Stp(stp) => net.host_with(|node| {
                let sender = BulkSender::<XstpStream>::new(start, bytes, TAG);
                Host::new(Xstp::client(node, stp, server), sender)
            }),
        }
    }

    /// A node that is `behind` hops after the gateway's position.
    fn node(&self, net: &mut Network, sources: &[NodeId], behind: Option<usize>) -> NodeId {
        let sources = sources.iter().copied();
        match (self, behind) {
            (Self::SplitTcp(near, far), Some(0)) => net.gateway_with(|node| {
                Split::new(Tcp::gateway(node, near), Tcp::gateway(node, far), sources)
            }),
            (Self::SplitStp(near, far) | Self::ThreeSegments(near, far, _), Some(0)) => net
                .gateway_with(|node| {
                    Split::new(Tcp::gateway(node, near), Xstp::gateway(node, far), sources)
                }),
            (Self::ThreeSegments(_, near, far), Some(1)) => net.gateway_with(|node| {
                Split::new(Xstp::gateway(node, near), Tcp::gateway(node, far), sources)
            }),
            (
                Self::Tcp(_)
                | Self::Stp(_)
                | Self::SplitTcp(..)
                | Self::SplitStp(..)
                | Self::ThreeSegments(..),
                _,
            ) => net.router(),
        }
    }
}

/// The network with all nodes.
struct Rig {
    net: Network,
    sink: NodeId,
    sources: Vec<NodeId>,
    gateway: Option<NodeId>,
    hops: Vec<LinkId>,
    constant: Option<NodeId>,
    began: Instant,
}

impl Rig {
    fn new(files: &Files) -> Self {
        let mut net = Network::new(files.seed, files.run);
        let sink = files.carriage.sink(&mut net);
        let server = Address::new(sink, PORT);
        let mut rng = net.rng("files/start");
        let starts: Vec<Instant> = (0..u64::from(files.flows))
            .map(|flow| Instant::ZERO + files.stagger * flow + part(files.chance, rng.uniform()))
            .collect();
        let source = |&start| files.carriage.source(&mut net, server, start, files.bytes);
        let sources: Vec<NodeId> = starts.iter().map(source).collect();
        let node =
            |hop: usize| files.carriage.node(&mut net, &sources, hop.checked_sub(files.gateway));
        let mut nodes: Vec<NodeId> = (0..files.hops.len()).map(node).collect();
        let end = net.router();
        nodes.push(end);
        for &source in &sources {
            net.link(source, nodes[0], &files.access);
        }
        let joined = nodes.windows(2).zip(&files.hops);
        let hops = joined.map(|(ends, hop)| net.link(ends[0], ends[1], hop)).collect();
        net.link(end, sink, &LinkConfig::default());
        let gateway = nodes.get(files.gateway).copied();
        if let (Some(beside), Some(leaves)) = (&files.beside, gateway) {
            put_beside(&mut net, beside, [nodes[0], leaves], files.until);
        }
        if files.background_bps > 0.0 {
            put_background(&mut net, files, [nodes[0], end]);
        }
        let constant = files.constant.map(|rate| put_constant(&mut net, rate, [nodes[0], end]));
        let began = starts.first().copied().unwrap_or(Instant::ZERO);
        Self { net, sink, sources, gateway, hops, constant, began }
    }

    fn carried(self, files: &Files, done: bool) -> FilesReport {
        let (net, carriage) = (&self.net, &files.carriage);
        let last = carriage.last(net, self.sink);
        let counters = |&hop: &LinkId, direction| net.line(hop).counters(direction).clone();
        let forward: Vec<_> =
            self.hops.iter().map(|hop| counters(hop, Direction::Forward)).collect();
        let sent = |hop| [Direction::Forward, Direction::Return].map(|way| counters(hop, way).sent);
        let [timeouts, recoveries] = self.found(carriage);
        FilesReport {
            took: last.filter(|_| done).map(|last| last.since(self.began)),
            bytes: carriage.received(net, self.sink),
            arrived: carriage.arrived(net, self.sink),
            began: self.began,
            ended: net.now(),
            sent: self.hops.iter().map(sent).collect(),
            fullest: forward.iter().map(|counters| counters.fullest).collect(),
            overflowed: forward
                .iter()
                .map(|counters| counters.dropped(DropCause::QueueFull).packets)
                .collect(),
            timeouts,
            recoveries,
            polls: self.polls(carriage),
            gateway_buffers: self.usage(carriage),
            constant: self.constant.map_or(0, |sink| net.node::<ConstantSink>(sink).bytes()),
        }
    }

    /// Timeouts and recoveries of the sources.
    fn found(&self, carriage: &Transports) -> [u64; 2] {
        let mut found = [0; 2];
        let mut add = |endpoint: &simtcp::Endpoint| {
            found[0] += endpoint.counters().timeouts;
            found[1] += endpoint.counters().recoveries;
        };
        for &source in &self.sources {
            match carriage {
                Transports::Tcp(_) => {
                    self.net.node::<TcpSource>(source).connections().for_each(&mut add);
                }
                Transports::SplitTcp(..)
                | Transports::SplitStp(..)
                | Transports::ThreeSegments(..) => {
                    let host = self.net.node::<TcpFrom>(source);
                    host.transport.connections().for_each(|(_, endpoint)| add(endpoint));
                }
                Transports::Stp(_) => {}
            }
        }
        found
    }

    fn usage(&self, carriage: &Transports) -> BufferUsage {
        match (carriage, self.gateway) {
            (Transports::SplitTcp(..), Some(gateway)) => self.net.node::<TcpToTcp>(gateway).usage(),
            (Transports::SplitStp(..) | Transports::ThreeSegments(..), Some(gateway)) => {
                self.net.node::<TcpToStp>(gateway).usage()
            }
            (Transports::Tcp(_) | Transports::Stp(_), _) | (_, None) => BufferUsage::default(),
        }
    }

    fn polls(&self, carriage: &Transports) -> [u64; 2] {
        let of = |stp: &Xstp| {
            stp.connections().fold([0; 2], |[all, alone], (_, connection)| {
                let seen = connection.session().statistics();
                [all + seen.polls_sent, alone + seen.polls_sent_standalone]
            })
        };
        match (carriage, self.gateway) {
            (Transports::SplitStp(..) | Transports::ThreeSegments(..), Some(gateway)) => {
                of(&self.net.node::<TcpToStp>(gateway).right)
            }
            (Transports::Stp(_), _) => of(&self.net.node::<StpFrom>(self.sources[0]).transport),
            (
                Transports::Tcp(_)
                | Transports::SplitTcp(..)
                | Transports::SplitStp(..)
                | Transports::ThreeSegments(..),
                _,
            ) => [0; 2],
        }
    }
}

fn put_beside(net: &mut Network, beside: &CrossTraffic, ends: [NodeId; 2], until: Span) {
    let sink = net.host(TcpSink::new(beside.tcp.clone(), PORT));
    let mut rng = net.rng("files/beside");
    let plan = |_| FlowPlan {
        start: Instant::ZERO + part(Span::from_secs(1), rng.uniform()),
        stop: Some(Instant::ZERO + until),
        bytes: u64::MAX,
        to: Address::new(sink, PORT),
        tcp: beside.tcp.clone(),
    };
    let plans = (0..beside.flows).map(plan).collect();
    let source = net.host_with(|node| TcpSource::new(node, plans));
    net.link(source, ends[0], &beside.access);
    net.link(ends[1], sink, &beside.access);
}

/// Short files with exponential interarrival times and the sizes of secondary replies in the
/// traces.
fn put_background(net: &mut Network, files: &Files, ends: [NodeId; 2]) {
    let tcp = TcpConfig::sack_new_reno();
    let sink = net.host(TcpSink::new(tcp.clone(), PORT));
    let mut rng = net.rng("files/background");
    let mean_gap = Span::from_secs_f64(MEAN_REPLY * 8.0 / files.background_bps);
    let (mut plans, mut at) = (Vec::new(), Instant::ZERO);
    loop {
        at += rng.exponential_span(mean_gap);
        if at >= Instant::ZERO + files.until || plans.len() >= MOST_FLOWS {
            break;
        }
        let bytes = mah::draw(mah::Size::SecondaryReply, &mut rng);
        let to = Address::new(sink, PORT);
        plans.push(FlowPlan { start: at, stop: None, bytes, to, tcp: tcp.clone() });
    }
    let source = net.host_with(|node| TcpSource::new(node, plans));
    net.link(source, ends[0], &LinkConfig::default());
    net.link(ends[1], sink, &LinkConfig::default());
}

/// UDP with iperf's 1,470 octets; returns the receiver.
fn put_constant(net: &mut Network, rate: BitRate, ends: [NodeId; 2]) -> NodeId {
    let plan =
        ConstantRate { rate, packet: 1_498, from: Instant::ZERO, until: Instant::FAR_FUTURE };
    let sink = net.host(ConstantSink::new());
    let to = Address::new(sink, PORT);
    let source = net.host(ConstantSource::new(plan, PORT, to));
    net.link(source, ends[0], &LinkConfig::default());
    net.link(ends[1], sink, &LinkConfig::default());
    sink
}

fn part(span: Span, share: f64) -> Span {
    Span::from_secs_f64(span.as_secs_f64() * share)
}

/// Mean octets of a secondary reply.
const MEAN_REPLY: f64 = 6_868.0;
/// Maximum number of background files.
const MOST_FLOWS: usize = 40_000;

#[cfg(test)]
mod tests;
