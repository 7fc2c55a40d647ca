//! Captures, octet for octet and as parsed by a reader.

use super::*;
use crate::Network;
use crate::host::{BulkReceiver, BulkSender, Host, Xstp, XstpStream};
use satlink::LinkConfig;
use simtcp::{Flags, Options, Ports, Segment};
use std::cell::RefCell;
use std::rc::Rc;
use units::Span;
use xstp::session::SessionConfig;

/// A file in memory that can be read while it is written.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The blocks of a capture: kind and body.
fn blocks(bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let len = word(at + 4) as usize;
        assert_eq!((len % 4, word(at + len - 4) as usize), (0, len), "both lengths agree");
        found.push((word(at), &bytes[at + 8..at + len - 4]));
        at += len;
    }
    found
}

/// A packet block's packet.
fn packet_of(body: &[u8]) -> &[u8] {
    let len = u32::from_le_bytes(body[12..16].try_into().expect("four")) as usize;
    &body[20..20 + len]
}

fn nodes() -> [Address; 2] {
    let mut net = Network::new(1, 0);
    [(net.router(), 1_000), (net.router(), 80)].map(|(node, port)| Address::new(node, port))
}

#[test]
fn a_datagram_has_its_headers() {
    let [from, to] = nodes();
    let file = Shared::default();
    let mut capture = Capture::new(Box::new(file.clone()), "test");
    let at = Instant::from_nanos(5_000_000_001);
    capture.packet(
        at,
        PacketDirection::Outbound,
        &Packet::udp(from, to, vec![1, 2, 3]).with_header(32),
    );
    assert_eq!(capture.finish().expect("nothing fails"), 1);
    let bytes = file.0.borrow();
    let blocks = blocks(&bytes);
    assert_eq!(blocks.iter().map(|block| block.0).collect::<Vec<_>>(), [0x0a0d_0d0a, 1, 6]);
    assert_eq!(blocks[1].1[..2], LINKTYPE_IPV4.to_le_bytes());
    let body = blocks[2].1;
    // 5,000,000,001 is 1 · 2^32 + 705,032,705.
    assert_eq!(body[4..12], [1, 0, 0, 0, 1, 0xf2, 5, 0x2a]);
    #[rustfmt::skip]
    let expected = [
        // IPv4: 35 octets, identification 0, don't fragment, TTL 64, UDP. The words except the
        // checksum add up to 4500 + 23 + 4000 + 4011 + a00 + 1 + a00 + 2 = d937.
        0x45, 0, 0, 35, 0, 0, 0x40, 0, 64, 17, 0x26, 0xc8, 10, 0, 0, 1, 10, 0, 0, 2,
        // UDP: ports, 15 octets.
        0x03, 0xe8, 0, 80, 0, 15, 0, 0,
        // Other octets below the payload, and the payload.
        0, 0, 0, 0, 1, 2, 3,
    ];
    assert_eq!(packet_of(body), expected);
}

#[test]
fn a_tcp_segment_has_its_options_bytes_and_checksum() {
    let [from, to] = nodes();
    let mut options = Options { timestamps: Some((7, 9)), ..Options::default() };
    assert!(options.sack.push((3_000, 4_000)));
    let segment = Segment {
        ports: Ports { from: 1_000, to: 80 },
        sequence: (1 << 32) + 5,
        acknowledgement: Some(17),
        window: 1_024,
        flags: Flags::default(),
        ecn: Ecn::Capable,
        options,
        payload: simtcp::Payload { content: 3, offset: 40, len: 9 },
    };
    let len = segment.len();
    let packet = Packet::tcp(from.node, to.node, Box::new(segment));
    let mut out = Vec::new();
    write_packet(&mut out, &packet, 0);
    let tcp = &out[IPV4..];
    assert_eq!((tcp.len(), out[9], out[1]), (len, 6, 2), "ECT(0) is 2");
    assert_eq!(tcp[4..12], [0, 0, 0, 5, 0, 0, 0, 17]);
    assert_eq!(tcp[12..16], [0xb0, 0x18, 4, 0], "eleven words, PSH and ACK");
    assert_eq!(tcp[20..32], [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9]);
    assert_eq!(tcp[32..44], [1, 1, 5, 10, 0, 0, 0x0b, 0xb8, 0, 0, 0x0f, 0xa0]);
    assert_eq!(crate::Pattern(3).mismatch(40, &tcp[44..]), None);
    // A segment with its checksum and its pseudo-header add up to zero.
    let pseudo = [10, 0, 0, 1, 10, 0, 0, 2, 0, 6, 0, len as u8];
    assert_eq!(checksum(&[&pseudo, tcp]), 0);
}

#[test]
fn packets_at_an_end_of_a_link_are_captured() {
    let config = SessionConfig::stp_1999();
    let mut net = Network::new(1, 0);
    let sink = net.host_with(|node| {
        Host::new(Xstp::server(node, &config, 80), BulkReceiver::<XstpStream>::new(3))
    });
    let source = net.host_with(|node| {
        let transport = Xstp::client(node, &config, Address::new(sink, 80));
        Host::new(transport, BulkSender::<XstpStream>::new(Instant::ZERO, 20_000, 3))
    });
    let link = net.link(source, sink, &LinkConfig::default());
    let file = Shared::default();
    net.capture(link, sink, file.clone());
    net.run_until(Instant::ZERO + Span::from_secs(10));
    net.finish_captures().expect("nothing fails");
    let bytes = file.0.borrow();
    let (mut ways, mut payload) = ([0, 0], 0);
    for (kind, body) in &blocks(&bytes)[2..] {
        let packet = packet_of(body);
        assert_eq!((*kind, packet[9]), (6, 253), "XSTP as published");
        assert_eq!(checksum(&[&packet[..IPV4]]), 0);
        let total = u16::from_be_bytes([packet[2], packet[3]]);
        assert_eq!(usize::from(total), packet.len());
        let flags = body[body.len() - 8];
        ways[usize::from(flags == 2)] += 1;
        payload += if flags == 1 { packet.len() } else { 0 };
    }
    assert!(payload > 20_000 && ways[0] > 14 && ways[1] > 2, "{payload} {ways:?}");
}

#[test]
fn write_errors_are_returned() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is full"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut net = Network::new(1, 0);
    let ends = [net.router(), net.router()];
    let link = net.link(ends[0], ends[1], &LinkConfig::default());
    net.capture(link, ends[0], Full);
    assert_eq!(net.finish_captures().unwrap_err().to_string(), "the disk is full");
    net.finish_captures().expect("they are ended");
}
