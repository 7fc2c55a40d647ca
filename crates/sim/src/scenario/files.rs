//! Files over a chain of links: end to end, or split at gateways; alone, or beside others.
//!
//! ```text
//!  source ─ access ─┐                     gateways, if any: before hops[gateway], and behind it
//!  source ─ access ─┴ first ── hops[0] ── node ── hops[1] ── node ── … ── end ─ sink
//!  other's source ──────┘                  └── other's sink, before hops[gateway]
//! ```
//!
//! What the satellite papers measured with hosts, routers and emulators.

use crate::host::{BulkReceiver, BulkSender, Host, Tcp, TcpId, Xstp, XstpStream};
use crate::network::{Address, LinkId, NodeId};
use crate::pep::{BufferNeed, Split};
use crate::tcp::{FlowPlan, TcpSink, TcpSource};
use crate::traffic::{ConstantRate, ConstantSink, ConstantSource, mah};
use crate::{Meter, Network};
use satlink::{Direction, DropCause, LinkConfig, Tally};
use simtcp::TcpConfig;
use units::{BitRate, Instant, Span};
use xstp::session::SessionConfig;

/// Who carries the files.
#[derive(Clone, Debug)]
pub enum Carriage {
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

/// Others on the hops before the gateway: flows without end.
#[derive(Clone, Debug)]
pub struct Beside {
    /// Their TCP.
    pub tcp: TcpConfig,
    /// How many.
    pub flows: u32,
    /// What joins each end of theirs.
    pub access: LinkConfig,
}

/// What is to be carried, and over what.
#[derive(Clone, Debug)]
pub struct Files {
    /// By whom.
    pub carriage: Carriage,
    /// How many at once.
    pub flows: u32,
    /// Bytes of each; `u64::MAX`: without end.
    pub bytes: u64,
    /// What joins each source to the first node; forward is away from the source.
    pub access: LinkConfig,
    /// From there to the sink.
    pub hops: Vec<LinkConfig>,
    /// Before which of the hops the gateway stands, and others leave.
    pub gateway: usize,
    /// Others before the gateway.
    pub beside: Option<Beside>,
    /// Bits per second, on average, of short files of the web beside them, all the way.
    pub background_bps: f64,
    /// UDP at a constant rate beside them, all the way.
    pub constant: Option<BitRate>,
    /// Each begins so much after the one before it.
    pub stagger: Span,
    /// Up to which chance delays the first one, and each of the others.
    pub chance: Span,
    /// When it is over at the latest.
    pub until: Span,
    /// With `run` the source of all chance.
    pub seed: u64,
    /// The replication.
    pub run: u64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Carried {
    /// From the first file's beginning to the last byte of the last; `None`: not in time.
    pub took: Option<Span>,
    /// Bytes in order at the sink, of all files.
    pub bytes: u64,
    /// The same by time; together they are all files.
    pub arrived: Vec<Meter>,
    /// When the first file began.
    pub began: Instant,
    /// When it was over.
    pub ended: Instant,
    /// Put on air on each hop, forward and in return.
    pub sent: Vec<[Tally; 2]>,
    /// The fullest that each hop's forward queue was.
    pub fullest: Vec<Tally>,
    /// Packets that did not fit into each hop's forward queue.
    pub overflowed: Vec<u64>,
    /// Timeouts of the sources.
    pub timeouts: u64,
    /// Losses that the sources found without a timeout, a window counting once.
    pub recoveries: u64,
    /// POLLs of the satellite segment, and those of them that were alone.
    pub polls: [u64; 2],
    /// The memory that the first gateway needed.
    pub need: BufferNeed,
    /// Bytes of UDP's packets that came, headers and all.
    pub constant: u64,
}

impl Carried {
    /// Bytes in order by `at`.
    pub fn bytes_by(&self, at: Instant) -> u64 {
        self.arrived.iter().map(|meter| meter.between(Instant::ZERO, at).bytes).sum()
    }

    /// Bit/s of what came after so much time.
    pub fn rate_after(&self, settled: Span) -> f64 {
        let from = Instant::ZERO + settled;
        let bytes = self.bytes - self.bytes_by(from);
        bytes as f64 * 8.0 / self.ended.since(from).as_secs_f64()
    }
}

/// Where sinks listen.
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
    /// Carries them.
    ///
    /// # Panics
    /// When a byte is not the one that was sent, or a link makes no sense.
    pub fn carry(&self) -> Carried {
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

impl Carriage {
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

    /// A node so many hops behind the gateway's place.
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

/// The network with all that is in it.
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

    fn carried(self, files: &Files, done: bool) -> Carried {
        let (net, carriage) = (&self.net, &files.carriage);
        let last = carriage.last(net, self.sink);
        let counters = |&hop: &LinkId, direction| net.line(hop).counters(direction).clone();
        let forward: Vec<_> =
            self.hops.iter().map(|hop| counters(hop, Direction::Forward)).collect();
        let sent = |hop| [Direction::Forward, Direction::Return].map(|way| counters(hop, way).sent);
        let [timeouts, recoveries] = self.found(carriage);
        Carried {
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
            need: self.need(carriage),
            constant: self.constant.map_or(0, |sink| net.node::<ConstantSink>(sink).bytes()),
        }
    }

    /// Timeouts and recoveries of the sources.
    fn found(&self, carriage: &Carriage) -> [u64; 2] {
        let mut found = [0; 2];
        let mut add = |endpoint: &simtcp::Endpoint| {
            found[0] += endpoint.counters().timeouts;
            found[1] += endpoint.counters().recoveries;
        };
        for &source in &self.sources {
            match carriage {
                Carriage::Tcp(_) => {
                    self.net.node::<TcpSource>(source).connections().for_each(&mut add);
                }
                Carriage::SplitTcp(..) | Carriage::SplitStp(..) | Carriage::ThreeSegments(..) => {
                    let host = self.net.node::<TcpFrom>(source);
                    host.transport.connections().for_each(|(_, endpoint)| add(endpoint));
                }
                Carriage::Stp(_) => {}
            }
        }
        found
    }

    fn need(&self, carriage: &Carriage) -> BufferNeed {
        match (carriage, self.gateway) {
            (Carriage::SplitTcp(..), Some(gateway)) => self.net.node::<TcpToTcp>(gateway).need(),
            (Carriage::SplitStp(..) | Carriage::ThreeSegments(..), Some(gateway)) => {
                self.net.node::<TcpToStp>(gateway).need()
            }
            (Carriage::Tcp(_) | Carriage::Stp(_), _) | (_, None) => BufferNeed::default(),
        }
    }

    fn polls(&self, carriage: &Carriage) -> [u64; 2] {
        let of = |stp: &Xstp| {
            stp.connections().fold([0; 2], |[all, alone], (_, connection)| {
                let seen = connection.session().statistics();
                [all + seen.polls_sent, alone + seen.polls_sent_standalone]
            })
        };
        match (carriage, self.gateway) {
            (Carriage::SplitStp(..) | Carriage::ThreeSegments(..), Some(gateway)) => {
                of(&self.net.node::<TcpToStp>(gateway).right)
            }
            (Carriage::Stp(_), _) => of(&self.net.node::<StpFrom>(self.sources[0]).transport),
            (
                Carriage::Tcp(_)
                | Carriage::SplitTcp(..)
                | Carriage::SplitStp(..)
                | Carriage::ThreeSegments(..),
                _,
            ) => [0; 2],
        }
    }
}

fn put_beside(net: &mut Network, beside: &Beside, ends: [NodeId; 2], until: Span) {
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

/// Short files at exponential distances, as large as secondary replies of the traces.
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

/// UDP with iperf's 1,470 bytes; returns who gets it.
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

/// Bytes of a secondary reply on average.
const MEAN_REPLY: f64 = 6_868.0;
/// Background files at most.
const MOST_FLOWS: usize = 40_000;

#[cfg(test)]
mod tests;
