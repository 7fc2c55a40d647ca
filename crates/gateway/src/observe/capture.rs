//! Captures as pcapng: XSTP segments in the clear, between addresses that represent the gateways.
//!
//! Wireshark needs lower layers, and the real ones carry sealed datagrams. So each segment gets
//! artificial IPv4 and UDP headers: the hub is 192.0.2.1, terminals are 198.18.0.1 and so on in the
//! order of their first packets, and both ports are [`PORT`], which selects the dissector. The file
//! has names for the addresses.

use relay::{Direction, Tapped};
use rt::pcap::{self, LinkType};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// UDP port of XSTP in the clear, in captures only.
pub const PORT: u16 = 9721;
const HUB: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const HEADERS: usize = 28;
/// Maximum unread output of a client in bytes, above which packets are dropped.
pub(super) const MAX_PENDING: usize = 4 << 20;
/// Maximum bytes captured in one round of the loop.
pub(super) const MAX_ROUND: usize = 8 << 20;

/// A capture that is being written to a client.
#[derive(Debug)]
pub(super) struct Capture {
    is_hub: bool,
    /// Name of a terminal.
    own: String,
    addresses: BTreeMap<String, Ipv4Addr>,
    /// Number of packets until the end.
    left: u64,
    packets: u64,
    dropped: u64,
}

impl Capture {
    /// Starts a capture and writes its first blocks to `out`.
    pub(super) fn new(is_hub: bool, own: &str, count: Option<u64>, out: &mut Vec<u8>) -> Self {
        pcap::header(LinkType::Ip, "inner", out);
        pcap::names(&[(HUB, "hub")], out);
        Self {
            is_hub,
            own: own.into(),
            addresses: BTreeMap::new(),
            left: count.unwrap_or(u64::MAX),
            packets: 0,
            dropped: 0,
        }
    }

    /// Whether the requested number of packets is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Writes a packet to `out`, which is full when it holds `room` bytes.
    pub(super) fn packet(
        &mut self,
        terminal: Option<&str>,
        tapped: &Tapped<'_>,
        epoch_unix_ns: u64,
        room: usize,
        out: &mut Vec<u8>,
    ) {
        if self.left == 0 {
            return;
        }
        self.packets += 1;
        if out.len() + tapped.segment.len() + 200 > room {
            self.dropped += 1;
            return;
        }
        self.left -= 1;
        let name = terminal.unwrap_or(if self.is_hub { "?" } else { &self.own });
        let terminal = match self.addresses.get(name) {
            Some(&address) => address,
            None => {
                let name = name.to_owned();
                self.name(&name, out)
            }
        };
        let up = self.is_hub == (tapped.direction == Direction::In);
        let ends = if up { [terminal, HUB] } else { [HUB, terminal] };
        let way = match tapped.direction {
            Direction::In => pcap::Direction::Inbound,
            Direction::Out => pcap::Direction::Outbound,
        };
        let headers = headers(ends, tapped.segment.len());
        let stamp = epoch_unix_ns + tapped.at.as_nanos();
        pcap::packet(stamp, way, &[&headers, tapped.segment], out);
    }

    /// Returns an address for a new terminal.
    fn name(&mut self, name: &str, out: &mut Vec<u8>) -> Ipv4Addr {
        // All terminals of one time fit; names of earlier ones are reused.
        let number = (self.addresses.len() % 65_000) as u32 + 1;
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + number);
        if self.addresses.len() < 65_000 {
            self.addresses.insert(name.to_owned(), address);
        }
        pcap::names(&[(address, name)], out);
        address
    }

    /// Ends the capture with a block of statistics: packets, and missing ones, of which `missed` were
    /// lost before this point.
    pub(super) fn end(&self, unix_ns: u64, missed: u64, out: &mut Vec<u8>) {
        pcap::statistics(unix_ns, self.packets + missed, self.dropped + missed, out);
    }
}

/// Returns IPv4 and UDP headers for a payload of `len` bytes.
fn headers([from, to]: [Ipv4Addr; 2], len: usize) -> [u8; HEADERS] {
    let mut out = [0; HEADERS];
    let total = u16::try_from(HEADERS + len).unwrap_or(u16::MAX);
    out[0] = 0x45;
    out[2..4].copy_from_slice(&total.to_be_bytes());
    // DF; TTL 64; UDP.
    out[6] = 0x40;
    (out[8], out[9]) = (64, 17);
    out[12..16].copy_from_slice(&from.octets());
    out[16..20].copy_from_slice(&to.octets());
    let sum: u32 =
        out[..20].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    out[20..22].copy_from_slice(&PORT.to_be_bytes());
    out[22..24].copy_from_slice(&PORT.to_be_bytes());
    // No checksum, which UDP permits over IPv4.
    out[24..26].copy_from_slice(&(total - 20).to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Instant;

    #[test]
    fn packets_go_between_the_right_addresses_until_there_is_no_room() {
        let mut out = Vec::new();
        let mut capture = Capture::new(true, "hub", Some(3), &mut out);
        let begun = out.len();
        let segment = [1; 500];
        let tapped = |direction| Tapped {
            at: Instant::from_nanos(5),
            peer: None,
            path: 0,
            direction,
            segment: &segment,
        };
        capture.packet(Some("boat"), &tapped(Direction::In), 1000, 1 << 20, &mut out);
        let up: &[u8] = &[198, 18, 0, 1, 192, 0, 2, 1, 0x25, 0xf9, 0x25, 0xf9];
        assert!(out.windows(up.len()).any(|window| window == up));
        assert!(out[begun..].windows(4).any(|window| window == b"boat"));
        capture.packet(Some("bus"), &tapped(Direction::Out), 1000, 1 << 20, &mut out);
        let down: &[u8] = &[192, 0, 2, 1, 198, 18, 0, 2];
        assert!(out.windows(down.len()).any(|window| window == down));
        let full = out.len();
        capture.packet(Some("bus"), &tapped(Direction::Out), 1000, full, &mut out);
        assert_eq!((out.len(), capture.dropped, capture.is_complete()), (full, 1, false));
        capture.packet(Some("bus"), &tapped(Direction::Out), 1000, 1 << 20, &mut out);
        assert!(capture.is_complete());
    }

    #[test]
    fn the_headers_are_ones_that_a_kernel_would_take() {
        let headers = headers([HUB, Ipv4Addr::new(198, 18, 0, 9)], 100);
        let sum: u32 =
            headers[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        assert_eq!(headers[2..4], [0, 128]);
        assert_eq!(headers[24..26], [0, 108]);
    }
}
