//! Table III: models of DirecPC and Ricochet.

use super::super::network::{direction, ethernet, transfer};
use super::super::{Draw, Values};
use super::bench::{RIDE_MS, best, stp};
use satlink::{DirectionConfig, Discipline, Limit, LinkConfig, QueueConfig, Red};
use sim::scenario::files::{Files, Transports};
use simtcp::TcpConfig;
use units::{BitRate, Span};

/// A commercial network: the paper's parameters and fitted ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub(super) name: &'static str,
    round_trip_ms: u64,
    forward_bps: u64,
    back_bps: u64,
    bytes: u64,
    /// Queue limit in octets before the bottleneck.
    queue: u64,
    /// Packet loss ratio in the Internet.
    loss: f64,
    red: bool,
    /// Octets of data in a segment.
    segment: u16,
}

/// Segment size on Ethernet: BSD/OS 3.0 performs path MTU discovery (section V.A).
const SEGMENT: u16 = 1_460;

/// A satellite forward link, with a return path over the Internet and a 50 kbit/s modem.
pub(super) const DIRECPC: Channel = Channel {
    name: "DirecPC",
    round_trip_ms: 375,
    forward_bps: 650_000,
    back_bps: 50_000,
    bytes: 1_000_000,
    queue: 60_000,
    loss: 0.001,
    red: false,
    segment: SEGMENT,
};

/// Packet radio with a queue of 15 s.
pub(super) const RICOCHET: Channel = Channel {
    name: "Ricochet",
    round_trip_ms: 350,
    forward_bps: 31_500,
    back_bps: 31_500,
    bytes: 100_000,
    queue: 59_000,
    loss: 0.0,
    red: false,
    segment: SEGMENT,
};

/// The improvement that the paper suggests.
pub(super) const WITH_RED: Channel = Channel { name: "Ricochet with RED", red: true, ..RICOCHET };

/// Variations of the parameters that the paper does not state.
pub(super) const OTHERS: [Channel; 12] = [
    Channel { name: "DirecPC, no loss", loss: 0.0, ..DIRECPC },
    Channel { name: "DirecPC, 0.5 % lost", loss: 0.005, ..DIRECPC },
    Channel { name: "DirecPC, 500 kbit/s", forward_bps: 500_000, ..DIRECPC },
    Channel { name: "DirecPC, 1 Mbit/s", forward_bps: 1_000_000, ..DIRECPC },
    Channel {
        name: "DirecPC, 1 Mbit/s, 0.3 % lost",
        forward_bps: 1_000_000,
        loss: 0.003,
        ..DIRECPC
    },
    Channel {
        name: "DirecPC, 3 Mbit/s, 0.5 % lost",
        forward_bps: 3_000_000,
        loss: 0.005,
        ..DIRECPC
    },
    Channel {
        name: "DirecPC, 3 Mbit/s, 0.6 % lost, queue of 20 kbytes",
        forward_bps: 3_000_000,
        loss: 0.006,
        queue: 20_000,
        ..DIRECPC
    },
    Channel {
        name: "DirecPC, 3 Mbit/s, 0.7 % lost, queue of 20 kbytes",
        forward_bps: 3_000_000,
        loss: 0.007,
        queue: 20_000,
        ..DIRECPC
    },
    Channel { name: "DirecPC, segments of 1,000 bytes", segment: 1_000, ..DIRECPC },
    Channel { name: "Ricochet, 30 kbit/s", forward_bps: 30_000, back_bps: 30_000, ..RICOCHET },
    Channel { name: "Ricochet, queue of 15 kbytes", queue: 15_000, ..RICOCHET },
    Channel { name: "Ricochet, segments of 1,000 bytes", segment: 1_000, ..RICOCHET },
];

pub(super) fn all() -> impl Iterator<Item = Channel> {
    [DIRECPC, RICOCHET, WITH_RED].into_iter().chain(OTHERS)
}

/// Name and constructor of a transport.
pub(super) type Carries = (&'static str, fn(u16) -> Transports);

/// The transports that carry the file.
pub(super) const WAYS: [Carries; 2] = [
    ("STP", |segment| Transports::Stp(stp(segment, RIDE_MS))),
    ("TCP SACK", |max_segment| Transports::Tcp(TcpConfig { max_segment, ..best() })),
];

impl Channel {
    pub(super) fn key(&self, way: &str) -> String {
        format!("{}/{way}", self.name)
    }

    fn hop(&self) -> LinkConfig {
        let limit = Limit::Bytes(self.queue);
        let discipline = if self.red {
            Discipline::Red(Red {
                lower: Limit::Bytes(self.queue / 10),
                upper: Limit::Bytes(self.queue * 3 / 10),
                largest_probability: 0.1,
                weight: 0.02,
                mark: false,
                gentle: true,
            })
        } else {
            Discipline::DropTail
        };
        let delay = Span::from_millis(self.round_trip_ms) / 2;
        let way = |bps, queue| DirectionConfig {
            loss: self.loss,
            queue,
            ..direction(BitRate::from_bps(bps), delay)
        };
        LinkConfig {
            return_: way(self.back_bps, QueueConfig::default()),
            ..LinkConfig::symmetric(way(self.forward_bps, QueueConfig { discipline, limit }))
        }
    }

    pub(super) fn run(&self, carriage: fn(u16) -> Transports, draw: &Draw) -> Values {
        let until = Span::from_secs(600);
        let files = Files {
            access: ethernet(BitRate::from_mbps(10)),
            chance: Span::from_secs(1),
            ..transfer(carriage(self.segment), self.bytes, vec![self.hop()], until, draw)
        };
        let carried = files.carry();
        let over = carried.ended.since(carried.began).as_secs_f64();
        let seconds = carried.took.map_or(over, Span::as_secs_f64);
        let kbps = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e3;
        let deepest = carried.fullest[0].bytes as f64 * 8.0 / self.forward_bps as f64;
        Values::new()
            .with("kbps", kbps(carried.bytes))
            .with("reverse_kbps", kbps(carried.sent[0][1].bytes))
            .with("queue_s", deepest)
    }
}
