use super::*;

/// An Ethernet header of the given type, then `packet`.
fn frame(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x02; 12];
    frame.extend(ethertype.to_be_bytes());
    frame.extend(packet);
    frame
}

/// The IPv4 header of the example in Wikipedia: its checksum is 0xb861.
const KNOWN_HEADER: [u8; 20] = [
    0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01,
    0xc0, 0xa8, 0x00, 0xc7,
];

fn udp_v4(tos: u8, source_port: u16, payload: &[u8]) -> Vec<u8> {
    let total = 28 + payload.len() as u16;
    let mut packet = KNOWN_HEADER.to_vec();
    packet[1] = tos;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet[10..12].fill(0);
    let sum = internet_checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(source_port.to_be_bytes());
    packet.extend(53u16.to_be_bytes());
    packet.extend((total - 20).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

fn tcp_v6(traffic_class: u8, extension: bool) -> Vec<u8> {
    let mut packet = vec![0x60 | traffic_class >> 4, traffic_class << 4, 0, 0];
    let payload = if extension { 28u16 } else { 20 };
    packet.extend(payload.to_be_bytes());
    packet.extend([if extension { 0 } else { TCP }, 64]);
    packet.extend([0xfd; 16]);
    packet.extend([0xfe; 16]);
    if extension {
        packet.extend([TCP, 0, 1, 4, 0, 0, 0, 0]); // Hop-by-hop, padding only.
    }
    packet.extend(1000u16.to_be_bytes());
    packet.extend(80u16.to_be_bytes());
    packet.extend([0; 16]);
    packet
}

#[test]
fn checksum_of_a_known_header() {
    let mut header = KNOWN_HEADER;
    assert_eq!(internet_checksum(&header), 0);
    header[10..12].fill(0);
    assert_eq!(internet_checksum(&header), 0xb861);
}

#[test]
fn padding_and_tags_do_not_count() {
    let mut padded = frame(ETHERTYPE_IPV4, &udp_v4(0, 1, b"x"));
    padded.resize(60, 0);
    assert_eq!(network_len(&padded), 29);
    let six = frame(ETHERTYPE_IPV6, &tcp_v6(0, false));
    assert_eq!(network_len(&six), 60);
    // ARP has 28 octets, and 46 with Ethernet padding: no field tells which.
    assert_eq!(network_len(&frame(0x0806, &[0; 46])), 46);
    let mut tagged = six.clone();
    tagged.splice(12..12, [0x81, 0x00, 0x00, 0x07]);
    assert_eq!(network_len(&tagged), 60);
    assert_eq!(network_offset(&tagged), (18, ETHERTYPE_IPV6));
    assert_eq!(frame_flow(&tagged), frame_flow(&six));
}

#[test]
fn invalid_length_is_ignored() {
    let mut packet = udp_v4(0, 1, b"payload");
    packet[2..4].copy_from_slice(&1500u16.to_be_bytes());
    assert_eq!(network_len(&frame(ETHERTYPE_IPV4, &packet)), 35);
    packet[2..4].copy_from_slice(&3u16.to_be_bytes());
    assert_eq!(network_len(&frame(ETHERTYPE_IPV4, &packet)), 35);
}

#[test]
fn flows_differ_by_port_and_fragments_stay_together() {
    let flow = |packet: &[u8]| frame_flow(&frame(ETHERTYPE_IPV4, packet));
    let (one, two) = (udp_v4(0, 1, b""), udp_v4(0, 2, b""));
    assert_ne!(flow(&one), flow(&two));
    assert_eq!(flow(&one), flow(&udp_v4(2, 1, b"another length and mark")));
    let fragment = |mut packet: Vec<u8>| {
        packet[6] |= 0x20;
        packet
    };
    assert_eq!(flow(&fragment(one)), flow(&fragment(two)));
    let six = |packet: &[u8]| frame_flow(&frame(ETHERTYPE_IPV6, packet));
    assert_eq!(six(&tcp_v6(0, false)), six(&tcp_v6(0, true)));
    let mut other = tcp_v6(0, true);
    other[49] ^= 1; // The low byte of the source port, behind the extension header.
    assert_ne!(six(&other), six(&tcp_v6(0, true)));
    assert_eq!(frame_flow(&frame(0x0806, &[1; 28])), 0);
}

#[test]
fn marks_need_ecn_capable_packets_and_keep_the_checksum() {
    for (ecn, marked) in [(0, false), (1, true), (2, true), (3, true)] {
        let mut bytes = frame(ETHERTYPE_IPV4, &udp_v4(0xb8 | ecn, 1, b"ef"));
        assert_eq!(frame_ecn(&bytes), ecn);
        let before = bytes.clone();
        assert_eq!(mark_frame(&mut bytes), marked, "IPv4, ECN {ecn}");
        assert_eq!(internet_checksum(&bytes[14..34]), 0);
        if marked {
            assert_eq!(bytes[15], 0xbb);
        } else {
            assert_eq!(bytes, before);
        }
        let mut bytes = frame(ETHERTYPE_IPV6, &tcp_v6(0xb8 | ecn, false));
        assert_eq!(frame_ecn(&bytes), ecn);
        assert_eq!(mark_frame(&mut bytes), marked, "IPv6, ECN {ecn}");
        let class = bytes[14] << 4 | bytes[15] >> 4;
        assert_eq!(class, if marked { 0xbb } else { 0xb8 });
    }
}

#[test]
fn completed_checksums_are_valid() {
    // A receiver sums the pseudo-header and the whole segment and expects all ones.
    let verifies = |addresses: &[u8], protocol: u8, segment: &[u8]| {
        let sum = sum16(addresses) + u64::from(protocol) + segment.len() as u64;
        fold(sum + sum16(segment)) == 0xffff
    };
    let mut udp = frame(ETHERTYPE_IPV4, &udp_v4(0, 4000, b"odd"));
    udp[40..42].copy_from_slice(&[0x12, 0x34]); // What a partial sum leaves behind.
    udp.resize(60, 0); // Padding must not be summed.
    assert!(complete_checksum(&mut udp));
    assert!(verifies(&udp[26..34], UDP, &udp[34..45]));
    for extension in [false, true] {
        let mut tcp = frame(ETHERTYPE_IPV6, &tcp_v6(0, extension));
        assert!(complete_checksum(&mut tcp));
        let start = if extension { 62 } else { 54 };
        assert!(verifies(&tcp[22..54], TCP, &tcp[start..]));
        tcp[start] ^= 1;
        assert!(!verifies(&tcp[22..54], TCP, &tcp[start..]));
    }
    assert!(!complete_checksum(&mut frame(0x0806, &[0; 28])));
}

#[test]
fn any_frame_is_handled() {
    let whole = frame(ETHERTYPE_IPV6, &tcp_v6(3, true));
    let other = frame(ETHERTYPE_IPV4, &udp_v4(3, 9, b"abc"));
    for bytes in [whole, other] {
        for len in 0..bytes.len() {
            for flip in 0..len {
                let mut cut = bytes[..len].to_vec();
                cut[flip] ^= 0xff;
                assert!(network_len(&cut) <= len);
                frame_flow(&cut);
                mark_frame(&mut cut);
                complete_checksum(&mut cut);
            }
        }
    }
}
