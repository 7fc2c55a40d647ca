//! TCP segments in IP packets: parsing, editing in place, and building (RFC 9293, 3.1; RFC 791;
//! RFC 8200; options of RFC 7323 and RFC 2018).

use super::serial;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;
pub(super) const URG: u8 = 0x20;

const TCP: u8 = 6;
const TCP_HEADER: usize = 20;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const NOP: u8 = 1;
/// Maximum shift of the window (RFC 7323, 2.3).
const MAX_SCALE: u8 = 14;
/// Maximum number of SACK blocks in 40 octets of options (RFC 2018, 3).
pub(super) const MAX_BLOCKS: usize = 4;

/// A run of sequence numbers: the first, and the one after the last.
pub(super) type Block = (u32, u32);

/// TSval and TSecr (RFC 7323, 3.2), and the offset of TSval in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timestamps {
    pub(super) at: usize,
    pub(super) value: u32,
    pub(super) echo: u32,
}

/// The blocks of a SACK option, and the offset of the option in the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sack {
    at: usize,
    blocks: [Block; MAX_BLOCKS],
    count: usize,
}

impl Sack {
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks[..self.count]
    }
}

/// The options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) scale: Option<u8>,
    pub(super) sack_permitted: bool,
    pub(super) timestamps: Option<Timestamps>,
    pub(super) sack: Sack,
    /// Whether there are options that this module does not know: Multipath TCP, MD5, TCP-AO, Fast
    /// Open, AccECN.
    pub(super) other: bool,
}

/// The headers of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    /// The AE bit of AccECN, formerly NS.
    pub(super) accurate_ecn: bool,
    pub(super) window: u16,
    /// Octets of payload.
    pub(super) payload: usize,
    pub(super) options: Options,
    /// The ECN field of the IP header (RFC 3168, 5).
    pub(super) ecn: u8,
    tcp: usize,
    header: usize,
}

impl Segment {
    /// Parses a packet. `None` for everything that is not one whole TCP segment with readable
    /// options: other protocols, fragments, truncated headers, IPv6 extension headers.
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let (tcp, source, destination, ecn) = match packet.first()? >> 4 {
            4 => v4(packet)?,
            6 => v6(packet)?,
            _ => return None,
        };
        let header = packet.get(tcp..)?.first_chunk::<TCP_HEADER>()?;
        let length = usize::from(header[12] >> 4) * 4;
        if length < TCP_HEADER || packet.len() - tcp < length {
            return None;
        }
        let word = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        Some(Self {
            source: SocketAddr::new(source, half(0)),
            destination: SocketAddr::new(destination, half(2)),
            seq: word(4),
            ack: word(8),
            flags: header[13],
            accurate_ecn: header[12] & 1 != 0,
            window: half(14),
            payload: packet.len() - tcp - length,
            options: Options::parse(packet, tcp + TCP_HEADER, tcp + length)?,
            ecn,
            tcp,
            header: tcp + length,
        })
    }

    /// Whether all flags in `flags` are set.
    pub(super) fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Sequence numbers that it occupies: octets, SYN and FIN.
    pub(super) fn len(&self) -> u32 {
        self.payload as u32 + u32::from(self.has(SYN)) + u32::from(self.has(FIN))
    }

    /// The sequence number after its last.
    pub(super) fn end(&self) -> u32 {
        self.seq.wrapping_add(self.len())
    }

    /// Whether it has ACK and no other flag than PSH, and no sequence numbers.
    pub(super) fn is_plain_ack(&self) -> bool {
        self.flags & !PSH == ACK && !self.accurate_ecn && self.payload == 0
    }

    /// Whether the TCP checksum is right.
    pub(super) fn is_intact(&self, packet: &[u8]) -> bool {
        checksum(packet, self.tcp) == 0
    }

    /// Where to edit this packet.
    pub(super) fn places(&self) -> Places {
        Places { tcp: self.tcp, timestamps: self.options.timestamps.map(|stamps| stamps.at) }
    }

    /// Replaces the SACK option by NOPs; [`Places::seal`] has to follow.
    pub(super) fn blank_sack(&self, packet: &mut [u8]) {
        let Sack { at, count, .. } = self.options.sack;
        if count > 0 {
            packet[at..at + 2 + 8 * count].fill(NOP);
        }
    }

    /// Returns the part of the segment in `from..to`, which lies in it, as a packet of its own. PSH
    /// and FIN stay with its end.
    pub(super) fn part(&self, packet: &[u8], (from, to): Block) -> Vec<u8> {
        let skipped = (serial::distance(self.seq, from) as usize).min(self.payload);
        let end = (serial::distance(self.seq, to) as usize).min(self.payload);
        let mut part = packet[..self.header].to_vec();
        part.extend(&packet[self.header + skipped..self.header + end]);
        part[self.tcp + 4..self.tcp + 8].copy_from_slice(&from.to_be_bytes());
        if to != self.end() {
            part[self.tcp + 13] &= !(FIN | PSH);
        }
        set_length(&mut part);
        self.places().seal(&mut part);
        part
    }
}

/// Where the fields are that are edited in a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    tcp: usize,
    timestamps: Option<usize>,
}

impl Places {
    /// Sets the acknowledgement number and the window field; [`seal`](Self::seal) has to follow.
    pub(super) fn set_ack(self, packet: &mut [u8], ack: u32, window: u16) {
        packet[self.tcp + 8..self.tcp + 12].copy_from_slice(&ack.to_be_bytes());
        packet[self.tcp + 14..self.tcp + 16].copy_from_slice(&window.to_be_bytes());
    }

    /// Sets TSval, if there are timestamps; [`seal`](Self::seal) has to follow.
    pub(super) fn set_value(self, packet: &mut [u8], value: u32) {
        if let Some(at) = self.timestamps {
            packet[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Sets TSecr, if there are timestamps; [`seal`](Self::seal) has to follow.
    pub(super) fn set_echo(self, packet: &mut [u8], echo: u32) {
        if let Some(at) = self.timestamps {
            packet[at + 4..at + 8].copy_from_slice(&echo.to_be_bytes());
        }
    }

    /// Computes the TCP checksum.
    pub(super) fn seal(self, packet: &mut [u8]) {
        packet[self.tcp + 16..self.tcp + 18].fill(0);
        let sum = checksum(packet, self.tcp);
        packet[self.tcp + 16..self.tcp + 18].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Makes a packet not ECN-capable, as a retransmission has to be (RFC 3168, 6.1.5).
pub(super) fn clear_ecn(packet: &mut [u8]) {
    match packet[0] >> 4 {
        4 => {
            packet[1] &= !0x03;
            seal_ipv4(packet);
        }
        _ => packet[1] &= !0x30,
    }
}

/// A segment without payload that is to be built.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bare<'a> {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    /// TSval and TSecr.
    pub(super) timestamps: Option<(u32, u32)>,
    pub(super) sack: &'a [Block],
}

impl Bare<'_> {
    /// Builds the packet: DF is set, it is not ECN-capable, and its TTL is 64.
    pub(super) fn build(&self) -> Vec<u8> {
        let mut packet = match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut header = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, TCP, 0, 0];
                header.extend(source.octets());
                header.extend(destination.octets());
                header
            }
            (source, destination) => {
                let octets = |address| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                let mut header = vec![0x60, 0, 0, 0, 0, 0, TCP, 64];
                header.extend(octets(source));
                header.extend(octets(destination));
                header
            }
        };
        let tcp = packet.len();
        packet.extend(self.source.port().to_be_bytes());
        packet.extend(self.destination.port().to_be_bytes());
        packet.extend(self.seq.to_be_bytes());
        packet.extend(self.ack.to_be_bytes());
        packet.extend([0, self.flags]);
        packet.extend(self.window.to_be_bytes());
        packet.extend([0; 4]);
        if let Some((value, echo)) = self.timestamps {
            packet.extend([NOP, NOP, 8, 10]);
            packet.extend(value.to_be_bytes());
            packet.extend(echo.to_be_bytes());
        }
        let room = (TCP_HEADER + 40 - (packet.len() - tcp)).saturating_sub(4) / 8;
        let blocks = &self.sack[..self.sack.len().min(room)];
        if !blocks.is_empty() {
            packet.extend([NOP, NOP, 5, 2 + 8 * blocks.len() as u8]);
            for (first, end) in blocks {
                packet.extend(first.to_be_bytes());
                packet.extend(end.to_be_bytes());
            }
        }
        packet[tcp + 12] = ((packet.len() - tcp) / 4) as u8 * 16;
        set_length(&mut packet);
        Places { tcp, timestamps: None }.seal(&mut packet);
        packet
    }
}

impl Options {
    /// Parses the options in `packet[at..end]`; `None` if one of them exceeds the header or has
    /// another length than it must have.
    fn parse(packet: &[u8], mut at: usize, end: usize) -> Option<Self> {
        let mut options = Self::default();
        let word =
            |at: usize| packet.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word));
        while at < end {
            let kind = packet[at];
            if kind == 0 {
                break;
            }
            if kind == NOP {
                at += 1;
                continue;
            }
            let length = usize::from(*packet[..end].get(at + 1)?);
            if length < 2 || at + length > end {
                return None;
            }
            match (kind, length) {
                (2, 4) => {}
                (3, 3) => options.scale = Some(packet[at + 2].min(MAX_SCALE)),
                (4, 2) => options.sack_permitted = true,
                (5, 10 | 18 | 26 | 34) => {
                    let mut sack = Sack { at, count: (length - 2) / 8, ..Sack::default() };
                    for (number, block) in sack.blocks[..sack.count].iter_mut().enumerate() {
                        let at = at + 2 + 8 * number;
                        *block = (word(at)?, word(at + 4)?);
                    }
                    // A second one would be edited incompletely.
                    options.other |= options.sack.count > 0;
                    options.sack = sack;
                }
                (8, 10) => {
                    options.other |= options.timestamps.is_some();
                    let (value, echo) = (word(at + 2)?, word(at + 6)?);
                    options.timestamps = Some(Timestamps { at: at + 2, value, echo });
                }
                (2..=5 | 8, _) => return None,
                (_, _) => options.other = true,
            }
            at += length;
        }
        Some(options)
    }
}

/// Offset of the TCP header, source, destination, ECN.
type Network = (usize, IpAddr, IpAddr, u8);

fn v4(packet: &[u8]) -> Option<Network> {
    let header = packet.first_chunk::<IPV4_HEADER>()?;
    let length = usize::from(header[0] & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // More fragments, or an offset.
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    if length < IPV4_HEADER || total != packet.len() || is_fragment || header[9] != TCP {
        return None;
    }
    let address = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]))
    };
    Some((length, address(12), address(16), header[1] & 3))
}

fn v6(packet: &[u8]) -> Option<Network> {
    let header = packet.first_chunk::<IPV6_HEADER>()?;
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if payload + IPV6_HEADER != packet.len() || header[6] != TCP {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 16] = core::array::from_fn(|index| header[at + index]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Some((IPV6_HEADER, address(8), address(24), header[1] >> 4 & 3))
}

/// Sets lengths and checksums of a packet whose TCP header begins at `tcp`.
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn finish(packet: &mut [u8], tcp: usize) {
    set_length(packet);
    Places { tcp, timestamps: None }.seal(packet);
}

/// Sets the length of the packet in its IP header.
fn set_length(packet: &mut [u8]) {
    if packet[0] >> 4 == 4 {
        let length = (packet.len() as u16).to_be_bytes();
        packet[2..4].copy_from_slice(&length);
        seal_ipv4(packet);
    } else {
        let length = ((packet.len() - IPV6_HEADER) as u16).to_be_bytes();
        packet[4..6].copy_from_slice(&length);
    }
}

fn seal_ipv4(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let length = usize::from(packet[0] & 0x0f) * 4;
    let sum = !fold(sum(&packet[..length]));
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// The checksum of the TCP segment from `tcp` on, with the pseudo-header; 0 if the segment contains
/// its right checksum.
fn checksum(packet: &[u8], tcp: usize) -> u16 {
    let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
    let length = (packet.len() - tcp) as u64;
    !fold(sum(addresses) + u64::from(TCP) + length + sum(&packet[tcp..]))
}

/// Sum of the 32-bit words; congruent to that of the 16-bit words (RFC 1071, 2).
pub(crate) fn sum(octets: &[u8]) -> u64 {
    let (words, rest) = octets.as_chunks::<4>();
    let sum: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum + u64::from(u32::from_be_bytes(last))
}

pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
