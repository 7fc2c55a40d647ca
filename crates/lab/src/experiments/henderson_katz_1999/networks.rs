//! Table III: DirecPC and Ricochet as channels.

use super::super::{Draw, Values};
use super::bench::{RIDE_MS, best, stp};
use satlink::{DirectionConfig, Discipline, Limit, LinkConfig, QueueConfig, Red};
use sim::scenario::files::{Files, Transports};
use simtcp::TcpConfig;
use units::{BitRate, Span};

/// A commercial network: what the paper says of it, and what was fitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub(super) name: &'static str,
    round_trip_ms: u64,
    forward_bps: u64,
    back_bps: u64,
    bytes: u64,
    /// Bytes of the queue before the narrow line.
    queue: u64,
    /// Packets lost in the Internet on the way.
    loss: f64,
    red: bool,
    /// Bytes of data in a segment.
    segment: u16,
}

/// What an Ethernet takes: BSD/OS 3.0 finds the path's MTU (section V.A).
const SEGMENT: u16 = 1_460;

/// A satellite, and back over the Internet and a modem's 50 kbit/s.
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

/// What the paper hopes for there.
pub(super) const WITH_RED: Channel = Channel { name: "Ricochet with RED", red: true, ..RICOCHET };

/// What is not given about the two, varied.
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

/// All of them.
pub(super) fn all() -> impl Iterator<Item = Channel> {
    [DIRECPC, RICOCHET, WITH_RED].into_iter().chain(OTHERS)
}

/// A name, and who carries the file.
pub(super) type Carries = (&'static str, fn(u16) -> Transports);

/// Who carries the file.
pub(super) const WAYS: [Carries; 2] = [
    ("STP", |segment| Transports::Stp(stp(segment, RIDE_MS))),
    ("TCP SACK", |max_segment| Transports::Tcp(TcpConfig { max_segment, ..best() })),
];

impl Channel {
    /// The name of a point.
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
        let way = |rate, queue, loss| DirectionConfig {
            rate: Some(BitRate::from_bps(rate)),
            delay: Span::from_millis(self.round_trip_ms) / 2,
            loss,
            queue,
            ..DirectionConfig::default()
        };
        LinkConfig {
            return_: way(self.back_bps, QueueConfig::default(), self.loss),
            ..LinkConfig::symmetric(way(
                self.forward_bps,
                QueueConfig { discipline, limit },
                self.loss,
            ))
        }
    }

    /// Sends the file.
    pub(super) fn run(&self, carriage: fn(u16) -> Transports, draw: &Draw) -> Values {
        let access = LinkConfig::symmetric(DirectionConfig {
            rate: Some(BitRate::from_mbps(10)),
            ..DirectionConfig::default()
        });
        let files = Files {
            carriage: carriage(self.segment),
            flows: 1,
            bytes: self.bytes,
            access,
            hops: vec![self.hop()],
            gateway: 0,
            beside: None,
            background_bps: 0.0,
            constant: None,
            stagger: Span::ZERO,
            chance: Span::from_secs(1),
            until: Span::from_secs(600),
            seed: draw.seed,
            run: draw.run,
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
