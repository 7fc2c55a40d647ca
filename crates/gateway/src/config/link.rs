//! `[link]`: the satellite link.

use super::HubAddress;
use super::items::positive_span;
use super::reader::{Item, Reader, Section};
use relay::Control;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use units::{BitRate, Span};

/// The link between the two gateways.
#[derive(Clone, Debug)]
pub struct LinkSection {
    /// The address on which datagrams are received.
    pub listen: SocketAddr,
    /// At a terminal, the hub's address.
    pub peer: Option<HubAddress>,
    /// Further ports: at a hub, on which datagrams are received; at a terminal, those of the hub, which
    /// are tried in turn.
    pub ports: Vec<u16>,
    /// At a terminal, the time after which the next port is used; `None`: only when the hub is silent.
    pub hop: Option<Span>,
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
            ports: Vec::new(),
            hop: None,
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

/// Maximum number of further ports, each of which is a socket of the hub (of each of its shards).
const MAX_PORTS: usize = 16;
/// Minimum time for which a port is used.
const MIN_HOP: Span = Span::from_secs(1);

/// Reads the further ports.
pub(super) fn read_ports(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    usual: Vec<u16>,
) -> Option<Vec<u16>> {
    section.or(reader, "ports", usual, |reader, item| {
        let line = item.line();
        let one = |reader: &mut Reader<'_>, item: Item<'_>| item.integer(reader, 1..=65_535);
        let mut all: Vec<u16> =
            item.list(reader, one)?.into_iter().map(|port| port as u16).collect();
        if all.len() > MAX_PORTS {
            let found = format!("{} ports", all.len());
            reader.mistake(line, "link.ports", &found, &format!("at most {MAX_PORTS}"));
            return None;
        }
        let mut known = BTreeSet::new();
        all.retain(|&port| known.insert(port));
        Some(all)
    })
}

/// Reads the time after which a terminal uses the next of its hub's `ports`.
pub(super) fn read_hop(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    ports: Option<&[u16]>,
    usual: Option<Span>,
) -> Option<Option<Span>> {
    section.or(reader, "hop", usual, |reader, item| {
        if ports.is_some_and(<[u16]>::is_empty) {
            return reader.wrong(&item, "`ports`, between which it hops");
        }
        let hop = positive_span(reader, item, Span::from_secs(86_400))?;
        Some(Some(hop.max(MIN_HOP)))
    })
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use units::Span;

    fn terminal(keys: &str) -> Result<Config, String> {
        let text = format!(
            "role = \"terminal\"\nsecurity = \"none\"\n[link]\npeer = \"192.0.2.1:7000\"\n{keys}\n\
             [socks5]\nlisten = \"127.0.0.1:1080\"\n"
        );
        Config::parse("gateway.toml", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn further_ports_are_read() {
        let config = terminal("ports = [4500, 443, 4500]\nhop = \"60s\"").unwrap();
        assert_eq!(
            (config.link.ports, config.link.hop),
            (vec![4500, 443], Some(Span::from_secs(60)))
        );
        let config = terminal("").unwrap();
        assert_eq!((config.link.ports, config.link.hop), (Vec::new(), None));
        let many: Vec<u16> = (1..=17).collect();
        for (keys, expected) in [
            ("hop = \"60s\"".to_owned(), "`ports`"),
            ("ports = [0]".to_owned(), "from 1 to 65535"),
            (format!("ports = {many:?}"), "at most 16"),
        ] {
            let error = terminal(&keys).unwrap_err();
            assert!(error.contains(expected), "{keys}: {error}");
        }
    }
}
