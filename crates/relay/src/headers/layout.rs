//! Where the fields of a header are, and which of them a packet has in the regular form.

use super::Profile;
use crate::pep::segment::{fold, sum};

const UDP: u8 = 17;
/// Octets of the headers of UDP and of RTP without sources.
const UDP_LEN: usize = 8;
pub(super) const RTP_LEN: usize = 12;
/// Octets of the longest header: IPv6, UDP, RTP.
pub(super) const LONGEST: usize = 40 + UDP_LEN + RTP_LEN;

/// The position of a packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) v6: bool,
    pub(super) profile: Profile,
}

impl Layout {
    /// The layout of a context, whose header begins with this octet.
    pub(super) fn of_context(first: u8, profile: Profile) -> Self {
        Self { v6: first >> 4 == 6, profile }
    }

    /// The layout of a packet whose header can be restored from its fields: an IP header without
    /// options, a length that is that of the packet, a right checksum, not a fragment. With
    /// [`Profile::Rtp`] if it may be RTP.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let v6 = match packet.first()? {
            0x45 => false,
            first if first >> 4 == 6 => true,
            _ => return None,
        };
        let ip = Self { v6, profile: Profile::Ip };
        let header = packet.get(..ip.len())?;
        let inner = packet.len() - header.len();
        let regular = if v6 {
            word(header, 4) == u16::try_from(inner).ok()?
        } else {
            word(header, 2) == u16::try_from(packet.len()).ok()?
                && word(header, 6) & 0x3fff == 0
                && word(header, 10) == header_checksum(header)
        };
        let udp = Self { v6, profile: Profile::Udp };
        let at = ip.len();
        if !regular {
            None
        } else if header[ip.protocol()] != UDP
            || packet.len() < udp.len()
            || usize::from(word(packet, at + 4)) != inner
        {
            Some(ip)
        } else {
            let rtp = packet.get(udp.len()..udp.len() + RTP_LEN);
            // RTCP has the same version, and types from 192 to 223 (RFC 5761, section 4).
            let is_rtp = rtp.is_some_and(|rtp| rtp[0] >> 6 == 2 && !(192..224).contains(&rtp[1]));
            Some(if is_rtp { Self { v6, profile: Profile::Rtp } } else { udp })
        }
    }

    /// Octets of the IP header.
    pub(super) fn ip_len(self) -> usize {
        if self.v6 { 40 } else { 20 }
    }

    /// Octets of the header.
    pub(super) fn len(self) -> usize {
        self.ip_len()
            + match self.profile {
                Profile::Ip => 0,
                Profile::Udp => UDP_LEN,
                Profile::Rtp => UDP_LEN + RTP_LEN,
            }
    }

    fn protocol(self) -> usize {
        if self.v6 { 6 } else { 9 }
    }

    /// Position of the time to live or hop limit.
    pub(super) fn hops(self) -> usize {
        if self.v6 { 7 } else { 8 }
    }

    /// Position of the UDP checksum, if the header has one.
    pub(super) fn udp_checksum(self) -> Option<usize> {
        (self.profile > Profile::Ip).then(|| self.ip_len() + 6)
    }

    /// Position of the RTP header, if there is one.
    pub(super) fn rtp(self) -> Option<usize> {
        (self.profile == Profile::Rtp).then(|| self.ip_len() + UDP_LEN)
    }

    /// Type of service or traffic class.
    pub(super) fn service(self, header: &[u8]) -> u8 {
        if self.v6 { header[0] << 4 | header[1] >> 4 } else { header[1] }
    }

    pub(super) fn set_service(self, header: &mut [u8], service: u8) {
        if self.v6 {
            header[0] = 0x60 | service >> 4;
            header[1] = service << 4 | header[1] & 0x0f;
        } else {
            header[1] = service;
        }
    }

    /// The header with zeros in place of all fields that may change between the packets of a
    /// context, and its length.
    pub(super) fn fixed(self, packet: &[u8]) -> ([u8; LONGEST], usize) {
        let mut header = [0; LONGEST];
        let len = self.len();
        header[..len].copy_from_slice(&packet[..len]);
        self.set_service(&mut header, 0);
        header[self.hops()] = 0;
        if self.v6 {
            header[4..6].fill(0);
        } else {
            header[2..6].fill(0);
            header[10..12].fill(0);
        }
        if self.udp_checksum().is_some() {
            header[self.ip_len() + 4..self.ip_len() + 8].fill(0);
        }
        if let Some(at) = self.rtp() {
            header[at + 1..at + 8].fill(0);
        }
        (header, len)
    }

    /// Writes the lengths of a packet, and the checksum of its IPv4 header.
    pub(super) fn seal(self, packet: &mut [u8]) {
        let (len, ip) = (packet.len(), self.ip_len());
        let inner = ((len - ip) as u16).to_be_bytes();
        if self.v6 {
            packet[4..6].copy_from_slice(&inner);
        } else {
            packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            let sum = header_checksum(&packet[..ip]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        if self.udp_checksum().is_some() {
            packet[ip + 4..ip + 6].copy_from_slice(&inner);
        }
    }

    /// The UDP checksum that the packet should have.
    pub(super) fn right_udp_checksum(self, packet: &[u8]) -> u16 {
        let ip = self.ip_len();
        let addresses = if self.v6 { &packet[8..40] } else { &packet[12..20] };
        let total = sum(addresses)
            + u64::from(UDP)
            + (packet.len() - ip) as u64
            + sum(&packet[ip..ip + 6])
            + sum(&packet[ip + 8..]);
        match !fold(total) {
            0 => 0xffff,
            sum => sum,
        }
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn double_word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The checksum that an IPv4 header should have.
fn header_checksum(header: &[u8]) -> u16 {
    !fold(sum(&header[..10]) + sum(&header[12..]))
}
