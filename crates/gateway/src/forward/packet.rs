//! Source, destination and ports of IP packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Ends of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) source: IpAddr,
    /// Destination address, with the port of TCP and UDP; port 0 for others and where it is hidden.
    pub(crate) destination: SocketAddr,
    /// Protocol number after all extension headers that could be read.
    pub(crate) protocol: u8,
    /// Source port of TCP and UDP; 0 for others and where it is hidden.
    pub(crate) source_port: u16,
    /// Whether the payload may have a port that this packet does not contain: a later fragment, a
    /// truncated header, or more extension headers than are read.
    pub(crate) port_is_hidden: bool,
    /// Whether its headers route it on from its destination (source routing).
    pub(crate) goes_on: bool,
}

/// Protocol number of UDP.
pub(crate) const UDP: u8 = 17;
const TCP: u8 = 6;
/// Other protocols whose headers begin with ports: DCCP, SCTP and UDP-Lite. Rules on ports apply
/// to them as well.
const OTHERS_WITH_PORTS: [u8; 3] = [33, 132, 136];
/// IPv6 extension headers (RFC 8200 4) and AH (RFC 4302), by number.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
/// Mobility, HIP and Shim6: extension headers of the same shape (RFC 6275, 7401, 5533).
const OTHERS_ON_THE_WAY: [u8; 3] = [135, 139, 140];
/// Maximum number of extension headers that are read; real packets have fewer.
const MOST_HEADERS: usize = 8;

impl Ends {
    /// Parses a packet; `None` if it is not a complete IP packet.
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        let Parts { source, destination, inner, goes_on } = match packet.first()? >> 4 {
            4 => v4(packet)?,
            6 => v6(packet)?,
            _ => return None,
        };
        let (protocol, ports, port_is_hidden) = match inner {
            Inner::Begins(protocol, begin) if has_ports(protocol) => {
                let ports = begin.first_chunk::<4>().copied();
                (protocol, ports.unwrap_or_default(), ports.is_none())
            }
            Inner::Begins(protocol, _) => (protocol, [0; 4], false),
            Inner::Hidden(protocol) => (protocol, [0; 4], true),
        };
        let [a, b, c, d] = ports;
        Some(Self {
            source,
            destination: SocketAddr::new(destination, u16::from_be_bytes([c, d])),
            protocol,
            source_port: u16::from_be_bytes([a, b]),
            port_is_hidden,
            goes_on,
        })
    }

    /// Whether it is between two hosts: neither broadcast nor multicast nor link-local.
    pub(crate) fn is_between_hosts(&self) -> bool {
        let host = |address: IpAddr| match address {
            IpAddr::V4(ip) => {
                let many = ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast();
                !many && !ip.is_loopback() && !ip.is_link_local()
            }
            IpAddr::V6(ip) => {
                let many = ip.is_unspecified() || ip.is_multicast();
                !many && !ip.is_loopback() && !ip.is_unicast_link_local()
            }
        };
        host(self.source) && host(self.destination.ip())
    }
}

fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP) || OTHERS_WITH_PORTS.contains(&protocol)
}

/// Result of reading the headers.
struct Parts<'a> {
    source: IpAddr,
    destination: IpAddr,
    inner: Inner<'a>,
    goes_on: bool,
}

/// Payload of a packet.
enum Inner<'a> {
    /// This protocol, with its first byte.
    Begins(u8, &'a [u8]),
    /// This protocol or further headers from this number on, without the first byte.
    Hidden(u8),
}

fn v4(packet: &[u8]) -> Option<Parts<'_>> {
    let header = packet.first_chunk::<20>()?;
    let (length, total) = (
        usize::from(header[0] & 0x0f) * 4,
        usize::from(u16::from_be_bytes([header[2], header[3]])),
    );
    if length < 20 || total != packet.len() || length > total {
        return None;
    }
    let address = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]))
    };
    let protocol = header[9];
    let first = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
    let inner = match (first, protocol) {
        (true, AUTHENTICATION) => walk(protocol, &packet[length..]).0,
        (true, _) => Inner::Begins(protocol, &packet[length..]),
        // A later fragment has no ports.
        (false, _) => later(protocol),
    };
    let goes_on = is_source_routed(&packet[20..length]);
    Some(Parts { source: address(12), destination: address(16), inner, goes_on })
}

/// Whether IPv4 options have a source route (RFC 791: loose or strict); also true if they are
/// malformed.
fn is_source_routed(mut options: &[u8]) -> bool {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    const LOOSE: u8 = 131;
    const STRICT: u8 = 137;
    while let [kind, rest @ ..] = options {
        options = match *kind {
            END => return false,
            NOTHING => rest,
            LOOSE | STRICT => return true,
            _ => {
                let length = rest.first().copied().map_or(0, usize::from);
                match options.get(length..) {
                    Some(rest) if length >= 2 => rest,
                    Some(_) | None => return true,
                }
            }
        };
    }
    false
}

fn v6(packet: &[u8]) -> Option<Parts<'_>> {
    let header = packet.first_chunk::<40>()?;
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if payload + 40 != packet.len() {
        return None;
    }
    let address = |at: usize| {
        let bytes: [u8; 16] = core::array::from_fn(|index| header[at + index]);
        IpAddr::V6(Ipv6Addr::from(bytes))
    };
    let (inner, goes_on) = walk(header[6], &packet[40..]);
    Some(Parts { source: address(8), destination: address(24), inner, goes_on })
}

/// Reads extension headers from `next` on; returns the payload, and whether one of them is a
/// source route.
fn walk(mut next: u8, mut rest: &[u8]) -> (Inner<'_>, bool) {
    let mut goes_on = false;
    for _ in 0..MOST_HEADERS {
        let is_header =
            matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION)
                || OTHERS_ON_THE_WAY.contains(&next);
        if !is_header {
            return (Inner::Begins(next, rest), goes_on);
        }
        let Some(&[after, length, a, b]) = rest.first_chunk::<4>() else {
            return (Inner::Hidden(next), goes_on);
        };
        let length = match next {
            FRAGMENT if u16::from_be_bytes([a, b]) >> 3 != 0 => return (later(after), goes_on),
            FRAGMENT => 8,
            AUTHENTICATION => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        // Segments left, RFC 8200 4.4.
        goes_on |= next == ROUTING && b != 0;
        let Some(behind) = rest.get(length..) else { return (Inner::Hidden(next), goes_on) };
        (next, rest) = (after, behind);
    }
    (Inner::Hidden(next), goes_on)
}

/// Returns the payload of a later fragment with `protocol` after the fragment header. A protocol
/// without ports hides none.
fn later<'a>(protocol: u8) -> Inner<'a> {
    const WITHOUT: [u8; 4] = [1, 50, 58, 47]; // ICMP, ESP, ICMPv6, GRE
    if WITHOUT.contains(&protocol) { Inner::Begins(protocol, &[]) } else { Inner::Hidden(protocol) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ends_of_packets() {
        let mut packet = vec![0x45, 0, 0, 30, 0, 0, 0, 0, 64, UDP, 0, 0, 10, 1, 0, 2, 10, 3, 0, 2];
        packet.extend([0x1b, 0x58, 0, 53, 0, 10, 0, 0, 1, 2]);
        let ends = Ends::of(&packet).unwrap();
        assert_eq!(ends.source, IpAddr::from([10, 1, 0, 2]));
        assert_eq!(ends.destination, "10.3.0.2:53".parse().unwrap());
        assert_eq!((ends.protocol, ends.source_port), (UDP, 7000));
        assert!(ends.is_between_hosts());
        packet[7] = 1;
        assert_eq!(Ends::of(&packet).unwrap().destination.port(), 0, "a later fragment");
        packet[16] = 224;
        assert!(!Ends::of(&packet).unwrap().is_between_hosts());
        packet.pop();
        assert_eq!(Ends::of(&packet), None, "cut off");
        let mut packet = vec![0x60, 0, 0, 0, 0, 4, 50, 64];
        packet.extend([0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend([0xfd, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend([1, 2, 3, 4]);
        let ends = Ends::of(&packet).unwrap();
        assert_eq!((ends.protocol, ends.source_port), (50, 0));
        assert_eq!(ends.destination, "[fd00:3::2]:0".parse().unwrap());
        packet[24] = 0xff;
        assert!(!Ends::of(&packet).unwrap().is_between_hosts());
    }

    /// An IPv6 packet to `[fd00:3::2]` whose first header is `next`.
    fn v6_packet(next: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u16).to_be_bytes();
        let mut packet = vec![0x60, 0, 0, 0, length[0], length[1], next, 64];
        packet.extend([0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend([0xfd, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend(payload);
        packet
    }

    /// UDP from port 7000 to port 53.
    const INSIDE: [u8; 8] = [0x1b, 0x58, 0, 53, 0, 8, 0, 0];

    #[test]
    fn extension_headers_hide_no_port() {
        let options = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
        let fragment = |next: u8| [next, 0, 0, 1, 0, 0, 0, 7];
        let authentication = |next: u8| [&[next, 4, 0, 0][..], &[7; 20]].concat();
        let routing = |next: u8, left: u8| [&[next, 2, 4, left][..], &[0; 20]].concat();
        let all = [
            &options(ROUTING)[..],
            &routing(DESTINATION, 0),
            &options(AUTHENTICATION),
            &authentication(FRAGMENT),
            &fragment(UDP),
            &INSIDE,
        ];
        let packet = v6_packet(HOP_BY_HOP, &all.concat());
        let ends = Ends::of(&packet).unwrap();
        assert_eq!(ends.destination, "[fd00:3::2]:53".parse().unwrap());
        assert_eq!((ends.protocol, ends.source_port), (UDP, 7000));
        assert!(!ends.port_is_hidden && !ends.goes_on);
        // A truncated chain, and one of too many headers, hide their payload; no others do.
        let cut = v6_packet(HOP_BY_HOP, &[&options(TCP)[..], &INSIDE[..3]].concat());
        assert!(Ends::of(&cut).unwrap().port_is_hidden);
        let cut = v6_packet(HOP_BY_HOP, &[TCP, 9, 0, 0, 0, 0, 0, 0]);
        assert!(Ends::of(&cut).unwrap().port_is_hidden);
        let endless = [options(DESTINATION); 40].concat();
        assert!(Ends::of(&v6_packet(DESTINATION, &endless)).unwrap().port_is_hidden);
        let ping = Ends::of(&v6_packet(58, &[128, 0])).unwrap();
        assert!(ping.protocol == 58 && !ping.port_is_hidden);
    }

    #[test]
    fn later_fragments_hide_their_port() {
        let later = v6_packet(FRAGMENT, &[UDP, 0, 0, 8 | 1, 0, 0, 0, 7, 1, 2, 3, 4]);
        let ends = Ends::of(&later).unwrap();
        assert!(ends.port_is_hidden && ends.protocol == UDP && ends.destination.port() == 0);
        let sealed = v6_packet(FRAGMENT, &[50, 0, 0, 8 | 1, 0, 0, 0, 7, 1, 2, 3, 4]);
        assert!(!Ends::of(&sealed).unwrap().port_is_hidden);
        let mut v4 = vec![0x45, 0, 0, 28, 0, 0, 0, 3, 64, TCP, 0, 0, 10, 1, 0, 2, 10, 3, 0, 2];
        v4.extend(INSIDE);
        assert!(Ends::of(&v4).unwrap().port_is_hidden);
        v4[7] = 0;
        assert!(!Ends::of(&v4).unwrap().port_is_hidden);
        v4.truncate(23);
        v4[3] = 23;
        assert!(Ends::of(&v4).unwrap().port_is_hidden, "three bytes of a header");
    }

    #[test]
    fn source_routes_are_detected() {
        for (left, goes_on) in [(0, false), (1, true)] {
            let routing = [&[UDP, 2, 0, left][..], &[0; 20], &INSIDE].concat();
            assert_eq!(Ends::of(&v6_packet(ROUTING, &routing)).unwrap().goes_on, goes_on);
        }
        let with = |options: [u8; 8]| {
            let mut v4 = vec![0x47, 0, 0, 36, 0, 0, 0, 0, 64, UDP, 0, 0, 10, 1, 0, 2, 10, 3, 0, 2];
            v4.extend(options);
            v4.extend(INSIDE);
            let ends = Ends::of(&v4).unwrap();
            assert_eq!(ends.destination.port(), 53);
            ends.goes_on
        };
        assert!(with([131, 7, 4, 192, 0, 2, 9, 0]) && with([1, 137, 7, 4, 192, 0, 2, 9]));
        assert!(with([7, 0, 0, 0, 0, 0, 0, 0]), "not to be read");
        assert!(!with([7, 4, 4, 0, 0, 0, 0, 0]) && !with([1, 1, 1, 1, 148, 4, 0, 0]));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_parsed_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            Ends::of(&bytes);
        }
    }
}
