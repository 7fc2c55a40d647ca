//! A client's SYN, and the packets that reject it.
//!
//! ```text
//!   IPv4  0 version, length  8 TTL, protocol, checksum  12 from   16 to    20 options … TCP
//!   IPv6  0 version          6 next header              8  from   24 to    40 extensions … TCP
//!   TCP   0 ports   4 number   8 acknowledged   12 length, flags, window   16 checksum   20 options
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const TCP: u8 = 6;
/// Maximum length of a SYN with its data, in octets.
const LONGEST: usize = 2048;
/// FIN, SYN, RST and ACK of a TCP header's flags.
const FLAGS: u8 = 0x17;
const SYN: u8 = 0x02;

/// A link-layer address, padded with zeroes.
pub(crate) type Neighbour = [u8; 8];

/// The first packet of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Syn {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    /// Link-layer sender, if reported: the client or a router before it.
    pub(crate) neighbour: Option<Neighbour>,
    /// The packet from the network header on, with a valid TCP checksum.
    packet: Vec<u8>,
    /// Offset of the TCP header.
    tcp: usize,
}

/// Reason of an ICMP "destination unreachable".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreachable {
    Network,
    Host,
    /// Administratively prohibited.
    Prohibited,
}

impl Syn {
    /// Parses a packet; `None` if it is not a complete SYN with a valid checksum. A checksum that the
    /// sender left to offloading hardware (on a virtual interface) is completed.
    pub(crate) fn parse(packet: &[u8]) -> Option<Self> {
        let (from, to, tcp, end) = match packet.first()? >> 4 {
            4 => parse_v4(packet)?,
            6 => parse_v6(packet)?,
            _ => return None,
        };
        let mut packet = packet.get(..end).filter(|packet| packet.len() <= LONGEST)?.to_vec();
        let header = packet.get(tcp..tcp + 20)?;
        let length = usize::from(header[12] >> 4) * 4;
        if header[13] & FLAGS != SYN || length < 20 || tcp + length > packet.len() {
            return None;
        }
        let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let (client, server) = (SocketAddr::new(from, port(0)), SocketAddr::new(to, port(2)));
        if client.port() == 0 || server.port() == 0 {
            return None;
        }
        let pseudo = pseudo_header(from, to, TCP, packet.len() - tcp);
        let found = u16::from_be_bytes([packet[tcp + 16], packet[tcp + 17]]);
        packet[tcp + 16..tcp + 18].fill(0);
        let right = !fold(pseudo + sum(&packet[tcp..]));
        // An offloaded checksum holds the sum of the pseudo header, not complemented.
        if found != right && found != fold(pseudo) {
            return None;
        }
        packet[tcp + 16..tcp + 18].copy_from_slice(&right.to_be_bytes());
        Some(Self { client, server, neighbour: None, packet, tcp })
    }

    /// Sets the link-layer sender.
    pub(crate) fn sent_by(self, neighbour: Option<Neighbour>) -> Self {
        Self { neighbour, ..self }
    }

    /// Returns the client's packet.
    pub(crate) fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// Returns the RST of a server that refuses, as an IP packet (RFC 9293, section 3.5.2).
    pub(crate) fn reset(&self) -> Vec<u8> {
        const RST_AND_ACK: u8 = 0x14;
        let header = &self.packet[self.tcp..];
        let number = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let data = header.len() - usize::from(header[12] >> 4) * 4;
        let mut tcp = Vec::with_capacity(20);
        tcp.extend_from_slice(&self.server.port().to_be_bytes());
        tcp.extend_from_slice(&self.client.port().to_be_bytes());
        tcp.extend_from_slice(&[0; 4]);
        // The SYN counts as one octet, beside its data.
        tcp.extend_from_slice(&number.wrapping_add(1 + data as u32).to_be_bytes());
        tcp.extend_from_slice(&[5 << 4, RST_AND_ACK, 0, 0, 0, 0, 0, 0]);
        let (from, to) = (self.server.ip(), self.client.ip());
        let checksum = !fold(pseudo_header(from, to, TCP, tcp.len()) + sum(&tcp));
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        [network_header(from, to, TCP, tcp.len()), tcp].concat()
    }

    /// Returns an ICMP "destination unreachable" (RFC 792, RFC 4443): for IPv4 an IP packet without
    /// source address and checksum, for IPv6 an ICMPv6 message without checksum; the kernel fills
    /// them in.
    pub(crate) fn unreachable(&self, what: Unreachable) -> Vec<u8> {
        const ICMP: u8 = 1;
        let v4 = self.client.is_ipv4();
        let (kind, code) = match (v4, what) {
            (true, Unreachable::Network) => (3, 0),
            (true, Unreachable::Host) => (3, 1),
            (true, Unreachable::Prohibited) => (3, 13),
            (false, Unreachable::Network) => (1, 0),
            (false, Unreachable::Host) => (1, 3),
            (false, Unreachable::Prohibited) => (1, 1),
        };
        let mut message = vec![kind, code, 0, 0, 0, 0, 0, 0];
        // As much as fits into the minimum MTU.
        message.extend_from_slice(&self.packet[..self.packet.len().min(500)]);
        if !v4 {
            return message;
        }
        let checksum = !fold(sum(&message));
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        let from = Ipv4Addr::UNSPECIFIED.into();
        [network_header(from, self.client.ip(), ICMP, message.len()), message].concat()
    }
}

/// Addresses, offset of the TCP header, end of the packet.
type Parsed = (IpAddr, IpAddr, usize, usize);

fn parse_v4(packet: &[u8]) -> Option<Parsed> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let length = usize::from(header[0] & 15) * 4;
    let end = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    if length < 20 || header[9] != TCP || fragment || end > packet.len() {
        return None;
    }
    let address = |at: usize| {
        Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]).into()
    };
    Some((address(12), address(16), length, end))
}

fn parse_v6(packet: &[u8]) -> Option<Parsed> {
    let header: &[u8; 40] = packet.first_chunk()?;
    let end = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    if end > packet.len() {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().ok()?;
        Some(IpAddr::from(Ipv6Addr::from(octets)))
    };
    let (mut protocol, mut at) = (header[6], 40);
    // Hop-by-hop, routing and destination options; a few of them at most.
    for _ in 0..8 {
        if !matches!(protocol, 0 | 43 | 60) {
            break;
        }
        let extension = packet.get(at..at + 8)?;
        protocol = extension[0];
        at += 8 + usize::from(extension[1]) * 8;
    }
    (protocol == TCP).then_some((address(8)?, address(24)?, at, end))
}

/// Returns a network header for `length` bytes of `protocol`.
fn network_header(from: IpAddr, to: IpAddr, protocol: u8, length: usize) -> Vec<u8> {
    const HOPS: u8 = 64;
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let total = (20 + length) as u16;
            let mut header = vec![0x45, 0];
            header.extend_from_slice(&total.to_be_bytes());
            // DF is set, so the identification is 0 (RFC 6864); the kernel computes the checksum.
            header.extend_from_slice(&[0, 0, 0x40, 0, HOPS, protocol, 0, 0]);
            header.extend_from_slice(&from.octets());
            header.extend_from_slice(&to.octets());
            header
        }
        (from, to) => {
            let octets = |address| match address {
                IpAddr::V4(v4) => Ipv4Addr::to_ipv6_mapped(&v4).octets(),
                IpAddr::V6(v6) => v6.octets(),
            };
            let mut header = vec![0x60, 0, 0, 0];
            header.extend_from_slice(&(length as u16).to_be_bytes());
            header.extend_from_slice(&[protocol, HOPS]);
            header.extend_from_slice(&octets(from));
            header.extend_from_slice(&octets(to));
            header
        }
    }
}

/// Returns the sum of the pseudo header.
fn pseudo_header(from: IpAddr, to: IpAddr, protocol: u8, length: usize) -> u32 {
    let of = |address| match address {
        IpAddr::V4(v4) => sum(&Ipv4Addr::octets(&v4)),
        IpAddr::V6(v6) => sum(&Ipv6Addr::octets(&v6)),
    };
    of(from) + of(to) + u32::from(protocol) + length as u32
}

/// The sum of 16-bit words (RFC 1071); no overflow below 128 kB.
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |&last| u32::from(last) << 8);
    words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u32>() + odd
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests;
