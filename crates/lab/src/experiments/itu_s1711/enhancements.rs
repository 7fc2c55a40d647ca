//! Annex 2, table 3 as a measured matrix: the gain of each enhancement under each impairment over
//! the same TCP without it.
//!
//! ```text
//!   server ─ LAN ─ node ══ satellite, 520 ms ══ node ─ LAN ─ client
//! ```

mod nodes;

use super::super::{Draw, Values};
use nodes::{RETURN, lan};
use satlink::{Direction, DirectionConfig, Discipline, Limit, LinkConfig, QueueConfig, Red};
use sim::Network;
use sim::host::{Host, Tcp, TcpId};
use sim::network::{Address, NodeId};
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

    /// Returns the product of rate and round trip in octets.
    fn product(self) -> u64 {
        BitRate::from_kbps(self.kbps()).bytes_in(Span::from_millis(520))
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
    /// Whether what is measured is sent on a connection that was idle, instead of a new one.
    pub(super) kept: bool,
    /// File size in octets.
    pub(super) file: u64,
    /// Bit error ratio of the impairment by errors.
    pub(super) ratio: f64,
    /// Duration of continuous transfers in seconds; `None` for the impairment's default.
    pub(super) seconds: Option<u64>,
    /// Largest window of the hosts in bandwidth-delay products of the satellite link.
    pub(super) products: f64,
    /// Rate of the return path in kbit/s; `None` for the impairment's.
    pub(super) back: Option<u64>,
}

/// An enhancement: the cases with and without it.
#[derive(Debug)]
pub(super) struct Enhancement {
    pub(super) name: &'static str,
    pub(super) with: Case,
    pub(super) without: Case,
}

/// Largest window of the hosts in bandwidth-delay products: a queue of one product can hold it.
const PRODUCTS: f64 = 1.5;
/// Products that a connection transfers before it is idle: enough to open its window.
const BEFORE: u64 = 10;
/// Largest window that a configuration may have.
const UNLIMITED: u64 = (1 << 30) - 1;
/// Octets of the file, and of the response of a transaction, which T/TCP is designed for.
const FILE: u64 = 200_000;
const ANSWER: u64 = 1_000;
const PORT: u16 = 80;
/// Start of the second request, or idle time of a connection.
const LATER: Span = Span::from_secs(20);
/// Seconds within which connections have to be idle.
const LONGEST: u64 = 1_000;
/// Replications of each case. Transfers begin within one step of the hosts' slow clock, and packets
/// leave the server's network up to a packet's time late: without either a run is deterministic, and
/// its result a matter of phase.
pub(super) const OFTEN: u32 = 10;
const SLOW_CLOCK: Span = Span::from_millis(500);

/// Returns a TCP of 1999 without enhancements: Reno with an initial window of one segment; a case
/// limits its windows.
pub(super) fn reno() -> TcpConfig {
    TcpConfig {
        initial_window: InitialWindow::Segments(1),
        slow_start_limit: Some(1),
        byte_counting: false,
        limited_transmit: false,
        receive_buffer: UNLIMITED,
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
        products: PRODUCTS,
        back: None,
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
    /// Returns the TCP with windows of that many products.
    fn tcp_over(&self, impairment: Impairment) -> TcpConfig {
        let window = (impairment.product() as f64 * self.products) as u64;
        let receive_buffer = self.tcp.receive_buffer.min(window);
        TcpConfig { send_buffer: 2 * window, receive_buffer, ..self.tcp.clone() }
    }

    /// Runs the case; the score is in files per minute or kbit/s.
    pub(super) fn run(&self, impairment: Impairment, draw: &Draw) -> Result<Values, String> {
        let mut net = Network::new(draw.seed, draw.run);
        let tcp = self.tcp_over(impairment);
        let server =
            net.host_with(|node| Host::new(Tcp::server(node, &tcp, PORT), Server::<TcpId>::new()));
        let mut rng = RngStream::new(draw.seed, draw.run, "itu-s1711: enhancements");
        let first = Instant::ZERO + Span::from_secs_f64(SLOW_CLOCK.as_secs_f64() * rng.uniform());
        let plans = self.plans(impairment, first);
        let flows = plans.len();
        let client = net.host_with(|node| {
            let to = Address::new(server, PORT);
            Host::new(Tcp::client(node, &tcp, to), Client::<TcpId>::new(plans))
        });
        let [near, far] = self.nodes(&mut net, impairment, server);
        net.link(server, near, &lan(impairment.packet_time()));
        net.link(near, far, &self.line(impairment));
        net.link(far, client, &lan(Span::ZERO));
        let span = self.seconds.map_or(impairment.until(), Span::from_secs);
        let is_file = impairment == Impairment::Latency;
        let from = match self.kept && !is_file {
            true => restarts(&mut net, client, flows)?,
            false => Instant::ZERO,
        };
        net.run_until(from + span);
        let seen = &net.node::<Asks>(client).application;
        let score = if is_file {
            let last = seen.exchanged().last().ok_or("nothing was asked")?;
            let done = last.done.ok_or("the file did not come")?;
            let held = if self.kept { LATER } else { Span::ZERO };
            60.0 / (done.since(last.asked) - held).as_secs_f64()
        } else {
            let came = seen.received().between(from, from + span).bytes;
            came as f64 * 8.0 / 1e3 / span.as_secs_f64()
        };
        Ok(Values::new().with("score", score))
    }

    fn plans(&self, impairment: Impairment, first: Instant) -> Vec<ConnectionPlan> {
        let exchange = |response| Exchange { request: 300, response };
        let idle = |start, both: [u64; 2]| {
            let both = both.map(exchange).into();
            let plan = ConnectionPlan::new(Start::At(start), Order::OneByOne, both);
            ConnectionPlan { held: LATER, ..plan }
        };
        let single = |start, bytes| ConnectionPlan::single(start, exchange(bytes));
        if impairment == Impairment::Latency {
            return match self.kept {
                true => vec![idle(first, [self.file; 2])],
                false => [Span::ZERO, LATER].map(|start| single(first + start, self.file)).into(),
            };
        }
        let (before, endless) = (BEFORE * impairment.product(), 1 << 40);
        let start = |flow| first + Span::from_millis(37) * u64::from(flow);
        (0..impairment.flows())
            .map(|flow| match self.kept {
                true => idle(start(flow), [before, endless]),
                false => single(start(flow), endless),
            })
            .collect()
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
        let back = self.back.map(BitRate::from_kbps);
        if let Some(rate) = back.or((impairment == Impairment::Return).then_some(RETURN)) {
            let back = link.direction_mut(Direction::Return);
            back.rate = Some(rate);
            back.queue = QueueConfig { limit: packets(20), ..QueueConfig::default() };
        }
        link
    }
}

/// Runs until the connections have transferred what they do before they are idle; returns when
/// the last of them goes on.
fn restarts(net: &mut Network, client: NodeId, flows: usize) -> Result<Instant, String> {
    for second in 1..=LONGEST {
        net.run_until(Instant::ZERO + Span::from_secs(second));
        let done = net.node::<Asks>(client).application.exchanged().iter();
        let done: Vec<Instant> = done.filter_map(|one| one.done).collect();
        if done.len() == flows {
            return Ok(done.into_iter().max().unwrap_or(Instant::ZERO) + LATER);
        }
    }
    Err("what is sent before the pause did not come".to_owned())
}
