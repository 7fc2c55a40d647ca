//! `[forward]`: packets that are forwarded unsplit, at terminals and hubs.

use super::items;
use super::read::{read_bool, read_marking};
use super::reader::{Item, Reader, Section};
use super::{Marking, values};
use crate::intercept::{PortRange, Prefix};

/// Packets that are forwarded unsplit, in addition to the relayed connections.
#[derive(Clone, Debug, Default)]
pub struct ForwardSection {
    /// Identifies this gateway's entries in the kernel's tables.
    pub id: String,
    /// The TUN interface.
    pub device: String,
    /// The MTU of the TUN interface, bytes.
    pub mtu: u32,
    /// At a terminal, the clients' interfaces; `lan*` is allowed.
    pub interfaces: Vec<String>,
    /// Numbers of the protocols that are forwarded; empty: all.
    pub protocols: Vec<u8>,
    /// Destinations that are forwarded; empty: all.
    pub include: Vec<Prefix>,
    /// Destinations that are not forwarded.
    pub exclude: Vec<Prefix>,
    /// Ports of TCP and UDP that are forwarded; empty: all.
    pub include_ports: Vec<PortRange>,
    /// Ports of TCP and UDP that are not forwarded.
    pub exclude_ports: Vec<PortRange>,
    /// Protocols and ports that are refused with an ICMP message.
    pub refuse: Vec<(u8, PortRange)>,
    /// At a hub, the networks of its terminals.
    pub networks: Vec<Prefix>,
    /// Mark, routing table and rule priority, where they are not the defaults.
    pub marking: Marking,
    /// Whether headers are compressed on the way to the other gateway.
    pub compress_headers: bool,
    /// What is done to TCP connections among the packets.
    pub tcp: ForwardTcp,
}

/// What a gateway does to TCP connections that it forwards unsplit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardTcp {
    /// Whether data of hosts on this side is acknowledged early, and repaired from here.
    pub spoof: bool,
    /// Memory for copies of their segments, bytes.
    pub spoof_memory: u64,
    /// Whether superseded acknowledgements are removed from the queue to the peer.
    pub filter_acks: bool,
    /// Whether acknowledgements to hosts on this side are regenerated and spaced.
    pub space_acks: bool,
}

/// Memory for copies of segments, if the configuration does not have a value, bytes.
const SPOOF_MEMORY: u64 = 64_000_000;
/// Names of IP protocols and their numbers.
const PROTOCOLS: [(&str, &[u8]); 8] = [
    ("tcp", &[6]),
    ("udp", &[17]),
    ("icmp", &[1, 58]),
    ("esp", &[50]),
    ("ah", &[51]),
    ("gre", &[47]),
    ("sctp", &[132]),
    ("igmp", &[2]),
];

/// Reads the table. At a hub it has the networks for replies instead of a selection of packets.
pub(super) fn read(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
    hub: bool,
) -> Option<Option<ForwardSection>> {
    let Some(mut section) = top.section(reader, "forward") else { return Some(None) };
    let usual = if hub { "hub_forward" } else { "terminal_forward" };
    let id = section.or(reader, "id", usual.into(), items::id);
    let device = section.or(reader, "device", "bentpipe0".into(), device);
    let mtu = section.or(reader, "mtu", 1500, |r, i| i.integer(r, 1280..=9000));
    let marking = read_marking(reader, &mut section);
    let compress_headers = section.or(reader, "compress_headers", false, |r, i| read_bool(r, &i));
    let tcp = read_tcp(reader, &mut section);
    let mut all = ForwardSection {
        id: id?,
        device: device?,
        mtu: mtu?,
        marking: marking?,
        compress_headers: compress_headers?,
        tcp: tcp?,
        ..ForwardSection::default()
    };
    if hub {
        let expected = "the terminals' networks, such as [\"10.1.0.0/24\"]";
        all.networks = section
            .required(reader, "networks", expected, |r, i| i.some(r, expected, items::network))?;
    } else {
        let expected = "the clients' interfaces, such as [\"lan0\"]";
        all.interfaces = section.required(reader, "interfaces", expected, |r, i| {
            i.some(r, expected, items::interface)
        })?;
        let protocols = section.or(reader, "protocols", Vec::new(), |r, i| i.list(r, protocol));
        all.protocols = protocols?.concat();
        all.include =
            section.or(reader, "include", Vec::new(), |r, i| i.list(r, items::network))?;
        all.exclude =
            section.or(reader, "exclude", Vec::new(), |r, i| i.list(r, items::network))?;
        all.include_ports =
            section.or(reader, "include_ports", Vec::new(), |r, i| i.list(r, items::ports))?;
        all.exclude_ports =
            section.or(reader, "exclude_ports", Vec::new(), |r, i| i.list(r, items::ports))?;
        all.refuse = section.or(reader, "refuse", Vec::new(), |r, i| i.list(r, refused))?;
    }
    section.finish(reader);
    Some(Some(all))
}

fn read_tcp(reader: &mut Reader<'_>, section: &mut Section<'_>) -> Option<ForwardTcp> {
    let spoof = section.or(reader, "spoof", false, |r, i| read_bool(r, &i));
    let spoof_memory = section.or(reader, "spoof_memory", SPOOF_MEMORY, |r, i| {
        i.parsed(r, values::MEMORY, values::memory)
    });
    let filter_acks = section.or(reader, "filter_acks", false, |r, i| read_bool(r, &i));
    let space_acks = section.or(reader, "space_acks", false, |r, i| read_bool(r, &i));
    Some(ForwardTcp {
        spoof: spoof?,
        spoof_memory: spoof_memory?,
        filter_acks: filter_acks?,
        space_acks: space_acks?,
    })
}

fn device(reader: &mut Reader<'_>, item: Item<'_>) -> Option<String> {
    item.parsed(reader, "a name for an interface, such as \"bentpipe0\"", |text| {
        let fits = (1..=15).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        fits.then(|| text.to_owned())
    })
}

fn protocol(reader: &mut Reader<'_>, item: Item<'_>) -> Option<Vec<u8>> {
    let expected =
        "a protocol: \"udp\", \"icmp\", \"esp\", \"ah\", \"gre\", \"sctp\", \"tcp\", or its number";
    item.text(reader, expected, |text| {
        let named = PROTOCOLS.iter().find(|(name, _)| *name == text);
        named.map(|(_, numbers)| numbers.to_vec()).or_else(|| Some(vec![text.parse().ok()?]))
    })
}

/// Reads one entry of `refuse`, such as `udp/443` or `tcp/8000-8080`.
fn refused(reader: &mut Reader<'_>, item: Item<'_>) -> Option<(u8, PortRange)> {
    let expected = format!("\"udp/\" or \"tcp/\" and {}", values::PORTS);
    item.parsed(reader, &expected, |text| match text.split_once('/')? {
        ("udp", ports) => Some((17, ports.parse().ok()?)),
        ("tcp", ports) => Some((6, ports.parse().ok()?)),
        _ => None,
    })
}
