//! `role = "single"`: settings of a gateway without a peer.

use super::SourceMode;
use super::items::{id, interface, network, ports, positive_span};
use super::reader::{Item, Reader, Section};
use crate::intercept::{PortRange, Prefix};
use units::{BitRate, Span};

/// Settings of a gateway for two-segment splitting.
#[derive(Clone, Debug)]
pub struct SingleSection {
    /// Identifies this gateway's entries in the kernel's tables.
    pub id: String,
    /// The interfaces towards the satellite; `sat*` is allowed.
    pub satellite: Vec<String>,
    /// Interfaces on which connections to [`SingleSection::networks`] arrive.
    pub network: Vec<String>,
    /// Networks beyond the satellite.
    pub networks: Vec<Prefix>,
    /// The port of the transparent listeners; the next one is used as well.
    pub port: u16,
    /// Maximum rate over the satellite, of IP packets and [`SingleSection::overhead`]; `None`: only
    /// the congestion control limits it.
    pub rate: Option<BitRate>,
    /// Maximum burst after an idle period, as time at the rate (the depth of the token bucket).
    pub burst: Span,
    /// The RTT over the satellite, from which window sizes are computed.
    pub round_trip: Span,
    /// The congestion control towards the satellite; `None`: the system's default.
    pub congestion: Option<String>,
    /// The initial window towards [`SingleSection::networks`], in segments; `None`: the system's
    /// default.
    pub initial_window: Option<u32>,
    /// Maximum size of an IP packet over the satellite, bytes.
    pub mtu: u32,
    /// Bytes that the link adds to each IP packet.
    pub overhead: u32,
    /// The source address of connections to servers.
    pub source: SourceMode,
    /// Ports that are intercepted; empty: all.
    pub include_ports: Vec<PortRange>,
    /// Ports that are not intercepted.
    pub exclude_ports: Vec<PortRange>,
    /// Destinations that are not intercepted.
    pub exclude: Vec<Prefix>,
}

/// Reads the table `[single]`.
pub(super) fn read_single(reader: &mut Reader<'_>, top: &mut Section<'_>) -> Option<SingleSection> {
    const SOURCES: [(&str, SourceMode); 2] =
        [("client", SourceMode::Client), ("own", SourceMode::Own)];
    let Some(mut section) = top.section(reader, "single") else {
        let expected = "a table, `[single]`, with the interfaces towards the satellite";
        top.required(reader, "single", expected, |_, _| Some(()));
        return None;
    };
    let expected = "the interfaces towards the satellite, such as [\"sat0\"]";
    let id = section.or(reader, "id", "single".into(), id);
    let satellite =
        section.required(reader, "satellite", expected, |r, i| i.some(r, expected, interface));
    let network_side = section.or(reader, "network", Vec::new(), |r, i| i.list(r, interface));
    let networks = section.or(reader, "networks", Vec::new(), |r, i| i.list(r, network));
    let port = section.or(reader, "port", 7900, |r, i| i.integer(r, 1..=65_534));
    let rate = section.or(reader, "rate", None, |r, i| i.rate(r));
    let burst = section.or(reader, "burst", Span::from_millis(20), |r, i| {
        positive_span(r, i, Span::from_secs(60))
    });
    let round_trip = section.or(reader, "round_trip", Span::from_millis(600), |r, i| {
        positive_span(r, i, Span::from_secs(60))
    });
    let congestion = section.or(reader, "congestion", None, |r, i| congestion(r, i).map(Some));
    let window =
        section.or(reader, "initial_window", None, |r, i| i.integer(r, 1..=1000).map(Some));
    let mtu = section.or(reader, "mtu", 1500, |r, i| i.integer(r, 576..=9000));
    let overhead = section.or(reader, "overhead", 0, |r, i| i.integer(r, 0..=500));
    let source = section.or(reader, "source", SourceMode::Client, |r, i| i.word(r, &SOURCES));
    let include_ports = section.or(reader, "include_ports", Vec::new(), |r, i| i.list(r, ports));
    let exclude_ports = section.or(reader, "exclude_ports", Vec::new(), |r, i| i.list(r, ports));
    let exclude = section.or(reader, "exclude", Vec::new(), |r, i| i.list(r, network));
    needs_networks(reader, &section, &network_side, &networks, window);
    section.finish(reader);
    Some(SingleSection {
        id: id?,
        satellite: satellite?,
        network: network_side?,
        networks: networks?,
        port: port? as u16,
        rate: rate?,
        burst: burst?,
        round_trip: round_trip?,
        congestion: congestion?,
        initial_window: window?,
        mtu: mtu?,
        overhead: overhead?,
        source: source?,
        include_ports: include_ports?,
        exclude_ports: exclude_ports?,
        exclude: exclude?,
    })
}

/// Checks that `networks` is set if a key depends on it.
fn needs_networks(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    network: &Option<Vec<String>>,
    networks: &Option<Vec<Prefix>>,
    window: Option<Option<u32>>,
) {
    if networks.as_ref().is_none_or(|networks| !networks.is_empty()) {
        return;
    }
    let expected = "the networks beyond the satellite, such as [\"10.1.0.0/24\"]";
    let wants = |key: &str| format!("{expected}: single.{key} depends on them");
    if network.as_ref().is_some_and(|interfaces| !interfaces.is_empty()) {
        reader.mistake(section.line(), "single.networks", "none", &wants("network"));
    } else if window.flatten().is_some() {
        reader.mistake(section.line(), "single.networks", "none", &wants("initial_window"));
    }
}

fn congestion(reader: &mut Reader<'_>, item: Item<'_>) -> Option<String> {
    let expected = "the name of a congestion control of the kernel's, such as \"bbr\"";
    item.parsed(reader, expected, |text| {
        let fits = (1..=15).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        fits.then(|| text.to_owned())
    })
}
