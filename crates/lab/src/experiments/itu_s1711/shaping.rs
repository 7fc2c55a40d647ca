//! Annex 3, section 3.3.2: a sender with a token bucket before a router with a short queue.
//!
//! ```text
//!   sender ─ token bucket ── 500 Mbit/s ── router, 100 packets ── 135 Mbit/s, 540 ms ── sink
//! ```

use super::super::network::limited;
use super::super::{Draw, Values};
use satlink::{Direction, DropCause, Limit, LinkConfig};
use sim::Network;
use sim::network::Address;
use sim::pep::{Inline, Shaper, TokenBucket, Toward};
use sim::tcp::{FlowPlan, TcpSink, TcpSource};
use simtcp::{InitialWindow, TcpConfig};
use units::{BitRate, Instant, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trial {
    /// Socket buffer in kbytes.
    pub(super) socket: u64,
    /// Bucket size in kbytes; `None` without shaping.
    pub(super) bucket: Option<u64>,
    /// Whether the path includes the satellite.
    pub(super) satellite: bool,
    /// Queue of the router in packets.
    pub(super) queue: u64,
}

/// Socket buffers of figure 36 in kbytes.
pub(super) const SOCKETS: [u64; 5] = [500, 1_000, 2_000, 4_000, 6_000];
/// Socket buffer of figure 37 in kbytes.
pub(super) const SOCKET: u64 = 6_000;
/// Bucket sizes of figure 37 in kbytes.
pub(super) const BUCKETS: [u64; 8] = [32, 64, 96, 125, 160, 200, 256, 512];
/// The best bucket size there: 120 to 130 kbytes.
pub(super) const BEST: u64 = 125;
/// Default queue of Linux in packets, on a PC router; and the other values of the sweep.
pub(super) const QUEUE: u64 = 100;
pub(super) const QUEUES: [u64; 3] = [50, QUEUE, 200];

/// Rate of the bucket: 95 Mbit/s were 95 % of the throughput without the satellite.
const RATE: BitRate = BitRate::from_mbps(100);
/// Clock interval of Linux on PCs of the time.
const STEP: Span = Span::from_millis(10);
/// Octets of data in a packet, IPv6 on Ethernet.
const PACKET: u16 = 1_430;
const PORT: u16 = 80;
const UNTIL: Span = Span::from_secs(20);

impl Trial {
    /// Returns a transfer over the satellite with a bucket of `bucket` kbytes.
    pub(super) const fn bucket(bucket: u64) -> Self {
        Self { socket: SOCKET, bucket: Some(bucket), satellite: true, queue: QUEUE }
    }

    /// Returns a transfer with a socket buffer of `socket` kbytes and the best bucket.
    pub(super) const fn socket(socket: u64, satellite: bool) -> Self {
        Self { socket, satellite, ..Self::bucket(BEST) }
    }

    pub(super) fn key(&self) -> String {
        let Self { socket, satellite, queue, .. } = self;
        let bucket = self.bucket.map_or("none".to_owned(), |bucket| bucket.to_string());
        let trip = if *satellite { "540 ms" } else { "1 ms" };
        format!("socket {socket}/bucket {bucket}/{trip}/queue {queue}")
    }

    fn tcp(&self) -> TcpConfig {
        // Linux doubles the requested buffer and uses three quarters of it as window.
        let window = self.socket * 1_500;
        TcpConfig {
            max_segment: PACKET,
            initial_window: InitialWindow::Segments(2),
            send_buffer: 2 * window,
            receive_buffer: window,
            ..TcpConfig::sack()
        }
    }

    /// Sends for 20 s and measures the second half.
    pub(super) fn run(&self, draw: &Draw) -> Values {
        let tcp = self.tcp();
        let mut net = Network::new(draw.seed, draw.run);
        let sink = net.host(TcpSink::new(tcp.clone(), PORT));
        let to = Address::new(sink, PORT);
        let plan = FlowPlan { start: Instant::ZERO, stop: None, bytes: u64::MAX, to, tcp };
        let source = net.host_with(|node| TcpSource::new(node, vec![plan]));
        let bytes = self.bucket.unwrap_or(ENDLESS / 1_000) * 1_000;
        let config = TokenBucket { rate: RATE, bucket: bytes, limit: bytes + ENDLESS };
        let bucket = net.gateway_with(|_| {
            Inline::new(Shaper::new(config, Toward::Right).stepping(STEP), [source])
        });
        let router = net.router();
        net.link(source, bucket, &LinkConfig::default());
        let gigabit = Limit::Packets(1 << 20);
        net.link(bucket, router, &line(500, Span::from_micros(10), gigabit));
        let delay = if self.satellite { Span::from_millis(270) } else { Span::from_micros(500) };
        let space = net.link(router, sink, &line(135, delay, Limit::Packets(self.queue)));
        net.run_until(Instant::ZERO + UNTIL);
        let lost = net.line(space).counters(Direction::Forward).dropped(DropCause::QueueFull);
        let came = net.node::<TcpSink>(sink).flows().first().map_or(0, |flow| {
            flow.arrived.between(Instant::ZERO + UNTIL / 2, Instant::ZERO + UNTIL).bytes
        });
        Values::new()
            .with("mbps", came as f64 * 8.0 / (UNTIL / 2).as_secs_f64() / 1e6)
            .with("overflowed", lost.packets as f64)
    }
}

/// An unlimited bucket in octets.
const ENDLESS: u64 = 1 << 30;

fn line(mbps: u64, delay: Span, limit: Limit) -> LinkConfig {
    LinkConfig::symmetric(limited(BitRate::from_mbps(mbps), delay, limit))
}

pub(super) fn trials() -> Vec<Trial> {
    let mut all: Vec<Trial> = BUCKETS.map(Trial::bucket).into();
    for socket in SOCKETS {
        all.extend([true, false].map(|satellite| Trial::socket(socket, satellite)));
    }
    all.push(Trial { bucket: None, ..Trial::bucket(BEST) });
    for queue in QUEUES {
        all.extend(BUCKETS.map(|bucket| Trial { queue, ..Trial::bucket(bucket) }));
    }
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|trial| seen.insert(trial.key()));
    all
}
