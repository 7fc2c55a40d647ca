//! The header fields that the emulator uses: length at the network layer, flow, ECN mark, checksum.
//! Everything else passes unparsed.
//!
//! ```text
//!   0        6        12                    14 (18 with a VLAN tag)
//!   +--------+--------+---------------------+-----------------+
//!   | to     | from   | type, or tag + type | network packet  |
//!   +--------+--------+---------------------+-----------------+
//! ```
//!
//! No unchecked length is used: a malformed packet has no flow, is not marked, and passes.

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_QINQ: u16 = 0x88a8;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Protocols whose first four bytes are two ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [TCP, UDP, 33, 132, 136];

/// Offset of the network packet in `frame`, and its EtherType. Up to two VLAN tags are skipped.
pub fn network_offset(frame: &[u8]) -> (usize, u16) {
    let mut at = 12;
    for _ in 0..2 {
        match be16(frame, at) {
            Some(ETHERTYPE_VLAN | ETHERTYPE_QINQ) => at += 4,
            _ => break,
        }
    }
    (at + 2, be16(frame, at).unwrap_or(0))
}

/// Octets of `frame` at the network layer: the length in the IP header, otherwise everything behind
/// the Ethernet header (Ethernet pads short packets).
pub fn network_len(frame: &[u8]) -> usize {
    let (offset, ethertype) = network_offset(frame);
    let packet = frame.get(offset..).unwrap_or_default();
    let claimed = match ethertype {
        ETHERTYPE_IPV4 => be16(packet, 2).map(usize::from),
        ETHERTYPE_IPV6 => be16(packet, 4).map(|len| usize::from(len) + 40),
        _ => None,
    };
    claimed.filter(|&len| (20..packet.len()).contains(&len)).unwrap_or(packet.len())
}

/// Flow identifier of `frame`: equal for equal addresses, protocol and ports. 0 for other protocols
/// than IP.
pub fn frame_flow(frame: &[u8]) -> u64 {
    let (offset, ethertype) = network_offset(frame);
    let packet = frame.get(offset..).unwrap_or_default();
    match ethertype {
        ETHERTYPE_IPV4 => flow_v4(packet),
        ETHERTYPE_IPV6 => flow_v6(packet),
        _ => 0,
    }
}

/// Sets "congestion experienced" in `frame`; false, without a change, if the packet is not
/// ECN-capable (RFC 3168).
pub fn mark_frame(frame: &mut [u8]) -> bool {
    let (offset, ethertype) = network_offset(frame);
    let packet = frame.get_mut(offset..).unwrap_or_default();
    match ethertype {
        ETHERTYPE_IPV4 => mark_v4(packet),
        ETHERTYPE_IPV6 => mark_v6(packet),
        _ => false,
    }
}

/// The ECN field of `frame` (RFC 3168, section 5); 0 if it is no IP packet.
pub fn frame_ecn(frame: &[u8]) -> u8 {
    let (offset, ethertype) = network_offset(frame);
    let second = frame.get(offset + 1).copied().unwrap_or(0);
    match ethertype {
        ETHERTYPE_IPV4 => second & 3,
        // The traffic class spans the first two octets.
        ETHERTYPE_IPV6 => second >> 4 & 3,
        _ => 0,
    }
}

/// Writes the TCP or UDP checksum that the sender left to hardware; false if there is none that
/// this function supports.
pub fn complete_checksum(frame: &mut [u8]) -> bool {
    let (offset, ethertype) = network_offset(frame);
    let len = network_len(frame);
    let packet = frame.get_mut(offset..).unwrap_or_default();
    let Some(packet) = packet.get_mut(..len) else { return false };
    let (protocol, start, addresses) = match ethertype {
        ETHERTYPE_IPV4 if packet.len() >= 20 => {
            (packet[9], usize::from(packet[0] & 15) * 4, 12..20)
        }
        ETHERTYPE_IPV6 if packet.len() >= 40 => {
            let (protocol, start, _) = skip_extensions(packet);
            (protocol, start, 8..40)
        }
        _ => return false,
    };
    let field = match protocol {
        TCP => 16,
        UDP => 6,
        _ => return false,
    };
    if packet.len() < start + field + 2 {
        return false;
    }
    packet[start + field..start + field + 2].fill(0);
    let payload_len = (packet.len() - start) as u32;
    let sum = sum16(&packet[addresses]) + u64::from(protocol) + u64::from(payload_len);
    let checksum = match !fold(sum + sum16(&packet[start..])) {
        // For UDP a zero would say "no checksum".
        0 if protocol == UDP => 0xffff,
        sum => sum,
    };
    packet[start + field..start + field + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// The Internet checksum of `bytes` (RFC 1071).
pub fn internet_checksum(bytes: &[u8]) -> u16 {
    !fold(sum16(bytes))
}

fn flow_v4(packet: &[u8]) -> u64 {
    if packet.len() < 20 {
        return 0;
    }
    let header = usize::from(packet[0] & 15) * 4;
    // Only the first fragment has ports, so ports of fragments are ignored.
    let fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
    hash_flow(&packet[12..20], packet[9], packet.get(header..).filter(|_| !fragment))
}

fn flow_v6(packet: &[u8]) -> u64 {
    if packet.len() < 40 {
        return 0;
    }
    let (protocol, start, fragment) = skip_extensions(packet);
    hash_flow(&packet[8..40], protocol, packet.get(start..).filter(|_| !fragment))
}

/// The protocol behind an IPv6 packet's extension headers, its offset, and whether the packet is a
/// fragment. At most eight headers are parsed.
fn skip_extensions(packet: &[u8]) -> (u8, usize, bool) {
    let (mut protocol, mut at, mut fragment) = (packet[6], 40, false);
    for _ in 0..8 {
        let Some(header) = packet.get(at..at + 8) else { break };
        let len = match protocol {
            // Hop-by-hop, routing and destination options.
            0 | 43 | 60 => 8 + usize::from(header[1]) * 8,
            44 => {
                fragment = true;
                8
            }
            _ => break,
        };
        protocol = header[0];
        at += len;
    }
    (protocol, at, fragment)
}

fn hash_flow(addresses: &[u8], protocol: u8, transport: Option<&[u8]>) -> u64 {
    let ports = transport
        .filter(|_| WITH_PORTS.contains(&protocol))
        .and_then(|header| header.get(..4))
        .unwrap_or_default();
    // FNV-1a; the last step spreads it, because queues use it modulo small numbers.
    let bytes = addresses.iter().chain([&protocol]).chain(ports);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn mark_v4(packet: &mut [u8]) -> bool {
    if packet.len() < 20 || packet[1] & 3 == 0 {
        return false;
    }
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] |= 3;
    let after = u16::from_be_bytes([packet[0], packet[1]]);
    // RFC 1624: the checksum is updated incrementally; a wrong one stays wrong.
    let sum = u16::from_be_bytes([packet[10], packet[11]]);
    let changed = u64::from(!sum) + u64::from(!before) + u64::from(after);
    packet[10..12].copy_from_slice(&(!fold(changed)).to_be_bytes());
    true
}

fn mark_v6(packet: &mut [u8]) -> bool {
    // The traffic class spans the first two octets; its last two bits are 0x30 of octet 1.
    if packet.len() < 40 || packet[1] & 0x30 == 0 {
        return false;
    }
    packet[1] |= 0x30;
    true
}

fn sum16(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |&last| u64::from(last) << 8);
    words.map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u64>() + odd
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
#[path = "headers/tests.rs"]
mod tests;
