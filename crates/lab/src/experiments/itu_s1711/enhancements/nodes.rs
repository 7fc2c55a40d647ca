//! The nodes at the ends of the satellite link, and the networks beside them.

use super::super::super::network::limited;
use super::super::bench::space;
use super::{Case, Impairment, Middle};
use satlink::{DirectionConfig, Jitter, Limit, LinkConfig};
use sim::Network;
use sim::host::{Tcp, Xstp};
use sim::network::NodeId;
use sim::pep::{
    AckRebuilder, AckSpacer, HeaderCompressor, HeaderDecompressor, Inline, Shaper, Split,
    SpoofConfig, Spoofer, TokenBucket, Toward,
};
use simtcp::TcpConfig;
use units::{BitRate, Span};

/// Octets of windows that limit nothing: those of gateways' sides on the networks.
const WINDOW: u64 = 975_000;

impl Case {
    /// Creates the nodes at the ends of the satellite link, the server's first.
    pub(super) fn nodes(
        &self,
        net: &mut Network,
        impairment: Impairment,
        server: NodeId,
    ) -> [NodeId; 2] {
        let (lefts, lan) = ([server], wide(WINDOW));
        let product = impairment.product();
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
pub(super) const RETURN: BitRate = BitRate::from_kbps(32);

/// Returns the TCP of a gateway's sides: with SACK and this window.
fn wide(window: u64) -> TcpConfig {
    TcpConfig { send_buffer: window, receive_buffer: window, ..TcpConfig::sack() }
}

/// Returns a network of 100 Mbit/s whose packets are up to `late` late, in order.
pub(super) fn lan(late: Span) -> LinkConfig {
    let delay = Span::from_micros(500) + late / 2;
    let link = limited(BitRate::from_mbps(100), delay, Limit::Packets(1 << 16));
    LinkConfig::symmetric(DirectionConfig { jitter: Jitter::Uniform(late / 2), ..link })
}
