//! Files over the bench of figure 2: Ethernet, a router, a transit network, a gateway, a
//! satellite.
//!
//! ```text
//!   source ─ 100 Mbit/s ─ router ── 10 Mbit/s ── gateway ── 1.3 Mbit/s, satellite ── sink
//!   other's source ─────────┘                      └── other's sink
//! ```

use super::super::network::{direction, transfer};
use super::super::{Draw, Values};
use satlink::{DirectionConfig, Discipline, Jitter, Limit, LinkConfig, QueueConfig, Red};
use sim::scenario::files::{CrossTraffic, Files, Transports};
use simtcp::{RecoveryKind, TcpConfig};
use units::{BitRate, Span};
use xstp::session::SessionConfig;

/// Octets of data in a segment, for which section VI gives the ratio of acknowledgements.
const SEGMENT: u16 = 1_000;
/// File size in octets.
const FILE: u64 = 10_000_000;
/// Terrestrial part of the satellite connection's round trip. The round trip of the competing
/// connection is twice as long.
const TERRESTRIAL: Span = Span::from_millis(10);

/// Range of the delay that light traffic adds on an Ethernet: a packet waits for one frame of
/// 1,500 octets at 10 Mbit/s, or for a part of it.
const ANOTHER_FRAME: Span = Span::from_micros(1_200);

/// Round trips of figure 3 in ms.
pub(super) const ROUND_TRIPS: [u64; 8] = [20, 40, 80, 150, 200, 300, 400, 600];
/// Round trips with a competing connection in ms.
pub(super) const FEW: [u64; 5] = [40, 100, 200, 400, 600];
/// Queue lengths of the sweep in packets.
pub(super) const QUEUES: [u64; 5] = [20, 35, 75, 100, 200];

/// The transport that carries the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Reno,
    NewReno,
    SackReno,
    SackNewReno,
    /// The recovery of RFC 6675 in place of the paper's appendix.
    Rfc6675,
    SplitTcp,
    SplitStp,
}

impl Way {
    /// The transports of figure 3, the best first.
    pub(super) const FOUR: [Self; 4] =
        [Self::SackNewReno, Self::SackReno, Self::NewReno, Self::Reno];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reno => "Reno",
            Self::NewReno => "NewReno",
            Self::SackReno => "SACK-Reno",
            Self::SackNewReno => "SACK-NewReno",
            Self::Rfc6675 => "SACK by RFC 6675",
            Self::SplitTcp => "split TCP",
            Self::SplitStp => "split STP",
        }
    }

    fn carriage(self, ride_ms: u64, buffer_kb: u64) -> Transports {
        let buffer = buffer_kb << 10;
        let near = TcpConfig { receive_buffer: buffer, ..best() };
        match self {
            Self::Reno => Transports::Tcp(of_1999(TcpConfig::reno())),
            Self::NewReno => {
                Transports::Tcp(of_1999(TcpConfig { sack: false, ..TcpConfig::sack_new_reno() }))
            }
            Self::SackReno => Transports::Tcp(of_1999(TcpConfig::sack_reno())),
            Self::SackNewReno => Transports::Tcp(best()),
            Self::Rfc6675 => Transports::Tcp(TcpConfig { recovery: RecoveryKind::Sack, ..best() }),
            Self::SplitTcp => {
                Transports::SplitTcp(near, TcpConfig { send_buffer: buffer, ..best() })
            }
            Self::SplitStp => Transports::SplitStp(near, stp(SEGMENT, ride_ms)),
        }
    }
}

fn of_1999(tcp: TcpConfig) -> TcpConfig {
    TcpConfig { max_segment: SEGMENT, ..tcp.of_1999() }
}

/// Returns SACK-NewReno as configured on the paper's hosts.
pub(super) fn best() -> TcpConfig {
    of_1999(TcpConfig::sack_new_reno())
}

/// Returns STP with segments of `segment` octets and the hosts' windows. POLLs are piggybacked on
/// segments that are due within `ride_ms`; 0 disables this.
pub(super) fn stp(segment: u16, ride_ms: u64) -> SessionConfig {
    let mut config = SessionConfig::stp_1999();
    config.max_segment = usize::from(segment) + (config.max_segment - config.payload_size());
    let window = u32::try_from(best().receive_buffer / u64::from(segment)).unwrap_or(u32::MAX);
    (config.receive_window, config.initial_peer_window) = (window, window);
    let ride = Span::from_millis(ride_ms);
    (config.stp.poll_piggyback_wait, config.stp.poll_piggyback_early) = (ride, ride);
    config
}

/// Maximum time by which a POLL is advanced or delayed for piggybacking, in ms: the granularity of
/// STP's timers.
pub(super) const RIDE_MS: u64 = 10;
/// Other values of the sweep in ms.
pub(super) const RIDES_MS: [u64; 4] = [0, 2, 3, 5];
/// Buffer of a split-TCP gateway per side of a connection, in kbytes of 1,024: the hosts' windows;
/// and other values of the sweep.
pub(super) const BUFFER_KB: u64 = 240;
pub(super) const BUFFERS_KB: [u64; 5] = [48, 72, 96, 120, 144];

/// Competing traffic at the router, and its queue discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// Light traffic of other hosts on the Ethernets, as in the experiments of figure 3.
    Light,
    /// Light web traffic over the whole path, as in the simulations.
    Web,
    /// None.
    Nobody,
    /// One unlimited file over 20 ms.
    One(Router),
    /// So many of them with windows of 8 KB.
    Small(u32),
}

/// Numbers of competing connections with small windows.
pub(super) const SMALL: [u32; 3] = [4, 8, 16];
/// Their windows in octets.
const SMALL_WINDOW: u64 = 8 << 10;

/// Queue discipline of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Router {
    DropTail,
    Red,
    Fair,
}

impl Router {
    pub(super) const ALL: [Self; 3] = [Self::DropTail, Self::Red, Self::Fair];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DropTail => "drop tail",
            Self::Red => "RED",
            Self::Fair => "fair queueing",
        }
    }

    fn discipline(self, packets: u64) -> Discipline {
        match self {
            Self::DropTail => Discipline::DropTail,
            // Thresholds at 1/10 and 3/10 of the queue; drop probability 0.1 at the upper one.
            Self::Red => Discipline::Red(Red {
                lower: Limit::Packets((packets / 10).max(2)),
                upper: Limit::Packets((packets * 3 / 10).max(6)),
                largest_probability: 0.1,
                weight: 0.002,
                mark: false,
                gentle: true,
            }),
            Self::Fair => Discipline::Fair { quantum: 1_500 },
        }
    }
}

/// One file transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trial {
    pub(super) way: Way,
    pub(super) round_trip_ms: u64,
    pub(super) others: Others,
    /// Queue limit in packets.
    pub(super) queue: u64,
    pub(super) kbps: u64,
    /// Bound of the random variation of the satellite's delay in ms.
    pub(super) jitter_ms: u64,
    /// Maximum time by which POLLs are moved for piggybacking, in ms.
    pub(super) ride_ms: u64,
    /// Buffer of a gateway per side, in kbytes of 1,024.
    pub(super) buffer_kb: u64,
    /// Whether a file is sent.
    pub(super) file: bool,
}

/// Queue limit in packets: the default of a BSD interface.
pub(super) const QUEUE: u64 = 50;

impl Trial {
    /// Returns the transfer as the paper describes it.
    pub(super) fn new(way: Way, round_trip_ms: u64, others: Others) -> Self {
        Self {
            way,
            round_trip_ms,
            others,
            queue: QUEUE,
            kbps: 1_300,
            jitter_ms: 0,
            ride_ms: RIDE_MS,
            buffer_kb: BUFFER_KB,
            file: true,
        }
    }

    pub(super) fn key(&self) -> String {
        let others = match self.others {
            Others::Light => "light".to_owned(),
            Others::Web => "web".to_owned(),
            Others::Nobody => "alone".to_owned(),
            Others::One(router) => router.name().to_owned(),
            Others::Small(flows) => format!("{flows} with small windows"),
        };
        let mut key = format!("{}/{}/{others}", self.way.name(), self.round_trip_ms);
        if self.queue != QUEUE {
            key += &format!("/queue {}", self.queue);
        }
        if self.kbps != 1_300 {
            key += &format!("/{} kbit/s", self.kbps);
        }
        if self.jitter_ms != 0 {
            key += &format!("/jitter {}", self.jitter_ms);
        }
        if self.ride_ms != RIDE_MS {
            key += &format!("/POLLs ride {} ms", self.ride_ms);
        }
        if self.buffer_kb != BUFFER_KB {
            key += &format!("/buffers of {} kbytes", self.buffer_kb);
        }
        if !self.file {
            key += "/no file";
        }
        key
    }

    fn files(&self, draw: &Draw) -> Files {
        let way = |kbps, delay, discipline, jitter| {
            let queue = QueueConfig { discipline, limit: Limit::Packets(self.queue) };
            let one = direction(BitRate::from_kbps(kbps), delay);
            let one = DirectionConfig { jitter, queue, ..one };
            // Acknowledgements have an interface of their own.
            let plenty = QueueConfig::default();
            LinkConfig {
                return_: DirectionConfig { queue: plenty, ..one.clone() },
                ..LinkConfig::symmetric(one)
            }
        };
        let rest = Span::from_millis(self.round_trip_ms / 2) - TERRESTRIAL / 2;
        let jitter = match self.jitter_ms {
            0 => Jitter::None,
            jitter => Jitter::Uniform(Span::from_millis(jitter)),
        };
        let (router, beside, background_bps) = match self.others {
            Others::Light => (Router::DropTail, None, 0.0),
            Others::Web => (Router::DropTail, None, 80_000.0),
            Others::Nobody => (Router::DropTail, None, 0.0),
            Others::One(router) => (router, Some(other()), 0.0),
            Others::Small(flows) => (Router::DropTail, Some(small(flows)), 0.0),
        };
        let discipline = router.discipline(self.queue);
        let ethernet = match self.others {
            Others::Light => Jitter::Uniform(ANOTHER_FRAME / 2),
            Others::Web | Others::Nobody | Others::One(_) | Others::Small(_) => Jitter::None,
        };
        let hops = vec![
            way(10_000, TERRESTRIAL / 2, discipline, ethernet),
            way(self.kbps, rest, Discipline::DropTail, jitter),
        ];
        let carriage = self.way.carriage(self.ride_ms, self.buffer_kb);
        Files {
            flows: u32::from(self.file),
            gateway: 1,
            beside,
            background_bps,
            chance: Span::from_secs(1),
            ..transfer(carriage, FILE, hops, PATIENCE, draw)
        }
    }

    pub(super) fn run(&self, draw: &Draw) -> Values {
        let carried = self.files(draw).carry();
        let over = carried.ended.since(carried.began).as_secs_f64();
        let seconds = carried.took.map_or(over, Span::as_secs_f64).max(1e-9);
        let kbps = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e3;
        let [forward, back] = carried.sent[1];
        Values::new()
            .with("seconds", seconds)
            .with("kbps", kbps(carried.bytes))
            .with("forward_kbps", kbps(forward.bytes))
            .with("reverse_kbps", kbps(back.bytes))
            .with("timeouts", carried.timeouts as f64)
            .with("recoveries", carried.recoveries as f64)
            .with("router_overflowed", carried.overflowed[0] as f64)
            .with("satellite_overflowed", carried.overflowed[1] as f64)
            .with("polls_per_s", carried.polls[0] as f64 / seconds)
            .with("polls_alone_per_s", carried.polls[1] as f64 / seconds)
            .with("gateway_kbytes", carried.gateway_buffers.peak as f64 / 1e3)
    }
}

/// Time limit; the throughput of an incomplete file is that until then.
const PATIENCE: Span = Span::from_secs(400);

/// Returns the competing connection: SACK-NewReno over 20 ms, half of it in the access links.
fn other() -> CrossTraffic {
    let access = LinkConfig::symmetric(direction(BitRate::from_mbps(100), TERRESTRIAL / 4));
    CrossTraffic { tcp: TcpConfig { max_segment: 1_460, ..best() }, flows: 1, access }
}

/// Returns competing connections with small windows.
fn small(flows: u32) -> CrossTraffic {
    let one = other();
    CrossTraffic { tcp: TcpConfig { receive_buffer: SMALL_WINDOW, ..one.tcp }, flows, ..one }
}

/// Returns all transfers with their maximum numbers of replications.
pub(super) fn trials() -> Vec<(Trial, u32)> {
    let mut all = Vec::new();
    for round_trip in ROUND_TRIPS {
        for way in Way::FOUR {
            all.push((Trial::new(way, round_trip, Others::Light), 20));
        }
    }
    for round_trip in FEW {
        for router in Router::ALL {
            let often = if router == Router::DropTail { 20 } else { 10 };
            all.push((Trial::new(Way::SackNewReno, round_trip, Others::One(router)), often));
        }
        for way in [Way::SplitTcp, Way::SplitStp] {
            all.push((Trial::new(way, round_trip, Others::One(Router::DropTail)), 20));
        }
    }
    all.extend(beside_figures().map(|trial| (trial, 10)));
    all.extend(queues().into_iter().map(|trial| (trial, 5)));
    all.extend(recoveries().map(|trial| (trial, 10)));
    let several = SMALL.map(|flows| Trial::new(Way::SackNewReno, 600, Others::Small(flows)));
    all.extend(several.map(|trial| (trial, 10)));
    let crowded = Trial::new(Way::SplitTcp, 600, Others::One(Router::DropTail));
    all.extend(BUFFERS_KB.map(|buffer_kb| (Trial { buffer_kb, ..crowded }, 20)));
    let known: Vec<Trial> = all.iter().map(|(trial, _)| *trial).collect();
    all.extend(splits().filter(|trial| !known.contains(trial)).map(|trial| (trial, 10)));
    all
}

/// Queues in packets, and rides in ms, of the grid of split connections beside one other.
pub(super) const SPLIT_QUEUES: [u64; 3] = [QUEUE, 100, 200];
pub(super) const SPLIT_RIDES_MS: [u64; 3] = [0, 3, RIDE_MS];

/// Returns a split connection of this grid.
pub(super) fn split(way: Way, round_trip: u64, queue: u64, ride_ms: u64) -> Trial {
    Trial { queue, ride_ms, ..Trial::new(way, round_trip, Others::One(Router::DropTail)) }
}

fn splits() -> impl Iterator<Item = Trial> {
    SPLIT_QUEUES.into_iter().flat_map(|queue| {
        [40, 600].into_iter().flat_map(move |round_trip| {
            let stp = move |ride_ms| split(Way::SplitStp, round_trip, queue, ride_ms);
            let tcp = split(Way::SplitTcp, round_trip, queue, RIDE_MS);
            SPLIT_RIDES_MS.into_iter().map(stp).chain([tcp])
        })
    })
}

/// Returns the transfers of the text's further claims.
fn beside_figures() -> impl Iterator<Item = Trial> {
    let at = |way, round_trip| Trial::new(way, round_trip, Others::Nobody);
    let splits = [Way::SplitTcp, Way::SplitStp].into_iter();
    let plain = splits.clone().map(move |way| at(way, 600));
    let slow = splits.clone().map(move |way| Trial { kbps: 650, ..at(way, 600) });
    let unsteady = splits.map(move |way| Trial { jitter_ms: JITTER_MS, ..at(way, 600) });
    let silent = Trial { file: false, ..Trial::new(Way::SackNewReno, 600, Others::Web) };
    let rides = RIDES_MS.map(|ride_ms| Trial { ride_ms, ..at(Way::SplitStp, 600) });
    plain.chain(slow).chain(unsteady).chain([silent]).chain(rides)
}

/// Queue lengths in packets of the grid of recovery, load and queue.
pub(super) const GRID: [u64; 3] = [QUEUE, 100, 200];

/// Loads of this grid.
pub(super) const LOADS: [(&str, Others); 3] = [
    ("nothing else", Others::Nobody),
    ("light traffic on the Ethernets", Others::Light),
    ("the web", Others::Web),
];
/// Its recoveries.
pub(super) const RECOVERIES: [Way; 2] = [Way::SackNewReno, Way::Rfc6675];

/// Returns the transfers of the grid, except for those of SACK-NewReno beside light traffic, which
/// are in figure 3 and in the sweep of queues.
fn recoveries() -> impl Iterator<Item = Trial> {
    let rows = RECOVERIES.into_iter().flat_map(|way| LOADS.map(|(_, others)| (way, others)));
    let rows = rows.filter(|row| *row != (Way::SackNewReno, Others::Light));
    rows.flat_map(|(way, others)| {
        GRID.into_iter().flat_map(move |queue| {
            [20, 600].map(|round_trip| Trial { queue, ..Trial::new(way, round_trip, others) })
        })
    })
}

/// Bound of the delay variation in ms, where there is one.
pub(super) const JITTER_MS: u64 = 100;

/// Returns the transfers with other queues.
fn queues() -> Vec<Trial> {
    let mut all = Vec::new();
    for queue in QUEUES {
        for round_trip in [20, 600] {
            let four = Way::FOUR.map(|way| Trial::new(way, round_trip, Others::Light));
            all.extend(four.map(|trial| Trial { queue, ..trial }));
        }
        for way in [Way::SackNewReno, Way::SplitTcp, Way::SplitStp] {
            let crowded = Trial::new(way, 600, Others::One(Router::DropTail));
            all.push(Trial { queue, ..crowded });
        }
    }
    all
}
