//! Annex 2, table 3 as a measured matrix: the gain of each enhancement under each impairment over
//! the same TCP without it.
//!
//! ```text
//!   server ─ LAN ─ node ══ satellite, 520 ms ══ node ─ LAN ─ client
//! ```

use super::super::network::limited;
use super::super::{Draw, Values};
use super::bench::space;
use satlink::{
    Direction, DirectionConfig, Discipline, Jitter, Limit, LinkConfig, QueueConfig, Red,
};
use sim::Network;
use sim::host::{Host, Tcp, TcpId, Xstp};
use sim::network::{Address, NodeId};
use sim::pep::{
    AckRebuilder, AckSpacer, HeaderCompressor, HeaderDecompressor, Inline, Shaper, Split,
    SpoofConfig, Spoofer, TokenBucket, Toward,
};
use sim::traffic::{Client, ConnectionPlan, Exchange, Order, Server, Start};
use simtcp::{AfterIdle, DelayedAck, InitialWindow, Opening, RecoveryKind, TcpConfig, WindowKind};
use units::{BitRate, Instant, RngStream, Span};

/// An impairment for TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Impairment {
    /// A file of 200 kbytes over 520 ms and 2 Mbit/s; measured is the transfer time.
    Latency,
    /// 10 Mbit/s over 520 ms; measured is the throughput over 40 s.
    Product,
    /// 2 Mbit/s with a bit error ratio of 1e-6, for 200 s.
    Errors,
    /// 10 Mbit/s behind a router with a queue of 50 packets instead of one bandwidth-delay product.
    Queue,
    /// 10 Mbit/s with a return path of 32 kbit/s and a queue of 20 packets.
    Return,
    /// Eight connections over 10 Mbit/s.
    Sessions,
}

impl Impairment {
    pub(super) const ALL: [Self; 6] =
        [Self::Latency, Self::Product, Self::Errors, Self::Queue, Self::Return, Self::Sessions];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Product => "large product",
            Self::Errors => "link errors",
            Self::Queue => "short queue",
            Self::Return => "small return",
            Self::Sessions => "eight sessions",
        }
    }

    fn kbps(self) -> u64 {
        match self {
            Self::Latency | Self::Errors => 2_000,
            Self::Product | Self::Queue | Self::Return | Self::Sessions => 10_000,
        }
    }

    fn flows(self) -> u32 {
        if self == Self::Sessions { 8 } else { 1 }
    }

    /// Returns the router's queue in packets: one bandwidth-delay product, except for the short
    /// queue.
    fn queue(self) -> u64 {
        match self {
            Self::Latency | Self::Errors => 87,
            Self::Product | Self::Return | Self::Sessions => 433,
            Self::Queue => 50,
        }
    }

    fn until(self) -> Span {
        match self {
            Self::Latency | Self::Errors => Span::from_secs(200),
            Self::Product | Self::Queue | Self::Return | Self::Sessions => Span::from_secs(40),
        }
    }

    /// Returns the time of a full packet on the satellite link.
    fn packet_time(self) -> Span {
        BitRate::from_kbps(self.kbps()).time_for(1_500)
    }
}

/// The nodes at the ends of the satellite link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Middle {
    Routers,
    Compressors,
    Two,
    Three,
    Spoofer,
    Filter,
    /// Acknowledgements are spaced at the server's end.
    Spacer,
    /// Filtered at the client's end, regenerated and spaced at the server's.
    Rebuilder,
}

/// The satellite link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Bare,
    /// A code uses 8 % of the rate and leaves no errors.
    Coded,
    /// The router drops early (RED).
    Red,
    /// The router marks early (RED with ECN).
    Marks,
}

/// One side of a comparison.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) tcp: TcpConfig,
    pub(super) middle: Middle,
    pub(super) line: Line,
    /// Whether the file is sent on a connection that was idle, instead of a new one.
    pub(super) kept: bool,
    /// File size in octets.
    pub(super) file: u64,
    /// Bit error ratio of the impairment by errors.
    pub(super) ratio: f64,
    /// Duration of continuous transfers in seconds; `None` for the impairment's default.
    pub(super) seconds: Option<u64>,
}

/// An enhancement: the cases with and without it.
#[derive(Debug)]
pub(super) struct Enhancement {
    pub(super) name: &'static str,
    pub(super) with: Case,
    pub(super) without: Case,
}

/// Window of the hosts in octets: 1.5 bandwidth-delay products of 10 Mbit/s and 520 ms, which a
/// queue of one product can hold.
const WINDOW: u64 = 975_000;
/// Octets of the file, and of the response of a transaction, which T/TCP is designed for.
const FILE: u64 = 200_000;
const ANSWER: u64 = 1_000;
const PORT: u16 = 80;
/// Start of the second request, or idle time of a connection.
const LATER: Span = Span::from_secs(20);
/// Replications of each case. Transfers begin within one step of the hosts' slow clock, and packets
/// leave the server's network up to a packet's time late: without either a run is deterministic, and
/// its result a matter of phase.
pub(super) const OFTEN: u32 = 10;
const SLOW_CLOCK: Span = Span::from_millis(500);

/// Returns a TCP of 1999 without enhancements: Reno with an initial window of one segment; windows
/// do not limit it.
pub(super) fn reno() -> TcpConfig {
    TcpConfig {
        initial_window: InitialWindow::Segments(1),
        slow_start_limit: Some(1),
        byte_counting: false,
        limited_transmit: false,
        send_buffer: 2 * WINDOW,
        receive_buffer: WINDOW,
        ..TcpConfig::reno()
    }
}

pub(super) fn case(tcp: TcpConfig) -> Case {
    Case {
        tcp,
        middle: Middle::Routers,
        line: Line::Bare,
        kept: false,
        file: FILE,
        ratio: 1e-6,
        seconds: None,
    }
}

pub(super) fn plain() -> Case {
    case(reno())
}

pub(super) fn vegas() -> TcpConfig {
    TcpConfig { recovery: RecoveryKind::Vegas, window: WindowKind::Vegas, ..reno() }
}

/// Returns a case with early dropping, or marking with ECN.
pub(super) fn early(line: Line, ecn: bool) -> Case {
    Case { line, ..case(TcpConfig { ecn, ..reno() }) }
}

/// Returns a TCP without path MTU discovery.
pub(super) fn short() -> TcpConfig {
    TcpConfig { max_segment: 536, ..reno() }
}

/// Returns a TCP without window scaling.
pub(super) fn unscaled() -> TcpConfig {
    TcpConfig { window_scale: false, receive_buffer: 65_535, ..reno() }
}

/// Returns a TCP with appropriate byte counting.
pub(super) fn counting(tcp: &TcpConfig) -> TcpConfig {
    TcpConfig { slow_start_limit: Some(2), byte_counting: true, ..tcp.clone() }
}

/// Returns a TCP that acknowledges each segment.
pub(super) fn prompt() -> TcpConfig {
    TcpConfig { delayed_ack: DelayedAck::OFF, ..reno() }
}

fn by_tcp(name: &'static str, with: TcpConfig) -> Enhancement {
    Enhancement { name, with: case(with), without: plain() }
}

fn by_middle(name: &'static str, middle: Middle) -> Enhancement {
    Enhancement { name, with: Case { middle, ..plain() }, without: plain() }
}

/// Returns the enhancements of table 3 in its order, then those of annex 2's sections 3 and 4.
pub(super) fn all() -> Vec<Enhancement> {
    let kept = |after_idle| Case { kept: true, ..case(TcpConfig { after_idle, ..reno() }) };
    vec![
        by_tcp(
            "larger initial window",
            TcpConfig { initial_window: InitialWindow::Rfc3390, ..reno() },
        ),
        by_tcp("byte counting", counting(&reno())),
        Enhancement { name: "window scaling", with: plain(), without: case(unscaled()) },
        Enhancement {
            name: "pacing",
            with: {
                let paced = kept(AfterIdle::Paced);
                Case { tcp: TcpConfig { pacing: true, ..paced.tcp.clone() }, ..paced }
            },
            without: kept(AfterIdle::SlowStart),
        },
        by_tcp("Vegas", vegas()),
        Enhancement { name: "delayed acknowledgements", with: plain(), without: case(prompt()) },
        Enhancement {
            name: "ECN",
            with: early(Line::Marks, true),
            without: early(Line::Red, false),
        },
        by_middle("header compression", Middle::Compressors),
        Enhancement { name: "path MTU discovery", with: plain(), without: case(short()) },
        Enhancement {
            name: "T/TCP",
            with: Case {
                file: ANSWER,
                ..case(TcpConfig { opening: Opening::Transaction, ..reno() })
            },
            without: Case { file: ANSWER, ..plain() },
        },
        Enhancement { name: "FEC", with: Case { line: Line::Coded, ..plain() }, without: plain() },
        by_tcp("SACK", TcpConfig { recovery: RecoveryKind::SackNewReno, sack: true, ..reno() }),
        by_middle("two segments", Middle::Two),
        by_middle("three segments, XSTP", Middle::Three),
        by_middle("spoofing", Middle::Spoofer),
        by_middle("acknowledgements filtered", Middle::Filter),
        by_middle("acknowledgements spaced", Middle::Spacer),
        by_middle("acknowledgements filtered, regenerated and spaced", Middle::Rebuilder),
    ]
}

pub(super) fn key(name: &str, with: bool, impairment: Impairment) -> String {
    let side = if with { "with" } else { "without" };
    format!("{name}/{side}/{}", impairment.name())
}

type Asks = Host<Tcp, Client<TcpId>>;

impl Case {
    /// Runs the case; the score is in files per minute or kbit/s.
    pub(super) fn run(&self, impairment: Impairment, draw: &Draw) -> Result<Values, String> {
        let mut net = Network::new(draw.seed, draw.run);
        let server = net.host_with(|node| {
            Host::new(Tcp::server(node, &self.tcp, PORT), Server::<TcpId>::new())
        });
        let mut rng = RngStream::new(draw.seed, draw.run, "itu-s1711: enhancements");
        let first = Instant::ZERO + Span::from_secs_f64(SLOW_CLOCK.as_secs_f64() * rng.uniform());
        let plans = self.plans(impairment, first);
        let client = net.host_with(|node| {
            let to = Address::new(server, PORT);
            Host::new(Tcp::client(node, &self.tcp, to), Client::<TcpId>::new(plans))
        });
        let [near, far] = self.nodes(&mut net, impairment, server);
        net.link(server, near, &lan(impairment.packet_time()));
        net.link(near, far, &self.line(impairment));
        net.link(far, client, &lan(Span::ZERO));
        let until = self.seconds.map_or(impairment.until(), Span::from_secs);
        net.run_until(Instant::ZERO + until);
        let seen = &net.node::<Asks>(client).application;
        let score = match impairment {
            Impairment::Latency => {
                let last = seen.exchanged().last().ok_or("nothing was asked")?;
                let done = last.done.ok_or("the file did not come")?;
                let held = if self.kept { LATER } else { Span::ZERO };
                60.0 / (done.since(last.asked) - held).as_secs_f64()
            }
            Impairment::Product
            | Impairment::Errors
            | Impairment::Queue
            | Impairment::Return
            | Impairment::Sessions => {
                let came = seen.received().between(Instant::ZERO, Instant::ZERO + until).bytes;
                came as f64 * 8.0 / 1e3 / until.as_secs_f64()
            }
        };
        Ok(Values::new().with("score", score))
    }

    fn plans(&self, impairment: Impairment, first: Instant) -> Vec<ConnectionPlan> {
        let file = Exchange { request: 300, response: self.file };
        match impairment {
            Impairment::Latency if self.kept => vec![ConnectionPlan {
                held: LATER,
                ..ConnectionPlan::new(Start::At(first), Order::OneByOne, vec![file; 2])
            }],
            Impairment::Latency => {
                [Span::ZERO, LATER].map(|start| ConnectionPlan::single(first + start, file)).into()
            }
            Impairment::Product
            | Impairment::Errors
            | Impairment::Queue
            | Impairment::Return
            | Impairment::Sessions => {
                let endless = Exchange { request: 300, response: 1 << 40 };
                let start = |flow| first + Span::from_millis(37) * u64::from(flow);
                (0..impairment.flows())
                    .map(|flow| ConnectionPlan::single(start(flow), endless))
                    .collect()
            }
        }
    }

    fn line(&self, impairment: Impairment) -> LinkConfig {
        let rate = BitRate::from_kbps(impairment.kbps());
        let packets = Limit::Packets;
        let red = |mark| {
            Discipline::Red(Red {
                lower: packets(impairment.queue() / 4),
                upper: packets(impairment.queue() * 3 / 4),
                largest_probability: 0.1,
                weight: 0.002,
                mark,
                gentle: false,
            })
        };
        let discipline = match self.line {
            Line::Bare | Line::Coded => Discipline::DropTail,
            Line::Red => red(false),
            Line::Marks => red(true),
        };
        let coded = self.line == Line::Coded;
        let errors = impairment == Impairment::Errors && !coded;
        let mut link = LinkConfig::symmetric(DirectionConfig {
            rate: Some(if coded { rate.mul_ratio(188, 204) } else { rate }),
            delay: Span::from_millis(260),
            bit_error_ratio: if errors { self.ratio } else { 0.0 },
            queue: QueueConfig { limit: packets(impairment.queue()), discipline },
            ..DirectionConfig::default()
        });
        if impairment == Impairment::Return {
            let back = link.direction_mut(Direction::Return);
            back.rate = Some(RETURN);
            back.queue = QueueConfig { limit: packets(20), ..QueueConfig::default() };
        }
        link
    }

    /// Creates the nodes at the ends of the satellite link, the server's first.
    fn nodes(&self, net: &mut Network, impairment: Impairment, server: NodeId) -> [NodeId; 2] {
        let (lefts, lan) = ([server], wide(WINDOW));
        let product = BitRate::from_kbps(impairment.kbps()).bytes_in(Span::from_millis(520));
        match self.middle {
            Middle::Routers => [net.router(), net.router()],
            Middle::Compressors => {
                let near =
                    (HeaderCompressor::new(Toward::Right), HeaderDecompressor::new(Toward::Left));
                let far =
                    (HeaderDecompressor::new(Toward::Right), HeaderCompressor::new(Toward::Left));
                let near = net.gateway_with(|_| Inline::new(near, lefts));
                [near, net.gateway_with(|_| Inline::new(far, lefts))]
            }
            Middle::Two => {
                let far = wide(2 * product);
                let near = net.gateway_with(|node| {
                    Split::new(Tcp::gateway(node, &lan), Tcp::gateway(node, &far), lefts)
                });
                [near, net.router()]
            }
            Middle::Three => {
                let space = space(impairment.kbps(), impairment.flows(), product.max(65_536));
                let near = net.gateway_with(|node| {
                    Split::new(Tcp::gateway(node, &lan), Xstp::gateway(node, &space), lefts)
                });
                let far = net.gateway_with(|node| {
                    Split::new(Xstp::gateway(node, &space), Tcp::gateway(node, &lan), lefts)
                });
                [near, far]
            }
            Middle::Spoofer => {
                let share = product / u64::from(impairment.flows());
                let config =
                    SpoofConfig { memory: 3 * share, window: share, timeout: Span::from_secs(1) };
                // Spoofing requires a link that belongs to the gateway, which keeps to its rate.
                let rate = BitRate::from_kbps(impairment.kbps()).mul_ratio(98, 100);
                let bucket = TokenBucket { rate, bucket: 3_000, limit: 1 << 24 };
                let pair =
                    (Spoofer::new(config, Toward::Right), Shaper::new(bucket, Toward::Right));
                let near = net.gateway_with(|_| Inline::new(pair, lefts));
                [near, net.router()]
            }
            Middle::Filter => {
                [net.router(), net.gateway_with(|_| Inline::new(filter(impairment), lefts))]
            }
            Middle::Spacer => {
                let near = net.gateway_with(|_| Inline::new(spacer(impairment), lefts));
                [near, net.router()]
            }
            Middle::Rebuilder => {
                let stride = 2 * u64::from(self.tcp.max_segment);
                let rebuilder = AckRebuilder::new(Toward::Left, stride, MOST_ACKS);
                let pair = (spacer(impairment), rebuilder);
                let near = net.gateway_with(|_| Inline::new(pair, lefts));
                [near, net.gateway_with(|_| Inline::new(filter(impairment), lefts))]
            }
        }
    }
}

/// Maximum number of acknowledgements regenerated at a time, or waiting for their time.
const MOST_ACKS: u64 = 1_000;

/// Returns a queue before the return link that keeps the latest acknowledgements.
fn filter(impairment: Impairment) -> Shaper {
    let rate = match impairment {
        Impairment::Return => RETURN,
        Impairment::Latency
        | Impairment::Product
        | Impairment::Errors
        | Impairment::Queue
        | Impairment::Sessions => BitRate::from_kbps(impairment.kbps()),
    };
    // Slightly less than the link rate, so that the queue builds up here.
    let config = TokenBucket { rate: rate.mul_ratio(98, 100), bucket: 1_500, limit: 64_000 };
    Shaper::new(config, Toward::Left).filtering_acks()
}

/// Returns a spacer by the time in which the link transmits two packets.
fn spacer(impairment: Impairment) -> AckSpacer {
    AckSpacer::new(Toward::Left, impairment.packet_time() * 2, MOST_ACKS as usize)
}

/// Rate of the low-rate return path.
const RETURN: BitRate = BitRate::from_kbps(32);

/// Returns the TCP of a gateway's sides: with SACK and this window.
fn wide(window: u64) -> TcpConfig {
    TcpConfig { send_buffer: window, receive_buffer: window, ..TcpConfig::sack() }
}

/// Returns a network of 100 Mbit/s whose packets are up to `late` late, in order.
fn lan(late: Span) -> LinkConfig {
    let delay = Span::from_micros(500) + late / 2;
    let link = limited(BitRate::from_mbps(100), delay, Limit::Packets(1 << 16));
    LinkConfig::symmetric(DirectionConfig { jitter: Jitter::Uniform(late / 2), ..link })
}
