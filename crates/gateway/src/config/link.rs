//! `[link]`: the satellite link.

use super::HubAddress;
use relay::Control;
use std::net::{Ipv4Addr, SocketAddr};
use units::{BitRate, Span};

/// The link between the two gateways.
#[derive(Clone, Debug)]
pub struct LinkSection {
    /// The address on which datagrams are received.
    pub listen: SocketAddr,
    /// At a terminal, the hub's address.
    pub peer: Option<HubAddress>,
    /// The rate from terminal to hub, of IP bytes and [`LinkSection::overhead`]; `None`: estimated.
    pub rate_up: Option<BitRate>,
    /// The rate from hub to terminal, of IP bytes and [`LinkSection::overhead`]; `None`: estimated.
    pub rate_down: Option<BitRate>,
    /// The controller of this side's sending rate.
    pub controller: Control,
    /// Maximum share of the rate for repair symbols, in percent; `None`: no repair.
    pub repair: Option<u32>,
    /// Whether streams are compressed as far as their content allows it, in the direction that this
    /// side sends.
    pub compress: bool,
    /// The RTT that is assumed before the first sample.
    pub round_trip: Span,
    /// Maximum size of an IP packet in bytes; path MTU discovery searches up to this size.
    pub mtu: u32,
    /// Bytes that the link adds to each IP packet.
    pub overhead: u32,
    /// Whether a hub measures an unknown rate by packets without data while the link is idle.
    pub padding: bool,
    /// Whether each connection of a terminal uses all paths of the same hub and priority.
    pub bond: bool,
}

impl Default for LinkSection {
    /// Returns any port, estimated rates, packets of up to 1,500 bytes, and an RTT of 600 ms.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            peer: None,
            rate_up: None,
            rate_down: None,
            controller: Control::default(),
            repair: None,
            compress: false,
            round_trip: Span::from_millis(600),
            mtu: 1500,
            overhead: 0,
            padding: true,
            bond: false,
        }
    }
}
