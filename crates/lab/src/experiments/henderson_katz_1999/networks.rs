//! Table III: models of DirecPC and Ricochet.

use super::super::network::{direction, ethernet, transfer};
use super::super::{Draw, Values};
use super::bench::{RIDE_MS, best, stp};
use satlink::{DirectionConfig, Discipline, Limit, LinkConfig, QueueConfig, Red};
use sim::scenario::files::{Files, Transports};
use simtcp::TcpConfig;
use units::{BitRate, Span};

/// A commercial network: the paper's parameters and fitted ones.
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// A satellite forward link, with a return path over the Internet and a 50 kbit/s modem. Of the grid
/// it is nearest to the two forward numbers.
pub(super) const DIRECPC: Channel = Channel {
    name: "DirecPC",
    round_trip_ms: 375,
    forward_bps: 2_000_000,
    back_bps: 50_000,
    bytes: 1_000_000,
    queue: 15_000,
    loss: 0.005,
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

/// Returns the grid over what the paper does not state of DirecPC: rate, losses and queue.
pub(super) fn grid_of_direcpc() -> Vec<Channel> {
    let mut all = Vec::new();
    for forward_bps in [500_000, 650_000, 1_000_000, 2_000_000, 3_000_000] {
        for loss in [0.0, 0.001, 0.003, 0.005, 0.007] {
            for queue in [10_000, 15_000, 20_000, 30_000, 60_000] {
                all.push(Channel { forward_bps, loss, queue, ..DIRECPC });
            }
        }
    }
    all
}

/// Returns the grid over what the paper does not state of Ricochet: rate, losses, queue and segment.
pub(super) fn grid_of_ricochet() -> Vec<Channel> {
    let mut all = Vec::new();
    for bps in [29_000, 30_000, 31_500, 33_000, 36_000] {
        for loss in [0.0, 0.005, 0.01] {
            for queue in [7_500, 15_000, 30_000, 59_000] {
                for segment in [536, 1_000, SEGMENT] {
                    let (forward_bps, back_bps) = (bps, bps);
                    all.push(Channel { forward_bps, back_bps, loss, queue, segment, ..RICOCHET });
                }
            }
        }
    }
    all
}

pub(super) fn all() -> impl Iterator<Item = Channel> {
    [DIRECPC, RICOCHET, WITH_RED].into_iter()
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
        format!("{}/{}/{way}", self.name, self.words())
    }

    /// Describes the parameters that the paper does not state.
    pub(super) fn words(&self) -> String {
        let Self { forward_bps, queue, loss, segment, .. } = self;
        let (kbps, kbytes) = (*forward_bps as f64 / 1e3, *queue as f64 / 1e3);
        let lost = loss * 100.0;
        format!(
            "{kbps} kbit/s, {lost:.1} % lost, a queue of {kbytes} kbytes, segments of {segment}"
        )
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
