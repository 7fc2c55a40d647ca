//! What simulators are timed with: one long transfer over a satellite between two faster hops.

use crate::Network;
use crate::host::{BulkReceiver, BulkSender, Host, Xstp, XstpStream};
use crate::network::Address;
use satlink::{Direction, DirectionConfig, Limit, LinkConfig, QueueConfig};
use units::{BitRate, Instant, Span};
use xstp::session::SessionConfig;

/// Payload bytes of each segment.
pub const SEGMENT: usize = 1_000;

/// What came of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// Bytes that arrived, each of them checked, in order and once.
    pub bytes: u64,
    /// How long it took, in simulated time.
    pub took: Span,
    /// Packets that came out of links.
    pub packets: u64,
}

/// Sends `bytes` in segments of 1,000 over 100 Mbit/s and 1 ms, 1.3 Mbit/s and 300 ms, and
/// 100 Mbit/s and 1 ms, by XSTP as published in 1999, with a queue of one bandwidth-delay
/// product.
///
/// # Panics
/// When it does not arrive within ten times the time that it should take.
pub fn transfer(seed: u64, bytes: u64) -> Transferred {
    let mut config = SessionConfig::stp_1999();
    config.max_segment = SEGMENT + (config.max_segment - config.payload_size());
    let mut net = Network::new(seed, 0);
    let sink = net.host_with(|node| {
        Host::new(Xstp::server(node, &config, 80), BulkReceiver::<XstpStream>::new(seed))
    });
    let source = net.host_with(|node| {
        let transport = Xstp::client(node, &config, Address::new(sink, 80));
        let sender = BulkSender::<XstpStream>::new(Instant::ZERO, bytes, seed);
        Host::new(transport, sender)
    });
    let [left, right] = [(); 2].map(|()| net.router());
    let rate = BitRate::from_kbps(1_300);
    let links = [
        net.link(source, left, &wire(BitRate::from_mbps(100), Span::from_millis(1))),
        net.link(left, right, &wire(rate, Span::from_millis(300))),
        net.link(right, sink, &wire(BitRate::from_mbps(100), Span::from_millis(1))),
    ];
    type Sink = Host<Xstp, BulkReceiver<XstpStream>>;
    let patience = rate.time_for(bytes) * 10 + Span::from_secs(60);
    let done = net
        .run_while(Instant::ZERO + patience, |net| !net.node::<Sink>(sink).application.is_done());
    assert!(done, "the transfer should end");
    net.audit();
    let delivered = |direction| {
        links.map(|link| net.line(link).counters(direction).delivered.packets).iter().sum::<u64>()
    };
    Transferred {
        bytes: net.node::<Sink>(sink).application.received(),
        took: net.now().since(Instant::ZERO),
        packets: Direction::BOTH.map(delivered).iter().sum(),
    }
}

fn wire(rate: BitRate, delay: Span) -> LinkConfig {
    LinkConfig::symmetric(DirectionConfig {
        rate: Some(rate),
        delay,
        queue: QueueConfig { limit: Limit::BandwidthDelay(1.0), ..QueueConfig::default() },
        ..DirectionConfig::default()
    })
}
