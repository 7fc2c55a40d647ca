//! Benchmarks of the simulator: a long transfer over a satellite between two faster hops, many
//! flows that share such a path, and a star of 8,000 terminals.

use crate::Network;
use crate::host::{BulkReceiver, BulkSender, Host, Xstp, XstpStream};
use crate::multi_access::{CLUSTERS, Star};
use crate::network::{Address, LinkId};
use crate::tcp::{FlowPlan, TcpSink, TcpSource};
use satlink::{Direction, DirectionConfig, Limit, LinkConfig, QueueConfig};
use simtcp::TcpConfig;
use units::{BitRate, Instant, Span};
use xstp::session::SessionConfig;

/// Payload octets of each segment.
pub const SEGMENT: usize = 1_000;

/// Results of a benchmark run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// Octets delivered in order and verified.
    pub bytes: u64,
    /// Simulated duration.
    pub took: Span,
    /// Packets delivered by links.
    pub packets: u64,
}

/// Sends `bytes` in segments of 1,000 octets over 100 Mbit/s and 1 ms, 1.3 Mbit/s and 300 ms, and
/// 100 Mbit/s and 1 ms, with XSTP as published in 1999 and a queue of one bandwidth-delay product.
///
/// # Panics
/// If the transfer takes more than ten times its expected duration.
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
    Transferred {
        bytes: net.node::<Sink>(sink).application.received(),
        took: net.now().since(Instant::ZERO),
        packets: delivered(&net, links),
    }
}

/// Number of flows of [`flows`].
pub const FLOWS: usize = 350;
/// Simulated duration of [`flows`].
pub const FLOWS_RUN: Span = Span::from_secs(60);

/// Runs 350 TCPs with SACK for a minute, with starts 10 ms apart, between two hosts over 1 Gbit/s
/// and 1 ms, 45 Mbit/s and 348 ms, and 1 Gbit/s and 1 ms, with a queue of one bandwidth-delay
/// product.
pub fn flows(seed: u64) -> Transferred {
    let mut tcp = TcpConfig::sack();
    tcp.max_segment = SEGMENT as u16;
    let mut net = Network::new(seed, 0);
    let sink = net.host(TcpSink::new(tcp.clone(), 80));
    let plan = |flow: usize| FlowPlan {
        start: Instant::ZERO + Span::from_millis(10) * flow as u64,
        stop: None,
        bytes: u64::MAX,
        to: Address::new(sink, 80),
        tcp: tcp.clone(),
    };
    let source = net.host_with(|node| TcpSource::new(node, (0..FLOWS).map(plan).collect()));
    let [left, right] = [(); 2].map(|()| net.router());
    let (hop, space) = (BitRate::from_mbps(1_000), BitRate::from_mbps(45));
    let links = [
        net.link(source, left, &wire(hop, Span::from_millis(1))),
        net.link(left, right, &wire(space, Span::from_millis(348))),
        net.link(right, sink, &wire(hop, Span::from_millis(1))),
    ];
    net.run_until(Instant::ZERO + FLOWS_RUN);
    let bytes = net.node::<TcpSink>(sink).flows().iter().map(|flow| flow.bytes).sum();
    Transferred { bytes, took: FLOWS_RUN, packets: delivered(&net, links) }
}

/// Simulated duration of [`star`].
pub const STAR_RUN: Span = Span::from_secs(60);

/// Runs a minute of the star network of Recommendation ITU-R S.1711, section 4: all ten platforms,
/// one after the other, with the reported traffic. Counts objects in place of packets.
pub fn star(seed: u64) -> Transferred {
    let mut done = Transferred { bytes: 0, took: STAR_RUN, packets: 0 };
    for cluster in CLUSTERS {
        for platform in 0..cluster.platforms {
            let run = u64::from(cluster.number * 10 + platform);
            let seen = Star::star_one(cluster, platform, 1.0, STAR_RUN).run(seed, run);
            done.bytes += seen.sites.iter().map(|site| site.received + site.sent).sum::<u64>();
            done.packets += seen.objects() as u64;
        }
    }
    done
}

/// Packets delivered by `links`, both directions.
fn delivered(net: &Network, links: [LinkId; 3]) -> u64 {
    let of = |link, direction| net.line(link).counters(direction).delivered.packets;
    let both = |link: LinkId| Direction::BOTH.map(|direction| of(link, direction));
    links.iter().flat_map(|&link| both(link)).sum()
}

fn wire(rate: BitRate, delay: Span) -> LinkConfig {
    LinkConfig::symmetric(DirectionConfig {
        rate: Some(rate),
        delay,
        queue: QueueConfig { limit: Limit::BandwidthDelay(1.0), ..QueueConfig::default() },
        ..DirectionConfig::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_arrives_completely() {
        let done = transfer(1, 1_000_000);
        assert_eq!(done.bytes, 1_000_000);
        assert!(done.took < Span::from_secs(20), "{done:?}");
    }
}
