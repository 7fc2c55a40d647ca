//! Links and file transfers that several experiments share.

use super::Draw;
use satlink::{DirectionConfig, Limit, LinkConfig, QueueConfig};
use sim::scenario::files::{Files, Transports};
use units::{BitRate, Span};

/// Returns a direction of a link with a rate and a one-way delay.
pub(super) fn direction(rate: BitRate, delay: Span) -> DirectionConfig {
    DirectionConfig { rate: Some(rate), delay, ..DirectionConfig::default() }
}

/// Returns the same with a queue limit.
pub(super) fn limited(rate: BitRate, delay: Span, limit: Limit) -> DirectionConfig {
    let queue = QueueConfig { limit, ..QueueConfig::default() };
    DirectionConfig { queue, ..direction(rate, delay) }
}

/// Returns a symmetric link without delay, such as an Ethernet.
pub(super) fn ethernet(rate: BitRate) -> LinkConfig {
    LinkConfig::symmetric(direction(rate, Span::ZERO))
}

/// Returns the transfer of one file over `hops` without competing traffic, which starts at the
/// beginning, with access links of 100 Mbit/s and gateways, if any, after the access links.
pub(super) fn transfer(
    carriage: Transports,
    bytes: u64,
    hops: Vec<LinkConfig>,
    until: Span,
    draw: &Draw,
) -> Files {
    Files {
        carriage,
        flows: 1,
        bytes,
        access: ethernet(BitRate::from_mbps(100)),
        hops,
        gateway: 0,
        beside: None,
        background_bps: 0.0,
        constant: None,
        stagger: Span::ZERO,
        chance: Span::ZERO,
        until,
        seed: draw.seed,
        run: draw.run,
    }
}
