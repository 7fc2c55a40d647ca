//! The compressed fields of a packet's two headers, and their encoding.

use alloc::vec::Vec;

/// Octets of the longest IPv4 header and the ports.
pub(super) const LONGEST_STATIC: usize = 60 + 4;

/// Octets of XSTP's published header.
pub(super) const XSTP: usize = 16;
const PROTOCOL: u8 = 253;

/// The first octet of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Full,
    Short,
    Request,
}

impl Kind {
    pub(super) fn octet(self, context: usize, generation: u8) -> u8 {
        let kind: u8 = match self {
            Self::Plain => 0,
            Self::Full => 1,
            Self::Short => 2,
            Self::Request => 3,
        };
        kind << 6 | (context as u8 & 7) << 3 | (generation & 7)
    }

    /// Kind, context and generation.
    pub(super) fn split(octet: u8) -> (Self, usize, u8) {
        let kind = match octet >> 6 {
            0 => Self::Plain,
            1 => Self::Full,
            2 => Self::Short,
            _ => Self::Request,
        };
        (kind, usize::from(octet >> 3 & 7), octet & 7)
    }
}

/// The constant part of a flow's headers: the IPv4 header with length, identification and checksum
/// set to zero, and both ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Static {
    octets: [u8; LONGEST_STATIC],
    ipv4: usize,
}

/// The fields that are encoded by their low bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moving {
    pub(super) identification: u16,
    /// 24 bits.
    pub(super) number: u32,
    pub(super) timestamp: u32,
}

/// All fields of a compressible packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) fixed: Static,
    pub(super) moving: Moving,
    pub(super) kinds: u8,
    pub(super) window: u16,
    pub(super) checksum: u16,
}

impl Fields {
    /// The fields of `packet`, and its payload; `None` if it is not compressible (CMP-1.1.1).
    pub(super) fn of(packet: &[u8]) -> Option<(Self, &[u8])> {
        let ipv4 = usize::from(packet.first()? & 15) * 4;
        let (head, payload) = packet.split_at_checked(ipv4 + XSTP)?;
        let total = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let whole = head[0] >> 4 == 4 && ipv4 >= 20 && total == packet.len();
        let fragment = head[6] & 0x3f != 0 || head[7] != 0;
        if !whole || fragment || head[9] != PROTOCOL {
            return None;
        }
        let (ip, xstp) = head.split_at(ipv4);
        let mut octets = [0; LONGEST_STATIC];
        octets[..ipv4].copy_from_slice(ip);
        octets[2..6].fill(0);
        octets[10..12].fill(0);
        if checksum(&octets[..ipv4], &head[2..6]) != [ip[10], ip[11]] {
            return None;
        }
        octets[ipv4..ipv4 + 4].copy_from_slice(&xstp[..4]);
        let fields = Self {
            fixed: Static { octets, ipv4 },
            moving: Moving {
                identification: u16::from_be_bytes([ip[4], ip[5]]),
                number: u32::from_be_bytes([0, xstp[5], xstp[6], xstp[7]]),
                timestamp: u32::from_be_bytes([xstp[12], xstp[13], xstp[14], xstp[15]]),
            },
            kinds: xstp[4],
            window: u16::from_be_bytes([xstp[8], xstp[9]]),
            checksum: u16::from_be_bytes([xstp[10], xstp[11]]),
        };
        Some((fields, payload))
    }

    /// The packet with these fields and `payload`; `None` if it would be too long.
    pub(super) fn packet(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let Static { octets, ipv4 } = &self.fixed;
        let total = u16::try_from(ipv4 + XSTP + payload.len()).ok()?;
        let mut packet = Vec::with_capacity(usize::from(total));
        packet.extend_from_slice(&octets[..*ipv4]);
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet[4..6].copy_from_slice(&self.moving.identification.to_be_bytes());
        let sum = checksum(&octets[..*ipv4], &packet[2..6]);
        packet[10..12].copy_from_slice(&sum);
        packet.extend_from_slice(&octets[*ipv4..*ipv4 + 4]);
        packet.push(self.kinds);
        packet.extend_from_slice(&self.moving.number.to_be_bytes()[1..]);
        packet.extend_from_slice(&self.window.to_be_bytes());
        packet.extend_from_slice(&self.checksum.to_be_bytes());
        packet.extend_from_slice(&self.moving.timestamp.to_be_bytes());
        packet.extend_from_slice(payload);
        Some(packet)
    }
}

/// IPv4's checksum of `header`, whose checksum and the four octets `rest` are zero.
fn checksum(header: &[u8], rest: &[u8]) -> [u8; 2] {
    let pairs = header.chunks_exact(2).chain(rest.chunks_exact(2));
    let sum: u32 = pairs.map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    (!(sum as u16)).to_be_bytes()
}

/// CMP-2.2.4: the CRC of a packet's first `len` octets.
pub(super) fn crc(packet: &[u8], len: usize) -> u8 {
    packet[..len].iter().fold(0xff, |crc, octet| {
        (0..8).fold(crc ^ octet, |crc, _| if crc & 0x80 == 0 { crc << 1 } else { crc << 1 ^ 7 })
    })
}

/// Octets of both headers of a compressible packet.
pub(super) fn head(fields: &Fields) -> usize {
    fields.fixed.ipv4 + XSTP
}

/// CMP-2.2.3: the value of a field of `width` bits whose low `bits` bits are `low`, given the last
/// value `reference`.
pub(super) fn meant(reference: u32, low: u32, bits: u32, width: u32) -> u32 {
    let size = 1_u32 << bits;
    let first = reference.wrapping_sub(size / 4);
    let value = first.wrapping_add(low.wrapping_sub(first) & (size - 1));
    if width == 32 { value } else { value & ((1 << width) - 1) }
}
